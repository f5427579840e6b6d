import os

import pytest

from engine.documents import loaders
from engine.documents.document import Document
from engine.documents.formats import json_lines, table
from engine.documents.loaders import content_of, load_corpus, parse_file, read_corpus, suffixes, unique
from engine.errors import DocumentError
from tests.one_document import parse_document


def test_a_folder_is_read_past_its_failures_or_the_first_is_raised(tmp_path):
    texts = {"a.md": "a", "b.ipynb": "no JSON", "c.txt": "", "d.csv": "id\nx\ny", "e.o": ""}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    loaded = read_corpus(tmp_path)
    found = {document.name: document.text for document in loaded.documents}
    assert found == {"a.md": "a", "d.csv": "id: x\n\nid: y"}
    assert [failure.name for failure in loaded.failures] == ["b.ipynb", "c.txt"]
    assert loaded.skipped == ("e.o",)
    with pytest.raises(DocumentError, match=r"b\.ipynb is not JSON"):
        load_corpus(tmp_path)


def test_code_and_text_are_read_as_they_are():
    for suffix in (".txt", ".py", ".JS", ".c", ".rs", ".sql", ".toml", ".yaml", ".json"):
        assert parse_document(f"a{suffix}", b"if a < b:\n\tc") == Document(f"a{suffix}", "if a < b:\n\tc")
    assert len(set(suffixes())) == len(suffixes())


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root reads every file")
def test_a_file_without_permission_is_refused(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("text")
    path.chmod(0)
    with pytest.raises(DocumentError, match="Permission denied"):
        load_corpus(path)


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.txt", b"", "a.txt is empty"),
        ("a.txt", b" \n\t ", "is empty"),
        ("a.md", b"text\0", "binary"),
        ("a.csv", b"\0", "binary"),
        ("a.exe", b"text", "a.exe is of a kind that is not read: give .txt"),
        ("a", b"text", "of a kind that is not read"),
        ("a.pdf", b"", "a.pdf is empty"),
        ("a.txt", b"x" * (loaders.MAX_BYTES + 1), "more than the 20 MB that are read: split it"),
        ("a.jsonl", b'{"text": "a", "date": "2026-05-01"}\n' * 3, "more than 2 documents: split it"),
        ("a.jsonl", b'{"text": "a"}\n' * 3, "more than 2 rows: split it"),
        ("a.csv", b"text\n1\n2\n3", "more than 2 rows: split it"),
    ],
)
def test_what_cannot_be_read_is_a_failure(monkeypatch, name, content, reason):
    monkeypatch.setattr(loaders, "MAX_DOCUMENTS", 2)
    for reader in (table, json_lines):
        monkeypatch.setattr(reader, "MAX_ROWS", 2)
    loaded = parse_file(name, content)
    assert (loaded.documents, [failure.name for failure in loaded.failures]) == ((), [name])
    assert reason in loaded.failures[0].reason
    assert parse_document("a.csv", b"text\n1\n2").text == "text: 1\n\ntext: 2"


def test_a_corpus_is_a_file_or_a_folder_that_can_be_read(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "folder.md").mkdir()
    (tmp_path / "folder.md" / loaders.INDEX_MANIFEST).write_text("{}")
    (tmp_path / "a.exe").write_text("x")
    with (tmp_path / "large.txt").open("wb") as file:
        file.truncate(loaders.MAX_BYTES + 1)
    for name, reason in (
        ("empty", "holds no file that is read"),
        ("missing", "does not exist"),
        ("folder.md", "is an index: open it by --index"),
        ("a.exe", "of a kind that is not read"),
        ("large.txt", "more than the 20 MB"),
    ):
        with pytest.raises(DocumentError, match=reason):
            load_corpus(tmp_path / name)
    with pytest.raises(DocumentError, match="cannot be read"):
        content_of(tmp_path / "folder.md")
    with pytest.raises(DocumentError, match=r"two documents named a\.md"):
        unique([Document("a.md", "one"), Document("a.md", "two")])
    dated = '{"text": "one"}\n{"text": "two", "date": "2026-05-01"}'
    (tmp_path / "a.jsonl").write_text(dated)
    names = [document.name for document in load_corpus(tmp_path / "a.jsonl")]
    assert names == ["a.jsonl#1", "a.jsonl#2"]
