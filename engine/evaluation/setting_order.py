"""How settings of a search rank on other, labelled corpora, moved by the questions about one's own documents.

What to expect of people's questions is the mean of what labelled corpora say, questions of people here, and
drafts, less what they add elsewhere, each by its precision (empirical Bayes; Efron and Morris 1975).
``python -m benchmarks.drafts … --order data/setting_order.json`` measures it with the default encoder.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist

import numpy as np

from ..installed import bundled
from ..layers.tracing import Array
from ..retrieval.retrievers import RETRIEVERS
from ..settings import Configuration
from .questions import DRAFTED, Question
from .significance import Comparison
from .sweep_row import SweepRow

KEYS = ("splitter", "chunk_tokens", "retriever", "pooling")
DEFAULT = ("model", "overlap", "context")  # settings that have their defaults where it was measured
NORMAL = NormalDist()


@dataclass(frozen=True)
class SettingOrder:
    """A metric of settings on labelled corpora, and the variances of a setting about the mean of all."""

    # of settings, others at their defaults: the gain over the default by labels, and what drafts add
    gains: Mapping[Configuration, tuple[float, float]]
    n_corpora: int
    between: float  # corpora, of the gain
    off: float  # of what drafts add, between corpora
    question: float  # between questions

    def measured(self, one: Configuration) -> tuple[float, float] | None:
        """Return the gain over the default, and what drafts add; None where it was not measured."""
        kept = {key: getattr(one, key) for key in (*KEYS, *DEFAULT)}
        if not RETRIEVERS[one.retriever].uses_vectors:
            kept["pooling"] = Configuration().pooling
        return self.gains.get(Configuration(**kept))

    def of(self, one: Configuration) -> tuple[float, float, float]:
        """Return both with the variance of the gain; a setting that was not measured is one of the others."""
        every = np.array([*self.gains.values()])  # (n_settings, 2)
        unknown = (*every.mean(axis=0), self.between + every[:, 0].var())
        return (*known, self.between) if (known := self.measured(one)) else unknown


@cache
def setting_orders() -> dict[str, SettingOrder]:
    """Return the bundled orders by their metrics."""
    orders = {}
    for metric, found in json.loads(bundled("setting_order.json").read_text("utf-8")).items():
        rows = found.pop("settings")
        gains = {Configuration(**dict(zip(KEYS, row, strict=False))): tuple(row[-2:]) for row in rows}
        orders[metric] = SettingOrder(gains, **found)
    return orders


def expected_of(rows: Sequence[SweepRow], questions: Sequence[Question], metric: str) -> list[Comparison]:
    """Return the `expected_gains` of measured settings, by a metric of `setting_orders`."""
    values = np.array([row.values[metric] for row in rows], np.float64)
    is_draft = np.array([question.status == DRAFTED for question in questions])
    return expected_gains([row.configuration for row in rows], values, is_draft, setting_orders()[metric])


def expected_gains(
    configurations: Sequence[Configuration], values: Array, is_draft: Array, order: SettingOrder
) -> list[Comparison]:
    """Return the gain over the first configuration to expect of people's questions, with its 95 % interval.

    The metric's values are ``(n_configurations, n_questions)``, whether a question is an unread draft
    ``(n_questions,)``. With no question the gains are those of the order; with many labelled ones, those of
    the questions. The p-value is 1 where the questions point the other way.
    """
    n_labels, n_drafts, gains = np.sum(~is_draft), np.sum(is_draft), values - values[0]
    of_labels = n_labels / (2 * order.question)
    of_drafts = 0.5 / (order.off + order.question / n_drafts) if n_drafts else 0.0
    by_labels, by_drafts = (gains @ which / max(1, which.sum()) for which in (~is_draft, is_draft))
    known = np.array([order.of(one) for one in configurations])  # (n_configurations, 3)
    gain, added = (known - known[0])[:, :2].T
    of_gain = 1 / (known + known[0])[:, 2]
    asked = of_labels * by_labels + of_drafts * (by_drafts - added)
    precision = of_gain + of_labels + of_drafts
    means, spreads = (of_gain * gain + asked) / precision, precision**-0.5
    lows, highs = (means + sign * NORMAL.inv_cdf(0.975) * spreads for sign in (-1, 1))
    p_values = [2 * NORMAL.cdf(-abs(each)) for each in means / spreads]
    every = zip(means, lows, highs, np.where(asked * means < 0, 1.0, p_values), strict=True)
    return [Comparison(*map(float, each)) for each in every]
