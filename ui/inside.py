"""What the views inside a model share: what to look at, and one pass over it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import streamlit as st

from engine.inspection.look import Look, look_into_decoder, look_into_encoder
from engine.layers.tracing import Array
from engine.verify import official_trace
from ui.maps import readable
from ui.models import decoder_named, load_encoder, load_official

Model = Literal["encoder", "decoder"]


@dataclass(frozen=True)
class Input:
    """What to look at: a text, or two as a pair."""

    model: Model
    text: str
    pair: str | None
    max_tokens: int


@st.cache_resource(max_entries=2, show_spinner="Running the model, every step kept…")
def look(given: Input, decoder: str, layer: int, without_special: bool) -> Look:
    """Run the model once for what the page shows of one layer; ``decoder`` is the one of the session."""
    if given.model == "encoder":
        return look_into_encoder(
            load_encoder(), given.text, layer, given.pair, given.max_tokens, without_special
        )
    return look_into_decoder(decoder_named(decoder), given.text, layer, given.max_tokens, without_special)


@st.cache_resource(max_entries=1, show_spinner="Running the official model on the same text…")
def official_stages(given: Input) -> dict[str, Array]:
    """Run the official encoder on the same input."""
    encoder = load_encoder()
    return official_trace(load_official(), given.text, encoder.config.n_heads, given.pair, given.max_tokens)


def token_choice(label: str, tokens: Sequence[str], first: int, key: str, reason: str) -> int:
    """Draw the choice of a token."""
    return st.selectbox(
        label,
        range(len(tokens)),
        index=first,
        format_func=lambda number: f"{number} {readable(tokens[number])}",
        key=f"{key}-{hash(tuple(tokens))}",  # labels of another text would stay otherwise
        help=f"{reason} The number is the token's place, counted from 0.",
    )


def longest(tokens: Sequence[str]) -> int:
    """Return the place of the longest token, which as a rule means something."""
    return max(range(len(tokens)), key=lambda number: len(tokens[number]))
