"""Metrics before and after tuning, compared question by question: whether it helps beyond noise."""

from dataclasses import dataclass, field

from engine.evaluation.metrics import METRICS, Retrieved, at_depth
from engine.evaluation.significance import Comparison, compare
from engine.layers.tracing import Array

DEPTH = 10  # of the rankings that the metrics see
JUDGED_BY = ("ndcg@k", "recall@k", "mrr")  # the first decides, fixed beforehand
MAIN = at_depth(METRICS[JUDGED_BY[0]].label, DEPTH)
ALPHA = 0.05  # the p-value below which a difference counts


@dataclass(frozen=True)
class MetricChange:
    """A metric of every question before and after, ``(n_questions,)``, and their comparison."""

    metric: str
    before: Array = field(repr=False)
    after: Array = field(repr=False)
    comparison: Comparison


def metric_changes(before: Array, after: Array, relevant: Array) -> list[MetricChange]:
    """Compare two score matrices ``(n_questions, n_chunks)`` of the same questions by each metric."""
    changes = []
    for metric in map(METRICS.__getitem__, JUDGED_BY):
        first, second = (metric.function(Retrieved.of(each, relevant, DEPTH)) for each in (before, after))
        label = at_depth(metric.label, DEPTH)
        changes.append(MetricChange(label, first, second, compare(first, second)))
    return changes


def is_better(comparison: Comparison) -> bool:
    """Whether a difference is a gain beyond noise: its 95 % interval and its test both say so."""
    return comparison.low > 0 and comparison.p_value < ALPHA


def is_worse(comparison: Comparison) -> bool:
    """Whether a difference is a loss beyond noise."""
    return comparison.high < 0 and comparison.p_value < ALPHA


def should_keep(by_question: Comparison, by_document: Comparison | None) -> bool:
    """Whether the tuned model should replace the original.

    It must be better beyond noise on new questions, and not worse beyond noise on new documents, if that
    could be tested.
    """
    return is_better(by_question) and not (by_document is not None and is_worse(by_document))
