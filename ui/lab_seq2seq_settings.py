"""Sizes and pace of a training of the encoder-decoder."""

import streamlit as st

from engine.training.seq2seq_loop import Recipe

DEFAULT = Recipe()
LEARNING_RATES = [1e-4, 3e-4, 1e-3, 2e-3, 5e-3, 1e-2, 0.1, 1.0]


def choose_recipe(locked: bool) -> Recipe:
    """Draw the settings; while there is a training they cannot be changed."""
    with st.expander("Settings", icon=":material/tune:", key="seq2seq-settings"):
        if locked:
            st.caption("Reset the training to change these.")
        left, right = st.columns(2, gap="medium")
        n_steps = left.slider(
            "Steps",
            100,
            3000,
            DEFAULT.n_steps,
            100,
            disabled=locked,
            key="seq2seq-steps",
            persist_state="session",
            help="How many batches it learns from.",
        )
        rate = right.select_slider(
            "Highest learning rate",
            LEARNING_RATES,
            DEFAULT.learning_rate,
            format_func=lambda value: f"{value:g}",
            disabled=locked,
            key="seq2seq-rate",
            persist_state="session",
            help="It rises to this in the first 100 steps, then falls. Far too high, the loss runs off.",
        )
        d_model = left.select_slider(
            "Width",
            [32, 64, 96, 128],
            DEFAULT.d_model,
            disabled=locked,
            key="seq2seq-width",
            persist_state="session",
            help="Numbers a token (d_model), in 4 heads; the feed-forward network has four times as many.",
        )
        n_layers = right.slider(
            "Layers",
            1,
            3,
            DEFAULT.n_layers,
            disabled=locked,
            key="seq2seq-layers",
            persist_state="session",
            help="Of the encoder, and as many of the decoder.",
        )
        batch_size = left.select_slider(
            "Batch",
            [16, 32, 64, 128],
            DEFAULT.batch_size,
            disabled=locked,
            key="seq2seq-batch",
            persist_state="session",
            help="Pairs a step.",
        )
        seed = right.number_input(
            "Seed",
            0,
            2**31 - 1,
            DEFAULT.seed,
            disabled=locked,
            key="seq2seq-seed",
            persist_state="session",
            help="Of the first weights and of the pairs; the same seed gives the same training.",
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
