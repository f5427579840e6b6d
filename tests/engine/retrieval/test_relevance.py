import csv

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import gumbel_r

from engine.documents.document import Chunk
from engine.documents.loaders import BUNDLED_CORPUS, load_corpus
from engine.documents.splitters import Splitting, split
from engine.evaluation.questions import load_questions
from engine.generation.settings import DEFAULT_MIN_RELEVANCE
from engine.retrieval.embedding_model import embedding_spec
from engine.retrieval.index import build_index, index_vectors
from engine.retrieval.relevance import (
    NullScores,
    closer_than,
    everyday_questions,
    null_scores_by,
    null_scores_of,
)

COSINES = st.floats(-1, 1, width=32)
DOCUMENT = "The keeper of the lighthouse kept bees. " * 3


def random_null_scores(scores):
    bests = np.sort(np.array(scores, np.float32))
    return NullScores(bests, bests)


@given(st.lists(COSINES, min_size=1, max_size=40), st.lists(COSINES, min_size=2, max_size=20))
def test_a_percentile_is_the_share_of_pairs_that_score_less_and_grows_with_the_score(pairs, scores):
    null_scores = random_null_scores(pairs)
    found = [null_scores.percentile(score) for score in sorted(scores)]
    expected = [100 * sum(pair < score for pair in pairs) / len(pairs) for score in sorted(scores)]
    assert found == pytest.approx(expected)
    relevances = [null_scores.relevance(score) for score in sorted(scores)]
    for values in (found, relevances):
        assert values == sorted(values)
        assert all(0 <= value <= 100 for value in values)


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=40, unique=True), st.floats(0.1, 99.9))
def test_relevance_is_a_gumbel_distribution_through_median_and_low_decile(bests, relevance):
    null_scores = NullScores(np.zeros(1), np.sort(np.array(bests)))
    low, median = np.quantile(bests, [0.1, 0.5])
    if median - low < 1e-3:
        return
    assert null_scores.relevance(median) == pytest.approx(50)
    assert null_scores.relevance(low) == pytest.approx(10)
    location, scale = null_scores.gumbel
    score = null_scores.score_of(relevance)
    assert score == pytest.approx(gumbel_r.ppf(relevance / 100, location, scale))
    assert null_scores.relevance(score) == pytest.approx(relevance)


def test_percentiles_in_words_are_never_rounded_up_and_have_the_digits_that_the_pairs_give():
    many, few = (NullScores(np.arange(n), np.arange(2)) for n in (10**6, 100))
    assert closer_than(many, 10**6) == "closer than all random pairs"
    assert closer_than(many, 10**6 - 1) == "closer than 99.99 % of random pairs"
    assert closer_than(few, 99) == "closer than 99 % of random pairs"


def chunks_of(*texts):
    return [Chunk(f"{number}.md", 0, len(text), text, 9) for number, text in enumerate(texts)]


def test_pairs_and_bests_are_those_of_the_official_model(encoder, official):
    texts = ["Forty masons built the tower.", "Knead the dough.", "Bees make honey in June."]
    questions = ["Who painted it?", "How far is it?"]
    found = null_scores_by(build_index(chunks_of(*texts), encoder), encoder.encode(questions))
    vectors = official.encode(questions + texts, normalize_embeddings=True)
    scores = vectors[:2] @ vectors[2:].T
    np.testing.assert_allclose(found.pairs, np.sort(scores, axis=None), atol=1e-5)
    np.testing.assert_allclose(found.bests, np.sort(scores.max(axis=1)), atol=1e-5)


def test_one_question_is_enough(encoder):
    index = build_index(chunks_of(DOCUMENT), encoder)
    null_scores = null_scores_by(index, encoder.encode(["What is it?"]))
    assert null_scores.relevance(float(null_scores.bests[0]) + 0.01) == pytest.approx(100)


def unanswerable_questions():
    with (BUNDLED_CORPUS.parent / "unanswerable.csv").open(encoding="utf-8", newline="") as file:
        return [row["question"] for row in csv.DictReader(file)]


def test_everyday_questions_are_none_of_those_they_are_judged_with():
    everyday = everyday_questions()
    judged = {*unanswerable_questions(), *(q.text for q in load_questions())}
    assert len(everyday) == len(set(everyday)) == 100
    assert not set(everyday) & judged


@pytest.fixture(scope="module")
def bundled(encoder):
    """Chunks of a bundled document, the vectors of each pooling, and the encoder that made them."""
    [document] = [d for d in load_corpus() if d.name == "inside_the_pipeline.md"]
    chunks = split(document, encoder.tokenizer, Splitting("fixed", 128))
    weighted = encoder.with_idf([chunk.text for chunk in chunks])
    poolings = ["mean", "idf"]
    return chunks, weighted, weighted.encode([chunk.text for chunk in chunks], poolings)


@pytest.mark.parametrize("pooling", ["mean", "idf"])
def test_one_default_tells_answerable_from_unanswerable_under_every_pooling(bundled, pooling):
    chunks, encoder, vectors = bundled
    idf = encoder.idf if pooling == "idf" else None
    index = index_vectors(chunks, vectors[pooling], embedding_spec(encoder, pooling), idf)
    null_scores = null_scores_of(index, encoder)
    labelled = [q.text for q in load_questions() if q.corpus_id == "inside_the_pipeline"]

    def share_relevant(questions):
        best = (encoder.encode(questions, pooling) @ index.vectors.T).max(axis=1)
        return np.mean([null_scores.relevance(score) >= DEFAULT_MIN_RELEVANCE for score in best])

    assert share_relevant(labelled) >= 0.85
    assert share_relevant(unanswerable_questions()) <= 0.25


def test_where_all_scores_are_one_everything_above_is_relevant_and_nothing_below():
    null_scores = random_null_scores([0.5] * 10)
    assert null_scores.relevance(0.501) == pytest.approx(100)
    assert null_scores.relevance(0.499) == 0
    assert (null_scores.score_of(0), null_scores.score_of(100)) == (-np.inf, np.inf)
