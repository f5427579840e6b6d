"""The effect of four position schemes on the attention score over distance."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from engine.inspection.model.positions import DistanceScores, decoder_score_by_distance, score_by_distance
from ui.colours import BLUE, GREEN, ORANGE, PURPLE
from ui.export import show_figure
from ui.figures import add_line, styled
from ui.models import load_decoder

LINE_COLOURS = {"learned": ORANGE, "sinusoidal": GREEN, "RoPE": BLUE, "ALiBi": PURPLE}

N_DISTANCES = 256
WIDTH, N_HEADS = 512, 8  # of Vaswani et al. (2017)

WHAT = {
    "learned": "**Learned** (GPT-2): each position has a trained vector, added to the token's. Before "
    "training, as here, it distinguishes positions but not near from far; the band "
    "is the range over all pairs of positions.",
    "sinusoidal": "**Sinusoidal** (Vaswani et al. 2017): each position has a vector of sines and cosines, "
    "added to the token's. Near positions have similar vectors, so the score falls with the "
    "distance, in waves.",
    "RoPE": "**RoPE** (Su et al. 2021): query and key are rotated by an angle that grows with the "
    "position, so their product depends on the distance alone; fast angles drop soon, slow ones "
    "reach far.",
    "ALiBi": "**ALiBi** (Press et al. 2022): nothing is added to the tokens. Each head subtracts a penalty "
    "from the score that grows linearly with the distance, steep in some heads and gentle in others.",
}


@st.cache_data(show_spinner=False)
def all_schemes() -> tuple[DistanceScores, ...]:
    """Compute the lines of all schemes."""
    return score_by_distance(N_DISTANCES, WIDTH, N_HEADS)


@st.cache_data(max_entries=4, show_spinner=False)
def own_scheme(model: str) -> DistanceScores:
    """Compute the lines of the loaded decoder's positions."""
    decoder = load_decoder()
    return decoder_score_by_distance(decoder, min(N_DISTANCES, decoder.max_tokens))


def show_positions() -> None:
    """Draw the four schemes, and the loaded decoder's own."""
    decoder = load_decoder()
    own = own_scheme(decoder.name)
    st.markdown(f"**{own.scheme} is what the loaded decoder uses** ({decoder.name})")
    show_scheme(own, "positions-own")
    st.markdown("**All four, in vectors of 512 dimensions and 8 heads**")
    for left, right in zip(all_schemes()[::2], all_schemes()[1::2], strict=True):
        for column, scheme in zip(st.columns(2, gap="medium"), (left, right), strict=True):
            with column:
                st.write(WHAT[scheme.scheme])
                show_scheme(scheme, f"positions-{scheme.scheme}")
    st.caption(
        "One head without trained matrices: the effect of the positions alone. The heads of a trained model "
        "amplify it or weaken it."
    )


def show_scheme(scheme: DistanceScores, name: str) -> None:
    """Draw one scheme's lines."""
    show_figure(
        positions_figure([scheme]),
        name=name,
        arrays={
            "distance": scheme.distances,
            "change": scheme.change,
            "lowest": scheme.lowest,
            "highest": scheme.highest,
        },
        alt=f"Change of the score over the distance between two tokens, {scheme.scheme} positions",
    )


def positions_figure(schemes: Sequence[DistanceScores]) -> go.Figure:
    """Lines of how a score changes with the distance; where it is not the distance alone, a band."""
    figure = go.Figure()
    for scheme in schemes:
        colour = LINE_COLOURS[scheme.scheme]
        for name, change, low, high in zip(
            scheme.lines, scheme.change, scheme.lowest, scheme.highest, strict=True
        ):
            if not np.array_equal(low, high):
                figure.add_scatter(
                    x=[*scheme.distances, *scheme.distances[::-1]],
                    y=[*low, *high[::-1]],
                    fill="toself",
                    fillcolor=colour,
                    opacity=0.2,
                    line_width=0,
                    hoverinfo="skip",
                    showlegend=False,
                )
            hover = f"{name}<br>distance %{{x}}: %{{y:.2f}}"
            add_line(figure, scheme.distances, change, name, colour, hover, line_width=2)
    figure.update_xaxes(title="distance in tokens")
    figure.update_yaxes(title="change of the score")
    figure.update_layout(showlegend=False)
    return styled(figure, height=300)
