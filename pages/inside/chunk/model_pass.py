"""The input of the page and one forward pass over it, shared by its views."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import streamlit as st

from engine.inspection.model.model_view import ModelView, view_decoder, view_encoder
from engine.layers.norm import l2_normalize
from engine.layers.tracing import Array
from engine.verify import official_trace
from ui.models import decoder_named, load_encoder, load_official
from ui.tokens import visible_blanks

Model = Literal["encoder", "decoder"]


@dataclass(frozen=True)
class Input:
    """The text to run the model on, or two texts as a pair."""

    model: Model
    text: str
    pair: str | None
    max_tokens: int


@st.cache_resource(max_entries=2, show_spinner="Running the model, keeping every step…")
def run_model(given: Input, name: str, layer: int, without_special: bool) -> ModelView:
    """Run the model of a name and keep all tensors of one layer."""
    if given.model == "encoder":
        return view_encoder(load_encoder(), given.text, layer, given.pair, given.max_tokens, without_special)
    return view_decoder(decoder_named(name), given.text, layer, given.max_tokens, without_special)


@st.cache_resource(max_entries=1, show_spinner="Running the official model on the same text…")
def official_stages(given: Input) -> dict[str, Array]:
    """Run the official encoder on the same input; the vector is by the model's own pooling, or left out."""
    encoder = load_encoder()
    stages = official_trace(load_official(), given.text, encoder.config.n_heads, given.pair, given.max_tokens)
    stages["pooled.cls"] = stages[f"layers.{encoder.config.n_layers - 1}.output"][0]
    own, of_mean = f"pooled.{encoder.pooling}", stages.pop("normalized")
    if own == "pooled.mean":
        stages["normalized"] = of_mean
    elif own in stages:
        stages["normalized"] = l2_normalize(stages[own])
    return stages


def token_choice(label: str, tokens: Sequence[str], first: int, key: str, reason: str) -> int:
    """Draw the choice of a token."""
    return st.selectbox(
        label,
        range(len(tokens)),
        index=first,
        format_func=lambda number: f"{number} {visible_blanks(tokens[number])}",
        key=f"{key}-{hash(tuple(tokens))}",  # otherwise the labels of another text would stay
        help=f"{reason} The number is the token's position, counted from 0.",
    )


def longest(tokens: Sequence[str]) -> int:
    """Return the index of the longest token, as a rule a content word."""
    return max(range(len(tokens)), key=lambda number: len(tokens[number]))
