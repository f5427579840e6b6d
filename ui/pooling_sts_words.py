"""What correlations with people's scores say in words: which poolings are better than the plain mean."""

from collections.abc import Sequence

from engine.evaluation.bootstrap import Interval
from engine.evaluation.sts import Correlation
from ui.poolings import LABELS

BASELINE = "mean"
SAME = 0.0005  # of a correlation: nothing that a table with one decimal shows


def summary(found: Sequence[Correlation]) -> str:
    """Say in a sentence what can be told apart."""
    verdicts = [verdict(one) for one in found]
    better, worse = verdicts.count("yes"), verdicts.count("no")
    if not better and not worse:
        return "On these pairs no strategy is better or worse than the plain mean beyond chance."
    return f"Against the plain mean, beyond chance: {number_of(better)} better, {number_of(worse)} worse."


def number_of(n: int) -> str:
    """``0 -> "none is", 1 -> "1 is", 2 -> "2 are"``."""
    return f"{n} are" if n > 1 else f"{n or 'none'} is"


def verdict(one: Correlation) -> str:
    """Say whether a strategy is better than the baseline: yes, no, the same, or not sure."""
    gain = one.gain
    if one.strategy == BASELINE or max(abs(gain.low), abs(gain.high)) < SAME:
        return "the same"
    if gain.low > 0:
        return "yes"
    return "no" if gain.high < 0 else "not sure"


def correlation_row(one: Correlation) -> dict[str, object]:
    """Return a strategy as a row of the table."""
    return {
        "Strategy": LABELS.get(one.strategy, one.strategy),
        "Spearman × 100": 100 * one.spearman.estimate,
        "Better than the mean?": verdict(one),
        "95 % interval": ends(one.spearman, ".1f"),
        "Difference to the mean": "" if verdict(one) == "the same" else difference(one.gain),
    }


def ends(interval: Interval, form: str) -> str:
    """Return the ends of an interval in points of 100."""
    return f"{100 * interval.low:{form}} to {100 * interval.high:{form}}"


def difference(gain: Interval) -> str:
    """Return a difference in points of 100, with its interval."""
    return f"{100 * gain.estimate:+.1f} ({ends(gain, '+.1f')})"
