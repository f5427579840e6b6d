import os

import pytest

from engine.documents import loaders
from engine.documents.document import Document
from engine.documents.formats.plain import read_plain
from engine.documents.loaders import (
    FORMATS,
    Format,
    content_of,
    load_corpus,
    one,
    parse_file,
    read_corpus,
    suffixes,
    unique,
)
from engine.errors import DocumentError
from tests.apps import app_of
from tests.one_document import parse_document


def test_line_ends_and_byte_order_mark_are_normalised():
    content = b"\xef\xbb\xbfone\r\ntwo\rthree"
    assert parse_document("a.txt", content) == Document("a.txt", "one\ntwo\nthree")


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.txt", b"", "is empty"),
        ("a.txt", b" \n\t ", "is empty"),
        ("a.md", b"text\0", "binary"),
        ("a.exe", b"text", r"a\.exe is of a kind that is not read: give \.txt"),
        ("a", b"text", "of a kind that is not read"),
    ],
)
def test_content_that_is_no_text_is_refused(name, content, reason):
    with pytest.raises(DocumentError, match=reason):
        parse_document(name, content)


def test_a_large_file_is_refused_unread(tmp_path):
    path = tmp_path / "large.txt"
    with path.open("wb") as file:
        file.truncate(100 * 1024**2)
    with pytest.raises(DocumentError, match="100 MB, more than the 20 MB"):
        load_corpus(path)


def test_a_path_that_cannot_be_read_says_why(tmp_path):
    with pytest.raises(DocumentError, match="No such file"):
        content_of(tmp_path / "missing.txt")
    (tmp_path / "folder.md").mkdir()
    with pytest.raises(DocumentError, match="cannot be read"):
        content_of(tmp_path / "folder.md")


def test_a_folder_gives_its_texts_named_by_their_path(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / ".git").mkdir()
    for name in ("b.txt", "sub/b.txt", "a.MD", "ignored.exe", ".git/hidden.md"):
        (tmp_path / name).write_text(f"# text of {name}")
    documents = load_corpus(tmp_path)
    assert [document.name for document in documents] == ["a.MD", "b.txt", "sub/b.txt"]
    assert documents[0].title == "text of a.MD"
    assert documents[0].section_at(0).headings == ("text of a.MD",)


def test_a_folder_is_read_past_its_failures_or_the_first_is_raised(tmp_path):
    texts = {"a.md": "a", "b.ipynb": "no JSON", "c.txt": "", "d.csv": "id\nx\ny", "e.o": ""}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    loaded = read_corpus(tmp_path)
    found = {document.name: document.text for document in loaded.documents}
    assert found == {"a.md": "a", "d.csv#2": "id: x", "d.csv#3": "id: y"}
    assert [failure.name for failure in loaded.failures] == ["b.ipynb", "c.txt"]
    assert loaded.skipped == ("e.o",)
    with pytest.raises(DocumentError, match=r"b\.ipynb is not JSON"):
        load_corpus(tmp_path)


def test_a_file_is_a_corpus(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "one"}\n{"text": "two"}')
    assert [document.text for document in load_corpus(tmp_path / "a.jsonl")] == ["one", "two"]
    (tmp_path / "a.exe").write_text("x")
    with pytest.raises(DocumentError, match="of a kind that is not read"):
        load_corpus(tmp_path / "a.exe")


def test_code_and_text_are_read_as_they_are():
    for suffix in (".txt", ".py", ".JS", ".c", ".rs", ".sql", ".toml", ".yaml", ".json"):
        assert parse_document(f"a{suffix}", b"if a < b:\n\tc") == Document(f"a{suffix}", "if a < b:\n\tc")
    assert len(set(suffixes())) == len(suffixes())


def test_one_file_holds_no_more_documents_than_the_limit(monkeypatch):
    monkeypatch.setattr(loaders, "MAX_DOCUMENTS", 2)
    assert len(parse_file("a.csv", b"text\n1\n2").documents) == 2
    loaded = parse_file("a.csv", b"text\n1\n2\n3")
    assert loaded.documents == ()
    assert "more than 2 documents: split it" in loaded.failures[0].reason


def test_what_a_file_holds_is_told_without_raising():
    assert parse_file("a.md", b"text").documents == (Document("a.md", "text"),)
    for name, content, reason in (
        ("a.exe", b"x", "of a kind that is not read"),
        ("a.pdf", b"", "a.pdf is empty"),
        ("a.zip", b"", "a.zip is empty"),
        ("a.txt", b"x" * (loaders.MAX_BYTES + 1), "more than the 20 MB that are read: split it"),
    ):
        loaded = parse_file(name, content)
        assert loaded.documents == ()
        assert [failure.name for failure in loaded.failures] == [name]
        assert reason in loaded.failures[0].reason


def test_a_corpus_without_texts_is_refused(tmp_path):
    with pytest.raises(DocumentError, match="holds no file that is read"):
        load_corpus(tmp_path)
    with pytest.raises(DocumentError, match="does not exist"):
        load_corpus(tmp_path / "missing")


def test_two_documents_cannot_share_a_name():
    with pytest.raises(DocumentError, match=r"two documents named a\.md"):
        unique([Document("a.md", "one"), Document("a.md", "two")])


def test_a_file_of_the_largest_size_is_read_and_one_byte_more_is_not(tmp_path, monkeypatch):
    monkeypatch.setattr(loaders, "MAX_BYTES", 10)
    (tmp_path / "a.txt").write_text("x" * 10)
    assert load_corpus(tmp_path / "a.txt")[0].text == "x" * 10
    (tmp_path / "a.txt").write_text("x" * 11)
    with pytest.raises(DocumentError, match="more than"):
        load_corpus(tmp_path / "a.txt")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root reads every file")
def test_a_file_without_permission_is_refused(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("text")
    path.chmod(0)
    with pytest.raises(DocumentError, match="Permission denied"):
        load_corpus(path)


def uploader():
    from ui.documents import upload_box

    upload_box()


def test_one_entry_in_the_table_adds_a_file_format_to_the_app(monkeypatch, tmp_path):
    (tmp_path / "a.org").write_text("* text")
    with pytest.raises(DocumentError, match="holds no file that is read"):
        load_corpus(tmp_path)
    monkeypatch.setitem(FORMATS, "org", Format("Org mode", (".org",), one(read_plain)))
    assert load_corpus(tmp_path) == [Document("a.org", "* text")]
    assert parse_document("a.ORG", b"text").text == "text"
    with pytest.raises(DocumentError, match=r"source code or \.org"):
        parse_document("a.exe", b"")
    app = app_of(uploader).run()
    [box] = app.get("file_uploader")
    app.file_uploader(key="uploader-0").set_value([("a.org", b"text", ""), ("b.exe", b"text", "")]).run()
    assert app.session_state["upload_skipped"] == ["b.exe"]
    assert "Org mode" in box.proto.help
