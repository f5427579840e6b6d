"""The confidence of an answer, and its status: an answer, the closest sentences, or a refusal.

A logistic model of three figures gives the probability that what is shown holds the right answer:

- how far the best sentence leads over all others (`Quote.probability`),
- its cosine with the question,
- the share of the words that the model added to the question's which the quotes hold: a text that agrees
  with the quotes was more often written from them.

``python -m benchmarks.answers --fit`` computes its weights on one half of the bundled questions.
"""

from collections.abc import Sequence
from math import exp
from typing import Literal

from engine.retrieval.bm25 import words
from engine.retrieval.evidence import Quote

AnswerStatus = Literal["answered", "unsure", "refused"]

INTERCEPT = -3.9
WEIGHTS = {"lead": 3.0, "cosine": 2.7, "agreement": 1.25}
# With these, 9 % of the questions that they were chosen on are answered wrongly and shown as answered.
DEFAULT_ANSWER_THRESHOLD, DEFAULT_REFUSE_THRESHOLD = 0.6, 0.1


def confidence_figures(question: str, quotes: Sequence[Quote], text: str, n_quotes: int) -> dict[str, float]:
    """Return the three figures for the quotes, best first, and the text that the model wrote."""
    quoted = " ".join(quote.text for quote in quotes[:n_quotes])
    asked, written, in_quotes = (set(each) for each in words([question, text, quoted], "english_plus"))
    added = written - asked
    return {
        "lead": quotes[0].probability if quotes else 0.0,
        "cosine": quotes[0].cosine if quotes else 0.0,
        "agreement": len(added & in_quotes) / len(added) if added else 0.0,
    }


def confidence_of(figures: dict[str, float]) -> float:
    """Return the probability that an answer is right, 0 to 1."""
    return 1 / (1 + exp(-INTERCEPT - sum(WEIGHTS[name] * value for name, value in figures.items())))


def status_of(confidence: float, answer_threshold: float, refuse_threshold: float) -> AnswerStatus:
    """Return what is shown at a confidence."""
    if confidence < refuse_threshold:
        return "refused"
    return "answered" if confidence >= answer_threshold else "unsure"
