"""The worked example: every number of a small encoder-decoder, step by step, to be changed at will."""

import numpy as np
import streamlit as st

from engine.inspection.worked_example import N_HEADS, example_matrices
from ui.lab_worked_decoder import show_decoder
from ui.lab_worked_encoder import STEPS, ask, run_block
from ui.lab_worked_inputs import edited, switches
from ui.lab_worked_sizes import show_sizes
from ui.lab_worked_stack import show_stack

HEADS = {f"Head {i + 1}": i for i in range(N_HEADS)}


def show_worked_example() -> None:
    """Draw all sections; those of the encoder block gather its matrices first, then show what they give."""
    st.write(
        "“Hello World” on its way through the encoder and decoder of "
        "[Attention Is All You Need](https://arxiv.org/abs/1706.03762), at sizes to follow by hand: 4 "
        "numbers a word, 2 heads of 3. The numbers are those of "
        "[The Random Transformer](https://osanseviero.github.io/hackerllama/blog/posts/random_transformer/). "
        "Nothing is trained. Tables with a pencil can be edited, and everything below follows."
    )
    chosen = switches()
    matrices = edited(example_matrices(chosen.seed), chosen.seed)
    head, whole, places = 0, True, []
    for number, step in enumerate(STEPS, start=1):
        st.subheader(f"{number} · {step.title}", anchor=False, divider="gray")
        if step.of_head:
            head = HEADS[choose_head()]
        whole &= ask(step, head, matrices, chosen.seed)
        places.append(st.container())
    if whole:
        run = run_block(matrices, chosen.options, head)
        for step, place in zip(STEPS, places, strict=True):
            with place:
                step.show(run)
    st.subheader(f"{len(STEPS) + 1} · Blocks on blocks", anchor=False, divider="gray")
    memory = show_stack(run.x, matrices, chosen.options, chosen.seed) if whole else None
    st.subheader(f"{len(STEPS) + 2} · The decoder, word by word", anchor=False, divider="gray")
    if memory is not None:
        show_decoder(memory.astype(np.float64), chosen.options, chosen.seed)
    else:
        st.info("The numbers come back as soon as every cell above holds one.")
    st.subheader(f"{len(STEPS) + 3} · The sizes of 2017", anchor=False, divider="gray")
    show_sizes()


def choose_head() -> str:
    """Draw the choice of the head that sections 3 to 6 look at."""
    return st.segmented_control(
        "Looked at",
        list(HEADS),
        default="Head 1",
        required=True,
        key="worked-head",
        persist_state="session",
        help="The head whose matrices, scores and weights are shown from here to section 6.",
    )
