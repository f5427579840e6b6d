from math import exp

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.generation import confidence as measures
from engine.generation.reading import AnswerSpan
from engine.retrieval.evidence import Quote

VALUE = st.floats(-measures.LARGEST_SCORE, measures.LARGEST_SCORE)
QUESTION = "When was the tower finished?"


def quotes(*texts):
    """Quotes of falling probability, the first of cosine 0.6."""
    return [
        Quote("d.md", 0, len(text), text, 0, 0.6 - number / 10, (), 0.0, 0.5 / (number + 1))
        for number, text in enumerate(texts)
    ]


@pytest.mark.parametrize(
    ("text", "agreement"),
    [
        ("It was finished in 1891.", 1),
        ("The tower was finished in 1891 by masons.", 1 / 2),  # of 1891 and masons
        ("By masons.", 0),
        ("The tower was finished.", 0),  # nothing is added to the question
        ("", 0),
    ],
)
def test_words_that_the_model_added_agree_with_the_quotes(text, agreement):
    figures = measures.quote_figures(
        QUESTION, quotes("It was finished in 1891.", "It hums.", "Masons."), text, 2
    )
    assert figures["agreement"] == agreement


def spans(*read):
    """Spans of these texts and scores."""
    return [AnswerSpan("d.md", 9 * n, 9 * n + 4, text, 0, score) for n, (text, score) in enumerate(read)]


def test_the_figures_of_a_reading_compare_it_with_no_answer_and_with_other_words():
    found = spans(("1891", 5.0), ("in 1891", 4.5), ("1932", 2.0))
    figures = measures.reading_figures(found, quotes("It was finished in 1891."))
    assert figures == {"score": 5.0, "lead of the reading": 3.0, "lead": 0.5, "cosine": 0.6}
    alone = measures.reading_figures(spans(("1891", 99.0)), [])
    expected = dict.fromkeys(("score", "lead of the reading"), measures.LARGEST_SCORE)
    assert alone == {**expected, "lead": 0, "cosine": 0}
    assert measures.reading_figures(spans(("1891", -99.0)), [])["score"] == -measures.LARGEST_SCORE


def test_a_confidence_by_hand():
    weights = measures.QUOTE_WEIGHTS
    figures = {"lead": 1.0, "cosine": 0.5, "agreement": 0.0}
    expected = 1 / (1 + exp(-(weights["intercept"] + weights["lead"] + 0.5 * weights["cosine"])))
    assert measures.confidence_of(figures, weights) == pytest.approx(expected)


@pytest.mark.parametrize("weights", [measures.QUOTE_WEIGHTS, measures.READING_WEIGHTS])
@given(data=st.data(), value=VALUE)
def test_a_larger_figure_never_lowers_the_confidence(weights, data, value):
    names = sorted(weights.keys() - {"intercept"})
    figures = data.draw(st.fixed_dictionaries(dict.fromkeys(names, VALUE)))
    name = data.draw(st.sampled_from(names))
    low, high = sorted((figures, figures | {name: value}), key=lambda each: each[name])
    assert 0 < measures.confidence_of(low, weights) <= measures.confidence_of(high, weights) <= 1


def test_a_status_begins_at_its_threshold():
    for confidence, status in ((0.199, "refused"), (0.2, "unsure"), (0.599, "unsure"), (0.6, "answered")):
        assert measures.status_of(confidence, answer_threshold=0.6, refuse_threshold=0.2) == status
    assert [measures.status_of(c, 0.5, 0.5) for c in (0.49, 0.5)] == ["refused", "answered"]
    assert measures.status_of(0.0, 0.0, 0.0) == "answered"
