from importlib import import_module

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.covariance import ledoit_wolf_shrinkage

from engine.errors import InputError
from engine.evaluation.metrics import ndcg, recall, reciprocal_rank
from engine.inspection.vectors.geometry import TOP, anisotropy, geometry_rows, spaces
from engine.inspection.vectors.quantization import Int8Quantizer, binary_codes, signs
from engine.inspection.vectors.transforms import (
    all_but_the_top,
    centring,
    ledoit_wolf,
    principal_axes,
    principal_components,
    whitening,
)
from engine.layers.norm import l2_normalize

SEEDS = st.integers(0, 9999)


@pytest.fixture(scope="module")
def official_quantization():
    return import_module("sentence_transformers.util.quantization")


def cloud(n, d_model, seed, dtype=np.float64):
    """Vectors that vary more in some directions, around a mean that is not zero."""
    rng = np.random.default_rng(seed)
    scales = rng.uniform(0.2, 3, d_model)
    rotation = np.linalg.qr(rng.normal(size=(d_model, d_model)))[0]
    return (rng.normal(size=(n, d_model)) * scales @ rotation + rng.normal(size=d_model)).astype(dtype)


def cosines(vectors):
    unit = l2_normalize(vectors)
    return unit @ unit.T


def covariance(vectors):
    return np.cov(vectors.T, bias=True)


@given(st.integers(2, 30), SEEDS)
def test_anisotropy_is_the_mean_cosine_of_all_pairs(n, seed):
    vectors = cloud(n, 8, seed)
    pairs = cosines(vectors)[~np.eye(n, dtype=bool)]
    assert anisotropy(vectors) == pytest.approx(pairs.mean(), abs=1e-12)


def test_anisotropy_is_what_pairs_drawn_at_random_come_to():
    vectors, rng = cloud(500, 16, 0), np.random.default_rng(0)
    first, second = rng.integers(500, size=(2, 200_000))
    drawn = cosines(vectors)[first, second][first != second]
    assert anisotropy(vectors) == pytest.approx(drawn.mean(), abs=4 * drawn.std() / len(drawn) ** 0.5)


def test_anisotropy_of_extremes():
    assert anisotropy(np.full((5, 3), 2.0)) == pytest.approx(1)
    assert anisotropy(np.eye(4)) == pytest.approx(0)
    assert anisotropy(np.array([[1.0, 0], [-3, 0]])) == pytest.approx(-1)
    assert anisotropy(np.ones((1, 3))) == 0
    assert anisotropy(np.zeros((3, 3))) == 0


@given(st.integers(1, 30), SEEDS)
def test_centring_makes_the_mean_zero_and_changes_nothing_else(n, seed):
    vectors = cloud(n, 6, seed)
    centred = centring(principal_axes(vectors))(vectors)
    np.testing.assert_allclose(centred.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(centred - centred[0], vectors - vectors[0], atol=1e-12)


@given(st.integers(12, 40), st.integers(1, 6), SEEDS)
def test_principal_components_are_those_of_the_svd(n, n_kept, seed):
    vectors = cloud(n, 6, seed)
    centred = vectors - vectors.mean(axis=0)
    _, lengths, directions = np.linalg.svd(centred, full_matrices=False)
    corpus = principal_axes(vectors)
    np.testing.assert_allclose(corpus.variances, lengths**2 / n, atol=1e-10)
    kept = principal_components(corpus, n_kept)(vectors)
    expected = centred @ directions[:n_kept].T
    np.testing.assert_allclose(np.abs(kept), np.abs(expected), atol=1e-6)  # a direction has two signs
    without = all_but_the_top(corpus, n_kept)(vectors)
    np.testing.assert_allclose(without, centred - expected @ directions[:n_kept], atol=1e-6)


@given(st.integers(2, 30), SEEDS)
def test_all_principal_components_keep_every_cosine_of_centred_vectors(n, seed):
    vectors = cloud(n, 6, seed)
    corpus = principal_axes(vectors)
    turned, centred = principal_components(corpus, 6)(vectors), centring(corpus)(vectors)
    np.testing.assert_allclose(cosines(turned), cosines(centred), atol=1e-9)


@given(st.integers(30, 60), SEEDS)
def test_whitening_makes_the_covariance_the_identity(n, seed):
    vectors = cloud(n, 6, seed)
    white = whitening(principal_axes(vectors))(vectors)
    np.testing.assert_allclose(covariance(white), np.eye(6), atol=1e-8)
    np.testing.assert_allclose(white.mean(axis=0), 0, atol=1e-9)


def test_whitening_fewer_vectors_than_dimensions_leaves_out_what_does_not_vary():
    vectors = cloud(5, 12, 0, np.float32)
    white = whitening(principal_axes(vectors))(vectors)
    assert white.shape == (5, 4)
    np.testing.assert_allclose(covariance(white), np.eye(4), atol=1e-4)
    shrunk = whitening(principal_axes(vectors), ledoit_wolf(vectors))(vectors)
    assert shrunk.shape == (5, 12)
    assert np.isfinite(shrunk).all()


def test_whitening_by_a_covariance_shrunk_all_the_way_is_centring():
    vectors = cloud(20, 6, 0)
    corpus = principal_axes(vectors)
    white, centred = whitening(corpus, 1.0)(vectors), centring(corpus)(vectors)
    np.testing.assert_allclose(cosines(white), cosines(centred), atol=1e-9)


@given(st.integers(2, 60), SEEDS)
def test_shrinkage_is_that_of_scikit_learn(n, seed):
    vectors = cloud(n, 12, seed)
    assert ledoit_wolf(vectors) == pytest.approx(ledoit_wolf_shrinkage(vectors), abs=1e-9)


@given(st.integers(2, 40), SEEDS)
def test_codes_are_those_of_sentence_transformers(official_quantization, n, seed):
    quantize_embeddings = official_quantization.quantize_embeddings
    chunks, questions = cloud(n, 16, seed, np.float32), cloud(5, 16, seed + 1, np.float32)
    chunks[:, 3] = 0.5  # a dimension that does not vary
    ranges = np.stack([chunks.min(axis=0), chunks.max(axis=0)])
    int8 = Int8Quantizer.of(chunks)
    for vectors in (chunks, questions):
        np.testing.assert_array_equal(int8.codes(vectors), quantize_embeddings(vectors, "int8", ranges))
        np.testing.assert_array_equal(binary_codes(vectors), quantize_embeddings(vectors, "ubinary"))
        signed = (binary_codes(vectors).astype(int) - 128).astype(np.int8)
        np.testing.assert_array_equal(signed, quantize_embeddings(vectors, "binary"))


def test_values_of_codes_are_those_sentence_transformers_scores_again_by(official_quantization):
    chunks = cloud(40, 16, 0, np.float32)
    int8, ranges = Int8Quantizer.of(chunks), np.stack([chunks.min(axis=0), chunks.max(axis=0)])
    codes = int8.codes(chunks)
    expected = official_quantization._dequantize_embeddings(codes, "int8", ranges)
    np.testing.assert_allclose(int8.values(codes), expected, atol=1e-5)
    assert (np.abs(int8.values(codes) - chunks) <= int8.step + 1e-5).all()


@given(st.integers(1, 20), st.integers(1, 20), SEEDS)
def test_signs_rank_by_hamming_distance(n, d_model, seed):
    chunks, questions = cloud(n, d_model, seed), cloud(3, d_model, seed + 1)
    distances = ((questions > 0)[:, None, :] != (chunks > 0)[None, :, :]).sum(axis=2)
    scores = signs(binary_codes(questions), d_model) @ signs(binary_codes(chunks), d_model).T
    np.testing.assert_array_equal(scores, d_model - 2 * distances)
    by_distance = np.argsort(distances, axis=1, kind="stable")
    np.testing.assert_array_equal(np.argsort(-scores, axis=1, kind="stable"), by_distance)


def rows_by_name(*arguments):
    return {row.name: row for row in geometry_rows(*arguments)}


def test_rows_say_what_each_search_is_worth():
    chunks, questions = cloud(60, 300, 0, np.float32), cloud(7, 300, 1, np.float32)
    relevant = np.random.default_rng(0).random((7, 60)) < 0.1
    progress = []
    listed = geometry_rows(chunks, questions, relevant, lambda done, total: progress.append((done, total)))
    rows = {row.name: row for row in listed}
    assert len(rows) == len(listed)
    assert progress == [(done, len(rows)) for done in range(1, len(rows) + 1)]
    scores = {
        "cosine": l2_normalize(questions) @ l2_normalize(chunks).T,
        "not normalised (inner product)": questions @ chunks.T,
        "first 64 dimensions": l2_normalize(questions[:, :64]) @ l2_normalize(chunks[:, :64]).T,
    }
    cosine_hits = np.argsort(-scores["cosine"], axis=1, kind="stable")[:, :TOP]
    for name, expected in scores.items():
        row, hits = rows[name], np.argsort(-expected, axis=1, kind="stable")[:, :TOP]
        np.testing.assert_allclose(row.reciprocal_ranks, reciprocal_rank(expected, relevant))
        assert row.mrr == pytest.approx(reciprocal_rank(expected, relevant).mean())
        assert row.recall_at_5 == pytest.approx(recall(expected, relevant, 5).mean())
        assert row.ndcg_at_10 == pytest.approx(ndcg(expected, relevant, 10).mean())
        shared = [len({*one} & {*other}) / TOP for one, other in zip(hits, cosine_hits, strict=True)]
        np.testing.assert_allclose(row.overlap, shared)
    assert (rows["cosine"].overlap == 1).all()
    assert rows["cosine"].mean_cosine == pytest.approx(anisotropy(chunks), abs=1e-6)


def test_bytes_are_those_that_a_vector_takes():
    chunks = l2_normalize(cloud(400, 300, 0, np.float32))
    found = {space.name: (space, space.chunk_map(chunks)) for space in spaces(chunks)}
    for name in ("cosine", "centred", "whitened, shrunk covariance"):
        assert found[name][0].bytes_per_vector == found[name][1].nbytes / 400 == 1200
    for size in (256, 128, 64, 32):
        for name in (f"first {size} dimensions", f"first {size} principal components"):
            assert found[name][0].bytes_per_vector == found[name][1].nbytes / 400 == 4 * size
    assert (
        found["int8, both"][0].bytes_per_vector == Int8Quantizer.of(chunks).codes(chunks).nbytes / 400 == 300
    )
    assert found["binary, both (Hamming)"][0].bytes_per_vector == binary_codes(chunks).nbytes / 400 == 38


def test_without_labels_only_geometry_is_measured():
    rows = rows_by_name(cloud(20, 40, 0, np.float32), cloud(3, 40, 1, np.float32))
    assert all(row.mrr is row.recall_at_5 is row.ndcg_at_10 is None for row in rows.values())
    assert all(((row.overlap >= 0) & (row.overlap <= 1)).all() for row in rows.values())


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "chunks",
    [
        np.ones((1, 40), np.float32),
        np.full((12, 40), 0.5, np.float32),
        np.zeros((12, 40), np.float32),
        np.vstack([np.zeros((1, 40)), cloud(11, 40, 0)]).astype(np.float32),
        cloud(12, 5, 0, np.float32),
    ],
    ids=["one chunk", "all alike", "all zero", "one zero", "five dimensions"],
)
def test_degenerate_vectors_have_a_row_in_every_space(chunks):
    questions = cloud(3, chunks.shape[1], 1, np.float32)
    relevant = np.zeros((3, len(chunks)), bool)
    relevant[:, 0] = True
    for row in geometry_rows(chunks, questions, relevant):
        assert np.isfinite([row.mean_cosine, row.mrr, row.recall_at_5, row.ndcg_at_10]).all()
        assert -1 <= row.mean_cosine <= 1 + 1e-6
        assert row.mrr > 0


def test_alike_chunks_are_ranked_in_their_order_everywhere():
    rows = rows_by_name(
        np.full((12, 40), 0.5, np.float32), cloud(3, 40, 1, np.float32), np.eye(3, 12, dtype=bool)
    )
    for name in ("cosine", "centred", "whitened", "int8, both", "binary, both (Hamming)"):
        np.testing.assert_allclose(rows[name].reciprocal_ranks, [1, 1 / 2, 1 / 3])


@pytest.mark.parametrize(("n_chunks", "n_questions"), [(0, 3), (3, 0)])
def test_nothing_to_compare_is_refused(n_chunks, n_questions):
    with pytest.raises(InputError, match=f"{n_chunks} chunks and {n_questions} questions"):
        geometry_rows(np.ones((n_chunks, 8)), np.ones((n_questions, 8)))
