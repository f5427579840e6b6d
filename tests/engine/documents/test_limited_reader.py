"""Files read in a child process have the same documents, and one beyond the limits is a failure."""

import pytest

from engine.documents.document import Failure, Loaded
from engine.documents.limited_reader import parse_limited
from engine.documents.loaders import parse_file
from engine.limited_process import Limits
from tests.hostile.test_documents import pdf
from tests.text_files import packed

LIMITS = Limits(seconds=20, megabytes=300)
FILES = {
    "a.md": b"# One\ntext\n## Two\nmore \xe6\x9d\xb1\xf0\x9f\x98\x80",
    "b.md": b"---\ndate: 2026-05-01\ntags: [a, b]\n---\ntext",
    "a.csv": b"title,text\nA,b\nC,d",
    "a.jsonl": b'{"text": "a"}\n5\n{"text": "b", "title": "T"}',
    "a.pdf": pdf(3, b"BT /F 9 Tf (words) Tj ET", 1),
    "b.zip": packed({"b.exe": b"MZ"}),
    "a\n.exe": b"MZ",
    "\ud800.txt": b"text",
    "a.txt": b"",
}


@pytest.mark.parametrize("name", FILES)
def test_the_documents_are_those_of_the_reader(name):
    for column in (None, "text"):
        assert parse_limited(name, FILES[name], column, LIMITS) == parse_file(name, FILES[name], column)


def test_a_file_beyond_the_limits_is_a_failure():
    content = pdf(1000, b"BT /F 9 Tf (x) Tj ET\n" * 4000, 2)
    reason = "reading a.pdf takes over 1 s or 300 MB: split it"
    assert parse_limited("a.pdf", content, None, Limits(1, 300)) == Loaded((), (Failure("a.pdf", reason),))
    assert parse_limited("a.html", b"<li>" * 400_000 + b"x", None, Limits(20, 90)).failures
