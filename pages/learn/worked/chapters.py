"""The worked example: every number of a small encoder-decoder, step by step and editable."""

import numpy as np
import streamlit as st

from engine.inspection.model.worked_example import N_HEADS, example_matrices
from pages.learn.worked.decoder import show_decoder
from pages.learn.worked.encoder import STEPS, run_block, show_inputs
from pages.learn.worked.inputs import choose_options, edited
from pages.learn.worked.sizes import show_sizes
from pages.learn.worked.stack import show_stack
from ui.widgets import choice


def show_worked_example() -> None:
    """Draw all sections; the encoder block runs once all of its inputs have been drawn."""
    st.write(
        "“Hello World” on its way through the encoder and decoder of "
        "[Attention Is All You Need](https://arxiv.org/abs/1706.03762), at sizes to follow by hand: 4 "
        "numbers a word, 2 heads of 3. The numbers are those of "
        "[The Random Transformer](https://osanseviero.github.io/hackerllama/blog/posts/random_transformer/). "
        "Nothing is trained. Tables with a pencil can be edited, and everything below follows."
    )
    options, seed = choose_options()
    matrices = edited(example_matrices(seed), seed)
    head, valid, places = 0, True, []
    for number, step in enumerate(STEPS, start=1):
        st.header(f"{number} · {step.title}", anchor=False, divider="gray")
        if step.of_head:
            head = choose_head()
        valid &= show_inputs(step, head, matrices, seed)
        places.append(st.container())
    if valid:
        block = run_block(matrices, options, head)
        for step, place in zip(STEPS, places, strict=True):
            with place:
                step.show(block)
    st.header(f"{len(STEPS) + 1} · Blocks on blocks", anchor=False, divider="gray")
    memory = show_stack(block.x, matrices, options, seed) if valid else None
    st.header(f"{len(STEPS) + 2} · The decoder, word by word", anchor=False, divider="gray")
    if memory is not None:
        show_decoder(memory.astype(np.float64), options, seed)
    else:
        st.info("The numbers come back as soon as every cell above holds one.")
    st.header(f"{len(STEPS) + 3} · The sizes of 2017", anchor=False, divider="gray")
    show_sizes()


def choose_head() -> int:
    """Draw the choice of the head that sections 3 to 6 show."""
    heads = [f"Head {i + 1}" for i in range(N_HEADS)]
    reason = "The head whose matrices, scores and weights are shown from here to section 6."
    return heads.index(choice("Shown head", heads, "worked-head", reason))
