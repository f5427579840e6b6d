"""Sizes and pace of a training of the encoder-decoder."""

from functools import partial

import streamlit as st

from engine.training.language.seq2seq_loop import Recipe
from ui.widgets import slider

DEFAULT = Recipe()
LEARNING_RATES = (1e-4, 3e-4, 1e-3, 2e-3, 5e-3, 1e-2, 0.1, 1.0)


def choose_recipe(locked: bool) -> Recipe:
    """Draw the settings; while there is a training, they are ``locked``."""
    with st.expander("Settings", icon=":material/tune:", key="seq2seq-settings"):
        if locked:
            st.caption("Reset the training to change these.")
        left, right = st.columns(2, gap="medium")
        on_left, on_right = (partial(slider, disabled=locked, place=place) for place in (left, right))
        reason = "Number of batches to learn from."
        n_steps = on_left("Steps", range(100, 3001, 100), DEFAULT.n_steps, "seq2seq-steps", reason)
        reason = (
            "It rises to this in the first 100 steps, then falls. If it is far too high, the loss diverges."
        )
        rate = on_right(
            "Highest learning rate", LEARNING_RATES, DEFAULT.learning_rate, "seq2seq-rate", reason
        )
        reason = "Numbers a token (d_model), in 4 heads; the feed-forward network has four times as many."
        d_model = on_left("Width", (32, 64, 96, 128), DEFAULT.d_model, "seq2seq-width", reason)
        reason = "Of the encoder, and as many of the decoder."
        n_layers = on_right("Layers", range(1, 4), DEFAULT.n_layers, "seq2seq-layers", reason)
        batch_size = on_left(
            "Batch", (16, 32, 64, 128), DEFAULT.batch_size, "seq2seq-batch", "Pairs per step."
        )
        seed = right.number_input(
            "Seed",
            0,
            2**31 - 1,
            DEFAULT.seed,
            disabled=locked,
            key="seq2seq-seed",
            persist_state="session",
            help="Determines the first weights and the pairs; the same seed gives the same training.",
        )
    return Recipe(
        seed=seed,
        d_model=d_model,
        d_ff=4 * d_model,
        n_layers=n_layers,
        batch_size=batch_size,
        n_steps=n_steps,
        learning_rate=rate,
    )
