import numpy as np

from engine.documents.document import Chunk
from engine.generation.answer import Retrieval, SearchTimes
from engine.retrieval.index import Hit
from engine.retrieval.relevance import NullScores
from ui.closeness import N_BINS, closeness_figure, score_words

NULL_SCORES = NullScores(np.linspace(-0.2, 0.6, 10_000), np.linspace(0.2, 0.6, 100))
HITS = tuple(Hit(Chunk("<b>.md", n, n + 5, "*text*", 3), score) for n, score in enumerate((0.61, 0.41, 0.05)))


def found(min_relevance=90):
    margins = (0.2, 0.36, None)
    return Retrieval(HITS, margins, NULL_SCORES, min_relevance, "dense", SearchTimes(0, 0, 0))


def test_a_score_stands_beside_its_percentile_and_margin():
    assert [score_words(found(), rank) for rank in range(3)] == [
        "cosine 0.610 · closer than all random pairs · 0.200 ahead of the next",
        "cosine 0.410 · closer than 76.25 % of random pairs · 0.360 ahead of the next",
        "cosine 0.050 · closer than 31.25 % of random pairs",
    ]


def test_the_figure_has_every_pair_and_a_line_for_every_hit():
    pairs, bests, hits, limit = closeness_figure(found()).data
    assert len(pairs.x) == N_BINS
    assert (pairs.customdata.sum(), bests.customdata.sum()) == (10_000, 100)
    assert list(hits.x[::3]) == [hit.score for hit in HITS]
    assert limit.x[0] == NULL_SCORES.score_of(90)
    for min_relevance in (0, 100):  # where all or nothing is relevant, no limit is drawn
        figure = closeness_figure(found(min_relevance))
        assert len(figure.data[3].x) == 0
        assert all(np.isfinite(figure.layout.xaxis.range))
