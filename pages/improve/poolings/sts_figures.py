"""Correlations with people's scores as figures, table rows and sentences: which poolings beat the mean."""

from collections.abc import Sequence
from textwrap import wrap

import numpy as np
import plotly.graph_objects as go

from engine.evaluation.bootstrap import Interval
from engine.evaluation.sts import Pair, StrategyCorrelation
from engine.layers.pooling import pooling_label
from engine.layers.tracing import Array
from engine.wording import shortened
from pages.improve.poolings.similarity_figures import in_lines
from ui.colours import BLUE, GREEN, GREY, ORANGE
from ui.figures import legend_below, styled
from ui.text import escape_plotly

BASELINE = "mean"
# Name, colour and symbol of the strategies by `better_than_mean`.
KINDS = {
    "yes": ("better than the mean", GREEN, "triangle-up"),
    "no": ("worse", ORANGE, "triangle-down"),
    "the same": ("the mean, or the same", BLUE, "circle"),
    "not sure": ("not sure", GREY, "diamond"),
}
SAME = 0.0005  # a smaller difference of correlations does not show in a table with one decimal


def correlation_figure(found: Sequence[StrategyCorrelation]) -> go.Figure:
    """A point with its interval for each strategy, best on top; a dotted line at the mean's correlation."""
    figure = go.Figure()
    for kind, (name, colour, symbol) in KINDS.items():
        own = [one for one in found if better_than_mean(one) == kind and not np.isnan(one.spearman.estimate)]
        if not own:
            continue
        at = [100 * one.spearman.estimate for one in own]
        figure.add_trace(
            go.Scatter(
                x=at,
                y=[in_lines(pooling_label(one.strategy)) for one in own],
                mode="markers",
                name=name,
                marker={"size": 11, "color": colour, "symbol": symbol},
                error_x={
                    "array": [100 * one.spearman.high - x for one, x in zip(own, at, strict=True)],
                    "arrayminus": [x - 100 * one.spearman.low for one, x in zip(own, at, strict=True)],
                    "thickness": 2,
                    "width": 5,
                },
                customdata=[(ends(one.spearman, ".1f"), difference(one.gain)) for one in own],
                hovertemplate="%{y}: %{x:.1f}<br>95 %: %{customdata[0]}<br>to the mean: %{customdata[1]}"
                "<extra></extra>",
            )
        )
    [mean] = [one.spearman.estimate for one in found if one.strategy == BASELINE]
    figure.add_vline(x=100 * mean, line_dash="dot", line_color=BLUE, line_width=1)
    order = [in_lines(pooling_label(one.strategy)) for one in found if not np.isnan(one.spearman.estimate)]
    figure.update_yaxes(categoryorder="array", categoryarray=order[::-1], automargin=True)
    figure.update_xaxes(title="Spearman × 100")
    figure.update_layout(legend=legend_below(0.14))
    return styled(figure, height=120 + 38 * len(order))


def pair_figure(pairs: Sequence[Pair], gold: Array, cosines: Array) -> go.Figure:
    """A point for each pair: people's score ``gold (n_pairs,)`` against the cosine ``(n_pairs,)``."""
    kind = go.Scattergl if len(pairs) > 1500 else go.Scatter
    figure = go.Figure(
        kind(
            x=gold,
            y=cosines,
            mode="markers",
            marker={"size": 8, "color": BLUE, "opacity": 0.55, "line": {"width": 0.7, "color": GREY}},
            hovertext=[hover(pair, 160) for pair in pairs],
            hovertemplate="%{hovertext}<br>score %{x:.2f}, cosine %{y:.3f}<extra></extra>",
        )
    )
    figure.update_xaxes(title="people's score")
    figure.update_yaxes(title="cosine")
    figure.update_layout(hoverlabel={"align": "left"}, showlegend=False)
    return styled(figure, height=420)


def hover(pair: Pair, characters: int) -> str:
    """Return both sentences, wrapped and escaped for Plotly."""
    both = [
        "<br>".join(escape_plotly(line) for line in wrap(shortened(text, characters), 42))
        for text in (pair.first, pair.second)
    ]
    return "<br>– ".join(["– " + both[0], both[1]])


def summary(found: Sequence[StrategyCorrelation]) -> str:
    """Count the strategies that are better and worse than the mean, in a sentence."""
    answers = [better_than_mean(one) for one in found]
    better, worse = answers.count("yes"), answers.count("no")
    if not better and not worse:
        return "On these pairs no strategy is better or worse than the plain mean beyond chance."
    counts = [f"{n} are" if n > 1 else f"{n or 'none'} is" for n in (better, worse)]
    return f"Against the plain mean, beyond chance: {counts[0]} better, {counts[1]} worse."


def better_than_mean(one: StrategyCorrelation) -> str:
    """Whether a strategy is better than the mean: "yes", "no", "the same" or "not sure"."""
    gain = one.gain
    if one.strategy == BASELINE or max(abs(gain.low), abs(gain.high)) < SAME:
        return "the same"
    if gain.low > 0:
        return "yes"
    return "no" if gain.high < 0 else "not sure"


def correlation_row(one: StrategyCorrelation) -> dict[str, object]:
    """Return a strategy as a row of the table."""
    return {
        "Strategy": pooling_label(one.strategy),
        "Spearman × 100": 100 * one.spearman.estimate,
        "Better than the mean?": better_than_mean(one),
        "95 % interval": ends(one.spearman, ".1f"),
        "Difference to the mean": "" if better_than_mean(one) == "the same" else difference(one.gain),
    }


def ends(interval: Interval, form: str) -> str:
    """Return the ends of an interval in points of 100."""
    return f"{100 * interval.low:{form}} to {100 * interval.high:{form}}"


def difference(gain: Interval) -> str:
    """Return a difference in points of 100, with its interval."""
    return f"{100 * gain.estimate:+.1f} ({ends(gain, '+.1f')})"
