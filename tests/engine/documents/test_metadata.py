import io
from datetime import UTC, datetime

import docx
import pytest
from pypdf import PdfReader, PdfWriter

from engine.documents.formats.metadata import MAX_TAG, MAX_TAGS, date_of, front_matter, tags_of
from engine.documents.loaders import parse_file
from tests.one_document import parse_document
from tests.pdf_file import make_pdf

DAY, TAGS = "2026-05-01", ("bees", "the garden")


def saved(save):
    """What a library writes to a file."""
    buffer = io.BytesIO()
    save(buffer)
    return buffer.getvalue()


def word():
    document = docx.Document()
    document.add_paragraph("text")
    document.core_properties.modified = datetime(2026, 5, 1, 23, 30)
    document.core_properties.keywords = "bees; the garden"
    return saved(document.save)


def pdf():
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(make_pdf("text"))))
    writer.add_metadata({"/CreationDate": "D:20250101000000Z", "/ModDate": "D:20260501120000+02'00'"})
    writer.add_metadata({"/Keywords": "bees, the garden"})
    return saved(writer.write)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.md", b"---\ntitle: T\ndate: 2026-05-01\ntags: [bees, the garden]\n---\n# T\ntext"),
        ("a.md", b"---\ndate: 2026-05-01\ntags: bees, the garden\n...\ntext"),
        (
            "a.html",
            b'<head><meta property="article:published_time" content="2026-05-01T08:00:00Z">'
            b'<meta name="Keywords" content="bees, the garden, bees"></head><p>text',
        ),
        ("a.docx", word()),
        ("a.pdf", pdf()),
    ],
)
def test_a_file_states_its_day_and_tags(name, content):
    document = parse_document(name, content)
    assert (document.date, document.tags) == (DAY, TAGS)
    assert "text" in document.text


def test_a_word_file_without_properties_states_none():
    document = docx.Document(io.BytesIO(word()))
    links = document.part.package.rels
    links.pop(next(key for key, each in links.items() if each.reltype.endswith("/core-properties")))
    assert (read := parse_document("a.docx", saved(document.save))).text == "text"
    assert (read.title, read.date, read.tags) == ("", "", ())


@pytest.mark.reads("JSONL, JSON", "a document a line where lines have a `date` or `tags`")
def test_a_line_of_json_states_its_day_and_tags():
    content = (
        b'{"text": "a", "date": "2026-05-01", "tags": ["bees", 5, "the garden"]}\n{"text": "b", "date": 5}'
    )
    first, second = parse_file("a.jsonl", content).documents
    assert (first.date, first.tags) == (DAY, TAGS)
    assert (second.date, second.tags) == ("", ())


@pytest.mark.parametrize(
    "text",
    [
        "# No front matter\ndate: 2026-05-01",
        "---\nA rule, and another one: [\n---\ntext",
        "---\njust words\n---\n",
        "---\n" + "[" * 5000 + "\n---\n",
        "---\nx: " + "y" * 20_000 + "\ndate: 2026-05-01\n---\n",
        " ---\ndate: 2026-05-01\n---\n",
    ],
)
def test_other_beginnings_state_nothing(text):
    document = parse_document("a.md", text.encode())
    assert (document.text, document.date, document.tags) == (text, "", ())


def test_mappings_that_would_double_with_every_line_are_not_merged():
    lines = ["a0: &a0 {x: 1}"]
    lines += [f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}" for n in range(1, 12)]
    values, _ = front_matter("---\n" + "\n".join(lines) + "\ndate: 2026-05-01\n---\n")
    assert values["date"] == DAY


@pytest.mark.parametrize(
    "value", [None, "", "May", "2026-13-01", 20260501, ["2026-05-01"], "2026-05-01 or so"]
)
def test_what_is_no_date_is_none(value):
    assert date_of(value) == ""


def test_a_time_is_the_day_that_it_states():
    assert date_of(datetime(2026, 5, 1, 23, 59, tzinfo=UTC)) == date_of(" 2026-05-01T23:59-11:00 ") == DAY


def test_tags_are_few_and_short():
    tags = tags_of([f"{n}" * 200 for n in range(200)])
    assert len(tags) <= MAX_TAGS
    assert {len(tag) for tag in tags} == {MAX_TAG}
    assert tags_of({"a": 1}) == tags_of(5) == ()
