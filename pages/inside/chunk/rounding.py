"""The error of every stage in the precision of the app's settings, compared with float32."""

import re
from collections.abc import Sequence

import streamlit as st

from engine.inspection.model.rounding import StageError, largest_in_layers, stage_errors
from engine.models.precision import PRECISIONS
from pages.inside.chunk.model_pass import Input
from ui.models import load_encoder
from ui.tables import show_table

LAYER_STAGES = {"attention.output": "attention", "ffn.output": "feed-forward", "output": "output"}


@st.cache_data(max_entries=4, show_spinner="Running the encoder in both precisions…")
def errors_of(given: Input, name: str, precision: str) -> list[StageError]:
    """Compare the stages of the encoder of a name in a precision with those in float32."""
    return stage_errors(load_encoder(), precision, given.text, given.pair, given.max_tokens)


def show_rounding(given: Input, precision: str) -> None:
    """Draw the error of each stage as a table, with its meaning in words."""
    errors = errors_of(given, load_encoder().name, precision)
    st.markdown(f"**Every stage in {PRECISIONS[precision].label}, compared with float32**")
    st.write(finding(errors, PRECISIONS[precision].label))
    largest = max(each.relative for each in errors)
    show_table(
        [
            {"Stage": stage_words(each.stage), "Error": each.relative, "Cosine": each.cosine}
            for each in errors
        ],
        f"Relative error and cosine of {len(errors)} stages in {PRECISIONS[precision].label}",
        {
            "Error": st.column_config.ProgressColumn(
                format="percent",
                min_value=0.0,
                max_value=largest or 1.0,
                help="Length of the difference from float32, as a share of the length of the float32 "
                "numbers. At 1 % two digits agree.",
            ),
            "Cosine": st.column_config.NumberColumn(
                format="%.5f",
                help="Between a token's vectors in the two precisions, mean over the tokens: 1 is the same "
                "direction.",
            ),
        },
    )
    st.caption(
        "Both passes go on with their own numbers, so errors of earlier layers are part of those of later "
        "ones. The embeddings are not rounded. The output of a layer is attention and feed-forward added to "
        "its input. The other views of this page show float32."
    )


def finding(errors: Sequence[StageError], label: str) -> str:
    """Return the error of the vector in words, and the place of the largest one in the layers."""
    vector, largest = errors[-1], largest_in_layers(errors)
    return (
        f"In {label} the vector of this text has a cosine of {vector.cosine:.4f} to the one in float32, an "
        f"error of {vector.relative:.1%}. The largest error on the way is {largest.relative:.1%}, of "
        f"{stage_words(largest.stage)}. Search compares directions: two chunks change places only if their "
        "cosines to the question are nearer to each other than such an error moves them."
    )


def stage_words(stage: str) -> str:
    """``layers.3.ffn.output -> layer 3, feed-forward``."""
    if in_layer := re.fullmatch(r"layers\.(\d+)\.(.+)", stage):
        return f"layer {in_layer[1]}, {LAYER_STAGES[in_layer[2]]}"
    if stage.startswith("pooled."):
        return "pooled vector"
    return {"embeddings.output": "embeddings", "normalized": "vector at length 1"}[stage]
