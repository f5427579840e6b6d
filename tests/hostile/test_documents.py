"""Documents of millions of elements: refused or read within seconds and some hundred megabytes."""

import zlib
from io import BytesIO
from zipfile import ZIP_DEFLATED, ZipFile

import docx
import numpy as np
import openpyxl
import pytest

from engine.documents.loaders import parse_file
from engine.documents.token_spans import LONGEST_BLOCK, blocks_of, token_spans
from engine.tokenizers.wordpiece import WordPieceTokenizer
from engine.weights.catalog import DEFAULT_ENCODER
from engine.weights.fetch import model_path
from tests.hostile.child import in_child
from tests.pdf_file import pdf_of
from tests.text_files import packed

N_BYTES = 19_000_000
MAIN = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
WORD = f'<w:document xmlns:w="{MAIN}"><w:body>{{}}</w:body></w:document>'


def repeated(unit):
    return unit * (N_BYTES // len(unit))


def word(name="word/document.xml", xml=""):
    """A Word file with one part replaced."""
    plain, file = BytesIO(), BytesIO()
    docx.Document().save(plain)
    with ZipFile(plain) as source, ZipFile(file, "w", ZIP_DEFLATED) as archive:
        for part in source.infolist():
            archive.writestr(part.filename, xml if part.filename == name else source.read(part))
    return file.getvalue()


def pdf(n_pages, stream, n_filters):
    """A PDF whose pages share one stream, packed several times."""
    for _ in range(n_filters):
        stream = zlib.compress(stream, 9)
    kids = b" ".join(b"%d 0 R" % (5 + page) for page in range(n_pages))
    about = b"<</Length %d/Filter[%s]>>" % (len(stream), b"/FlateDecode" * n_filters)
    page = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Contents 4 0 R/Resources<</Font<</F 3 0 R>>>>>>"
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[%s]/Count %d>>" % (kids, n_pages),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
        b"%s stream\n%s\nendstream" % (about, stream),
        *[page] * n_pages,
    ]
    return pdf_of(objects)


REFUSED = {
    **{
        f"page of {unit.decode()}": ("a.html", lambda unit=unit: repeated(unit), "1200000 elements")
        for unit in (b"<li>", b"x<br>")
    },
    "paragraphs": ("a.docx", lambda: word(xml=WORD.format("<w:p/>" * 2_400_000)), "1000000 paragraphs"),
    "tags": ("a.docx", lambda: word(xml="<a/>" * 4_900_000), "3000000 tags"),
    "headings": ("a.md", lambda: repeated(b"# x\n"), "100000 headings"),
    "headings of a notebook": (
        "a.ipynb",
        lambda: b'{"cells": [%s{}]}' % (b'{"cell_type": "markdown", "source": "# x"},' * 110_000),
        "100000 headings",
    ),
    "stacked Flate": ("a.pdf", lambda: pdf(1, b" " * 200_000_000, 2), "no text on its 1 page, which is a"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_file_of_very_many_parts_is_refused_by_one_line(case):
    name, content, reason = REFUSED[case]
    outcome = in_child(parse_file, name, content(), seconds=20, megabytes=1200)
    assert not outcome.error, outcome
    assert not outcome.result.documents
    [failure] = outcome.result.failures
    assert reason in failure.reason
    assert len(failure.reason) < 300


def sheet(rows):
    """A workbook with these rows of XML in its sheet."""
    book, plain, file = openpyxl.Workbook(), BytesIO(), BytesIO()
    book.active["A1"] = "text"
    book.save(plain)
    with ZipFile(plain) as source, ZipFile(file, "w", ZIP_DEFLATED) as archive:
        for part in source.infolist():
            xml = source.read(part)
            is_sheet = part.filename == "xl/worksheets/sheet1.xml"
            xml = xml.replace(b"</sheetData>", rows + b"</sheetData>") if is_sheet else xml
            archive.writestr(part.filename, xml)
    return file.getvalue()


def test_a_million_empty_cells_are_read_in_little_time_and_memory():
    cells = b"".join(b'<c r="%c%d" s="0"/>' % (65 + n % 20, 2 + n // 20) for n in range(20))
    rows = b"".join(
        b'<row r="%d">%s</row>' % (2 + n, cells.replace(b'2"', b'%d"' % (2 + n))) for n in range(50_000)
    )
    far = b'<row r="1048576"><c r="XFD1048576" t="str"><v>end</v></c></row>'
    outcome = in_child(parse_file, "a.xlsx", sheet(rows + far), seconds=20, megabytes=700)
    assert not outcome.error, outcome
    [document] = outcome.result.documents
    assert document.text.split() == ["Sheet", "text", "end"]


def test_time_and_text_of_a_pdf_are_bounded(monkeypatch):
    words = b"BT /F 9 Tf %s ET"
    monkeypatch.setattr("engine.documents.formats.pdf.MAX_SECONDS", 0.2)
    [failure] = parse_file("a.pdf", pdf(1000, words % (b"(word ) Tj\n" * 500), 2)).failures
    assert "takes over 0 s" in failure.reason
    monkeypatch.setattr("engine.documents.formats.pdf.MAX_CHARACTERS", 100)
    [failure] = parse_file("a.pdf", pdf(9, words % (b"(word ) Tj\n" * 30), 1)).failures
    assert "over 100 characters" in failure.reason


@pytest.mark.parametrize(
    "charset", ["unicode_escape", "raw_unicode_escape", "cp037", "utf-7", "punycode", "idna"]
)
def test_an_encoding_that_no_page_has_rewrites_nothing(charset):
    content = f"<meta charset={charset}><p>caf\xe9 \\u0041 +AGE- hello world</p>".encode("latin-1")
    [document] = parse_file("a.html", content).documents
    assert document.text == "café \\u0041 +AGE- hello world"


def test_a_heading_of_a_megabyte_is_not_kept_at_every_section():
    [document] = parse_file("a.md", b"# " + b"x" * 1_000_000 + b"\n## y\n").documents
    assert [len(heading) for heading in document.sections[1].headings] == [1000, 1]
    assert len(document.title) == 1000


def n_words(text):
    return len(token_spans(text, WordPieceTokenizer(model_path(DEFAULT_ENCODER) / "tokenizer.json")).starts)


def test_text_without_a_blank_is_counted_in_little_memory():
    outcome = in_child(n_words, "東.(x" * 500_000, seconds=30, megabytes=700)
    assert outcome.result == 2_000_000, outcome


@pytest.mark.parametrize("signs", [".,ab", "東京a.", "[MASK]", ".\u0301東"])
def test_a_long_run_has_the_same_words_in_pieces(monkeypatch, signs):
    tokenizer = WordPieceTokenizer(model_path(DEFAULT_ENCODER) / "tokenizer.json")
    run = "".join(np.random.default_rng(0).choice([*signs, "[MASK]"], 20_000))
    text = f"some {run} words {run[:9000]}."
    cut = token_spans(text, tokenizer)
    monkeypatch.setattr("engine.documents.token_spans.LONGEST_RUN", len(text))
    whole = token_spans(text, tokenizer)
    for name in ("starts", "ends", "totals"):
        np.testing.assert_array_equal(getattr(cut, name), getattr(whole, name))


@pytest.mark.parametrize("text", ["x" * 5_000_000, "a " * 2_500_000, "x" * 3_000_000 + " y", ""])
def test_the_tokenizer_never_gets_more_than_a_block(text):
    blocks = list(blocks_of(text, " "))
    assert "".join(text[start:end] for start, end in blocks) == text
    assert max(end - start for start, end in blocks) <= LONGEST_BLOCK


REPEATED_HEADER = (b"h" * 200 + b",") * 300 + b"\n" + (b"x," * 300 + b"\n") * 9_000


@pytest.mark.parametrize(
    ("name", "content"), [("a.csv", REPEATED_HEADER), ("a.zip", packed({"a.csv": REPEATED_HEADER}))]
)
def test_text_that_a_reader_repeats_is_refused_before_it_fills_the_memory(name, content):
    outcome = in_child(parse_file, name, content, megabytes=600)
    assert not outcome.error
    [failure] = outcome.result.failures
    assert "million characters" in failure.reason
    assert outcome.megabytes < 400


def test_a_long_path_in_an_archive_is_not_repeated_in_every_row():
    [failure] = parse_file("a.zip", packed({"n" * 60_000 + ".csv": b"h\n" + b"x\n" * 9000})).failures
    assert "is a path of over 1000 characters" in failure.reason
    assert len(failure.name + failure.reason) < 1300


def test_narrow_columns_of_ordinary_files_are_read():
    rows = b"temperature_celsius,humidity_percent\n" + b"1,2\n" * 20_000
    loaded = parse_file("a.csv", rows)
    [document] = loaded.documents
    assert len(document.sections) == 20_000
    assert not loaded.failures
