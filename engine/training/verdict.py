"""Whether a tuning helps beyond noise: metrics before and after, compared question by question."""

from dataclasses import dataclass, field

from engine.evaluation.metrics import ndcg, recall, reciprocal_rank
from engine.evaluation.significance import Comparison, compare
from engine.layers.tracing import Array

DEPTH = 10  # places of a ranking that are judged
MAIN = f"nDCG@{DEPTH}"  # the metric that decides, fixed beforehand
METRICS = {MAIN: ndcg, f"recall@{DEPTH}": recall, f"MRR@{DEPTH}": reciprocal_rank}
ALPHA = 0.05  # the p-value below which a difference counts


@dataclass(frozen=True)
class Judged:
    """A metric of every question before and after, ``(n_questions,)``, and their comparison."""

    metric: str
    before: Array = field(repr=False)
    after: Array = field(repr=False)
    comparison: Comparison


def judge(before: Array, after: Array, relevant: Array, seed: int = 0) -> list[Judged]:
    """Compare two score matrices ``(n_questions, n_chunks)`` of the same questions by each of `METRICS`."""
    judged = []
    for name, metric in METRICS.items():
        first, second = metric(before, relevant, DEPTH), metric(after, relevant, DEPTH)
        judged.append(Judged(name, first, second, compare(first, second, seed=seed)))
    return judged


def is_better(comparison: Comparison) -> bool:
    """Whether a difference is a gain beyond noise: its 95 % interval and its test both say so."""
    return comparison.low > 0 and comparison.p_value < ALPHA


def is_worse(comparison: Comparison) -> bool:
    """Whether a difference is a loss beyond noise."""
    return comparison.high < 0 and comparison.p_value < ALPHA


def should_keep(by_question: Comparison, by_document: Comparison | None) -> bool:
    """Whether the tuned model is to take the original's place.

    It must gain beyond noise on new questions, and must not lose beyond noise on new documents, where
    that could be tested.
    """
    return is_better(by_question) and not (by_document is not None and is_worse(by_document))
