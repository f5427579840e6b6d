"""Figures of cosines under several poolings, and of the shares of tokens in a pooled vector."""

from collections.abc import Collection, Mapping, Sequence
from textwrap import wrap

import plotly.graph_objects as go

from engine.layers.tracing import Array
from ui.colours import BLUE, DIVERGING, GREY, ORANGE, SEQUENTIAL, WHITE
from ui.figures import LEGEND_ABOVE, heat_map, numbered_bars, numbered_cells, styled
from ui.tokens import token_axis, token_labels

LABEL_CHARACTERS = 18  # in a line of an axis' label, so that the figure fits on a phone
NUMBERED_CELLS = 8  # with more tokens, numbers do not fit into their cells on a phone


def in_lines(label: str) -> str:
    """Break a label that is too wide for a phone into lines."""
    return "<br>".join(wrap(label, LABEL_CHARACTERS))


def cosine_matrix(cosines: Array, lowest: float) -> go.Figure:
    """Heat map of cosines between sentences, ``(n, n)``, numbered from 1, from ``lowest`` to 1 or more."""
    names = [str(number) for number in range(1, len(cosines) + 1)]
    figure = heat_map(
        cosines,
        names,
        names,
        "sentences %{y} and %{x}<br>%{z:.4f}",
        ".2f",
        zmin=lowest,
        zmax=max(1.0, float(cosines.max())),
        showscale=False,
        textfont_size=14 if len(names) <= 6 else 10,
        **numbered_cells("%{z:.2f}"),
    )
    figure.update_xaxes(type="category", side="bottom")
    figure.update_yaxes(type="category")
    return styled(figure, height=90 + max(150, 30 * len(cosines))).update_layout(margin_t=34)


def pair_bars(
    cosines: Mapping[str, float], unrelated: Mapping[str, float], marked: Collection[str]
) -> go.Figure:
    """Bars of a pair's cosine by strategy, highest at the top, with a mark at that of unrelated sentences.

    Strategies in ``marked`` have another colour.
    """
    order = sorted(cosines, key=lambda name: cosines[name])
    labels = [in_lines(name) for name in order]
    figure = numbered_bars(
        [cosines[name] for name in order],
        labels,
        [f"{cosines[name]:.3f}" for name in order],
        [ORANGE if name in marked else BLUE for name in order],
        "%{text}",
        name="these two",
        showlegend=False,
    )
    figure.add_scatter(
        x=[unrelated[name] for name in order],
        y=labels,
        mode="markers",
        marker={"symbol": "diamond", "size": 10, "color": WHITE, "line": {"width": 2, "color": GREY}},
        name="unrelated sentences",
        hovertemplate="unrelated sentences: %{x:.3f}<extra></extra>",
        showlegend=True,
    )
    lowest = min(0.0, *cosines.values(), *unrelated.values())
    figure.update_xaxes(title="cosine", range=[lowest * 1.25, 1.18], tickvals=[0, 0.25, 0.5, 0.75, 1])
    figure.update_yaxes(tickfont_size=11)
    figure.update_layout(legend=LEGEND_ABOVE)
    return styled(figure, height=110 + 38 * len(order))


def token_heat_map(values: Array, strategies: Sequence[str], tokens: Sequence[str], name: str) -> go.Figure:
    """Heat map of a number for each strategy and token, ``(n_strategies, n_tokens)``.

    Rows that give everything to one token do not set the colour scale, which would leave all others pale.
    """
    spread = values[values.max(axis=1) < 1 - 1e-6]
    bound = float((spread if len(spread) else values).max())
    signed = bool((values < -0.005).any())
    plain = {"colorscale": DIVERGING if signed else SEQUENTIAL}
    figure = heat_map(
        values,
        [in_lines(strategy) for strategy in strategies],
        token_labels(tokens),
        "%{x}<br>%{y}<br>" + name + " %{z:.1%}",
        ".0%",
        zmin=-bound if signed else 0,
        zmax=bound,
        reversescale=signed,
        textfont_size=11,
        **(numbered_cells("%{z:.0%}", signed) if len(tokens) <= NUMBERED_CELLS else plain),
    )
    token_axis(figure.update_xaxes, len(tokens), tickangle=-60)
    figure.update_yaxes(tickfont_size=11)
    return styled(figure, height=150 + 36 * len(strategies))
