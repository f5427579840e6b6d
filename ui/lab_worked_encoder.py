"""The steps of one encoder block, each with its equation, its numbers and what to see in them."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import streamlit as st

from engine.inspection.worked_example import (
    ROUNDED_POSITIONS,
    WORDS,
    Matrices,
    Options,
    encoder_block,
    normed,
    positions,
)
from engine.layers.tracing import Array
from engine.trace import Trace
from ui.export import show_figure
from ui.lab_worked_figures import saturation_figure
from ui.lab_worked_inputs import edit
from ui.lab_worked_matrix import Named, show_matrices


@dataclass(frozen=True)
class Run:
    """One pass through the block: ``x`` are the vectors with positions, ``head`` is the one looked at."""

    matrices: Matrices
    options: Options
    head: int
    x: Array
    trace: Trace

    def of_head(self, name: str) -> Array:
        """Array of the head looked at."""
        return self.trace[f"attention.heads.{self.head}.{name}"]


def run_block(matrices: Matrices, options: Options, head: int) -> Run:
    """Pass the words through the block, keeping every array."""
    x, trace = matrices["tokens"] + positions(len(WORDS), options), Trace()
    with np.errstate(over="ignore", invalid="ignore"):  # without the shift exp may overflow, which shows
        encoder_block(x, matrices, options, trace)
    return Run(matrices, options, head, x, trace)


@dataclass(frozen=True)
class Step:
    """A section: its equation, the matrices to edit in it, what it shows of a run, and what to see there.

    ``of_head`` marks matrices that every head has of its own.
    """

    title: str
    equation: str
    inputs: tuple[str, ...]
    show: Callable[[Run], None]
    of_head: bool = False


def words_in_rows(name: str, matrix: Array) -> Named:
    """Return a matrix with a row for each word."""
    return Named(name, matrix, WORDS)


def show_words(run: Run) -> None:
    """Say what the vectors are."""
    st.write(
        "Each word is a row of four numbers, made up here; a trained model has learned them. From now on the "
        "words themselves play no part."
    )


def show_positions(run: Run) -> None:
    """Draw both forms of the positions, and the sum."""
    formula = positions(2, Options(positions="formula"))
    show_matrices(
        words_in_rows("The example's positions", ROUNDED_POSITIONS),
        words_in_rows("By the formula", formula),
        words_in_rows("Vectors with positions", run.x),
    )
    st.write(
        "Attention has no order of its own, so the place is added as sines and cosines. The second number "
        "of “World” differs: the example has 0.99, the cosine of 0.01, but by the formula the first sine and "
        "the first cosine share one frequency, so it is cos(1) = 0.5403. “Positions” above "
        "switches between them."
    )


def show_projections(run: Run) -> None:
    """Draw queries, keys and values."""
    show_matrices(
        *(words_in_rows(f"{name[0].upper()}", run.of_head(name)) for name in ("query", "key", "value"))
    )
    st.write(
        "Each head looks at the same vectors through matrices of its own: what a word asks for (Q), what it "
        "is found by (K), and what it hands over (V). Change a number, and everything below follows."
    )


def show_scores(run: Run) -> None:
    """Draw the scores before and after the division."""
    show_matrices(
        words_in_rows("QKᵀ", run.of_head("scores")),
        words_in_rows(f"divided by {run.options.divisor:.4g}", run.of_head("scaled")),
    )
    st.write(
        "A row is a word that asks, a column a word that is asked. A score is a sum of products, so it grows "
        "with the width of a head; dividing by its root makes up for that, if the vectors are of size 1. "
        "These are larger."
    )


def show_softmax(run: Run) -> None:
    """Draw the weights, and how they saturate."""
    scores, weights = run.of_head("scores"), run.of_head("weights")
    show_matrices(words_in_rows("Weights", weights))
    show_figure(
        saturation_figure(scores, WORDS, run.options.divisor),
        name="worked-saturation",
        arrays={"scores": scores},
        alt="The largest weight of each word against what the scores are divided by",
    )
    gap = abs(float(scores[1, 0] - scores[1, 1]))
    by_root, by_30 = gap / np.sqrt(3), gap / 30
    st.write(
        f"**Saturation:** the two scores of “World” are {gap:.4g} apart. Divided by √3, the lesser one keeps "
        f"a weight of {lesser_weight(by_root):.1e}, and its slope, weight by score, is "
        f"{steepness(by_root):.1e}: nothing to learn from. Divided by 30, it keeps "
        f"{lesser_weight(by_30):.1%}, with a slope of {steepness(by_30):.2g}."
    )


def steepness(gap: float) -> float:
    """Slope of the softmax of two scores ``gap`` apart: ``p (1 - p)``."""
    return lesser_weight(gap) * lesser_weight(-gap)


def lesser_weight(gap: float) -> float:
    """Weight of the lesser of two scores ``gap`` apart, exact also where it is nearly 0."""
    return float(1 / (1 + np.exp(gap)))


def show_context(run: Run) -> None:
    """Draw the contexts of both heads, side by side too."""
    heads = (run.trace[f"attention.heads.{i}.context"] for i in range(2))
    show_matrices(
        *(words_in_rows(f"Head {number}", head) for number, head in enumerate(heads, start=1)),
        words_in_rows("Side by side", run.trace["attention.joined"]),
    )
    first, second = run.of_head("context")
    alike = float(np.abs(first - second).max())
    st.write(
        "Each word now has a mixture of the values. In the head looked at, the two rows differ by at most "
        f"{alike:.3g}: with saturated weights both words take the same value, and would be one from here on."
    )


def show_output(run: Run) -> None:
    """Draw the output projection."""
    show_matrices(words_in_rows("Z", run.trace["attention.projected"]))
    st.write(
        "WO brings the six numbers of both heads back to four, so that they can be added to what came in."
    )


def show_add_norm(run: Run) -> None:
    """Draw the sum, its statistics, and what the norm makes of it."""
    total, result = run.trace["attention.sum"], run.trace["attention.norm"]
    forms = [normed(total, Options(norm=form)) for form in ("example", "usual")]
    statistics = np.stack([total.mean(axis=-1), total.std(axis=-1)], axis=-1)  # (n_tokens, 2)
    show_matrices(
        words_in_rows("x + Z" if run.options.residual else "Z, without x", total),
        words_in_rows("Mean and standard deviation", statistics),
        words_in_rows("After the norm" if run.options.norm != "none" else "No norm: as it was", result),
    )
    st.write(
        "The residual keeps what came in; the norm brings every row to mean 0 and standard deviation 1. The "
        "example adds 10⁻⁶ to the deviation, libraries 10⁻⁵ to the variance: here the two forms differ by at "
        f"most {np.abs(forms[0] - forms[1]).max():.1e}."
    )


def show_ffn(run: Run) -> None:
    """Draw the feed-forward network and the end of the block."""
    hidden, active = run.trace["ffn.hidden"], run.trace["ffn.activation"]
    show_matrices(
        words_in_rows("x W1 + b1", hidden),
        words_in_rows("after ReLU", active),
        words_in_rows("times W2, plus b2", run.trace["ffn.output"]),
        words_in_rows("after add & norm", run.trace["ffn.norm"]),
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
        "Scores, and what they are divided by",
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


def ask(step: Step, head: int, matrices: Matrices, seed: int) -> bool:
    """Draw the equation of a step and the matrices to edit; return whether they are all numbers."""
    st.latex(step.equation)
    names = [f"heads.{head}.{name}" if step.of_head else name for name in step.inputs]
    whole = True
    for start in range(0, len(names), 3 if step.of_head else 2):
        row = names[start : start + (3 if step.of_head else 2)]
        for column, name in zip(st.columns(max(2, len(row))), row, strict=False):
            with column:
                whole &= edit(name, matrices, seed)
    return whole
