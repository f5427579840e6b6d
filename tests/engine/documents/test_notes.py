"""What reading leaves out or changes is told in a document's notes, and kept with it."""

import io
import json

import pytest

from engine.documents.document import Document
from engine.documents.loaders import left_out, parse_file, read_corpus
from engine.retrieval.stored.index_rows import IndexedFile, to_file, write_lines
from engine.storage.workspace import Workspace, export_workspace, import_workspace
from tests.one_document import parse_document

GERMAN = "Die Küche schließt um zehn.\nGrößere Gruppen melden sich an.\n"


@pytest.mark.parametrize(
    ("name", "content", "text", "note"),
    [
        ("a.txt", GERMAN.encode() + b"\x96 Ende", f"{GERMAN}\ufffd Ende", "(in line 3), shown as \ufffd"),
        ("a.txt", GERMAN.encode()[:-1] + b"\xc3", f"{GERMAN[:-1]}\ufffd", "in line 2"),
        ("a.txt", b"a \xff b \xff " + GERMAN.encode(), f"a \ufffd b \ufffd {GERMAN}", "2 characters"),
        ("a.txt", "会議は十時に始まります。".encode()[:-1], "会議は十時に始まります\ufffd", "1 character"),
        ("a.txt", "Насос включается.".encode()[1:], "\ufffdасос включается.", "1 character"),
        ("a.txt", b"It costs five \xe2\x82", "It costs five \ufffd", "1 character"),
        ("a.txt", "naïve text".encode("utf-16")[:-1], "naïve tex\ufffd", "1 character"),
        ("a.html", b"<meta charset=utf-8><p>K\xc3\xbcche \x96 l\xc3\xa0", "Küche \ufffd là", "1 character"),
        (
            "a.html",
            "<meta charset=shift_jis><p>鍵は鉢の下".encode("shift_jis")[:-1],
            "鍵は鉢の\ufffd",
            "1 character",
        ),
        ("a.html", "<meta charset=shift_jis><p>鍵は9～12時".encode("cp932"), "鍵は9～12時", ""),
        ("a.html", "<meta charset=iso-8859-1><p>“a” – 5 €".encode("cp1252"), "“a” – 5 €", ""),
        ("a.htm", "<meta charset=latin-1><p>мир".encode(), "мир", ""),
        ("a.htm", "<meta charset=no-such><p>El niño".encode("latin-1"), "El niño", ""),
        ("a.xhtml", '<?xml version="1.0" encoding="koi8-r"?><p>мир'.encode("koi8-r"), "мир", ""),
        ("a.log", b"12:00 start\n12:01 pump on\0\n", "12:00 start\n12:01 pump on\n", "1 NUL character left"),
        ("a.log", b"at 12 start\n" + b"\0" * 4096 + b"again\n", "at 12 start\nagain\n", "4,096 NUL"),
        ("a.txt", "Die Küche".encode("cp1252"), "Die Küche", ""),
        ("a.txt", GERMAN.encode(), GERMAN, ""),
    ],
)
@pytest.mark.reads("text, code", "UTF-8 with a few damaged bytes")
@pytest.mark.leaves_out("text, code", "characters that could not be read, counted", "NUL characters")
def test_a_few_bytes_that_are_not_of_the_encoding_are_replaced_and_counted(name, content, text, note):
    document = parse_document(name, content)
    assert document.text == text
    assert note in document.notes[0] if note else document.notes == ()


@pytest.mark.parametrize(
    ("text", "encodings"),
    [
        ("Klucz leży pod trzecią doniczką.", "cp1250 iso8859_2 utf-16-le utf-16-be"),
        ("Klíč leží pod třetím květináčem u šatny.", "cp1250 iso8859_2"),
        ("A kulcs a harmadik cserép alatt van. Fűtsön be este!", "cp1250 iso8859_2"),
        ("Anahtar üçüncü saksının altında.", "cp1254"),
        ("Raktas yra po trečiu vazonu, dešimtą valandą.", "cp1257"),
        ("Küche, Bad: 78,5 m². Die Straße schließt um zehn. „Nein.“", "cp1252 utf-16-le"),
        ("Ключ лежит под горшком. Насос включается в полдень.", "cp1251 koi8_r"),
        ("会議は十時に始まります。鍵は植木鉢の下にあります。", "euc_jp shift_jis iso2022_jp"),
        ("Доклад\n1. Введение", "cp1251 koi8_r cp866 iso8859_5 utf-16-le"),
        ("ПРИКАЗ N 5 от 3 мая", "cp1251 koi8_r"),
        ("Κλειδί: 5 ευρώ", "cp1253 iso8859_7"),
        ("שלום עולם", "cp1255 iso8859_8"),
        ("السعر 5 دنانير", "cp1256 iso8859_6"),
        ("ราคา 5 บาท", "cp874"),
        ("회의실", "cp949"),
        ("价格：5元", "gb18030"),
        ("會議室在三樓", "big5"),
        ("Cena: 5 zł. Łódź", "cp1250 iso8859_2"),
    ],
)
def test_old_encodings_are_told_by_the_letters_of_languages(text, encodings):
    for encoding in encodings.split():
        assert parse_document("a.txt", text.encode(encoding)).text == text


def test_notes_are_kept_in_workspaces_and_indexes(tmp_path):
    document = Document("a.txt", "text", notes=("1 formula could not be read", "2 pictures"))
    saved = import_workspace("w", export_workspace(Workspace((document,))))
    assert saved.documents == (document,)
    file = IndexedFile("a.txt", "0" * 64, (document,))
    lines = io.BytesIO()
    write_lines(lines, [file])
    older = json.loads(lines.getvalue())
    assert to_file(older) == file
    del older["documents"][0]["notes"]
    assert to_file(older).documents[0].notes == ()


def test_files_of_other_formats_are_named_with_a_way_out(tmp_path):
    for name in ("a.md", "b.doc", "c.unknown", "README"):
        (tmp_path / name).write_text("text")
    reasons = {failure.name: failure.reason for failure in left_out(read_corpus(tmp_path))}
    assert reasons.keys() == {"b.doc", "c.unknown", "README"}
    assert reasons["b.doc"] == "b.doc is of a kind that is not read: save it as .docx"
    assert "give .txt, .md" in reasons["README"]
    assert parse_file("b.doc", b"text").failures[0].reason == reasons["b.doc"]
