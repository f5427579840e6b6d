import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.layers.norm import l2_normalize
from engine.retrieval.mmr import mmr_scores
from engine.retrieval.ranking import best_first


def search(seed, n_questions, n_chunks):
    generator = np.random.default_rng(seed)
    vectors = l2_normalize(generator.normal(size=(n_chunks, 4)))
    questions = l2_normalize(generator.normal(size=(n_questions, 4)))
    return questions @ vectors.T, vectors


def naive_order(relevance, vectors, diversity, depth):
    """MMR as the paper words it, one chunk at a time."""
    ordered = sorted(range(len(relevance)), key=lambda chunk: (-relevance[chunk], chunk))
    rest, chosen = ordered[:depth], []
    while rest:

        def marginal(chunk):
            redundance = max((float(vectors[chunk] @ vectors[other]) for other in chosen), default=0)
            return (1 - diversity) * relevance[chunk] - diversity * redundance

        best = max(rest, key=marginal)  # the first of equals
        chosen.append(best)
        rest.remove(best)
    return chosen + ordered[depth:]


@given(st.integers(0, 10**6), st.integers(1, 20), st.sampled_from([0.0, 0.1, 0.5, 1.0]), st.integers(1, 25))
def test_the_order_is_that_of_a_naive_loop(seed, n_chunks, diversity, depth):
    scores, vectors = search(seed, 2, n_chunks)
    found = mmr_scores(scores, vectors, diversity, depth)
    assert found.dtype == np.float32
    assert best_first(found).tolist() == [naive_order(row, vectors, diversity, depth) for row in scores]


@pytest.mark.parametrize("diversity", [0.0, 0.5])
def test_what_was_not_found_is_not_chosen(diversity):
    scores, vectors = search(2, 1, 6)
    scores[0, [1, 4]] = -np.inf
    found = mmr_scores(scores, vectors, diversity)
    assert np.isneginf(found[0, [1, 4]]).all()
    assert np.isfinite(found[0, [0, 2, 3, 5]]).all()
