import os

import pytest

from engine.documents import loaders
from engine.documents.document import Document
from engine.documents.loaders import load_corpus, load_document, parse_document, unique
from engine.errors import DocumentError


def test_line_ends_and_byte_order_mark_are_normalised():
    content = b"\xef\xbb\xbfone\r\ntwo\rthree"
    assert parse_document("a.txt", content) == Document("a.txt", "one\ntwo\nthree")


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.txt", b"", "is empty"),
        ("a.txt", b" \n\t ", "is empty"),
        ("a.md", b"\x89PNG\0\0", "binary"),
        ("a.txt", b"caf\xe9", "not UTF-8 text .byte 3."),
        ("a.pdf", b"text", "not a .txt or .md file"),
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
        load_document(path)
    with pytest.raises(DocumentError, match="more than the 20 MB"):
        parse_document("large.txt", b"x" * (loaders.MAX_BYTES + 1))


def test_a_path_that_cannot_be_read_says_why(tmp_path):
    with pytest.raises(DocumentError, match="No such file"):
        load_document(tmp_path / "missing.txt")
    (tmp_path / "folder.md").mkdir()
    with pytest.raises(DocumentError, match="cannot be read"):
        load_document(tmp_path / "folder.md")


def test_a_folder_gives_its_texts_named_by_their_path(tmp_path):
    (tmp_path / "sub").mkdir()
    for name in ("b.txt", "sub/b.txt", "a.MD", "ignored.pdf"):
        (tmp_path / name).write_text(f"text of {name}")
    names = [document.name for document in load_corpus(tmp_path)]
    assert names == ["a.MD", "b.txt", "sub/b.txt"]


def test_a_corpus_without_texts_is_refused(tmp_path):
    with pytest.raises(DocumentError, match=r"holds no \.txt or \.md file"):
        load_corpus(tmp_path)
    with pytest.raises(DocumentError, match="does not exist"):
        load_corpus(tmp_path / "missing")


def test_two_documents_cannot_share_a_name():
    with pytest.raises(DocumentError, match=r"two documents named a\.md"):
        unique([Document("a.md", "one"), Document("a.md", "two")])


def test_a_file_of_the_largest_size_is_read_and_one_byte_more_is_not(tmp_path, monkeypatch):
    monkeypatch.setattr(loaders, "MAX_BYTES", 10)
    (tmp_path / "a.txt").write_text("x" * 10)
    assert load_document(tmp_path / "a.txt").text == "x" * 10
    (tmp_path / "a.txt").write_text("x" * 11)
    with pytest.raises(DocumentError, match="more than"):
        load_document(tmp_path / "a.txt")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root reads every file")
def test_a_file_without_permission_is_refused(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("text")
    path.chmod(0)
    with pytest.raises(DocumentError, match="Permission denied"):
        load_document(path)
