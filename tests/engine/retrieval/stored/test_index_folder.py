import errno
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from engine.documents.loaders import load_corpus, read_corpus
from engine.documents.splitters import Splitting
from engine.errors import DocumentError, InputError
from engine.generation.passage_search import retrieve
from engine.generation.settings import SearchSettings
from engine.models.encoder import Encoder
from engine.models.sparse_encoder import SparseEncoder
from engine.retrieval import bm25
from engine.retrieval.embedding_model import cut_documents
from engine.retrieval.index import build_index
from engine.retrieval.relevance import null_scores_by
from engine.retrieval.sparse_index import SparseIndex
from engine.retrieval.stored import checked_files, index_folder, index_rows, index_update
from engine.retrieval.stored.index_folder import IndexSettings, as_indexed, open_index, read_manifest
from engine.retrieval.stored.index_update import update_index
from tests.engine.models.test_sparse_encoder import save_masked_lm
from tests.indexes import names_in
from tests.text_files import write_files

TEXTS = {
    "bees.md": "# Bees\n\nA hive has one queen. The keeper sold the honey.\n\n# Wasps\n\nThey make none.",
    "bread.txt": "Knead the dough for ten minutes. Let it rest for an hour.",
    "deep/rows.csv": "who,what\nAda,wrote the first program\nGrace,found the moth\n",
}
SMALL = Splitting("markdown", 16, 0)


def settings_of(**changes):
    return IndexSettings(**{"model": "the model", "splitting": SMALL, **changes})


@pytest.fixture
def corpus(tmp_path):
    return write_files(tmp_path / "corpus", TEXTS)


@pytest.fixture
def embedded(monkeypatch):
    """Texts of the chunks that are embedded."""
    embedded, embed_chunks = [], index_update.embed_chunks

    def embed(texts, *rest):
        embedded.extend(texts)
        return embed_chunks(texts, *rest)

    monkeypatch.setattr(index_update, "embed_chunks", embed)
    return embedded


def in_memory(corpus, encoder, settings):
    """The index of a corpus as it is made without a folder."""
    model = encoder.with_prompts(settings.prompts).with_precision(settings.precision)
    pieces = cut_documents(load_corpus(corpus), model, settings.splitting, settings.parent_tokens)
    chunks = [chunk for piece in pieces for chunk in piece]
    return build_index(chunks, model, settings.pooling, settings.max_tokens)


def assert_equal(index, other):
    assert index.chunks == other.chunks
    assert index.spec == other.spec
    np.testing.assert_allclose(index.vectors, other.vectors, atol=1e-6)
    assert (index.idf is None) == (other.idf is None)


@pytest.mark.parametrize(
    "changes",
    [
        {"pooling": "idf", "max_tokens": 12},
        {"precision": "int8", "pooling": "cls"},
        {"parent_tokens": 64, "splitting": Splitting("semantic", 24, 0)},
        {"splitting": Splitting("sentences", 24, 0, "title")},
    ],
    ids=str,
)
def test_an_index_is_read_as_it_is_made_in_memory(corpus, folder, encoder, changes):
    settings = settings_of(**changes)
    model = encoder.with_prompts(settings.prompts).with_precision(settings.precision)
    made = update_index(corpus, folder, model, settings).stored
    stored = open_index(folder)
    np.testing.assert_array_equal(stored.index.vectors, made.index.vectors)
    assert_equal(stored.index, in_memory(corpus, encoder, settings))
    assert stored.settings == replace(settings, store="folder")
    assert stored.documents == tuple(load_corpus(corpus))
    for retriever in ("dense", "weighted"):
        search = SearchSettings(3, retriever=retriever)
        reading = as_indexed(stored, encoder, folder)
        null_scores = null_scores_by(stored.index, stored.unrelated)
        found = retrieve("Who found the moth?", stored.index, reading, search, null_scores)
        expected = retrieve("Who found the moth?", in_memory(corpus, encoder, settings), model, search)
        assert [hit.chunk for hit in found.hits] == [hit.chunk for hit in expected.hits]
        scores = [hit.score for hit in expected.hits]
        np.testing.assert_allclose([hit.score for hit in found.hits], scores, atol=1e-6)
        np.testing.assert_allclose(found.null_scores.pairs, expected.null_scores.pairs, atol=1e-6)


def test_dates_tags_and_the_index_of_words_are_kept(corpus, folder, encoder, monkeypatch):
    write_files(corpus, {"bees.md": "---\ndate: 2026-05-01\ntags: [bees, wasps]\n---\nA hive has one queen."})
    made = update_index(corpus, folder, encoder, settings_of()).stored
    monkeypatch.setattr(bm25, "postings_of", None)  # which nothing is indexed without
    stored = open_index(folder)
    assert (stored.documents[0].date, stored.documents[0].tags) == ("2026-05-01", ("bees", "wasps"))
    assert stored.documents == made.documents
    postings, expected = stored.index.words.postings, made.index.words.postings
    assert postings.vocabulary == expected.vocabulary
    for name in ("starts", "rows", "impacts"):
        np.testing.assert_array_equal(getattr(postings, name), getattr(expected, name))


def test_only_new_and_changed_files_are_embedded(corpus, folder, encoder, embedded):
    first = update_index(corpus, folder, encoder, settings_of())
    assert (first.new, first.changed, first.deleted, first.unchanged) == (3, 0, 0, 0)
    embedded.clear()

    write_files(corpus, {"bread.txt": TEXTS["bread.txt"] + " Then bake it."})
    write_files(corpus, {"a_new.txt": "The tower was finished in 1891."})
    (corpus / "bees.md").unlink()
    update = update_index(corpus, folder, encoder, settings_of())
    assert update.words == "1 new, 1 changed, 1 deleted, 1 unchanged"
    assert not any("Ada" in text for text in embedded)
    assert update.embedded_chunks == len(embedded)
    assert_equal(open_index(folder).index, in_memory(corpus, encoder, settings_of()))


def test_nothing_is_written_for_a_corpus_that_stayed(corpus, folder, encoder, embedded):
    update_index(corpus, folder, encoder, settings_of())
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir() if path.name != ".lock"}
    embedded.clear()
    update = update_index(corpus, folder, encoder, settings_of())
    assert update.words == "0 new, 0 changed, 0 deleted, 3 unchanged"
    assert not embedded
    assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir() if path.name in before} == before


def test_what_a_stopped_run_embedded_is_not_embedded_again(corpus, folder, encoder, monkeypatch):
    monkeypatch.setattr(Encoder, "block_texts", 2)
    expected = in_memory(corpus, encoder, settings_of())

    def stop(done, total):
        if done > 2:  # the first two are stored before more are embedded
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        update_index(corpus, folder, encoder, settings_of(), on_progress=stop)
    with pytest.raises(DocumentError, match="holds no index"):
        open_index(folder)
    shown = []
    made = update_index(corpus, folder, encoder, settings_of(), on_progress=lambda *step: shown.append(step))
    assert shown[0] == (2, len(expected.chunks))
    assert made.embedded_chunks == len(expected.chunks) - 2
    assert_equal(open_index(folder).index, expected)
    assert names_in(folder) == {read_manifest(folder)["state"]}


def test_other_settings_are_refused_with_the_old_and_the_new_value(corpus, folder, encoder):
    update_index(corpus, folder, encoder, settings_of())
    with pytest.raises(InputError, match="made with chunk-tokens 16, not 24: give --chunk-tokens 16"):
        update_index(corpus, folder, encoder, settings_of(splitting=replace(SMALL, chunk_tokens=24)))
    update = update_index(corpus, folder, encoder, settings_of(pooling="cls"), rebuild=True)
    assert (update.new, update.stored.index.spec.pooling) == (3, "cls")


def test_another_model_is_refused(corpus, folder, encoder):
    update_index(corpus, folder, encoder, settings_of())
    other = replace(encoder, compiled=not encoder.compiled)
    with pytest.raises(InputError, match="holds vectors of all-MiniLM-L6-v2, pooling mean"):
        as_indexed(open_index(folder), other, folder)
    with pytest.raises(InputError, match="--rebuild"):
        update_index(corpus, folder, other, settings_of())


def test_files_that_cannot_be_read_are_left_out_and_named(corpus, folder, encoder):
    write_files(corpus, {"__init__.py": ""})
    write_files(corpus, {"crew.jsonl": '{"text": "Ida is the captain."}\nno object'})
    made = update_index(corpus, folder, encoder, settings_of())
    assert (made.new, [each.name for each in made.failures]) == (4, ["__init__.py", "crew.jsonl#2"])
    assert made.stored.documents == read_corpus(corpus).documents
    write_files(corpus, {"bees.md": " "})
    blank = update_index(corpus, folder, encoder, settings_of())
    names = ["__init__.py", "bees.md", "crew.jsonl#2"]  # the last of a file that was not read again
    assert (blank.deleted, [each.name for each in blank.failures]) == (1, names)
    assert open_index(folder).failures == blank.failures
    write_files(corpus, {"bees.md": TEXTS["bees.md"]})
    assert update_index(corpus, folder, encoder, settings_of()).new == 1


def test_a_fault_of_the_disk_takes_no_file_out_of_the_index(corpus, folder, encoder, monkeypatch):
    update_index(corpus, folder, encoder, settings_of())
    write_files(corpus, {"bees.md": "A hive has one queen."})
    read_bytes = Path.read_bytes

    def failing(path):
        if path.name == "bees.md":
            raise OSError(errno.EIO, "Input/output error")
        return read_bytes(path)

    monkeypatch.setattr(Path, "read_bytes", failing)
    with pytest.raises(DocumentError, match=r"bees\.md cannot be read: \[Errno 5\]"):
        update_index(corpus, folder, encoder, settings_of())
    assert len(open_index(folder).files) == 3


def test_a_folder_within_the_corpus_is_refused_unless_hidden(corpus, encoder):
    with pytest.raises(InputError, match="is within the corpus"):
        update_index(corpus, corpus / "index", encoder, settings_of())
    assert update_index(corpus, corpus / ".index", encoder, settings_of()).new == 3


def test_files_of_one_content_and_other_endings_have_their_own_chunks(tmp_path, folder, encoder):
    """A heading of Markdown is none in plain text."""
    write_files(tmp_path / "corpus", {"a.md": TEXTS["bees.md"]})
    update_index(tmp_path / "corpus", folder, encoder, settings_of())
    write_files(tmp_path / "corpus", {"b.txt": TEXTS["bees.md"]})
    update_index(tmp_path / "corpus", folder, encoder, settings_of())
    assert_equal(open_index(folder).index, in_memory(tmp_path / "corpus", encoder, settings_of()))


def test_the_words_of_a_learned_sparse_model_are_kept_and_only_new_chunks_expanded(
    corpus, encoder, tmp_path, monkeypatch
):
    expanded, encode = [], SparseEncoder.encode

    def noted(model, texts, *rest):
        expanded.extend(texts)
        return encode(model, texts, *rest)

    sparse = SparseEncoder.load(save_masked_lm(tmp_path))
    monkeypatch.setattr(SparseEncoder, "encode", noted)
    both, folder = replace(encoder, sparse=sparse), tmp_path / "index"
    settings = settings_of(sparse="the sparse model")
    update_index(corpus, folder, encoder, settings_of())
    assert open_index(folder).index.expanded is None
    stored = update_index(corpus, folder, both, settings).stored  # vectors stay
    assert len(expanded) == len(stored.index.chunks)
    expanded.clear()
    write_files(corpus, {"new.md": "A dead bee."})
    update_index(corpus, folder, both, settings)
    assert expanded == ["A dead bee."]
    opened = open_index(folder).index
    assert opened.words_of(sparse) is opened.expanded
    anew = SparseIndex.of(opened.texts, sparse)
    np.testing.assert_allclose(opened.expanded.weights.toarray(), anew.weights.toarray(), atol=1e-6)


def test_a_large_index_is_mapped_and_only_what_is_found_is_read(corpus, folder, encoder, monkeypatch):
    settings = settings_of(parent_tokens=64)
    update_index(corpus, folder, encoder, settings)
    whole, read = open_index(folder), []
    for module, name in (
        (checked_files, "IN_MEMORY"),
        (index_folder, "IN_MEMORY"),
        (index_folder, "READ_WHOLE"),
    ):
        monkeypatch.setattr(module, name, 0)
    bounded = index_rows.with_bounded_names
    monkeypatch.setattr(
        index_rows, "with_bounded_names", lambda document: read.append(document.name) or bounded(document)
    )
    mapped = open_index(folder)
    assert not read
    null_scores = null_scores_by(mapped.index, mapped.unrelated)
    found, expected = (
        retrieve("Who found the moth?", index, encoder, SearchSettings(1, retriever="weighted"), null_scores)
        for index in (mapped.index, whole.index)
    )
    assert found.hits == expected.hits
    assert [*mapped.index.chunks] == [*whole.index.chunks]
    assert mapped.index.chunks[1:3] == whole.index.chunks[1:3]
    assert dict(mapped.index.documents) == whole.index.documents
    assert [*mapped.files] == [*whole.files]
    assert "absent.txt" not in mapped.index.documents
    write_files(corpus, {"new.txt": "A moth was found in relay 70."})
    assert update_index(corpus, folder, encoder, settings).embedded_chunks == 1
    assert mapped.index.chunks[0] == whole.index.chunks[0]  # of the state that was opened
    lines = next(folder.glob("state-*/files.jsonl"))
    lines.write_bytes(b"x" * lines.stat().st_size)
    with pytest.raises(DocumentError, match="the index is damaged"):
        open_index(folder).index.chunks[0]
