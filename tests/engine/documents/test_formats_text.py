import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.documents.document import Section
from engine.documents.loaders import parse_file
from engine.wording import DIRECTIONS
from tests.one_document import parse_document, rows_of

# What a reader changes, and a binary zero.
CHANGED = "\0\u00ad\ufb00\ufb01\ufb02\ufb03\ufb04\ufb05\ufb06" + "".join(map(chr, DIRECTIONS))


def headed(document):
    """Every section's headings with the line that it begins at."""
    return [(s.headings, document.text[s.start :].split("\n")[0]) for s in document.sections]


@given(
    st.text(st.characters(exclude_characters=CHANGED, codec="utf-8")).filter(
        lambda text: text.strip() and not text.startswith("\ufeff")
    )
)
def test_a_text_is_kept_but_for_its_line_ends_and_marks_of_typesetting(text):
    for name in ("a.txt", "a.md", "a.py"):
        kept = parse_document(name, text.encode()).text
        assert kept == text.replace("\r\n", "\n").replace("\r", "\n")


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("naïve café", "utf-16"),
        ("naïve café", "utf-32"),
        ("naïve café", "utf-8-sig"),
        ("El niño comió mañana en la montaña.", "latin-1"),
        ("“Smart quotes” – and a dash", "cp1252"),
    ],
)
@pytest.mark.reads(
    "text, code",
    "the text; UTF-8, UTF-16 and UTF-32 with a byte order mark, and old encodings by their letters",
)
def test_encodings_are_known_by_their_mark_or_their_letters(text, encoding):
    assert parse_document("a.txt", text.encode(encoding)).text == text


def test_markdown_keeps_its_text_and_knows_its_headings():
    text = "pre\n# A #\ntext\n```py\n# code\n~~~\n``` \n   ## B\n    # code\n#tag\n#\n### C ##x\n# D\n"
    document = parse_document("a.md", text.encode())
    assert (document.text, document.title) == (text, "A")
    assert headed(document) == [
        (("A",), "# A #"),
        (("A", "B"), "## B"),
        (("A", "B", "C ##x"), "### C ##x"),
        (("D",), "# D"),
    ]
    assert document.section_at(2) == Section(0)
    assert document.section_at(text.index("text")).headings == ("A",)
    assert parse_document("a.md", b"## Part\ntext\n# Whole").title == ""


def test_html_gives_its_visible_lines_title_and_headings():
    page = b"""<html><head><title> My
        page</title><style>p {}</style></head><body onload="alert(1)">intro<h1>One<br>two</h1>
        <p>a <b>b</b>c<!-- not this -->d &amp; e<script>alert("<p>x</p>")</script>
        <h3><div>Deep</div></h3><table><tr> <td>1</td> <td>2<tr><td>3<td>4</table>
        <ul><li>x<li>y</ul><pre>  code
    more</pre>tail<svg><text>drawn</text></svg><h2>Two</h2>end<br>line<noscript>off</noscript></body>"""
    document = parse_document("a.html", page)
    assert document.title == "My page"
    assert document.text == (
        "intro\n\nOne two\n\na bcd & e\n\nDeep\n\n1 | 2\n3 | 4\n\nx\ny\n\n"
        "  code\n    more\n\ntail\n\nTwo\n\nend\nline"
    )
    assert headed(document) == [
        (("One two",), "One two"),
        (("One two", "Deep"), "Deep"),
        (("One two", "Two"), "Two"),
    ]


def test_an_html_heading_ends_where_its_element_does():
    picture = b"<img src='data:image/png;base64," + b"iVBO/Rw0 K=" * 20_000 + b"' alt='a > b'>"
    document = parse_document("a.html", b"<h1><img></h1><p>te" + picture + b"xt<h2>Part<p>more")
    assert (document.title, document.text) == ("", "te [a > b] xt\n\nPart\n\nmore")
    assert headed(document) == [(("Part",), "Part")]


@pytest.mark.reads("CSV, TSV", "numbers of rows as headings, counted as in a spreadsheet")
def test_csv_gives_a_document_whose_rows_are_counted_as_in_a_spreadsheet():
    document = parse_document("a.csv", b'id,Title,\n1,T,"hello\n\nworld"\n\n2,U,x;y\n,,\n3\n')
    assert rows_of(document) == [
        (("row 2", "T"), "id: 1\nTitle: T\ncolumn 3: hello\n\nworld"),
        (("row 4", "U"), "id: 2\nTitle: U\ncolumn 3: x;y"),
        (("row 6",), "id: 3"),
    ]
    assert document.text == "\n\n".join(text for _, text in rows_of(document))
    assert document.section_at(document.text.index("x;y")).headings == ("row 4", "U")


def test_csv_gives_one_column_on_request_whatever_parts_the_cells():
    for mark in ",;\t|":
        content = f'id{mark}text\n1{mark}"a{mark}b"\n2\n3{mark}c'.encode()
        [document] = parse_file("a.csv", content, csv_column="text").documents
        assert rows_of(document) == [(("row 2",), f"a{mark}b"), (("row 4",), "c")]


@pytest.mark.leaves_out("CSV, TSV", "rows with more cells than the header where most have not, each a line")
def test_a_csv_row_of_too_many_cells_fails_by_itself():
    loaded = parse_file("a.csv", b"id,text\n1,a,b\n2,c\n")
    assert [d.text for d in loaded.documents] == ["id: 2\ntext: c"]
    assert loaded.failures[0].name == "a.csv#2"
    assert "3 cells where the header has 2" in loaded.failures[0].reason
    assert (
        parse_document("a.csv", b"id;text\n1;a;b\n2;c\n").text
        == "id: 1\ntext: a\ncolumn 3: b\n\nid: 2\ntext: c"
    )
    [failure] = parse_file("a.csv", b"id,text\n1,a", csv_column="body").failures
    assert "no column body: choose one of id, text" in failure.reason


@pytest.mark.reads("JSONL, JSON", "one document whose lines are rows")
@pytest.mark.leaves_out("JSONL, JSON", "lines without a text, each a line")
def test_jsonl_gives_a_row_a_line_and_goes_on_after_a_bad_one():
    records = [{"title": "T\n1", "content": "a\r\nb"}, [1], {"content": 7}, {"content": "\ud83d\ude00\ud800"}]
    lines = [*map(json.dumps, records), "", "{bad", '{"content": "last"}']
    loaded = parse_file("a.jsonl", "\n".join(lines).encode())
    [document] = loaded.documents
    assert rows_of(document) == [
        (("row 1", "T 1"), "a\nb"),
        (("row 4",), "\U0001f600\ufffd"),
        (("row 7",), "last"),
    ]
    assert [f.name for f in loaded.failures] == ["a.jsonl#2", "a.jsonl#3", "a.jsonl#6"]


@pytest.mark.reads("notebooks (format 4)", "Markdown, code, raw cells")
def test_a_notebook_gives_markdown_code_and_outputs():
    cells = [
        {"cell_type": "markdown", "source": ["# Top\n", "text"]},
        {"cell_type": "code", "source": "# comment\nx = 1", "outputs": [{"text": "put out"}]},
        {"cell_type": "raw", "source": "raw"},
        {"cell_type": "markdown", "source": "## Sub\nmore"},
    ]
    document = parse_document("a.ipynb", json.dumps({"cells": cells, "nbformat": 4}).encode())
    assert document.text == "# Top\ntext\n\n# comment\nx = 1\n\nput out\n\nraw\n\n## Sub\nmore"
    assert document.title == "Top"
    assert headed(document) == [(("Top",), "# Top"), (("Top", "Sub"), "## Sub")]


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.txt", b"\xff\xfea", "begins as UTF-16 and is not"),
        ("a.txt", bytes(range(1, 256)) * 4, "not text in UTF-8"),
        ("a.txt", b"text\0text", "binary"),
        ("a.txt", b"%PDF-1.7\n", "a.txt is a PDF, not text"),
        ("a.txt", b"\x89PNG\r\n\x1a\n\0", "a PNG image"),
        ("a.txt", b"PK\x03\x04\0", "a ZIP archive or Office file"),
        ("a.html", b"<script>document.write('text')</script>", "shows no text"),
        ("a.csv", b"sep=;\n\n", "holds no text"),
        ("a.html", b"&#2;<p>\x01</p>", "shows no text"),
        ("a.html", b"<div>" * 3000 + b"text", "nests its elements deeper than 2048"),
        ("a.html", b"<p " + b" ".join(b"a%d" % i for i in range(20_000)) + b">text", "over 2000 attributes"),
        ("a.csv", b'id,text\n1,ok\n2,"lost\n3,x\n', "from line 3 on, in row 3 .*fix the quotes"),
        ("a.csv", b'id,text\n1,"ok\nok"\n2,"lo"st\n', "from line 4 on, in row 3"),
        ("a.csv", b"text\n" + b"x" * 200_000, "from line 2 on, .*field larger.* a file of its own"),
        ("a.csv", b"id,text\n", "a header and no rows"),
        ("a.jsonl", b'{"name": null, "words": ""}', "its keys are: name, words"),
        ("a.jsonl", b"[" * 100_000, "nests its JSON too deep"),
        ("a.jsonl", b"1" * 5000, "is not JSON"),
        ("a.jsonl", b"3", "no JSON object"),
        ("a.ipynb", b"not json", "is not JSON"),
        ("a.ipynb", b'{"a":' * 100_000, "nests its JSON too deep"),
        ("a.ipynb", b'{"worksheets": []}', "has no cells: save it as a notebook of format 4"),
        ("a.ipynb", b'{"cells": [{"cell_type": "code", "source": []}, 3]}', "is empty"),
    ],
)
def test_what_gives_no_text_says_why_in_a_line(name, content, reason):
    loaded = parse_file(name, content)
    assert loaded.documents == ()
    [failure] = loaded.failures
    assert re.search(reason, failure.reason)
    assert "\n" not in failure.reason
