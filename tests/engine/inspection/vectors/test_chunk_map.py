import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.decomposition import PCA
from sklearn.manifold import trustworthiness

from engine.errors import InputError
from engine.inspection.vectors import chunk_map
from engine.layers.norm import l2_normalize


def blobs(n_blobs, n_each, d_model=16, spread=0.1, seed=0):
    rng = np.random.default_rng(seed)
    middles = np.repeat(np.eye(d_model)[:n_blobs], n_each, axis=0)
    return l2_normalize(middles + spread * rng.normal(size=middles.shape)).astype(np.float32)


@given(st.integers(4, 30), st.integers(2, 12), st.integers(0, 999))
def test_pca_equals_scikit_learn_in_places_signs_and_shares(n, d_model, seed):
    vectors = np.random.default_rng(seed).normal(size=(n, d_model))
    official = PCA(2, svd_solver="full").fit(vectors)
    plane = chunk_map.pca_projection(vectors)
    np.testing.assert_allclose(plane.points, official.transform(vectors), atol=1e-6)
    np.testing.assert_allclose(plane.explained, official.explained_variance_ratio_, atol=1e-7)
    np.testing.assert_allclose(plane.project(vectors[3]), plane.points[3], atol=1e-6)


@pytest.mark.parametrize("vectors", [np.ones((2, 8)), np.ones((5, 1)), np.ones(5), np.full((4, 4), np.nan)])
def test_no_map_of_too_few_or_broken_vectors(vectors):
    with pytest.raises(InputError, match=r"3 chunks or more|not finite"):
        chunk_map.pca_projection(vectors)
    with pytest.raises(InputError, match=r"3 chunks or more|not finite"):
        chunk_map.umap_projection(vectors)


@pytest.mark.nightly
def test_umap_keeps_neighbours_that_pca_does_not_and_gives_the_same_map_for_a_seed():
    """All of it in one test, as each process compiles umap-learn for seconds."""
    vectors = blobs(12, 12)
    plane = chunk_map.umap_projection(vectors)
    assert trustworthiness(vectors, plane.points, n_neighbors=10, metric="cosine") > 0.998
    assert (
        trustworthiness(vectors, chunk_map.pca_projection(vectors).points, n_neighbors=10, metric="cosine")
        < 0.90
    )
    assert plane.explained is None
    assert plane.project(vectors[0]) is None
    np.testing.assert_array_equal(plane.points, chunk_map.umap_projection(vectors).points)
    assert not np.allclose(plane.points, chunk_map.umap_projection(vectors, seed=5).points)
    for n_distinct in (1, 2, 3):
        copies = np.tile(np.eye(8, dtype=np.float32)[:n_distinct], (10, 1))
        assert np.isfinite(chunk_map.umap_projection(copies).points).all()
        assert np.isfinite(chunk_map.umap_projection(copies[:3]).points).all()


def test_each_vector_is_its_own_first_neighbour_among_copies():
    rows, distances = chunk_map.nearest_vectors(np.tile(np.eye(4, dtype=np.float32)[:2], (10, 1)), 5)
    np.testing.assert_array_equal(rows[:, 0], np.arange(20))
    assert all(len(set(row)) == 5 for row in rows.tolist())
    np.testing.assert_array_equal(distances, 0)


def test_clusters_are_found_the_largest_first_and_again_with_the_same_seed():
    vectors = np.concatenate([blobs(2, 10), blobs(3, 20)[40:]])
    groups = chunk_map.cluster(vectors, 3, seed=1)
    assert [len(set(part)) for part in np.split(groups, [10, 20])] == [1, 1, 1]
    assert set(groups[20:]) == {0}
    assert set(groups) == {0, 1, 2}
    np.testing.assert_array_equal(groups, chunk_map.cluster(vectors, 3, seed=1))
    assert set(chunk_map.cluster(np.tile(np.eye(4)[:2], (5, 1)), 4)) == {0, 1}


def test_a_number_of_clusters_that_cannot_be_is_refused():
    for n_clusters in (0, 31):
        with pytest.raises(InputError, match="ask for 1 to 30"):
            chunk_map.cluster(blobs(3, 10), n_clusters)


def test_the_default_number_of_clusters_grows_with_the_root_and_stays_readable():
    assert [chunk_map.default_clusters(n) for n in (3, 50, 200, 100_000)] == [2, 5, 10, 12]


def test_groups_are_named_by_words_that_others_do_not_have():
    texts = ["the tower and the bells", "the bells of the tower", "the dough and the oven", "the oven is hot"]
    words = chunk_map.cluster_words(texts, np.array([0, 0, 1, 1]), n_words=2)
    assert words == [["bells", "tower"], ["oven", "dough"]]
    assert chunk_map.cluster_words(["the same", "the same"], np.array([0, 1])) == [[], []]


def test_similarity_is_the_cosine_whatever_the_lengths():
    cosines = chunk_map.question_cosines(np.array([[2.0, 0], [0, 3], [-1, 0], [1, 1]]), np.array([5.0, 0]))
    np.testing.assert_allclose(cosines, [1, 0, -1, np.sqrt(0.5)])
