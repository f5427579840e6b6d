"""The effect of four position schemes on the attention score over distance."""

from itertools import cycle

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from engine.inspection.model.positions import DistanceScores, decoder_score_by_distance, score_by_distance
from engine.installed import rows_of
from engine.wording import counted
from ui.chunk_settings import cut_in_use
from ui.colours import BLUE, GREEN, GREY, ORANGE, PURPLE
from ui.corpus import all_chunks
from ui.documents import chosen_documents
from ui.export import show_figure
from ui.figures import LEGEND_ABOVE, add_line, styled
from ui.models import load_decoder, load_encoder
from ui.text import escape_markdown

LINE_COLOURS = {"learned": ORANGE, "sinusoidal": GREEN, "RoPE": BLUE, "ALiBi": PURPLE}

N_DISTANCES = 256
WIDTH, N_HEADS = 512, 8  # of Vaswani et al. (2017)

WHAT = {row["scheme"]: row["effect"] for row in rows_of("position_schemes.csv")}


@st.cache_data(show_spinner=False)
def all_schemes() -> tuple[DistanceScores, ...]:
    """Compute the lines of all schemes."""
    return score_by_distance(N_DISTANCES, WIDTH, N_HEADS)


@st.cache_data(max_entries=4, show_spinner=False)
def own_scheme(model: str, n_distances: int) -> DistanceScores:
    """Compute the lines of the loaded decoder's positions."""
    return decoder_score_by_distance(load_decoder(), n_distances)


@st.cache_data(max_entries=8, show_spinner=False, scope="session")
def decoder_tokens(text: str, model: str) -> int:
    """Count the tokens of a text as the loaded decoder does."""
    return len(load_decoder().tokenizer.encode(text).ids)


def show_positions() -> None:
    """Draw the loaded decoder's own scheme, with the length of the chunks in use, and all four schemes."""
    decoder = load_decoder()
    chunks = all_chunks(chosen_documents(), cut_in_use(load_encoder()))
    length = None  # the decoder's tokens of a chunk of median length, if it has such a position
    if chunks:
        middle = sorted(chunks, key=lambda chunk: chunk.n_tokens)[len(chunks) // 2]
        n_tokens = decoder_tokens(middle.text, decoder.name)
        length = n_tokens if 0 < n_tokens < decoder.max_tokens else None
    own = own_scheme(decoder.name, min(max(N_DISTANCES, (length or 0) + 1), decoder.max_tokens))
    st.markdown(f"**{escape_markdown(headline(own, decoder.name, length, len(chunks)))}**")
    show_scheme(own, "positions-own", length)
    st.markdown("**All four, in vectors of 512 dimensions and 8 heads**")
    for left, right in zip(all_schemes()[::2], all_schemes()[1::2], strict=True):
        for column, scheme in zip(st.columns(2, gap="medium"), (left, right), strict=True):
            with column:
                st.write(WHAT[scheme.scheme])
                show_scheme(scheme, f"positions-{scheme.scheme}")
    st.caption(
        "One head without trained matrices: the effect of nothing but the positions. The heads of a trained "
        "model amplify it or weaken it."
    )


def headline(scheme: DistanceScores, model: str, length: int | None, n_chunks: int) -> str:
    """Say in a sentence how far attention falls at the length of a chunk, or else at the largest distance.

    The score that has changed by c multiplies the attention weight by ``exp(c)``, before it is normalised.
    """
    distance = len(scheme.distances) - 1 if length is None else length
    change = float(scheme.change[0, distance])
    where = f"At a distance of {counted(distance, 'token')}"
    if length is not None:
        which = "the only chunk" if n_chunks == 1 else f"the median chunk of the {n_chunks:,}"
        where += f", as many as {which} in use has"
    left = np.exp(change)
    return (
        f"{where}, the positions of {model} ({scheme.scheme}) lower the score of two equal tokens by "
        f"{-change:.2f}: {'less than 0.1%' if left < 0.001 else f'{left:.1%}'} of the attention weight "
        "remains."
    )


def show_scheme(scheme: DistanceScores, name: str, marked: int | None = None) -> None:
    """Draw one scheme's lines, with a vertical line at a marked distance."""
    figure = positions_figure(scheme)
    if marked is not None:
        figure.add_vline(
            x=marked,
            line={"dash": "dot", "color": GREY},
            annotation_text=f"a chunk, {marked:,} tokens",
            annotation_position="top",
        )
    show_figure(
        figure,
        name=name,
        alt=f"Change of the score over the distance between two tokens, {scheme.scheme} positions",
    )


def positions_figure(scheme: DistanceScores) -> go.Figure:
    """Lines of how a score changes with the distance; where it is not only the distance, a band."""
    figure, colour = go.Figure(), LINE_COLOURS[scheme.scheme]
    of_layers = scheme.scheme == "RoPE" and len(scheme.lines) > 1
    for name, change, low, high, dash in zip(
        scheme.lines, scheme.change, scheme.lowest, scheme.highest, cycle(("solid", "dot")), strict=False
    ):
        if not np.array_equal(low, high, equal_nan=True):
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
        look = {"line_dash": dash, "showlegend": True} if of_layers else {"showlegend": False}
        add_line(figure, scheme.distances, change, name, colour, hover, line_width=2, **look)
    figure.update_xaxes(title="distance in tokens")
    figure.update_yaxes(title="change of the score")
    figure.update_layout(legend=LEGEND_ABOVE)
    return styled(figure, height=300)
