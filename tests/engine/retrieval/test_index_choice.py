from dataclasses import replace

import numpy as np
import pytest

from engine.documents.document import Chunk
from engine.errors import InputError
from engine.layers.norm import l2_normalize
from engine.retrieval import index as searching
from engine.retrieval import index_choice
from engine.retrieval.embedding_spec import EmbeddingSpec, Query
from engine.retrieval.index import index_vectors
from engine.retrieval.index_choice import choose_index, compare_kinds, lost_passages, measure, share
from engine.retrieval.index_kinds import AUTO, FLAT, INDEX_KINDS, AnnIndex, build_ann, exact_nearest
from engine.retrieval.relevance import null_scores_by

D_MODEL, K = 32, 10
SPEC = EmbeddingSpec("a model", "mean", 128, D_MODEL)
# Just enough for a search of all chunks: HNSW's recall is 0.84 for an eighth of them, where it does not rise.
EFFORTS = {"hnsw": 16, "ivf": 4, "ivf-sq8": 4, "ivf-pq": 4}
APPROXIMATE = [name for name in INDEX_KINDS if name != FLAT]


@pytest.fixture(scope="module")
def vectors():
    """Vectors around 40 subjects, ``(2000, 32)``."""
    random = np.random.default_rng(0)
    subjects = random.standard_normal((40, D_MODEL))
    noise = 0.5 * random.standard_normal((2000, D_MODEL))
    return l2_normalize(subjects[random.integers(0, 40, 2000)] + noise).astype(np.float32)


@pytest.fixture(scope="module")
def built(vectors):
    return {kind: build_ann(vectors, kind, 64) for kind in APPROXIMATE}


@pytest.mark.parametrize("k", [1, 5, 101, 999, 1000])
def test_of_equally_near_vectors_the_first_are_found(k):
    vectors = np.zeros((1000, 8), np.float32)
    vectors[:, 0], vectors[::7, 1] = 1, 1
    question = np.array([[0.6, 0.8, 0, 0, 0, 0, 0, 0]], np.float32)
    [rows] = exact_nearest(vectors, question, k)[1]
    assert rows.tolist() == np.argsort(-vectors @ question[0], kind="stable")[:k].tolist()


@pytest.mark.parametrize("kind", APPROXIMATE)
def test_recall_is_that_of_a_count_by_hand(vectors, built, kind):
    ann = replace(built[kind], effort=1)
    measured, missed = measure(vectors, ann), set()
    sample = np.random.default_rng(0).permutation(2000)[:200]
    for query in sample.tolist():
        exact = [row for row in np.argsort(-vectors @ vectors[query], kind="stable") if row != query][:K]
        found = ann.nearest(vectors, vectors[query][None], K + 1)[1][0].tolist()
        missed |= {(query, row, rank) for rank, row in enumerate(exact, 1) if row not in found}
    assert {(lost.query, lost.row, lost.rank) for lost in measured.lost} == missed
    assert measured.recall == pytest.approx(1 - len(missed) / (200 * K))


@pytest.mark.parametrize("kind", APPROXIMATE)
def test_a_kind_is_used_once_its_recall_is_enough(vectors, kind):
    choice, ann = choose_index(vectors, kind)
    assert (choice.asked, choice.kind, ann.kind) == (kind, kind, kind)
    exact, measured = choice.measured
    assert (exact.kind, exact.recall, exact.lost) == (FLAT, 1.0, ())
    assert measured.recall >= index_choice.TRUSTED
    assert f"it finds {share(measured.recall)} of the 10 nearest in a sample of 200" in choice.reason
    assert 0 < measured.median_ms <= measured.p99_ms
    assert measured.n_bytes == ann.to_bytes().nbytes


def test_a_kind_that_misses_too_much_gives_way_to_exact_search(vectors, monkeypatch):
    monkeypatch.setattr(index_choice, "EFFORTS", (1,))
    monkeypatch.setattr(index_choice, "TRUSTED", 1.01)
    choice, ann = choose_index(vectors, "hnsw")
    assert (ann, choice.kind, choice.asked) == (None, FLAT, "hnsw")
    assert "HNSW (as asked for) finds only" in choice.reason
    assert [each.kind for each in choice.measured] == [FLAT, "hnsw"]


@pytest.mark.parametrize(
    ("exact_chunks", "hnsw_bytes", "kind", "reason"),
    [
        (2000, 0, FLAT, "exact search, as reading 2,000 chunks each time is fast"),
        (1999, 2000 * D_MODEL * 4, "hnsw", "HNSW, as 2,000 chunks are over 1,999"),
        (1999, 2000 * D_MODEL * 4 - 1, "ivf-sq8", "too many for a graph in memory"),
    ],
)
def test_the_size_decides(vectors, exact_chunks, hnsw_bytes, kind, reason, monkeypatch):
    monkeypatch.setattr(index_choice, "EXACT_CHUNKS", exact_chunks)
    monkeypatch.setattr(index_choice, "HNSW_BYTES", hnsw_bytes)
    choice, _ = choose_index(vectors, AUTO)
    assert (choice.asked, choice.kind) == (AUTO, kind)
    assert reason in choice.reason


def test_few_chunks_are_searched_exactly(vectors):
    for n, kind in ((1, "hnsw"), (2, AUTO), (255, "ivf")):
        choice, ann = choose_index(vectors[:n], kind)
        assert (choice.kind, ann) == (FLAT, None)
        assert kind == AUTO or "is used from 256 chunks on" in choice.reason
    with pytest.raises(InputError, match="index kind 'tree' is not one of flat, hnsw, ivf, ivf"):
        choose_index(vectors, "tree")
    assert [share(recall) for recall in (1, 0.9999, 0.95)] == ["100 %", "99.9 %", "95 %"]


@pytest.mark.parametrize("kind", APPROXIMATE)
def test_an_index_is_restored_from_its_bytes(vectors, built, kind):
    content = built[kind].to_bytes()
    restored = AnnIndex.from_bytes(kind, 64, content, vectors.shape)
    for again, expected in zip(
        restored.nearest(vectors, vectors[:5], K), built[kind].nearest(vectors, vectors[:5], K), strict=True
    ):
        np.testing.assert_array_equal(again, expected)
    with pytest.raises(ValueError, match="of 2000 vectors of 32 numbers"):
        AnnIndex.from_bytes(kind, 64, content, (2001, 32))
    with pytest.raises(ValueError, match="cannot be read"):
        AnnIndex.from_bytes(kind, 64, content[:50], vectors.shape)


def test_what_an_index_lost_of_a_question_is_listed(vectors, built):
    ann = replace(built["ivf"], effort=1)
    [exact] = exact_nearest(vectors, vectors[:1], K)[1]
    [found] = ann.nearest(vectors, vectors[:1], K)[1]
    lost = lost_passages(vectors, ann, vectors[0])
    assert [row for _, row, _ in lost] == [row for row in exact if row not in found]
    assert all(exact[rank - 1] == row for rank, row, _ in lost)


def test_a_filter_by_document_loses_nothing(vectors, built):
    chunks = [Chunk(f"{row % 7}.md", row, row + 1, "x", 1) for row in range(2000)]
    index = replace(index_vectors(chunks, vectors, SPEC), ann=replace(built["ivf"], effort=1))
    query = Query(vectors[3], SPEC)
    hits = index.only(["2.md", "5.md"]).search(query, 20)
    own = [row for row in range(2000) if row % 7 in (2, 5)]
    expected = sorted(own, key=lambda row: -float(vectors[row] @ vectors[3]))[:20]
    assert [hit.chunk.start for hit in hits] == expected
    with pytest.raises(InputError, match=r"no document '8\.md' in the index: is it '\d\.md'"):
        index.only(["8.md"])


@pytest.mark.parametrize(("kind", "n_documents"), list(zip(APPROXIMATE, (4, 2, 1, 2), strict=True)))
def test_a_filter_of_many_chunks_keeps_the_recall(vectors, built, kind, n_documents, monkeypatch):
    monkeypatch.setattr(searching, "EXACT_CHUNKS", 100)
    chunks = [Chunk(f"{row % 8}.md", row, row + 1, "x", 1) for row in range(2000)]
    whole = replace(index_vectors(chunks, vectors, SPEC), ann=replace(built[kind], effort=EFFORTS[kind]))
    index = whole.only([f"{number}.md" for number in range(n_documents)])
    assert index.ann is whole.ann
    assert index.n_searched == 250 * n_documents
    own = np.flatnonzero(np.arange(2000) % 8 < n_documents)
    questions = vectors[:200] + np.float32(0.01)
    found = index.nearest(questions, K)[1]
    assert np.isin(found, own).all()
    exact = own[exact_nearest(vectors[own], questions, K)[1]]
    recall = np.mean([len({*a} & {*b}) / K for a, b in zip(found, exact, strict=True)])
    assert recall >= index_choice.TRUSTED
    few = index.nearest(questions, len(own))[1]  # more than an index finds
    np.testing.assert_array_equal(np.sort(few, axis=1), np.broadcast_to(own, few.shape))
    scores = null_scores_by(index, questions)
    np.testing.assert_allclose(scores.bests.max(), (questions @ vectors[own].T).max(), atol=1e-6)
    assert scores.pairs.size == 200 * len(own)


def test_every_kind_is_compared(vectors):
    compared = compare_kinds(vectors)
    assert [measured.kind for measured, _ in compared] == list(INDEX_KINDS)
    assert all(ann is None or (ann.kind, ann.effort) == (each.kind, each.effort) for each, ann in compared)
    assert [measured.kind for measured, _ in compare_kinds(vectors[:255])] == [FLAT]
