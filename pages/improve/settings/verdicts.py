"""Verdicts: whether settings are better than the baseline beyond chance; and the table of all rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.evaluation.metrics import METRICS
from engine.evaluation.significance import Comparison, compare_all
from engine.evaluation.sweep_row import SweepRow
from engine.settings import SETTINGS, Configuration
from engine.wording import counted, readable_bytes
from ui.configurations import value_words
from ui.text import p_words, signed_interval

ALPHA = 0.05
ACROSS_K = (
    "The number of passages (k) differs. With more of them, any search finds more, and less of it is right: "
    "hit, recall, precision and all other metrics “@k” are not compared across k, only MRR is."
)
OTHER_K = "another k"


@dataclass(frozen=True)
class Verdict:
    """A row compared with the baseline, the p-value corrected for the number of rows, and that in a word."""

    comparison: Comparison
    word: str

    @property
    def p_value(self) -> float:
        """The corrected p-value."""
        return self.comparison.p_value


def verdicts(rows: Sequence[SweepRow], metric: str) -> list[Verdict]:
    """Compare every row with the first, the baseline, whose own verdict is "baseline".

    A difference counts where its p-value, corrected for the number of rows, is below 0.05. Metrics at
    different k are not compared.
    """
    values = np.array([row.values[metric] for row in rows], np.float64)  # (n_rows, n_questions)
    found = compare_all(values[0], values)
    words = [
        OTHER_K if is_across_k(rows[0].cell, row.cell, metric) else word(one, metric)
        for row, one in zip(rows, found, strict=True)
    ]
    return [Verdict(*each) for each in zip(found, ["baseline", *words[1:]], strict=True)]


def shown_metrics(rows: Sequence[SweepRow]) -> list[str]:
    """Return the names of the metrics that every row has: old runs may lack new ones."""
    return [name for name in METRICS if all(name in row.metrics for row in rows)]


def is_across_k(first: Configuration, second: Configuration, metric: str) -> bool:
    """Whether a metric depends on k and the cells differ in it, so that their values are not comparable."""
    return METRICS[metric].at_k and first.k != second.k


def word(found: Comparison, metric: str) -> str:
    """Say in a word whether a difference is more than chance, and which way it goes."""
    if found.low == found.high == found.difference == 0:
        return "the same"
    if found.p_value >= ALPHA:
        return "not sure"
    return "better" if METRICS[metric].sign * found.difference > 0 else "worse"


def summary(judged: Sequence[Verdict]) -> str:
    """Count the settings better and worse than the baseline, in a sentence."""
    counts = {name: sum(one.word == name for one in judged) for name in ("better", "worse")}
    n_others = sum(one.word not in ("baseline", OTHER_K) for one in judged)
    if not n_others:
        return "Nothing was measured that can be compared with the app's settings."
    if not any(counts.values()):
        return f"No other setting, of {n_others:,}, is better or worse beyond what chance explains."
    better, worse = (f"{n:,} {'is' if n == 1 else 'are'}" for n in counts.values())
    return (
        f"Of {counted(n_others, 'other setting')} {better} better than the app's and {worse} "
        "worse, beyond what chance explains."
    )


def difference_words(found: Comparison) -> str:
    """``"+0.021 [+0.004, +0.040]"``."""
    return signed_interval(found.difference, found.low, found.high)


def p_cell(verdict: Verdict) -> str:
    """``"0.012"`` or ``"< 0.001"`` as a cell of a table; empty for the baseline."""
    return (
        "" if verdict.word == "baseline" else p_words(verdict.p_value).removeprefix("p ").removeprefix("= ")
    )


def best_first(rows: Sequence[SweepRow], metric: str) -> list[int]:
    """Return the places of rows, the best first."""
    return sorted(range(len(rows)), key=lambda place: merit(rows[place], metric), reverse=True)


def merit(row: SweepRow, metric: str) -> tuple[float, float, int]:
    """Return a key that is greater for better rows: of those alike by their MRR, then the smaller index."""
    return METRICS[metric].sign * row.metrics[metric], row.metrics["mrr"], -row.index_bytes


def table_row(row: SweepRow, verdict: Verdict, metric: str, axes: Sequence[str]) -> dict[str, Any]:
    """Return a row as a line of the table."""
    low, high = row.intervals[metric]
    return (
        {"Value": row.metrics[metric]}
        | {SETTINGS[axis].label: value_words(row.cell, axis) for axis in axes}
        | {
            "95 % interval": f"{low:.3f} – {high:.3f}",
            "Against the app's": verdict.word,
            "Difference": "" if verdict.word == "baseline" else difference_words(verdict.comparison),
            "p": p_cell(verdict),
        }
        | {
            METRICS[name].label: row.metrics[name]
            for name in ("mrr", "hit_rate@k", "ndcg@k")
            if name != metric
        }
        | {"Chunks": row.n_chunks, "Index": readable_bytes(row.index_bytes), "Seconds": row.seconds}
    )
