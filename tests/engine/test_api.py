"""The interface for Python: a folder is searched and asked, kept and read again, by the table of settings."""

import pytest

from engine import Encoder, Index
from engine.cli.options import SearchedOptions
from engine.errors import DocumentError, InputError
from engine.retrieval.stored.index_folder import open_index
from engine.retrieval.stored.index_update import update_index
from engine.settings import SETTINGS
from tests.command_line import LIGHTHOUSE, printed
from tests.engine.models.test_sparse_encoder import save_masked_lm

BEES = "# Bees\n\nThe keeper sold honey in 1934."


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("documents")
    (folder / "lighthouse.txt").write_text(LIGHTHOUSE, encoding="utf-8")
    (folder / "bees.md").write_text(BEES, encoding="utf-8")
    (folder / "picture.png").write_bytes(b"x")
    return folder


@pytest.fixture(scope="module")
def index(folder):
    return Index.from_folder(folder, show_progress=False)


def test_the_command_line_finds_and_answers_the_same(index, folder):
    question = "When was the lighthouse painted?"
    found = printed("search", question, "--corpus", folder, "--k", "2")["hits"]
    hits = index.search(question, k=2)
    assert [(hit.document, hit.text) for hit in hits] == [(each["document"], each["text"]) for each in found]
    answer, theirs = index.ask(question), printed("ask", question, "--corpus", folder)
    assert str(answer) == theirs["answer"]["text"] == "1931"
    span = answer.reading
    assert LIGHTHOUSE[span.start : span.end] == span.text
    assert (span.document, span.start) == (theirs["answer"]["document"], theirs["answer"]["start"])
    assert index.failures[0]["name"] == "picture.png"
    assert [document.name for document in index.documents] == ["bees.md", "lighthouse.txt"]


def test_settings_are_those_of_the_table_by_name_or_label(folder, index):
    small = Index.from_folder(folder, show_progress=False, splitter="paragraphs", chunk_size=16, k=1)
    assert len(small.chunks.chunks) == 3
    assert len(small.search("honey")) == 1
    assert len(small.search("honey", k=3, retriever="bm25")) == 2  # chunks with the word
    assert index.ask("When was the lighthouse painted?", refuse_threshold=100, answer_threshold=100).quotes


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"chunk_siz": 64}, "no setting 'chunk_siz' here: .*did you mean 'chunk_size'"),
        ({"splitter": "sentence"}, "did you mean 'sentences'"),
        ({"k": "3"}, "k is '3': give a whole number"),
        ({"k": 2.5}, "k is 2.5: give a whole number"),
        ({"max_tokens": "all"}, "max_tokens is 'all': give a whole number"),
        ({"temperature": "hot"}, "temperature is 'hot': give a number"),
        ({"model": 3}, "model is 3: give a text"),
        ({"write": 1}, "write is 1: give True or False"),
        ({"k": 0}, "k is 0: ask for 1 passage or more"),
        ({"refuse_threshold": 90, "answer_threshold": 50}, "the lower one first"),
        ({"top_p": 3.0}, "top_p is 3.0: give a value above 0"),
        ({"retriever": "late"}, "needs a late-interaction model"),
    ],
)
def test_settings_are_checked_before_anything_is_read(settings, reason):
    with pytest.raises(InputError, match=reason):
        Index.from_folder("nosuch", **settings)


@pytest.mark.parametrize(
    ("folder", "error", "reason"),
    [
        ("nosuch", DocumentError, "does not exist"),
        ("https://a.b/c", DocumentError, "nothing is fetched"),
        ("", InputError, "'' is no path"),
        (["notes"], InputError, "is no path: give that of a file or a folder"),
    ],
)
def test_the_folder_is_looked_for_before_anything_is_loaded(folder, error, reason, capsys):
    with pytest.raises(error, match=reason):
        Index.from_folder(folder)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("method", "arguments", "reason"),
    [
        ("search", {"question": "honey", "splitter": "fixed"}, "no setting 'splitter' here"),
        ("search", {"question": "honey", "top_k": 3}, "no setting 'top_k' here"),
        ("search", {"question": ["honey"]}, "the question is list, not a string"),
        ("search", {"question": "honey", "retriever": "late"}, "needs a late-interaction model"),
        ("ask", {"question": None}, "the question is NoneType, not a string"),
        ("ask", {"question": "And now?", "after": "What is honey?"}, "give a list of what `ask` returned"),
        ("ask", {"question": "honey", "temperature": -1.0}, "temperature is -1.0: give 0"),
    ],
)
def test_what_is_wrong_with_a_question_is_said_in_a_line(index, method, arguments, reason):
    with pytest.raises(InputError, match=reason):
        getattr(index, method)(**arguments)


def test_a_class_with_a_name_alone_says_what_to_call():
    with pytest.raises(InputError, match=r"call Encoder\.load\('all-MiniLM-L6-v2'\)"):
        Encoder("all-MiniLM-L6-v2", device="cpu")


def test_a_question_may_follow_on_earlier_answers(index):
    first = index.ask("When was the lighthouse of Vardholm painted?")
    second = index.ask("And by whom?", after=[first])
    assert "Vardholm" in second.question


def test_an_index_is_kept_and_read_again_here_and_by_the_command_line(index, folder, tmp_path, encoder):
    kept, question = tmp_path / "kept", "When was the lighthouse painted?"
    for _ in range(2):  # a second time in place of the first
        index.save(kept)
    again = Index.load(kept, show_progress=False, retriever="bm25")
    assert again.search("honey")[0].document == "bees.md"
    assert str(again.ask(question)) == str(index.ask(question))
    assert printed("ask", question, "--index", kept)["answer"]["text"] == "1931"
    update = update_index(folder, kept, encoder, open_index(kept).settings)
    assert (update.unchanged, update.embedded_chunks) == (2, 0)
    with pytest.raises(InputError, match="copy that folder"):
        again.save(tmp_path / "other")
    with pytest.raises(DocumentError, match="holds no index"):
        Index.load(tmp_path, show_progress=False)


def test_models_beside_the_encoder_are_named_and_their_words_kept(folder, tmp_path):
    sparse = str(save_masked_lm(tmp_path / "words"))
    made = Index.from_folder(folder, show_progress=False, sparse=sparse, retriever="sparse-weighted")
    made.save(tmp_path / "index")
    read = Index.load(tmp_path / "index", show_progress=False, retriever="sparse-weighted")
    assert read.chunks.expanded is not None
    question = "When was the lighthouse painted?"
    assert [hit.text for hit in read.search(question)] == [hit.text for hit in made.search(question)]


def test_progress_is_shown_unless_it_is_not_wanted(folder, capsys):
    Index.from_folder(folder)
    assert "Embedding 2 chunks" in capsys.readouterr().err
    Index.from_folder(folder, show_progress=False).search("honey")
    assert [line[:17] for line in capsys.readouterr().err.splitlines()] == ["warning: left out"]


def test_every_setting_of_the_index_is_an_option_of_the_command_line():
    made_by = {key for key, each in SETTINGS.items() if each.stage in ("cut", "embedding")}
    assert made_by <= set(SearchedOptions.__dataclass_fields__)
