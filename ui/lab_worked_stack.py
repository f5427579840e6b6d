"""Blocks on blocks: what becomes of the numbers with and without norm, residual and shift."""

from collections.abc import Sequence

import numpy as np
import streamlit as st

from engine.inspection.worked_example import BlockSize, Matrices, Options, stack
from engine.layers.tracing import Array
from ui.export import show_figure
from ui.lab_worked_figures import EXP_LIMIT, FLOAT32_MAX, first_nan, growth_figure

BLOCKS, MAX_BLOCKS = 6, 24
FLOAT32 = np.dtype(np.float32)


def show_stack(x: Array, matrices: Matrices, options: Options, seed: int) -> Array:
    """Draw how large the numbers of stacked blocks are; return the output of the last."""
    n_blocks = st.slider(
        "Blocks",
        1,
        MAX_BLOCKS,
        BLOCKS,
        key="worked-blocks",
        persist_state="session",
        help="The first has the matrices above; every other one its own, drawn from a normal distribution. "
        "From here on numbers are float32, as in most models.",
    )
    output, sizes = stack(x, matrices, n_blocks, seed, options, FLOAT32)
    show_figure(
        growth_figure(sizes, options.shift_softmax),
        name="worked-growth",
        arrays={
            "largest_score": np.array([size.largest_score for size in sizes]),
            "largest_output": np.array([size.largest_output for size in sizes]),
        },
        alt="Largest score and largest output of each block, in float32",
    )
    st.write(growth_words(sizes, options))
    st.caption(
        "To see it: switch the norm off and the shift too, and the numbers end within a block or two. With "
        "the shift they grow tenfold or more a block and end later, where float32 does. A residual "
        "does not stop that: it carries values and gradients past a block; only the norm sets their size."
    )
    return output


def growth_words(sizes: Sequence[BlockSize], options: Options) -> str:
    """Say what the figure shows."""
    first = first_nan(sizes)
    if first is None:
        last = sizes[-1].largest_output
        if options.norm != "none":
            return (
                f"**Bounded:** after {len(sizes)} blocks no output is larger than {last:.3g}, since each "
                "norm brings every token back to a standard deviation of 1."
            )
        return (
            f"**Growing:** without a norm the largest output is {last:.3g} after {len(sizes)} blocks, from "
            f"{sizes[0].largest_output:.3g} after the first. float32 ends at {FLOAT32_MAX:.2g}."
        )
    score = sizes[first - 1].largest_score
    if np.isfinite(score) and not options.shift_softmax and score > EXP_LIMIT:
        return (
            f"**NaN from block {first} on:** a score is {score:.4g} in size. In float32 exp of more than "
            f"{EXP_LIMIT:.1f} is infinite, and of less than −104 it is 0; infinite divided by infinite is "
            "not a number, as 0 by 0 is none, and whatever touches a NaN becomes one."
        )
    return (
        f"**NaN from block {first} on:** products pass the largest number of float32, {FLOAT32_MAX:.2g}, and "
        "become infinite; infinite minus infinite is not a number, and whatever touches a NaN becomes one."
    )
