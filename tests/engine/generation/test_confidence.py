from math import exp

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.generation.confidence import (
    INTERCEPT,
    WEIGHTS,
    confidence_figures,
    confidence_of,
    status_of,
)
from engine.retrieval.evidence import Quote

SHARE = st.floats(0, 1)
FIGURES = st.fixed_dictionaries(dict.fromkeys(WEIGHTS, SHARE))
QUESTION = "When was the tower finished?"


def quotes(*texts):
    """Quotes of falling probability, the first of cosine 0.6."""
    return [
        Quote("d.md", 0, len(text), text, 0, 0.6 - number / 10, (), 0.0, 0.5 / (number + 1))
        for number, text in enumerate(texts)
    ]


def test_the_figures_are_those_of_the_best_sentence():
    figures = confidence_figures(QUESTION, quotes("It was finished in 1891.", "Bees hum."), "", 2)
    assert figures == {"lead": 0.5, "cosine": 0.6, "agreement": 0}


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
    figures = confidence_figures(QUESTION, quotes("It was finished in 1891.", "It hums.", "Masons."), text, 2)
    assert figures["agreement"] == agreement


def test_only_what_is_quoted_counts():
    found = quotes("It was finished in 1891.", "Masons built it.")
    assert [confidence_figures(QUESTION, found, "Masons.", n)["agreement"] for n in (1, 2)] == [0, 1]
    assert set(confidence_figures(QUESTION, [], "In 1891.", 2).values()) == {0}


def test_a_confidence_by_hand():
    figures = {"lead": 1.0, "cosine": 0.5, "agreement": 0.0}
    expected = 1 / (1 + exp(-(INTERCEPT + WEIGHTS["lead"] + 0.5 * WEIGHTS["cosine"])))
    assert confidence_of(figures) == pytest.approx(expected)


@given(FIGURES, st.sampled_from(sorted(WEIGHTS)), SHARE)
def test_a_larger_figure_never_lowers_the_confidence(figures, name, value):
    other = figures | {name: value}
    low, high = sorted((figures, other), key=lambda each: each[name])
    assert 0 < confidence_of(low) <= confidence_of(high) < 1


def test_a_status_begins_at_its_threshold():
    for confidence, status in ((0.199, "refused"), (0.2, "unsure"), (0.599, "unsure"), (0.6, "answered")):
        assert status_of(confidence, answer_threshold=0.6, refuse_threshold=0.2) == status
    assert [status_of(c, 0.5, 0.5) for c in (0.49, 0.5)] == ["refused", "answered"]
    assert status_of(0.0, 0.0, 0.0) == "answered"
