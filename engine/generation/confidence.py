"""The confidence of an answer, and its status: an answer, the closest sentences, or a refusal.

A logistic model of a few figures gives the probability that what is shown is right. There are two: for the
words that the reader found (`reading_figures`), and for quoted sentences, where no few words answer or no
reader is there (`quote_figures`).

``python -m benchmarks.reader --fit`` computes the weights of the first, ``python -m benchmarks.answers
--fit`` those of the second, on one half of the bundled questions.
"""

from collections.abc import Sequence
from math import exp
from typing import Literal

from ..documents.language import language_of
from ..retrieval.evidence import Quote
from ..retrieval.words import words
from .reading import AnswerSpan, next_reading

AnswerStatus = Literal["answered", "unsure", "refused"]

READING_WEIGHTS = {
    "intercept": -3.64,
    "score": 0.206,
    "lead of the reading": 0.0993,
    "lead": 0.322,
    "cosine": 3.11,
}
QUOTE_WEIGHTS = {"intercept": -3.9, "lead": 3.0, "cosine": 2.7, "agreement": 1.25}
# With these, 8 % of the questions that they were chosen on are answered wrongly and shown as answered.
DEFAULT_ANSWER_THRESHOLD, DEFAULT_REFUSE_THRESHOLD = 0.57, 0.05
# Of words in a passage that no cosine says is relevant, to be shown all the same: as many questions about
# another subject are refused as by the cosine, and on held-out articles 4 % more answers are right.
SURE_OF_WORDS = 0.15
LARGEST_SCORE = 12.0  # of the reader; beyond it all are as sure


def reading_figures(spans: Sequence[AnswerSpan], quotes: Sequence[Quote]) -> dict[str, float]:
    """Return figures of the reader's spans, best first, and of the best sentences.

    - how far the best span's score is over that of no answer, and over the next reading in other words,
    - how far the best sentence leads over all others (`Quote.probability`), and its cosine with the question.
    """
    best, other = spans[0], next_reading(spans)
    return {
        "score": max(-LARGEST_SCORE, min(best.score, LARGEST_SCORE)),
        "lead of the reading": min(best.total - other.total, LARGEST_SCORE) if other else LARGEST_SCORE,
        "lead": quotes[0].probability if quotes else 0.0,
        "cosine": quotes[0].cosine if quotes else 0.0,
    }


def quote_figures(question: str, quotes: Sequence[Quote], text: str, n_quotes: int) -> dict[str, float]:
    """Return figures of the quotes, best first, and of the text that a model wrote.

    - how far the best sentence leads over all others (`Quote.probability`), and its cosine with the question,
    - the share of the words that the model added to the question's which the quotes hold: a text that agrees
      with the quotes was more often written from them.
    """
    quoted = " ".join(quote.text for quote in quotes[:n_quotes])
    texts = question, text, quoted
    languages = [language_of(quoted)] * len(texts)
    asked, written, in_quotes = (set(each) for each in words(texts, languages, leave_out_more=True))
    added = written - asked
    return {
        "lead": quotes[0].probability if quotes else 0.0,
        "cosine": quotes[0].cosine if quotes else 0.0,
        "agreement": len(added & in_quotes) / len(added) if added else 0.0,
    }


def confidence_of(figures: dict[str, float], weights: dict[str, float]) -> float:
    """Return the probability that an answer is right, 0 to 1."""
    return 1 / (1 + exp(-weights["intercept"] - sum(weights[name] * x for name, x in figures.items())))


def status_of(confidence: float, answer_threshold: float, refuse_threshold: float) -> AnswerStatus:
    """Return what is shown at a confidence."""
    if confidence < refuse_threshold:
        return "refused"
    return "answered" if confidence >= answer_threshold else "unsure"
