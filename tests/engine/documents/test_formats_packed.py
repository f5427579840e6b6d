import io
import json
import tracemalloc
import zipfile

import docx
import pytest
from pypdf import PdfReader, PdfWriter

from engine.documents.document import Section
from engine.documents.formats import archive
from engine.documents.formats.pdf import without_hyphenation
from engine.documents.loaders import parse_file
from engine.errors import DocumentError
from engine.retrieval.words import words
from tests.one_document import parse_document
from tests.pdf_file import make_pdf


def written(writer):
    buffer = io.BytesIO()
    writer.write(buffer)
    return buffer.getvalue()


def make_docx(build):
    document, buffer = docx.Document(), io.BytesIO()
    build(document)
    document.save(buffer)
    return buffer.getvalue()


def make_zip(members, method=zipfile.ZIP_DEFLATED):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as file:
        for name, content in members:
            file.writestr(zipfile.ZipInfo(name), content, method)
    return buffer.getvalue()


def changed(content, part, old, new):
    """A .docx with a text of one of its parts replaced."""
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        members = [(name, file.read(name)) for name in file.namelist()]
    assert any(name == part and old in body for name, body in members)
    return make_zip([(name, body.replace(old, new) if name == part else body) for name, body in members])


TYPESET, READ = "The o\ufb00ices in\u00adformed \ufb01ve o\ufb03cers.", "The offices informed five officers."


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.txt", TYPESET.encode()),
        ("a.html", b"<p>The o&#xfb00;ices in&shy;formed &#xfb01;ve o&#xfb03;cers.</p>"),
        ("a.html", b"<pre>The o&#xfb00;ices in&shy;formed &#xfb01;ve o&#xfb03;cers.</pre>"),
        ("a.docx", make_docx(lambda document: document.add_paragraph(TYPESET))),
        ("a.jsonl", json.dumps({"text": TYPESET}).encode()),
        ("a.ipynb", json.dumps({"cells": [{"cell_type": "markdown", "source": TYPESET}]}).encode()),
    ],
)
def test_ligatures_are_read_as_letters_and_soft_hyphens_left_out(name, content):
    document = parse_document(name, content)
    assert (document.name, document.text) == (name, READ)
    assert parse_document("a.txt", "中⽂⻓⻋".encode()).text == "中文长车"  # for radicals


def test_a_pdf_is_read_without_ligatures_and_without_the_soft_hyphens_at_its_line_ends():
    fonts = b"/BaseFont /Helvetica", b"/BaseFont /Helvetica /Encoding /WinAnsiEncoding"
    # \256 and \257 are the ligatures of the standard encoding, \255 is the soft hyphen of Windows-1252.
    document = parse_document("a.pdf", make_pdf(r"of\256ces on \257oors"))
    assert document.text == "offices on floors"
    assert words(["offices", "floors"]) == [["offic"], ["floor"]]
    hyphened = make_pdf("in\\255\nformation").replace(*fonts)
    assert parse_document("a.pdf", hyphened).text == "information"


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("files contain-\ning lines", "files containing\nlines"),
        ("a contain-\ner, a con-\ntainer", "a container,\na container"),
        ("contain-\ning. All", "containing.\nAll"),
        ("well-\nknown, and well", "well-known,\nand well"),
        ("well-\nknown, well, wellknown", "wellknown,\nwell, wellknown"),
        ("state-of-the-\nart", "state-of-the-art"),
        ("state-\nof-the-art", "state-of-the-art"),
        ("Navier-\nStokes", "Navier-Stokes"),
        ("COVID-\nlike", "COVID-like"),
        ("OP-\nTIONAL, OPTIONAL", "OPTIONAL,\nOPTIONAL"),
        ("pre-\nand post-war", "pre-\nand post-war"),
        ("self-\nsupervised", "self-supervised"),
        ("in 2023-\n2024 all", "in 2023-2024\nall"),
        ("in-\ncluded in " * 6, "included\nin " * 6),
        ("the end-\ning\n\nof it", "the ending\n\nof it"),
        ("a con-\nstruc-\ntion of it", "a construction\nof it"),
    ],
)
@pytest.mark.reads("PDF", "words that lines divide by a hyphen, as one")
def test_words_that_lines_of_a_pdf_share_with_a_hyphen_are_joined(page, text):
    assert parse_document("a.pdf", make_pdf(page)).text.split() == text.split()
    assert without_hyphenation([page]) == [text]


def test_an_encrypted_pdf_is_refused_and_one_without_a_password_for_reading_is_read():
    for password, algorithm in (("secret", "RC4-128"), ("", "RC4-128")):
        writer = PdfWriter(clone_from=PdfReader(io.BytesIO(make_pdf("hidden text"))))
        writer.encrypt(user_password=password, owner_password="owner", algorithm=algorithm)
        if password:
            with pytest.raises(DocumentError, match=r"a\.pdf is encrypted: save a copy without a password"):
                parse_document("a.pdf", written(writer))
        else:
            assert parse_document("a.pdf", written(writer)).text == "hidden text"


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.pdf", make_pdf("", ""), "no text on its 2 pages, which are pictures"),
        ("a.pdf", b"%PDF-1.4\nnothing more", "is damaged from its start"),
        ("a.pdf", make_pdf("text").replace(b"/Kids", b"/Kiss"), "damaged|no text on its 0 pages"),
        ("a.pdf", b"\x89PNG\r\n", "no PDF but a PNG image"),
        ("a.pdf", b"words", "no PDF but something else"),
        ("a.docx", b"hello", r"no \.docx file but something else"),
        ("a.docx", b"\xd0\xcf\x11\xe0\xa1\xb1", "an old or encrypted Office file"),
        ("a.docx", make_zip([("a.txt", b"hi")]), "no Word file, or damaged"),
        ("a.docx", make_docx(lambda document: None), "is empty"),
        ("a.docx", make_docx(lambda document: document.add_paragraph("text"))[:-30], "damaged"),
    ],
)
def test_what_gives_no_text_says_why_in_a_line(name, content, reason):
    with pytest.raises(DocumentError, match=reason) as caught:
        parse_document(name, content)
    assert "\n" not in str(caught.value)


def test_a_word_file_gives_paragraphs_headings_and_tables_in_their_order():
    def build(document):
        document.core_properties.title = "The title"
        document.add_paragraph("Before")
        document.add_heading("One", 1)
        paragraph = document.add_paragraph("a\tb")
        paragraph.paragraph_format.tab_stops.add_tab_stop(100)
        document.add_heading("Two", 2)
        table = document.add_table(2, 2)
        for i, cell in enumerate(cell for row in table.rows for cell in row.cells):
            cell.text = f"cell {i}"
        table.cell(1, 1).add_table(1, 1).cell(0, 0).text = "inner"
        document.add_heading("Three", 1)
        document.add_paragraph("")
        document.add_paragraph("End")

    document = parse_document("a.docx", make_docx(build))
    assert document.title == "The title"
    assert document.text == (
        "Before\n\nOne\n\na\tb\n\nTwo\n\ncell 0 | cell 1\ncell 2 | cell 3 inner\n\nThree\n\nEnd"
    )
    starts = {document.text[s.start :].split("\n")[0]: s.headings for s in document.sections}
    assert starts == {"One": ("One",), "Two": ("One", "Two"), "Three": ("Three",)}


def test_entities_of_a_word_file_are_not_expanded():
    laughs = b'<!ENTITY a0 "ha">' + b"".join(
        b'<!ENTITY a%d "%s">' % (i, b"&a%d;" % (i - 1) * 10) for i in range(1, 10)
    )
    content = make_docx(lambda document: document.add_paragraph("TEXT"))
    for entities, reference in ((laughs, b"&a9;"), (b'<!ENTITY x SYSTEM "file:///etc/passwd">', b"&x;")):
        part = changed(
            content, "word/document.xml", b"<w:document", b"<!DOCTYPE d [%s]><w:document" % entities
        )
        part = changed(part, "word/document.xml", b">TEXT<", b">TEXT" + reference + b"<")
        loaded = parse_file("a.docx", part)
        assert [document.text for document in loaded.documents] in ([], ["TEXT"])


@pytest.mark.reads("ZIP", "each file")
@pytest.mark.leaves_out("ZIP", "archives within archives, and other formats, each a line", "(hidden files)")
def test_a_zip_gives_the_documents_of_its_members_and_tells_what_it_left():
    members = [
        ("notes/", b""),
        ("notes/a.md", b"# A\ntext"),
        ("rows.csv", b"id,text\n1,x\n"),
        ("bad.pdf", b"no pdf"),
        ("inner.zip", make_zip([("a.txt", b"x")])),
        ("picture.png", b"\x89PNG"),
        ("__MACOSX/a.md", b"x"),
        (".git/config.toml", b"x"),
        ("empty.txt", b""),
        ("last.txt", b"last"),
    ]
    loaded = parse_file("z.zip", make_zip(members))
    names = ["z.zip/notes/a.md", "z.zip/rows.csv", "z.zip/last.txt"]
    assert [document.name for document in loaded.documents] == names
    assert loaded.documents[0].sections == (Section(0, ("A",)),)
    assert [f.name for f in loaded.failures] == ["z.zip/bad.pdf", "z.zip/inner.zip", "z.zip/empty.txt"]
    assert "archive within an archive" in loaded.failures[1].reason
    assert loaded.skipped == ("z.zip/picture.png",)


@pytest.mark.parametrize("path", ["../x.txt", "/etc/x.txt", "C:/x.txt", "a/../../x.txt", "a\\..\\x.txt"])
def test_a_path_out_of_a_zip_is_refused_and_nothing_is_written(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    loaded = parse_file("z.zip", make_zip([(path, b"x"), ("good.txt", b"good")]))
    assert [document.text for document in loaded.documents] == ["good"]
    assert "points out of the archive" in loaded.failures[0].reason
    assert list(tmp_path.iterdir()) == []


def test_a_zip_bomb_is_refused_by_what_it_says_of_itself():
    for bomb in (
        make_zip([("a.txt", bytes(archive.ANY_RATIO + 1))]),
        make_zip([(f"{i}.txt", bytes(archive.MAX_UNPACKED // 8)) for i in range(9)]),
    ):
        for name in ("z.zip", "z.docx"):
            [failure] = parse_file(name, bomb).failures
            assert "would unpack to" in failure.reason


def test_a_zip_bomb_that_lies_about_its_size_is_unpacked_no_further():
    n_bytes = 60 * 1024**2
    content = make_zip([("a.txt", b"x" * n_bytes), ("b.txt", b"good")])
    content = content.replace(n_bytes.to_bytes(4, "little"), (100).to_bytes(4, "little"))
    tracemalloc.start()
    loaded = parse_file("z.zip", content)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [document.text for document in loaded.documents] == ["good"]
    assert "a.txt is damaged" in loaded.failures[0].reason
    assert peak < 10 * 1024**2


def test_members_that_cannot_be_unpacked_leave_the_others():
    packed = make_zip([("a.txt", b"text " * 100)])
    locked = packed.replace(b"\x14\0\0\0\x08\0", b"\x14\0\x01\0\x08\0")
    flipped = bytearray(make_zip([("a.txt", b"text"), ("b.txt", b"good")], zipfile.ZIP_STORED))
    flipped[flipped.index(b"text", 30)] ^= 1
    cases = [
        (locked, "is encrypted", 0),
        (make_zip([("a.txt", b"x")], zipfile.ZIP_BZIP2), "zip it with Deflate", 0),
        (bytes(flipped), "is damaged", 1),
    ]
    for content, reason, n_good in cases:
        loaded = parse_file("z.zip", content)
        assert reason in loaded.failures[0].reason
        assert len(loaded.documents) == n_good


def test_names_of_members_are_shown_once_and_in_one_line(monkeypatch):
    nameless = bytearray(make_zip([("a", b"x")]))
    lengths = nameless.index(b"PK\x01\x02") + 28  # of the name and of the extra field after it
    nameless[lengths : lengths + 4] = b"\0\0\x01\0"
    with pytest.warns(UserWarning, match="Duplicate"):
        twice = make_zip([("a.txt", b"one"), ("a.txt", b"two")])
    monkeypatch.setattr(archive, "MAX_MEMBERS", 2)
    for content, reason in (
        (bytes(nameless), "z.zip/'' has no name"),
        (make_zip([("a\nb.txt", b"x")]), "no name that can be shown"),
        (twice, "two documents named z.zip/a.txt"),
        (make_zip([("a.png", b"x")]), "holds no text"),
        (b"PK\x03\x04rest", "z.zip is damaged"),
        (make_zip([(f"{i}.txt", b"x") for i in range(3)]), "holds 3 files, more than the 2"),
    ):
        [failure] = parse_file("z.zip", content).failures
        assert reason in failure.reason
        assert "\n" not in failure.name + failure.reason
