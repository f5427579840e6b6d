"""A transformer by hand: every number of a small encoder-decoder, step by step and editable."""

import numpy as np
import streamlit as st

from engine.inspection.model.worked_example import N_HEADS, example_matrices
from pages.learn.worked.decoder import show_decoder
from pages.learn.worked.encoder import STEPS, run_block, show_inputs
from pages.learn.worked.inputs import choose_options, edited
from pages.learn.worked.sizes import show_sizes
from pages.learn.worked.stack import show_stack
from ui.widgets import choice

# The sections of each chapter, by their numbers.
CHAPTERS = {
    "Words": (1, 2),
    "Attention": (3, 4, 5, 6),
    "The rest of a block": (7, 8, 9),
    "Blocks on blocks": (10,),
    "Decoder": (11,),
    "Sizes": (12,),
}


def show_worked_example() -> None:
    """Draw all sections; the encoder block runs once all of its inputs have been drawn."""
    st.write(
        "“Hello World” on its way through the encoder and decoder of "
        "[Attention Is All You Need](https://arxiv.org/abs/1706.03762), at sizes to follow by hand: 4 "
        "numbers a word, 2 heads of 3. The numbers are those of "
        "[The Random Transformer](https://osanseviero.github.io/hackerllama/blog/posts/random_transformer/). "
        "Nothing is trained. Tables with a pencil can be edited, and everything after them follows."
    )
    options, seed = choose_options()
    matrices = edited(example_matrices(seed), seed)
    notice = st.container()
    chapters = dict(zip(CHAPTERS, st.tabs(list(CHAPTERS)), strict=True))
    head, valid, places = 0, True, []
    for number, step in enumerate(STEPS, start=1):
        with next(chapters[name] for name, numbers in CHAPTERS.items() if number in numbers):
            heading(number, step.title)
            if step.of_head:
                reason = "The head whose matrices, scores and weights are shown from here to section 6."
                heads = range(N_HEADS)
                head = choice(
                    "Shown head", heads, "worked-head", reason, format_func=lambda i: f"Head {i + 1}"
                )
            valid &= show_inputs(step, head, matrices, seed)
            places.append(st.container())
    with chapters["Sizes"]:
        heading(len(STEPS) + 3, "The sizes of 2017")
        show_sizes()
    if not valid:
        notice.info("The numbers come back as soon as every cell of the tables holds one.")
        return
    block = run_block(matrices, options, head)
    for step, place in zip(STEPS, places, strict=True):
        with place:
            step.show(block)
    with chapters["Blocks on blocks"]:
        heading(len(STEPS) + 1, "Blocks on blocks")
        memory = show_stack(block.x, matrices, options, seed)
    with chapters["Decoder"]:
        heading(len(STEPS) + 2, "The decoder, word by word")
        show_decoder(memory.astype(np.float64), options, seed)


def heading(number: int, title: str) -> None:
    """Draw the heading of a section."""
    st.header(f"{number} · {title}", anchor=False, divider="gray")


show_worked_example()
