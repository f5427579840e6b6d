"""The input of the page and one forward pass over it, shared by its views."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import streamlit as st

from engine import Encoder
from engine.inspection.model.model_view import ModelView, view_decoder, view_encoder
from engine.layers.norm import l2_normalize
from engine.layers.tracing import Array
from engine.library_process import Arrays
from engine.verify import official_model
from ui.models import decoder_named, load_encoder
from ui.tokens import visible_blanks

Model = Literal["encoder", "decoder"]


@dataclass(frozen=True)
class Input:
    """The text to run the model on, or two texts as a pair."""

    model: Model
    text: str
    pair: str | None
    max_tokens: int


@dataclass(frozen=True)
class View:
    """What is shown of a pass."""

    layer: int
    head: int
    special: str  # the special tokens that it has, by name
    without_special: bool
    is_causal: bool  # whether a token sees only those before it
    is_compared: bool  # whether every stage is compared with the official model's


@st.cache_resource(max_entries=2, show_spinner="Running the model, keeping every step…")
def run_model(given: Input, name: str, layer: int, without_special: bool) -> ModelView:
    """Run the model of a name and keep all tensors of one layer."""
    if given.model == "encoder":
        return view_encoder(load_encoder(), given.text, layer, given.pair, given.max_tokens, without_special)
    return view_decoder(decoder_named(name), given.text, layer, given.max_tokens, without_special)


@st.cache_data(max_entries=16, show_spinner=False)
def official_differences(given: Input) -> dict[str, float]:
    """Return how far each stage is at most from the official encoder's, which is run on the same input."""
    encoder = load_encoder()
    with (
        st.spinner("Running the official model on the same text, in a process of its own…", show_time=True),
        official_model(encoder) as official,
    ):
        theirs = with_own_pooling(official(given.text, given.pair, given.max_tokens), encoder)
    encoding = encoder.read(given.text, given.pair, given.max_tokens)
    found = {"ids": largest_difference(np.array(encoding.ids), theirs["ids"])}

    def compare(name: str, array: Array) -> Array:
        if name in theirs:
            found[name] = largest_difference(array, theirs[name])
        return array

    encoder.inspect(encoding.ids, compare, type_ids=encoding.type_ids)
    return found


def with_own_pooling(official: Arrays, encoder: Encoder) -> Arrays:
    """Return official stages with the vector of the encoder's own pooling, or without one."""
    stages = dict(official)
    last = stages.get("norm", stages[f"layers.{encoder.config.n_layers - 1}.output"])
    stages |= {"pooled.cls": last[0], "pooled.lasttoken": last[-1]}
    own, of_mean = f"pooled.{encoder.pooling}", stages.pop("normalized")
    if own == "pooled.mean":
        stages["normalized"] = of_mean
    elif own in stages:
        stages["normalized"] = l2_normalize(stages[own])
    return stages


def largest_difference(ours: Array, theirs: Array) -> float:
    """Return the largest absolute difference, infinite if the shapes differ."""
    return float(np.abs(ours - theirs).max()) if ours.shape == theirs.shape else float("inf")


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


def longest(tokens: Sequence[str], special: Array) -> int:
    """Return the index of the longest token that is not special, as a rule a content word."""
    return max(range(len(tokens)), key=lambda number: 0 if special[number] else len(tokens[number]))
