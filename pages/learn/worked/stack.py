"""Stacked blocks: how large the numbers grow with and without norm, residual and shift."""

from collections.abc import Sequence

import numpy as np
import streamlit as st

from engine.inspection.model.worked_example import BlockMagnitude, Matrices, Options, encoder_stack
from engine.layers.tracing import Array
from pages.learn.worked.figures import EXP_LIMIT, FLOAT32_MAX, first_nan, growth_figure
from ui.export import show_figure
from ui.widgets import slider

BLOCKS, MAX_BLOCKS = 6, 24
FLOAT32 = np.dtype(np.float32)


def show_stack(x: Array, matrices: Matrices, options: Options, seed: int) -> Array:
    """Draw how large the numbers of stacked blocks are; return the output of the last."""
    reason = (
        "The first has the matrices above; each of the others has its own, drawn from a normal distribution. "
        "From here on numbers are float32, as in most models."
    )
    n_blocks = slider("Blocks", range(1, MAX_BLOCKS + 1), BLOCKS, "worked-blocks", reason)
    output, sizes = encoder_stack(x, matrices, n_blocks, seed, options, FLOAT32)
    show_figure(
        growth_figure(sizes, options.shift_softmax),
        name="worked-growth",
        alt="Largest score and largest output of each block, in float32",
    )
    st.write(growth_words(sizes, options))
    st.caption(
        "To see this, switch off the norm and the shift: the numbers end within a block or two. With "
        "the shift they grow tenfold or more per block and end later, at the limit of float32. A residual "
        "does not stop that: it carries values and gradients past a block; only the norm sets their size."
    )
    return output


def growth_words(sizes: Sequence[BlockMagnitude], options: Options) -> str:
    """Describe the figure in words."""
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
            f"{EXP_LIMIT:.1f} is infinite, and of less than −104 it is 0; infinite divided by infinite "
            "is not a number, nor is 0 by 0, and every result of a NaN is NaN."
        )
    return (
        f"**NaN from block {first} on:** products pass the largest number of float32, {FLOAT32_MAX:.2g}, "
        "and become infinite; infinite minus infinite is not a number, and every result of a NaN is NaN."
    )
