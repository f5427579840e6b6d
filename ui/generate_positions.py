"""Positions: what four ways to tell a model where a token stands do to the score at a distance."""

import streamlit as st

from engine.inspection.positions import DistanceScores, decoder_score_by_distance, score_by_distance
from ui.export import show_figure
from ui.generate_figures import positions_figure
from ui.models import load_decoder

N_DISTANCES = 256
WIDTH, N_HEADS = 512, 8  # of Vaswani et al. (2017)

WHAT = {
    "learned": "**Learned** (GPT-2): each position has a trained vector, added to the token's. Before "
    "training, as here, it tells one position from all others but not near from far; the band "
    "is the range over all pairs of positions.",
    "sinusoidal": "**Sinusoidal** (Vaswani et al. 2017): each position has a vector of sines and cosines, "
    "added to the token's. Near positions have similar vectors, so the score falls with the "
    "distance, in waves.",
    "RoPE": "**RoPE** (Su et al. 2021): query and key are rotated by an angle that grows with the "
    "position, so their product depends on the distance alone; fast angles drop soon, slow ones "
    "reach far.",
    "ALiBi": "**ALiBi** (Press et al. 2022): nothing is added to the tokens. Each head takes a penalty off "
    "the score that grows evenly with the distance, steep in some heads and gentle in others.",
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
    st.write(
        "Attention by itself does not know the order of tokens. Each scheme changes the score between two "
        "equal tokens by where they stand: 0 is the score of a token with itself, and a change of −0.69 "
        "halves the weight it gets."
    )
    st.markdown(f"**{own.scheme} is what the loaded decoder uses** ({decoder.name})")
    show_scheme(own, "positions-own")
    st.markdown("**All four, in vectors of 512 dimensions and 8 heads**")
    for left, right in zip(all_schemes()[::2], all_schemes()[1::2], strict=True):
        for column, scheme in zip(st.columns(2, gap="medium"), (left, right), strict=True):
            with column:
                st.write(WHAT[scheme.scheme])
                show_scheme(scheme, f"positions-{scheme.scheme}")
    st.caption(
        "One head, no trained matrices between: what the positions alone do. A trained model makes more of "
        "them, and less, from head to head."
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
