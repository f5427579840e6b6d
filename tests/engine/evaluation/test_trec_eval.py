"""The metrics against trec_eval, by way of pytrec_eval."""

import numpy as np
import pytrec_eval
from hypothesis import given
from hypothesis import strategies as st

from engine.evaluation.metrics import hit_rate, ndcg, precision, recall, reciprocal_rank

DEPTHS = (1, 3, 5, 10)
OFFICIAL = {"P": precision, "recall": recall, "ndcg_cut": ndcg, "success": hit_rate}


def trec_eval(scores, relevant, measures):
    """Values of each measure, question by question.

    trec_eval puts of equal scores the larger document id first, so the first chunk is given the largest.
    """
    names = [f"{1000 - number}" for number in range(relevant.shape[1])]
    names = [name.zfill(4) for name in names]
    qrels = {
        f"{q:04}": {name: int(is_so) for name, is_so in zip(names, row, strict=True)}
        for q, row in enumerate(relevant)
    }
    run = {
        f"{q:04}": {name: float(score) for name, score in zip(names, row, strict=True)}
        for q, row in enumerate(scores)
    }
    values = pytrec_eval.RelevanceEvaluator(qrels, measures).evaluate(run)
    return {name: [values[f"{q:04}"][name] for q in range(len(scores))] for name in values["0000"]}


@st.composite
def runs(draw):
    """Scores with ties (few distinct ones) or without, and relevance, down to nothing relevant at all."""
    n_questions, n_chunks = draw(st.integers(1, 5)), draw(st.integers(1, 30))
    n_levels = draw(st.sampled_from([3, 2**20]))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    scores = (random.integers(-n_levels, n_levels, (n_questions, n_chunks)) / 8).astype(np.float32)
    return scores, random.random((n_questions, n_chunks)) < draw(st.sampled_from([0, 0.1, 0.5, 1]))


@given(runs())
def test_metrics_equal_trec_eval(run):
    scores, relevant = run
    cuts = ",".join(map(str, DEPTHS))
    official = trec_eval(scores, relevant, {f"{name}.{cuts}" for name in OFFICIAL} | {"recip_rank"})
    np.testing.assert_allclose(reciprocal_rank(scores, relevant), official["recip_rank"], atol=1e-9)
    for name, metric in OFFICIAL.items():
        for k in DEPTHS:
            found = metric(scores, relevant, k)
            np.testing.assert_allclose(found, official[f"{name}_{k}"], atol=1e-9, err_msg=f"{name}_{k}")
