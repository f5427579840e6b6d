from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from engine.documents.document import Chunk
from engine.errors import InputError
from engine.evaluation.metrics import recall
from engine.layers.norm import l2_normalize
from engine.retrieval import index as searching
from engine.retrieval import rerank as reranking
from engine.retrieval import retrievers
from engine.retrieval.bm25 import Bm25
from engine.retrieval.embedding_model import embed_query
from engine.retrieval.fusion import reciprocal_rank_fusion, weighted_fusion
from engine.retrieval.index import build_index
from engine.retrieval.index_kinds import build_ann
from engine.retrieval.mmr import mmr_scores
from engine.retrieval.ranking import top
from engine.retrieval.rerank import MaxSim, TokenVectors, rerank
from engine.retrieval.words import words

CHUNKS = (
    "The bridge over the Forth was opened in 1890.",
    "Steel bridges need paint every few years.",
    "Rain falls mostly in the west of Scotland.",
    "Cats sleep through most of the day.",
    "",
    "A kitten is a young cat.",
)
QUESTIONS = ("When was the Forth bridge opened?", "what do cats do", "of the")


@pytest.fixture(scope="module")
def encoder(encoder):
    """The encoder with a reranker, which scores by the cosine, and two more models that know its tokens."""

    def score(question, texts):
        return encoder.encode(texts) @ encoder.encode([question])[0]

    def expand(texts, role="document", on_progress=None):
        ids = encoder.tokenizer.ids_batch(list(texts))
        rows = np.repeat(np.arange(len(ids)), [len(own) for own in ids])
        words = np.concatenate([np.empty(0, int), *ids]).astype(int)
        weights = (words > 2000).astype(np.float32)  # of words of content, and no special tokens
        return csr_matrix((weights, (rows, words)), (len(ids), encoder.config.vocab_size))

    def vectors(texts, role="document", on_progress=None):
        ids = encoder.tokenizer.ids_batch(list(texts))
        return [l2_normalize(each.vectors) for each in encoder.token_states(ids)] if ids else []

    return replace(
        encoder,
        reranker=SimpleNamespace(score=score),
        sparse=SimpleNamespace(encode=expand, fingerprint="tokens"),
        multi_vector=SimpleNamespace(vectors=vectors),
    )


@pytest.fixture(scope="module")
def inputs(encoder):
    vectors = encoder.encode([*QUESTIONS, *CHUNKS])
    texts = retrievers.SearchTexts(QUESTIONS, CHUNKS, encoder)
    return retrievers.SearchInputs(texts, vectors[: len(QUESTIONS)], vectors[len(QUESTIONS) :])


@pytest.mark.parametrize("name", retrievers.RETRIEVERS)
def test_every_retriever_scores_every_chunk(inputs, name):
    scores = retrievers.retriever_scores(name, inputs)
    assert scores.dtype == np.float32
    assert scores.shape == (len(QUESTIONS), len(CHUNKS))
    assert np.isfinite(scores).all() or name in ("bm25", "sparse")
    assert not np.isnan(scores).any()
    best = scores.argmax(axis=1)
    assert best[0] == 0
    assert best[1] in (3, 5)


def test_each_is_what_its_module_makes_of_the_same_scores(inputs):
    dense = retrievers.dense_scores(inputs.question_vectors, inputs.chunk_vectors)
    bm25 = Bm25(CHUNKS).scores(QUESTIONS)
    expected = {
        "dense": dense,
        "bm25": np.where(bm25 > 0, bm25, -np.inf),
        "hybrid": reciprocal_rank_fusion([dense, bm25]),
        "weighted": weighted_fusion(dense, bm25),
        "mmr": mmr_scores(dense, inputs.chunk_vectors),
        "maxsim": rerank(dense, inputs.texts.maxsim),
        "sparse-weighted": weighted_fusion(dense, inputs.texts.sparse),
        "late-reordered": rerank(weighted_fusion(dense, bm25), inputs.texts.late_maxsim),
    }
    for name, scores in expected.items():
        found = retrievers.retriever_scores(name, inputs)
        np.testing.assert_array_equal(found, scores, err_msg=name)


def test_a_chunk_without_a_word_of_the_question_is_not_found_by_words(inputs):
    scores = retrievers.retriever_scores("bm25", inputs)
    relevant = np.ones(scores.shape, bool)
    shares = np.array([[bool(set(words([q])[0]) & set(words([c])[0])) for c in CHUNKS] for q in QUESTIONS])
    np.testing.assert_array_equal(np.isfinite(scores), shares)
    n_found = recall(scores, relevant, len(CHUNKS)) * len(CHUNKS)
    np.testing.assert_allclose(n_found, shares.sum(axis=1))


def test_an_unknown_retriever_is_refused(inputs):
    with pytest.raises(InputError, match="'best' is not one of dense, bm25"):
        retrievers.retriever_scores("best", inputs)


def test_vectors_that_are_not_of_the_texts_are_refused(inputs):
    with pytest.raises(InputError, match="3 questions and 6 chunks, but vectors of 3 and 5"):
        replace(inputs, chunk_vectors=inputs.chunk_vectors[1:])
    with pytest.raises(InputError, match="one model"):
        retrievers.retriever_scores("dense", replace(inputs, chunk_vectors=inputs.chunk_vectors[:, 1:]))
    without = replace(inputs, texts=replace(inputs.texts, encoder=None))
    with pytest.raises(InputError, match="give the encoder"):
        retrievers.retriever_scores("maxsim", without)


def test_a_question_embedded_in_another_way_is_refused(index, encoder):
    with pytest.raises(InputError, match="embed both"):
        retrievers.index_scores("bm25", "cats", embed_query("cats", encoder, "cls"), index, encoder)


@pytest.fixture(scope="module")
def index(encoder):
    return build_index([Chunk("d.md", n, n + 1, text, 9) for n, text in enumerate(CHUNKS)], encoder)


@pytest.mark.parametrize("name", retrievers.RETRIEVERS)
def test_one_question_of_an_index_is_a_row_of_the_whole_matrix(inputs, index, encoder, name):
    whole = retrievers.retriever_scores(name, inputs)
    for row, question in zip(whole, QUESTIONS, strict=True):
        scores = retrievers.index_scores(name, question, embed_query(question, encoder), index, encoder)
        np.testing.assert_allclose(scores, row, atol=1e-5)


@pytest.fixture(scope="module")
def approximate(encoder):
    """An index of 300 chunks that an HNSW graph finds, and one of the same chunks for exact search."""
    random = np.random.default_rng(0)
    words = [word for chunk in CHUNKS for word in chunk.split()]
    texts = [" ".join(random.choice(words, 6)) for _ in range(300)]
    exact = build_index([Chunk(f"{n % 3}.md", n, n + 1, text, 9) for n, text in enumerate(texts)], encoder)
    return replace(exact, ann=build_ann(exact.vectors, "hnsw", 128)), exact


@pytest.mark.parametrize("name", retrievers.RETRIEVERS)
def test_candidates_of_an_approximate_index_come_in_the_order_of_all(approximate, encoder, name, monkeypatch):
    monkeypatch.setattr(retrievers, "CANDIDATES", 100)
    index, exact = approximate
    for question in QUESTIONS:
        query = embed_query(question, encoder)
        scores = retrievers.index_scores(name, question, query, exact, encoder)
        all_rows = retrievers.found_rows(name, question, query, exact, encoder, 5)
        np.testing.assert_array_equal(all_rows, top(scores, len(scores)))
        rows = retrievers.found_rows(name, question, query, index, encoder, 5)
        assert 5 < len(rows) < 300 or not len(all_rows) or retrievers.RETRIEVERS[name].reads_all
        assert len({*rows}) == len(rows)
        assert len({*rows[:10]} & {*all_rows[:10]}) >= 0.9 * len(all_rows[:10])
        if name != "hybrid":  # its ranks are among the candidates, and so a little higher
            np.testing.assert_array_equal(rows[:5], all_rows[:5])


@pytest.mark.parametrize("name", retrievers.RETRIEVERS)
def test_documents_that_a_filter_leaves_out_are_no_candidates(approximate, encoder, name, monkeypatch):
    monkeypatch.setattr(searching, "EXACT_CHUNKS", 10)
    index = approximate[0].only(["1.md", "2.md"])
    for question in QUESTIONS:
        rows = retrievers.found_rows(name, question, embed_query(question, encoder), index, encoder, 5)
        assert (rows % 3 != 0).all()
        assert len(rows) or (name in ("bm25", "sparse") and question == QUESTIONS[2])


def test_every_token_is_compared_in_small_corpora_alone(inputs, monkeypatch):
    monkeypatch.setattr(retrievers, "READ_WHOLE", 5)
    with pytest.raises(InputError, match="of 5 at most, and there are 6: take 'late-reordered'"):
        retrievers.retriever_scores("late", inputs)


def test_an_index_of_some_documents_keeps_the_words_of_their_chunks(index, encoder):
    whole = replace(index, expanded=index.words_of(encoder.sparse))
    part = whole.subset([3, 0])
    assert whole.words_of(encoder.sparse) is whole.expanded
    expected = encoder.sparse.encode(["cats"]) @ encoder.sparse.encode([CHUNKS[3], CHUNKS[0]]).T
    np.testing.assert_allclose(part.expanded.scores(["cats"], encoder.sparse), expected.toarray())


def test_vectors_of_tokens_not_asked_for_the_longest_go_first(encoder, monkeypatch):
    lengths = [len(ids) for ids in encoder.tokenizer.ids_batch(list(CHUNKS))]
    monkeypatch.setattr(reranking, "KEPT_TOKENS", lengths[0] + lengths[1])
    tokens = TokenVectors(CHUNKS)
    first, second = tokens.of([0, 1], encoder)
    assert [len(first), len(second)] == lengths[:2]
    assert tokens.of([0], encoder)[0] is first
    tokens.of([5], encoder)
    assert tokens.of([0], encoder)[0] is first
    [again] = tokens.of([1], encoder)
    assert again is not second
    np.testing.assert_allclose(again, second, atol=1e-6)


def test_what_the_first_stage_did_not_find_is_not_read_and_stays_unfound(inputs, encoder):
    scores, read = inputs.dense.copy(), []
    scores[:, [0, 3]] = -np.inf
    maxsim = MaxSim(QUESTIONS, CHUNKS, encoder)
    found = rerank(scores, maxsim, on_progress=lambda done, total: read.append(total))
    assert set(read) == {len(CHUNKS) - 2}
    np.testing.assert_array_equal(np.isneginf(found), np.isneginf(scores))
