"""Files read in a child process: the same result and errors, and one line for a file beyond the limits."""

import os
import pickle
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from io import BytesIO

import pytest

from engine.documents.document import Failure, Loaded
from engine.documents.formats.json_lines import record
from engine.documents.loaders import parse_file, parse_limited, parse_together
from engine.errors import DocumentError, GlassboxError
from engine.evaluation.beir import load_beir, parse_beir_zip
from engine.evaluation.questions import load_questions, parse_questions
from engine.limited_process import Limits
from engine.limited_reader import ALONE, READER, Unpickler, read_limited
from engine.retrieval.vector_rows import read_rows
from engine.storage.workspace import import_workspace
from tests.hostile import bombs
from tests.hostile.test_documents import pdf
from tests.hostile.valid_files import BEIR, JSONL, workspace_file
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


@pytest.mark.parametrize(
    ("read", "content"), [(parse_questions, JSONL), (parse_beir_zip, packed(BEIR))], ids=lambda each: ""
)
def test_other_files_have_the_same_result_and_the_same_errors(read, content):
    assert read_limited(read, "a.jsonl", content) == read("a.jsonl", content)
    with pytest.raises(GlassboxError) as here:
        read("a.jsonl", b"{}")
    with pytest.raises(GlassboxError) as there:
        read_limited(read, "a.jsonl", b"{}")
    assert (type(there.value), str(there.value)) == (type(here.value), str(here.value))


def test_a_workspace_comes_back_with_its_index():
    here, there = (
        import_workspace("a", workspace_file()),
        read_limited(import_workspace, "a", workspace_file()),
    )
    assert there.documents == here.documents
    assert there.index.chunks == here.index.chunks
    assert (there.index.vectors == here.index.vectors).all()


def test_a_file_beyond_the_limits_is_a_failure():
    content = pdf(1000, b"BT /F 9 Tf (x) Tj ET\n" * 4000, 2)
    reason = "reading a.pdf takes over 1 s or 300 MB: give a smaller file"
    assert parse_limited("a.pdf", content, None, Limits(1, 300)) == Loaded((), (Failure("a.pdf", reason),))
    assert parse_limited("a.html", b"<li>" * 400_000 + b"x", None, Limits(20, 50)).failures


@pytest.mark.parametrize(
    ("read", "name", "bomb"),
    [
        (read_rows, "a.parquet", bombs.long_texts),
        (read_rows, "a.npz", partial(bombs.zeros, 300)),
        pytest.param(
            read_rows, "a.parquet", partial(bombs.long_texts, 4 * 10**6, 1), marks=pytest.mark.nightly
        ),
        pytest.param(parse_beir_zip, "a.zip", bombs.collection, marks=pytest.mark.nightly),
        pytest.param(import_workspace, "a.glassbox", bombs.workspace, marks=pytest.mark.nightly),
        pytest.param(parse_questions, "a.csv", bombs.rows, marks=pytest.mark.nightly),
    ],
    ids=lambda each: getattr(each, "__name__", None),
)
def test_a_file_that_unpacks_to_gigabytes_is_refused(read, name, bomb):
    refusal = f"^reading {name} takes over 20 s or 300 MB: give a smaller file$"
    with pytest.raises(DocumentError, match=refusal):
        read_limited(read, name, bomb(), limits=LIMITS)


@pytest.mark.parametrize(("name", "read"), [("a.csv", load_questions), ("a.zip", load_beir)])
def test_files_that_claim_a_terabyte_are_refused(tmp_path, name, read):
    path = tmp_path / name
    path.touch()
    os.truncate(path, 2**40)
    with pytest.raises(GlassboxError, match="has over 200 MB, the most that is read: split it"):
        read(path)


def test_small_files_do_not_wait_for_large_ones():
    limits = Limits(20, 300, first=Limits(4, 40))
    with ThreadPoolExecutor() as pool, ALONE:
        large = pool.submit(parse_limited, "a.jsonl", b'{"text": "a"}\n' * 60_000, None, limits)
        with pytest.raises(TimeoutError):
            large.result(timeout=1)
        assert parse_limited("a.txt", b"text", None, limits).documents
        ALONE.release()
        assert large.result().documents
        ALONE.acquire()


def test_an_error_of_a_library_is_one_line():
    with pytest.raises(DocumentError, match=r"^a\.b cannot be read \(.*\): save it again, or give another$"):
        read_limited(read_rows, "a.b", b"")


def test_what_is_nested_too_deep_to_come_back_is_called_so():
    with pytest.raises(DocumentError, match=r"^a\.jsonl cannot be read \(maximum recursion depth"):
        read_limited(record, "a.jsonl", b'{"a":' * 900 + b"1" + b"}" * 900)


def test_an_answer_names_nothing_but_values():
    for module, name in (
        ("builtins", "eval"),
        ("engine.limited_process", "ask"),
        ("engine.errors", "GlassboxError.x"),
    ):
        content = b"c" + f"{module}\n{name}\n".encode() + b"."
        with pytest.raises(pickle.UnpicklingError):
            Unpickler(BytesIO(content)).load()
    assert READER.forks


def test_small_files_are_read_together_and_each_by_itself_where_all_exceed_the_limits():
    files = [
        ("a.txt", b"One."),
        ("b.xyz", b"?"),
        ("large.html", b"<li>" * 400_000 + b"x"),
        ("c.txt", b"Two."),
    ]
    found = parse_together(files, limits=Limits(20, 50))
    assert [[each.text for each in loaded.documents] for loaded in found] == [["One."], [], [], ["Two."]]
    assert [len(loaded.failures) for loaded in found] == [0, 1, 1, 0]
