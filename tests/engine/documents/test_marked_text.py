"""Markdown, notebooks, JSON and the names in archives, as their readers see them."""

import io
import json
import zipfile

import pytest

from engine.documents.loaders import parse_file
from tests.one_document import parse_document, rows_of

PICTURE = "data:image/png;base64," + "iVBORw0KGgo" * 3000


@pytest.mark.parametrize(
    ("text", "headings"),
    [
        ("House\n=====\n\nWater\n---\nx\n\n---\ny", ["House", "House > Water"]),
        ("Two lines\nof a title\n===\nx", ["Two lines of a title"]),
        ("| a | b |\n|---|---|\n| 1 | 2 |\n\n- item\n---\n> quote\n---\n", []),
        ("# A\n<!--\n# Old\n-->\n## B", ["A", "A > B"]),
        ("# A\n\n1. Do:\n\n    ```sh\n# no\n    ```\n2. And\n   ~~~\n   # no\n   ~~~\n## B", ["A", "A > B"]),
        ("- ```\n  # no\n  ```\n# B", ["B"]),
        ("# A\n\n    # code\n\n\t# code\n\n    ```\n# B", ["A", "B"]),
        ('<h1 align="center">A <b>x</b></h1>\n\n<h2>B</h2>\nx', ["A x", "A x > B"]),
        ("---\n# no heading\ntitle: T\n---\n# A", ["A"]),
        ("+++\n# no heading\ntitle = 'T'\n+++\n# A", ["A"]),
        ("```html\n<!-- kept\n# no\n```\n# A", ["A"]),
    ],
)
@pytest.mark.reads("Markdown", "the text, and headings with `#`, underlined, and `<h1>`, outside of code")
def test_headings_are_those_that_a_reader_sees(text, headings):
    document = parse_document("a.md", text.encode())
    assert [" > ".join(section.headings) for section in document.sections] == headings
    for section in document.sections:
        assert section.headings[-1].split()[0] in document.text[section.start :][:40]


@pytest.mark.parametrize(
    ("matter", "title", "date", "tags"),
    [
        ("---\n# a comment\ntitle: T\ndate: 2026-3-1\ntags: [a]\n---", "T", "2026-03-01", ("a",)),
        ("---\ndate: March 1, 2026\nkeywords: [a, b]\n---", "A", "2026-03-01", ("a", "b")),
        ("---\ndate: 2026-03-01 08:30:00 +0200\ntags: a, b\n---", "A", "2026-03-01", ("a", "b")),
        ("+++\ntitle = 'T'\ndate = 2026-03-01\ntags = ['a']\n+++", "T", "2026-03-01", ("a",)),
        ("+++\ndate = 2026-03-01T08:00:00Z\n+++", "A", "2026-03-01", ()),
        ("+++\nno TOML\n+++", "A", "", ()),
    ],
)
@pytest.mark.reads("Markdown", "title, date and tags of YAML or TOML")
def test_front_matter_of_yaml_and_toml(matter, title, date, tags):
    document = parse_document("a.md", f"{matter}\n# A\nx".encode())
    assert (document.title, document.date, document.tags) == (title, date, tags)
    assert document.text.startswith(matter)


@pytest.mark.parametrize(
    ("text", "shown", "note"),
    [
        (f"a\n\n![plan]({PICTURE})\n\nb", "a\n\n![plan]()\n\nb", "1 embedded picture"),
        (
            f"![p][q] <img src='{PICTURE}'>\n\n[q]: {PICTURE}\n",
            "![p][q] <img src=''>\n\n[q]: \n",
            "2 embedded pictures",
        ),
        ("a <!-- not this --> b\n<!--\nnor\n\nthis -->\nc", "a  b\nc", "2 comments"),
        ("`<!--` opens one, `-->` closes it", "`<!--` opens one, `-->` closes it", ""),
        ("a\n\n[//]: # (not this)\nb", "a\n\nb", "1 comment"),
        ("a <!-- never closed", "a <!-- never closed", ""),
        ("data:text is a word", "data:text is a word", ""),
    ],
)
@pytest.mark.leaves_out("Markdown", "comments, and pictures embedded as data")
def test_comments_and_embedded_pictures_are_left_out_and_counted(text, shown, note):
    document = parse_document("a.md", text.encode())
    assert document.text == shown
    assert note in document.notes[0] if note else document.notes == ()


@pytest.mark.reads("Markdown", "tables in HTML as rows")
def test_tables_in_html_are_read_as_rows_outside_of_code():
    table = "<table>\n<tr><th>Class<th>Fee</tr>\n<tr><td rowspan=2>A<td>10 &euro;<tr><td>12</table>"
    text = parse_document(
        "a.md", f"# Fees\n{table}\nper day\n```\n{table}\n```\n`<table>` <!-- {table} -->".encode()
    ).text
    assert text == f"# Fees\nClass | Fee\nA | 10 €\nA | 12\n\nper day\n```\n{table}\n```\n`<table>` "


@pytest.mark.parametrize(
    ("output", "text"),
    [
        ({"output_type": "stream", "text": ["Best: ", "June\n"]}, "Best: June"),
        ({"output_type": "execute_result", "data": {"text/plain": ["48210"]}}, "48210"),
        ({"data": {"text/html": "<table><tr><td>a<td>1</table>", "text/plain": "   a  1"}}, "a | 1"),
        ({"data": {"text/markdown": "**48**", "text/plain": "<IPython.core>"}}, "**48**"),
        ({"output_type": "error", "ename": "ValueError", "evalue": "no \x1b[31mkey"}, "ValueError no key"),
        ({"data": {"image/png": "iVBORw", "text/plain": "<Figure size 640x480 with 1 Axes>"}}, ""),
        ({"text": 3, "data": [1]}, ""),
        (5, ""),
    ],
)
@pytest.mark.reads("notebooks (format 4)", "the text of outputs")
@pytest.mark.leaves_out(
    "notebooks (format 4)", "pictures among the outputs", "(all outputs but the first kind of each)"
)
def test_outputs_of_cells_are_read(output, text):
    cells = [{"cell_type": "code", "source": "run()", "outputs": [output]}]
    document = parse_document("a.ipynb", json.dumps({"cells": cells}).encode())
    assert document.text == f"run()\n\n{text}".rstrip()
    assert ("picture" in "".join(document.notes)) == ("image/png" in str(output))


TALK = [{"role": "user", "content": "Where?"}, {"role": "assistant", "content": "Here."}]
READ = "user: Where?\n\nassistant: Here."
SAID = [{"type": "text", "text": "Here."}]
PARTS = [{"from": "user", "value": "Where?"}, {"from": "assistant", "value": SAID}]
NODES = {
    "0": {"message": None},
    "1": {"message": {"author": {"role": "user"}, "content": {"parts": ["Where?"]}}},
    "2": {"message": {"author": {"role": "assistant"}, "content": {"parts": ["Here."]}}},
}


@pytest.mark.parametrize(
    ("name", "content", "texts", "n_failures"),
    [
        ("a.jsonl", [{"messages": TALK}, {"messages": TALK}], [READ, READ], 0),
        ("a.jsonl", [{"conversations": PARTS}], [READ], 0),
        ("a.jsonl", [{"id": 1, "text": None}, {"id": 2, "text": "b"}], ["b"], 1),
        ("a.jsonl", [5, {"text": "b"}, {"content": "c"}], ["b", "c"], 1),
        ("a.jsonl", [{"question": "Where?", "answer": "Here."}], ["question: Where?\nanswer: Here."], 0),
        ("a.jsonl", [{"text": "b", "price": 4}], ["b"], 0),
        ("a.jsonl", [{"a": "x", "b": {"c": 2.5, "d": [1, 2]}}, {"a": ""}], ["a: x\nb.c: 2.5\nb.d: 1, 2"], 1),
        (
            "a.jsonl",
            [{"question": "Who?", "answers": ["Ann", "Bo"]}],
            ["question: Who?\nanswers: Ann\nBo"],
            0,
        ),
        ("a.ndjson", [{"text": "K\u00fcche \ud83d\ude00"}], ["Küche \U0001f600"], 0),
        ("a.json", [{"title": "T", "mapping": NODES}], ["T", READ], 0),
        ("a.json", [[{"title": "T", "mapping": NODES}]], ["T", READ], 0),
        ("a.json", [TALK], [READ], 0),
        ("a.json", [[{"role": "A", "tool_calls": [{"name": "b"}]}]], ["A: tool.1.name: b"], 0),
        ("a.json", [[{"title": t, "mapping": NODES} for t in "ab"]], [f"a\n\n{READ}\n\n\nb\n\n{READ}"], 0),
        ("a.json", [[{"user": "A", "text": "", "attachments": [{"text": "b"}]}]], ["A: b"], 0),
        ("a.json", [[{"user": "A", "blocks": [{"elements": [{"elements": [{"text": "b"}]}]}]}]], ["A: b"], 0),
        ("a.jsonl", [["id", "b"], [1, "c"]], ["column 1: id\ncolumn 2: b", "column 1: 1\ncolumn 2: c"], 0),
        ("a.json", [{"name": "Chat", "messages": PARTS}], ["Chat", READ], 0),
        ("a.json", [{"key": "K\u00fcche", "line": "a\nb"}], ['{"key": "Küche", "line": "a\nb"}'], 0),
        ("a.json", ['"\\u0022"'], ['"\\"\\\\u0022\\""'], 0),
    ],
)
@pytest.mark.reads(
    "JSONL, JSON",
    "`text` and the like, conversations as `user: …`, questions with answers, or else all fields",
)
def test_texts_and_conversations_in_json(name, content, texts, n_failures):
    loaded = parse_file(name, "\n".join(map(json.dumps, content)).encode())
    [document] = loaded.documents
    assert document.text == "\n\n".join(texts)
    assert [text for _, text in rows_of(document)] == (texts if name != "a.json" else [])
    assert len(loaded.failures) == n_failures
    assert any("left out: price" in note for note in document.notes) == ("price" in str(content))


@pytest.mark.parametrize("indent", [1, None])
def test_json_lines_written_as_one_list_are_read(indent):
    document = parse_document("a.jsonl", json.dumps([{"text": "a"}, {"text": "b"}], indent=indent).encode())
    assert rows_of(document) == [(("row 1",), "a"), (("row 2",), "b")]


def archive(name):
    """A ZIP archive of one file whose name has these bytes, and no mark of their encoding."""
    buffer = io.BytesIO()
    stand_in = "n" * len(name)
    with zipfile.ZipFile(buffer, "w") as file:
        file.writestr(stand_in, "text")
    return buffer.getvalue().replace(stand_in.encode(), name)


@pytest.mark.parametrize(
    ("encoding", "names"),
    [
        ("cp932", "会議メモ.txt 議事録ソース.txt"), ("gbk", "会议记录.txt 合同与发票.txt"),
        ("cp866", "Протокол.txt"), ("cp437", "MüllerGröße.txt"), ("utf-8", "Küche.txt 会議メモ.txt"),
    ],
)  # fmt: skip
@pytest.mark.reads("ZIP", "names of Windows in other encodings")
def test_names_in_archives_of_windows(encoding, names):
    for name in names.split():
        [document] = parse_file("a.zip", archive(name.encode(encoding))).documents
        assert document.name == f"a.zip/{name}"


@pytest.mark.reads("ZIP", "folders with `\\\\`")
def test_backslashes_in_archives_are_folders_and_do_not_lead_out():
    [document] = parse_file("a.zip", archive(b"notes\\may\\a.txt")).documents
    assert document.name == "a.zip/notes/may/a.txt"
    [failure] = parse_file("a.zip", archive(b"..\\..\\a.txt")).failures
    assert "points out of the archive" in failure.reason
