"""The steps of one encoder block: equation, editable inputs, results and an explanation."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import streamlit as st

from engine.inspection.model.worked_example import (
    ROUNDED_POSITIONS,
    WORDS,
    Matrices,
    Options,
    encoder_block,
    normalized,
    positions,
)
from engine.layers.tracing import Array
from engine.trace import Trace
from pages.learn.worked.figures import saturation_figure, show_matrices
from pages.learn.worked.inputs import edit
from ui.export import show_figure


@dataclass(frozen=True)
class BlockPass:
    """One pass through the block: ``x`` are the vectors with positions, ``head`` is the head shown."""

    options: Options
    head: int
    x: Array
    trace: Trace

    def of_head(self, name: str) -> Array:
        """Return an array of the head shown."""
        return self.trace[f"attention.heads.{self.head}.{name}"]


def run_block(matrices: Matrices, options: Options, head: int) -> BlockPass:
    """Pass the words through the block and keep every array."""
    x, trace = matrices["tokens"] + positions(len(WORDS), options), Trace()
    with np.errstate(over="ignore", invalid="ignore"):  # without the shift exp may overflow, which shows
        encoder_block(x, matrices, options, trace)
    return BlockPass(options, head, x, trace)


@dataclass(frozen=True)
class Step:
    """A section: its equation, the matrices to edit in it, and a function that draws its results."""

    title: str
    equation: str
    inputs: tuple[str, ...]
    show: Callable[[BlockPass], None]
    of_head: bool = False  # each head has its own ``inputs``


def show_words(block: BlockPass) -> None:
    """Explain the vectors."""
    st.write(
        "Each word is a row of four numbers, made up here; a trained model has learned them. From now on the "
        "words themselves play no part."
    )


def show_positions(block: BlockPass) -> None:
    """Draw both forms of the positions, and the sum."""
    formula = positions(2, Options(positions="formula"))
    show_matrices(
        ("The example's positions", ROUNDED_POSITIONS),
        ("By the formula", formula),
        ("Vectors with positions", block.x),
    )
    st.write(
        "Attention has no order of its own, so the place is added as sines and cosines. The second number "
        "of “World” differs: the example has 0.99, the cosine of 0.01, but by the formula the first sine and "
        "the first cosine share one frequency, so it is cos(1) = 0.5403. “Positions”, under "
        "“More options”, switches between them."
    )


def show_projections(block: BlockPass) -> None:
    """Draw queries, keys and values."""
    show_matrices(*((name[0].upper(), block.of_head(name)) for name in ("query", "key", "value")))
    st.write(
        "Each head multiplies the same vectors by its own matrices: queries (Q) are compared with keys (K), "
        "and values (V) are mixed by the result. Change a number, and everything after it follows."
    )


def show_scores(block: BlockPass) -> None:
    """Draw the scores before and after the division."""
    show_matrices(
        ("QKᵀ", block.of_head("scores")), (f"divided by {block.options.divisor:.4g}", block.of_head("scaled"))
    )
    st.write(
        "A row is a query, a column a key. A score is a sum of products, so it grows "
        "with the width of a head; dividing by its root makes up for that, if the vectors are of size 1. "
        "These are larger."
    )


def show_softmax(block: BlockPass) -> None:
    """Draw the weights, and how they saturate."""
    scores, weights = block.of_head("scores"), block.of_head("weights")
    show_matrices(("Weights", weights))
    show_figure(
        saturation_figure(scores, WORDS, block.options.divisor),
        name="worked-saturation",
        alt="The largest weight of each word against the divisor of the scores",
    )
    gap = abs(float(scores[1, 0] - scores[1, 1]))
    by_root, by_30 = gap / np.sqrt(3), gap / 30
    st.write(
        f"**Saturation:** the two scores of “World” are {gap:.4g} apart. Divided by √3, the smaller one "
        f"keeps a weight of {smaller_weight(by_root):.1e}, and its slope, weight by score, is "
        f"{steepness(by_root):.1e}: nothing to learn from. Divided by 30, it keeps "
        f"{smaller_weight(by_30):.1%}, with a slope of {steepness(by_30):.2g}."
    )


def steepness(gap: float) -> float:
    """Slope of the softmax of two scores ``gap`` apart: ``p (1 - p)``."""
    return smaller_weight(gap) * smaller_weight(-gap)


def smaller_weight(gap: float) -> float:
    """Weight of the smaller of two scores ``gap`` apart, exact even near 0."""
    return float(1 / (1 + np.exp(gap)))


def show_context(block: BlockPass) -> None:
    """Draw the contexts of both heads, one by one and concatenated."""
    heads = (block.trace[f"attention.heads.{i}.context"] for i in range(2))
    show_matrices(
        *((f"Head {number}", head) for number, head in enumerate(heads, start=1)),
        ("Side by side", block.trace["attention.joined"]),
    )
    first, second = block.of_head("context")
    alike = float(np.abs(first - second).max())
    st.write(
        "Each word now has a mixture of the values. In the head shown, the two rows differ by at most "
        f"{alike:.3g}: with saturated weights both words take the same value, and would stay "
        "the same from here on."
    )


def show_output(block: BlockPass) -> None:
    """Draw the output projection."""
    show_matrices(("Z", block.trace["attention.projected"]))
    st.write("WO brings the six numbers of both heads back to four, so that they can be added to the input.")


def show_add_norm(block: BlockPass) -> None:
    """Draw the sum, its statistics, and its norm."""
    total, result = block.trace["attention.sum"], block.trace["attention.norm"]
    forms = [normalized(total, Options(norm=form)) for form in ("example", "usual")]
    statistics = np.stack([total.mean(axis=-1), total.std(axis=-1)], axis=-1)  # (n_tokens, 2)
    show_matrices(
        ("x + Z" if block.options.residual else "Z, without x", total),
        ("Mean and standard deviation", statistics),
        ("After the norm" if block.options.norm != "none" else "No norm: unchanged", result),
    )
    st.write(
        "The residual keeps the input; the norm brings every row to mean 0 and standard deviation 1. The "
        "example adds 10⁻⁶ to the deviation, libraries 10⁻⁵ to the variance: here the two forms differ by at "
        f"most {np.abs(forms[0] - forms[1]).max():.1e}."
    )


def show_ffn(block: BlockPass) -> None:
    """Draw the feed-forward network and the end of the block."""
    hidden, active = block.trace["ffn.hidden"], block.trace["ffn.activation"]
    show_matrices(
        ("x W1 + b1", hidden),
        ("after ReLU", active),
        ("times W2, plus b2", block.trace["ffn.output"]),
        ("after add & norm", block.trace["ffn.norm"]),
    )
    st.write(
        f"Every word by itself: four numbers to eight and back. ReLU sets {int((active == 0).sum())} of "
        f"{active.size} to 0. The example does not print these matrices, so they come from the seed."
    )


STEPS = (
    Step(
        "Words become vectors",
        r"x_{\text{Hello}},\; x_{\text{World}} \in \mathbb{R}^4",
        ("tokens",),
        show_words,
    ),
    Step(
        "Positions are added",
        r"\begin{aligned}PE_{p,2i} &= \sin(p / 10000^{2i/d}) \\"
        r"PE_{p,2i+1} &= \cos(p / 10000^{2i/d})\end{aligned}",
        (),
        show_positions,
    ),
    Step(
        "Queries, keys and values",
        r"Q = xW^Q \quad K = xW^K \quad V = xW^V",
        ("query", "key", "value"),
        show_projections,
        of_head=True,
    ),
    Step(
        "Scores and their divisor",
        r"S = \frac{QK^\top}{c}, \quad c = \sqrt{d_{head}} \text{ in the paper}",
        (),
        show_scores,
    ),
    Step(
        "The softmax, and its saturation", r"A_{ij} = \frac{e^{S_{ij}}}{\sum_k e^{S_{ik}}}", (), show_softmax
    ),
    Step("Values are mixed, heads put side by side", r"[A_1V_1 \; A_2V_2]", (), show_context),
    Step("Output projection", r"Z = [A_1V_1 \; A_2V_2]\,W^O", ("output",), show_output),
    Step("Add and norm", r"\frac{(x + Z) - \mu}{\sigma + 10^{-6}}", (), show_add_norm),
    Step(
        "Feed-forward, add and norm",
        r"\mathrm{FFN}(x) = \max(0,\, xW_1 + b_1)\,W_2 + b_2",
        ("ffn.w1", "ffn.b1", "ffn.w2", "ffn.b2"),
        show_ffn,
    ),
)


def show_inputs(step: Step, head: int, matrices: Matrices, seed: int) -> bool:
    """Draw the equation of a step and the matrices to edit; return whether all cells are valid."""
    st.latex(step.equation)
    names = [f"heads.{head}.{name}" if step.of_head else name for name in step.inputs]
    valid = True
    n_columns = 3 if step.of_head else 2
    for start in range(0, len(names), n_columns):
        row = names[start : start + n_columns]
        for column, name in zip(st.columns(max(2, len(row))), row, strict=False):
            with column:
                valid &= edit(name, matrices, seed)
    return valid
