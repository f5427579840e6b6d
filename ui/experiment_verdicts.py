"""Whether settings are better than the baseline, or happened to be on these questions."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.evaluation.grid import Cell
from engine.evaluation.significance import Comparison, compare_all
from engine.evaluation.sweep_row import SweepRow

ALPHA = 0.05
ACROSS_K = (
    "The number of passages (k) differs. With more of them more is found and less of it is right, whatever "
    "the search is worth: hit, recall, precision and all else “@k” are not compared across k, only MRR is."
)
OTHER_K = "another k"
MEASURES = {
    "mrr": ("MRR", "1 over the place of the first relevant chunk, on average over the questions."),
    "hit_rate@k": ("Hit@k", "Share of the questions with a relevant chunk among the first k."),
    "recall@k": ("Recall@k", "Share of a question's relevant chunks that is among the first k."),
    "precision@k": ("Precision@k", "Share of the first k chunks that is relevant."),
    "ndcg@k": ("nDCG@k", "How early the relevant chunks come among the first k; 1 is the best possible."),
    "span_recall@k": ("Span recall@k", "Share of the answers' tokens that the first k chunks hold."),
    "span_precision@k": ("Span precision@k", "Share of the first k chunks' tokens that are of answers."),
    "span_iou@k": ("Span IoU@k", "Tokens that answers and first k chunks share, over all that either has."),
}


@dataclass(frozen=True)
class Verdict:
    """What a row has over the baseline, its p-value corrected for all rows, and that in a word."""

    comparison: Comparison
    word: str

    @property
    def p_value(self) -> float:
        """The corrected p-value."""
        return self.comparison.p_value


def verdicts(rows: Sequence[SweepRow], measure: str) -> list[Verdict]:
    """Judge every row against the first, the baseline, whose own verdict is "baseline".

    A difference counts where its p-value, corrected for there being so many rows, is below 0.05; between
    measures of different k there is none to tell.
    """
    values = np.array([row.values[measure] for row in rows], np.float64)  # (n_rows, n_questions)
    found = compare_all(values[0], values)
    words = [
        OTHER_K if is_across_k(rows[0].cell, row.cell, measure) else word(one)
        for row, one in zip(rows, found, strict=True)
    ]
    return [Verdict(*each) for each in zip(found, ["baseline", *words[1:]], strict=True)]


def is_across_k(first: Cell, second: Cell, measure: str) -> bool:
    """Whether a measure counts something else in one cell than in the other, as it is of the first k."""
    return measure.endswith("@k") and first.k != second.k


def word(found: Comparison) -> str:
    """Say whether a difference is one."""
    if found.low == found.high == found.difference == 0:
        return "the same"
    if found.p_value >= ALPHA:
        return "not sure"
    return "better" if found.difference > 0 else "worse"


def summary(judged: Sequence[Verdict]) -> str:
    """Say in one sentence how many settings differ from the baseline."""
    counts = {name: sum(one.word == name for one in judged) for name in ("better", "worse")}
    n_others = sum(one.word not in ("baseline", OTHER_K) for one in judged)
    if not n_others:
        return "Nothing was measured that can be compared with the app's settings."
    if not any(counts.values()):
        return f"None of {n_others:,} other settings is better or worse beyond what chance explains."
    return (
        f"Of {n_others:,} other settings {counts['better']:,} are better than the app's and "
        f"{counts['worse']:,} worse, beyond what chance explains."
    )


def said(found: Comparison) -> str:
    """``"+0.021 [+0.004, +0.040]"``."""
    return f"{found.difference:+.3f} [{found.low:+.3f}, {found.high:+.3f}]"


def p_words(p_value: float) -> str:
    """``"p = 0.012"``."""
    return "p < 0.001" if p_value < 0.001 else f"p = {p_value:.3f}"
