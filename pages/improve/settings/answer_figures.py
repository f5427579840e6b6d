"""Figures of scored answers: confidence against the share right, and what a threshold does."""

from collections.abc import Sequence

import plotly.graph_objects as go

from engine.evaluation.answers import Coverage, ReliabilityBin
from ui.colours import BLUE, GREY, ORANGE
from ui.figures import LEGEND_ABOVE, styled

HEIGHT = 360
SHARES = {"tickformat": ".0%", "fixedrange": True, "zeroline": False}


def reliability_figure(bins: Sequence[ReliabilityBin]) -> go.Figure:
    """Confidence against the share right, a point for each bin; on the diagonal both are the same."""
    figure = go.Figure(
        [
            go.Scatter(
                x=[0, 1],
                y=[0, 1],
                mode="lines",
                name="as sure as right",
                line={"color": GREY, "dash": "dot", "width": 1.5},
                hoverinfo="skip",
            ),
            go.Scatter(
                x=[each.confidence for each in bins],
                y=[each.right for each in bins],
                mode="lines+markers",
                name="measured",
                line={"color": BLUE, "width": 2},
                marker={"color": BLUE, "size": 11},
                customdata=[each.n for each in bins],
                hovertemplate="%{customdata} answers<br>%{x:.0%} sure<br>%{y:.0%} right<extra></extra>",
                cliponaxis=False,
            ),
        ]
    )
    return in_shares(figure, "how sure the app is", "share right")


def coverage_figure(curve: Sequence[Coverage], answer_at: float) -> go.Figure:
    """Share answered against the share right of those, with the threshold of the run marked."""
    figure = go.Figure(
        go.Scatter(
            x=[each.answered for each in curve],
            y=[each.right for each in curve],
            mode="lines+markers",
            name="each threshold",
            line={"color": BLUE, "width": 2},
            marker={"color": BLUE, "size": 4},
            customdata=[each.confidence for each in curve],
            hovertemplate="answered from %{customdata:.0%} sure<br>%{x:.0%} of all answered<br>%{y:.0%} of "
            "those right<extra></extra>",
            cliponaxis=False,
        )
    )
    if (now := at_threshold(curve, answer_at)) is not None:
        figure.add_scatter(
            x=[now.answered],
            y=[now.right],
            mode="markers",
            name=f"this run, {answer_at:.0%}",
            marker={"color": ORANGE, "symbol": "star", "size": 17},
            hovertemplate="this run: %{x:.0%} of all answered<br>%{y:.0%} of those right<extra></extra>",
            cliponaxis=False,
        )
    return in_shares(figure, "share of all questions answered", "share right of those")


def at_threshold(curve: Sequence[Coverage], answer_at: float) -> Coverage | None:
    """Return the point of a threshold, None where it lets no answer through."""
    return next((each for each in reversed(curve) if each.confidence >= answer_at), None)


def in_shares(figure: go.Figure, across: str, up: str) -> go.Figure:
    """Give a figure two axes of shares, 0 to 100 %, and the shared look."""
    figure.update_xaxes(title=across, range=[0, 1], **SHARES)
    figure.update_yaxes(title=up, range=[0, 1.02], **SHARES)
    figure.update_layout(legend=LEGEND_ABOVE, dragmode=False)
    return styled(figure, HEIGHT).update_layout(margin={"t": 40, "r": 16})
