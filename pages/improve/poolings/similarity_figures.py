"""Figures of cosines under several poolings, and of the shares of tokens in a pooled vector."""

from collections.abc import Sequence
from textwrap import wrap

import plotly.graph_objects as go

from engine.layers.tracing import Array
from ui.colours import DIVERGING, SEQUENTIAL
from ui.figures import heat_map, numbered_cells, styled
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
