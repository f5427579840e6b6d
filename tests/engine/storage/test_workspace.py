import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from threading import Timer

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from engine.documents.document import Chunk, Document, Section
from engine.errors import DocumentError, GlassboxError, InputError
from engine.retrieval.embedding_spec import EmbeddingSpec
from engine.retrieval.index import index_vectors
from engine.retrieval.sqlite_file import connect_ours
from engine.retrieval.vector_cache import VectorCache
from engine.storage.workspace import (
    SavedRun,
    Workspace,
    export_workspace,
    import_workspace,
    merged,
    open_workspace,
    save_workspace,
    to_rows,
)
from engine.storage.workspace_file import write_rows
from tests.command_line import ROOT, run_python

SPEC = EmbeddingSpec("model", "mean", 256, 4)
QUESTION = {
    "question": "Who?",
    "references": [{"content": "Alp", "start_index": 0, "end_index": 3}],
    "corpus_id": "a",
}

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
NUMBERS = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(TEXT, JSON, max_size=4)
HEADINGS = st.lists(TEXT, max_size=3).map(tuple)
PAGES = st.none() | st.integers(1, 1000)
FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False)


@st.composite
def documents(draw):
    sections = st.builds(Section, st.integers(0, 30), HEADINGS, PAGES)
    tags = st.lists(TEXT, max_size=3).map(tuple)
    contents = st.tuples(TEXT, TEXT, st.lists(sections, max_size=3).map(tuple), TEXT, tags)
    named = draw(st.dictionaries(TEXT, contents, min_size=1, max_size=4))
    return tuple(Document(name, *content) for name, content in named.items())


@st.composite
def chunks(draw, documents, parent=None):
    document = draw(st.sampled_from(documents))
    start, end = sorted(draw(st.tuples(*[st.integers(0, len(document.text))] * 2)))
    span = (document.name, start, end, document.text[start:end])
    return Chunk(*span, draw(st.integers(0, 10**6)), draw(HEADINGS), draw(PAGES), parent, draw(TEXT))


@st.composite
def workspaces(draw):
    held = draw(documents())
    parents = [None, *draw(st.lists(chunks(held), max_size=2))]
    pieces = [draw(chunks(held, draw(st.sampled_from(parents)))) for _ in range(draw(st.integers(0, 5)))]
    vectors = draw(arrays(np.float32, (len(pieces), 4), elements=FLOATS))
    spec = replace(SPEC, name=draw(TEXT), pooling=draw(TEXT))
    idf = draw(st.none() | arrays(np.float32, 5, elements=FLOATS))
    index = index_vectors(pieces, vectors, spec, idf) if pieces else None
    questions = st.fixed_dictionaries({"question": TEXT, "references": st.just([]), "corpus_id": TEXT})
    runs = st.builds(SavedRun, TEXT, st.datetimes().map(lambda time: time.isoformat()), OBJECTS)
    sets = draw(st.dictionaries(TEXT, st.lists(questions, max_size=3), max_size=3))
    return Workspace(held, draw(OBJECTS), index, sets, tuple(draw(st.lists(runs, max_size=3))))


def small():
    held = (
        Document("a.md", "Alpha beta gamma. " * 40, "A", (Section(0, ("Greek",), 1),)),
        Document("b.md", "Omega."),
    )
    parent = Chunk("a.md", 0, 40, held[0].text[:40], 9)
    pieces = [
        Chunk("a.md", 0, 5, "Alpha", 3, ("Greek",), 1, parent),
        Chunk("a.md", 6, 10, "beta", 3, (), None, parent),
        Chunk("b.md", 0, 6, "Omega.", 4),
    ]
    vectors = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    index = index_vectors(pieces, vectors, SPEC)
    run = SavedRun("first", "2024-05-01T12:00:00+00:00", {"recall": 0.5})
    return Workspace(held, {"k": 4}, index, {"mine": [QUESTION]}, (run,))


def assert_same(found, expected):
    assert replace(found, index=None) == replace(expected, index=None)
    assert (found.index is None) == (expected.index is None)
    if found.index is not None:
        assert found.index.chunks == expected.index.chunks
        assert found.index.vectors.tobytes() == expected.index.vectors.tobytes()
        assert found.index.vectors.dtype == np.float32
        assert found.index.spec == expected.index.spec
        assert found.index.spec.name == expected.index.spec.name
        assert (found.index.idf is None) == (expected.index.idf is None)
        if found.index.idf is not None:
            assert found.index.idf.tobytes() == expected.index.idf.tobytes()


@given(workspace=workspaces())
def test_a_workspace_comes_back_as_it_was(workspace, tmp_path_factory):
    path = tmp_path_factory.mktemp("workspace") / "w.glassbox"
    saved = save_workspace(path, workspace)
    opened = open_workspace(path)
    assert_same(opened, workspace)
    if opened.index is not None:  # children share their parents again
        parents = [chunk.parent for chunk in opened.index.chunks]
        assert len({id(parent) for parent in parents}) == len(set(parents))
    assert opened.saved_as == saved.saved_as != ""
    assert_same(import_workspace("w.glassbox", export_workspace(workspace)), workspace)
    assert_same(import_workspace("w.glassbox", path.read_bytes()), workspace)
    assert [file.name for file in path.parent.iterdir()] == ["w.glassbox"]


def test_a_workspace_of_an_earlier_version_is_opened_whole():
    """Its settings are those of that version; the app leaves out what it no longer has."""
    opened = open_workspace(ROOT / "tests" / "ui" / "earlier_version.glassbox")
    assert [document.name for document in opened.documents] == ["mill.md", "prices.csv#2", "prices.csv#3"]
    mill = opened.documents[0]
    assert (mill.section_at(60).headings, mill.date, mill.tags) == (
        ("The mill",),
        "2024-05-01",
        ("sandvik", "rye"),
    )
    assert opened.settings["widgets"]["precision"] == "bfloat16"
    assert opened.index.vectors.shape == (3, 384)
    assert opened.index.chunks[0].parent.text == opened.index.document_text("mill.md")
    [labelled] = opened.question_sets["Labelled here"]
    assert labelled["question"] == "Who built the mill?"
    assert [run.content["kind"] for run in opened.runs] == ["sweep", "answers"]
    assert_same(import_workspace("again", export_workspace(opened)), replace(opened, saved_as=""))


def test_chunks_with_numpys_numbers_are_kept(tmp_path):
    workspace = small()
    [piece] = workspace.index.chunks[:1]
    piece = replace(piece, start=np.int64(0), end=np.int64(5), n_tokens=np.int32(3), page=np.int64(1))
    index = index_vectors([piece], workspace.index.vectors[:1], replace(SPEC, max_tokens=np.int64(256)))
    save_workspace(tmp_path / "w", replace(workspace, index=index))
    assert open_workspace(tmp_path / "w").index.chunks == workspace.index.chunks[:1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"documents": (Document("a", "x"), Document("a", "y")), "index": None}, "one name"),
        ({"documents": (Document("a", "\ud800"),), "index": None}, "surrogate"),
        ({"documents": (Document("a.md", "Something else entirely."),)}, "chunks of b.md, which it lacks"),
        ({"documents": (Document("a.md", "Other. " * 99), Document("b.md", "Omega."))}, "build the index"),
        ({"settings": {"k": (1, 2)}}, "settings"),
        ({"settings": {"k": float("nan")}}, "JSON compliant"),
        ({"question_sets": {"mine": ["Who?"]}}, "valid dictionary"),
        ({"runs": (SavedRun("r", "yesterday", {}),)}, "yesterday"),
        ({"runs": (SavedRun("r", "2024-05-01", [1]),)}, "cannot be saved"),
    ],
)
def test_what_would_not_come_back_is_refused(tmp_path, change, message):
    workspace = replace(small(), **change)
    for save in (lambda w: save_workspace(tmp_path / "w", w), export_workspace):
        with pytest.raises(InputError, match=message) as caught:
            save(workspace)
        assert "\n" not in str(caught.value)


def test_a_failed_save_changes_nothing(tmp_path, monkeypatch):
    path = tmp_path / "w"
    saved = save_workspace(path, small())
    before = path.read_bytes()
    with pytest.raises(InputError):
        save_workspace(path, replace(saved, settings={"k": {1}}))
    monkeypatch.setattr("engine.storage.workspace_file.MAX_BYTES", 500)
    with pytest.raises(DocumentError, match="of documents, the most"):
        save_workspace(path, replace(saved, settings={"k": 7}))
    assert path.read_bytes() == before


def numbered(n):
    """A workspace of which every part tells its number."""
    text = f"{n} " * 20_000
    chunk = Chunk("d", 0, 9, text[:9], n)
    index = index_vectors([chunk], np.full((1, 384), n, np.float32), replace(SPEC, d_model=384))
    return Workspace((Document("d", text),), {"n": n}, index, {}, (SavedRun(str(n), "2024-05-01", {}),))


KILLED = """
import os, random, signal, sys, time
from dataclasses import replace
from pathlib import Path
from tests.engine.storage.test_workspace import assert_same, numbered, open_workspace, save_workspace

path = Path(sys.argv[1])
saved = save_workspace(path, numbered(0))
random.seed(0)
n_at_once = 0
for _ in range(24):
    last = open_workspace(path)
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        workspace = last
        while True:
            workspace = save_workspace(
                path, replace(numbered(workspace.settings["n"] + 1), saved_as=workspace.saved_as)
            )
            os.write(writing, b".")
    os.close(writing)
    time.sleep(random.uniform(0.001, 0.06))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    n_told = len(os.read(reading, 10_000))
    os.close(reading)
    found = open_workspace(path)
    n = found.settings["n"]
    assert n - last.settings["n"] - n_told in (0, 1), (n, last.settings["n"], n_told)
    assert_same(found, numbered(n))
    n_at_once += n_told
print(n_at_once)
"""


def test_a_save_killed_at_any_moment_leaves_the_old_state_or_the_new(tmp_path):
    [n_at_once] = run_python(KILLED, tmp_path / "w")
    assert int(n_at_once) > 0  # some saves were finished between the kills


def test_the_second_of_two_sessions_is_told_and_loses_nothing(tmp_path):
    path = tmp_path / "w"
    save_workspace(path, small())
    one, two = open_workspace(path), open_workspace(path)
    one = save_workspace(path, replace(one, settings={"by": "one"}))
    with pytest.raises(DocumentError, match="changes of another session: open it again"):
        save_workspace(path, replace(two, settings={"by": "two"}))
    with pytest.raises(DocumentError, match="another workspace"):
        save_workspace(path, Workspace())
    assert open_workspace(path).settings == {"by": "one"}
    save_workspace(tmp_path / "other", replace(two, settings={"by": "two"}))
    save_workspace(path, replace(one, settings={"by": "one again"}))
    assert open_workspace(path).settings == {"by": "one again"}


SETS = st.dictionaries(st.sampled_from("abcd"), st.sampled_from([[QUESTION], [QUESTION] * 2]))


@given(SETS, SETS, SETS)
def test_merging_keeps_what_either_session_changed(base, ours, theirs):
    sets = merged(*(Workspace(question_sets=each) for each in (base, ours, theirs))).question_sets
    for name in "abcd":
        changed = ours if ours.get(name) != base.get(name) else theirs
        assert sets.get(name) == changed.get(name) or base.get(name) not in (ours.get(name), theirs.get(name))


def test_merging_a_set_that_both_changed_keeps_each_question_that_either_added():
    def state(texts):
        questions = [{**QUESTION, "question": text} for text in texts]
        return Workspace(question_sets={"s": questions} if texts else {})

    def merge(*texts):
        sets = merged(*map(state, texts)).question_sets
        return "".join(question["question"] for question in sets.get("s", ()))

    assert merge("", "a", "b") == "ba"
    assert merge("ab", "abc", "bd") == "bdc"
    assert merge("a", "", "ab") == merge("a", "ab", "") == "b"
    assert merge("aa", "aab", "a") == "ab"
    assert merge("a", "", "") == ""


def test_merging_keeps_documents_by_name_runs_by_name_and_time_and_our_settings():
    def run(time):
        return SavedRun("run", time, {})

    a, b, c = (Document(name, "Alpha.") for name in "abc")
    base = Workspace((a,), {"k": 1}, runs=(run("2026-01-01"),))
    ours = Workspace((b,), {"k": 2}, runs=(run("2026-01-01"), run("2026-01-02")))
    theirs = Workspace((a, c), {"k": 3}, runs=(), saved_as="digest")
    found = merged(base, ours, theirs)
    assert found == Workspace((c, b), {"k": 2}, runs=(run("2026-01-02"),))
    assert found.saved_as == "digest"


def test_a_writer_waits_for_another_and_is_told_where_that_takes_too_long(tmp_path, monkeypatch):
    path = tmp_path / "w"
    saved = save_workspace(path, small())
    other = connect_ours(str(path))
    other.execute("BEGIN IMMEDIATE")
    assert_same(open_workspace(path), small())  # readers do not wait
    Timer(0.3, lambda: other.execute("COMMIT")).start()
    save_workspace(path, replace(saved, settings={"k": 9}))
    assert open_workspace(path).settings == {"k": 9}
    other.close()
    saved = open_workspace(path)
    monkeypatch.setattr("engine.retrieval.sqlite_file.BUSY_SECONDS", 0.05)
    with closing(connect_ours(str(path))) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(DocumentError, match="being written by another session: try again"):
            save_workspace(path, replace(saved, settings={"k": 10}))


def test_embeddings_may_live_in_the_same_file(tmp_path):
    path, vectors = tmp_path / "w", np.ones((1, 4), np.float32)
    with closing(VectorCache(path)) as cache:
        cache.put_many(["a"], vectors, SPEC)
        with pytest.raises(DocumentError, match="no workspace yet"):
            open_workspace(path)
        saved = save_workspace(path, small())
        cache.put_many(["b"], vectors, SPEC)
        assert_same(open_workspace(path), small())
        save_workspace(path, replace(saved, settings={"k": 1}))
        assert cache.get_many(["a", "b"], SPEC)[1].all()
        assert not cache.notice
    assert import_workspace("w", path.read_bytes()).settings == {"k": 1}


def is_told(content, expected):
    """Whether a damaged file is refused in one line, or else holds what it held."""
    try:
        assert_same(import_workspace("w.glassbox", bytes(content)), expected)
        return False
    except DocumentError as error:
        message = str(error)
    assert message.startswith("w.glassbox ")
    assert "\n" not in message
    return True


@pytest.fixture(scope="module")
def exported():
    return export_workspace(small())


@given(data=st.data())
def test_a_cut_file_and_flipped_bytes_are_noticed_where_they_matter(exported, data):
    length = data.draw(st.integers(1, len(exported) - 1))
    assert is_told(exported[:length], small()), length
    content = bytearray(exported)
    for place in data.draw(st.lists(st.integers(0, len(content) - 1), min_size=1, max_size=10)):
        content[place] ^= data.draw(st.integers(1, 255))
    is_told(content, small())


def database_of_another_program(path):
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE places (url TEXT)")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: path.write_bytes(b""), "is empty|not a workspace"),
        (lambda path: path.write_bytes(b"Some notes.\n" * 400), "not a workspace"),
        (lambda path: path.write_bytes(b"SQLite format 3\0"), "not a workspace|damaged"),
        (lambda path: path.write_bytes(export_workspace(small())[:9000]), "damaged"),
        (database_of_another_program, "is not a workspace"),
    ],
)
def test_other_and_damaged_files_are_refused_and_left_as_they_are(tmp_path, make, message):
    path = tmp_path / "w"
    make(path)
    before = path.read_bytes()
    uses = [open_workspace, lambda path: import_workspace("w", path.read_bytes())]
    uses += [lambda path: save_workspace(path, small())] if before else []  # an empty file may become one
    for use in uses:
        with pytest.raises(DocumentError, match=f"w .*({message})"):
            use(path)
        assert path.read_bytes() == before


def test_missing_files_and_places_are_told(tmp_path):
    with pytest.raises(DocumentError, match="does not exist"):
        open_workspace(tmp_path / "missing")
    assert not (tmp_path / "missing").exists()
    with pytest.raises(DocumentError, match="does not exist"):
        open_workspace(tmp_path)
    with pytest.raises(DocumentError, match="folder that you can write to"):
        save_workspace(tmp_path / "no" / "folder", small())
    with pytest.raises(GlassboxError):
        save_workspace(Path("a\0b"), small())


def changed(tmp_path, *statements):
    """The content of a workspace's file after somebody else's statements."""
    path = tmp_path / "changed"
    path.write_bytes(export_workspace(small()))
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)
    return path.read_bytes()


def test_a_newer_version_is_refused_with_a_line_that_says_so(tmp_path):
    content = changed(tmp_path, "PRAGMA user_version = 4", "CREATE TABLE more (x)")
    with pytest.raises(DocumentError, match=r"newer version \(format 4, this one reads 3\): update"):
        import_workspace("w", content)
    path = tmp_path / "w"
    path.write_bytes(content)
    with pytest.raises(DocumentError, match="newer version"):
        save_workspace(path, small())
    assert path.read_bytes()[100:] == content[100:]  # all but the header, which counts changes


@pytest.mark.parametrize(
    "statements",
    [
        ["CREATE TRIGGER t AFTER DELETE ON settings BEGIN DELETE FROM documents; END"],
        ["CREATE VIEW v AS SELECT 1"],
        ["DROP TABLE runs", "CREATE VIEW runs AS SELECT 0 position, 'n' name, '2024' time, '{}' content"],
        ["DROP TABLE runs"],
        ["CREATE VIRTUAL TABLE f USING fts5(x)"],
    ],
)
def test_a_file_with_anything_but_our_tables_is_refused(tmp_path, statements):
    with pytest.raises(DocumentError, match="tables are not those"):
        import_workspace("w", changed(tmp_path, *statements))


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        ("documents", 1, 5),
        ("documents", 3, None),
        ("documents", 4, '[["x", [], 1]]'),
        ("documents", 4, "[" * 100_000),
        ("settings", 1, "[]"),
        ("stamp", 4, "many"),
        ("chunks", 1, 99),
        ("chunks", 3, 10**6),
        ("chunks", 5, "{}"),
        ("chunks", 7, 50),
        ("chunks", 8, np.full(4, np.nan, np.float32).tobytes()),
        ("question_sets", 2, "[1]"),
        ("runs", 2, "never"),
        ("runs", 3, "null"),
        ("stamp", None, None),
        ("settings", None, None),
    ],
)
def test_content_that_is_made_up_is_refused(table, column, value):
    rows = to_rows(small())
    last = list(rows[table].pop())
    if column is not None:
        last[column] = value
        rows[table].append(tuple(last))
    with closing(connect_ours(":memory:")) as connection:
        write_rows(connection, rows, "", "w")
        content = connection.serialize()
    with pytest.raises(DocumentError, match="w is damaged") as caught:
        import_workspace("w", content)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


def test_a_file_that_is_far_too_large_is_refused(exported, tmp_path, monkeypatch):
    (tmp_path / "w").write_bytes(exported)
    monkeypatch.setattr("engine.storage.workspace_file.MAX_BYTES", 600)
    with pytest.raises(DocumentError, match="more than the 0 MB of an exported workspace"):
        import_workspace("w", exported)
    with pytest.raises(DocumentError, match="0 MB of documents, the most"):
        open_workspace(tmp_path / "w")
