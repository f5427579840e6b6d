import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.documents.document import Chunk, Document
from engine.generation.answering import ask
from engine.generation.passage_search import retrieve
from engine.generation.settings import AnswerSettings, SearchSettings
from engine.generation.writer import Writer
from engine.retrieval.embedding_model import embed_query
from engine.retrieval.embedding_spec import EmbeddingSpec, Query
from engine.retrieval.index import build_index, index_vectors
from engine.retrieval.parents import search_parents
from engine.retrieval.ranking import best_first
from engine.retrieval.retrievers import RETRIEVERS, index_scores

TOWER = "The Vardholm tower stands above the harbour. It was finished in 1891 by forty masons."
BREAD = "Knead the dough for ten minutes. Let it rest overnight. Bake it in the morning."
BEES = "Bees make honey in June."
QUESTION = "When was it finished, and by how many masons?"


def children(name, text):
    """The sentences of a text, each with the whole text as its parent."""
    parent = Chunk(name, 0, len(text), text, 20)
    spans, start = [], 0
    for sentence in text.split(". "):
        spans.append((start, start + len(sentence)))
        start += len(sentence) + 2
    return [Chunk(name, a, b, text[a:b], 10, parent=parent) for a, b in spans]


@pytest.fixture(scope="module")
def index(encoder):
    texts = {"tower.md": TOWER, "bread.md": BREAD, "bees.md": BEES}
    chunks = [*children("tower.md", TOWER), *children("bread.md", BREAD), Chunk("bees.md", 0, 24, BEES, 8)]
    documents = [Document(name, text) for name, text in texts.items()]
    return build_index(chunks, encoder, documents=documents)


@given(
    families=st.lists(st.integers(0, 4), min_size=1, max_size=20),
    k=st.integers(1, 6),
    seed=st.integers(0, 99),
)
def test_in_any_order_a_passage_comes_with_its_first_child_and_has_the_score_of_its_nearest(
    families, k, seed
):
    chunks = [
        Chunk("d.md", i, i + 1, "x", 3, parent=Chunk(f"{family}.md", 0, 9, "x" * 9, 9) if family else None)
        for i, family in enumerate(families)
    ]
    rng = np.random.default_rng(seed)
    vectors, query = rng.normal(size=(len(chunks), 4)), rng.normal(size=4).astype(np.float32)
    index = index_vectors(chunks, vectors, EmbeddingSpec("model", "mean", 256, vectors.shape[1]))
    order, cosines = rng.permutation(len(chunks)), index.vectors @ query
    passages = [chunk.parent or chunk for chunk in chunks]
    found = search_parents(index, Query(query, index.spec), k)  # in the order of cosines
    nearest = dict.fromkeys(passages[row] for row in np.argsort(-cosines))
    assert [hit.chunk for hit in found] == list(nearest)[:k]
    found = search_parents(index, Query(query, index.spec), k, order)
    assert [hit.chunk for hit in found] == list(dict.fromkeys(passages[row] for row in order))[:k]
    for hit in found:
        own = [cosine for passage, cosine in zip(passages, cosines, strict=True) if passage == hit.chunk]
        assert hit.score == pytest.approx(max(own), abs=1e-5)


@pytest.mark.parametrize("retriever", [name for name, one in RETRIEVERS.items() if not one.needs])
def test_small_to_big_works_with_every_retriever(index, encoder, retriever):
    found = retrieve(QUESTION, index, encoder, SearchSettings(2, 0, retriever))
    scores = index_scores(retriever, QUESTION, embed_query(QUESTION, encoder), index, encoder)
    rows = [row for row in best_first(scores[None])[0] if np.isfinite(scores[row])]
    passages = [index.chunks[row].parent or index.chunks[row] for row in rows]
    assert [hit.chunk for hit in found.hits] == list(dict.fromkeys(passages))[:2]
    assert found.hits[0].chunk.text == TOWER


def test_an_answer_is_given_the_parent_of_the_sentence_that_was_found(index, encoder, decoder):
    settings = AnswerSettings(SearchSettings(1, 0), max_new_tokens=4, reads="passages", write=True)
    answer = ask(QUESTION, index, encoder, Writer(decoder), settings)
    [source] = answer.sources
    assert (source.document, source.start, source.end, source.text) == ("tower.md", 0, len(TOWER), TOWER)
    assert TOWER in answer.written.prompt.text
