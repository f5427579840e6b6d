"""The decoder of the worked example: its attention and its words."""

import numpy as np
import streamlit as st

from engine.inspection.model.worked_example import (
    EOS,
    VOCABULARY,
    WORDS,
    Options,
    decoder_block,
    greedy_decode,
    random_decoder,
)
from engine.layers.tracing import Array
from engine.trace import Trace
from pages.learn.worked.figures import head_maps, show_matrices, vocabulary_bars
from pages.learn.worked.inputs import SEED
from ui.export import show_figure
from ui.tables import show_table
from ui.text import escape_markdown
from ui.widgets import slider

LONGEST, MAX_LONGEST = 10, 30


def show_decoder(memory: Array, options: Options, seed: int) -> None:
    """Draw greedy decoding from the encoder's output ``(n_source, d_model)``: attention, then words."""
    if not np.isfinite(memory).all():
        st.info(
            "The encoder's output is NaN, so there is nothing to decode: switch the norm or the shift on."
        )
        return
    reason = "Greedy decoding stops after so many words without the end token."
    longest = slider("Longest output", range(1, MAX_LONGEST + 1), LONGEST, "worked-longest", reason)
    matrices = random_decoder(seed)
    trace = Trace()
    with np.errstate(over="ignore", invalid="ignore"):  # as in the encoder
        ids, probabilities = greedy_decode(memory, matrices, options, longest)
        logits = decoder_block(ids[:-1], memory, matrices, options, trace)
    if not np.isfinite(logits).all():
        st.info("The decoder's numbers overflow too: switch the norm or the shift on.")
        return
    show_attention(trace, ids)
    scores = np.array([trace[f"cross.heads.{i}.scaled"] for i in range(2)])
    apart = float(np.abs(scores[..., 0] - scores[..., 1]).max())
    difference = float(np.abs(memory[0] - memory[1]).max())
    rows = "are the same to the last digit" if difference == 0 else f"differ by at most {difference:.2g}"
    st.write(
        f"The encoder's rows for “Hello” and “World” {rows}, so their scores are at most {apart:.2g} apart. "
        "These matrices make large outputs that both words share, and the norm, which brings each row to "
        "size 1, shrinks their difference, block by block. Without a norm they stay apart."
    )
    show_words(ids, probabilities, logits, seed)


def show_attention(trace: Trace, ids: list[int]) -> None:
    """Draw the maps of masked self-attention and cross-attention."""
    read = [VOCABULARY[token] for token in ids[:-1]]
    parts = (
        (
            "self",
            "Masked self-attention",
            read,
            "Right of the diagonal is nothing: no token sees a later one.",
        ),
        (
            "cross",
            "Cross-attention",
            list(WORDS),
            "Queries come from the decoder, keys and values from the encoder's output: here the decoder "
            "attends to “Hello World”.",
        ),
    )
    for key, title, keys, words in parts:
        weights = [trace[f"{key}.heads.{i}.weights"] for i in range(2)]
        st.markdown(f"**{title}**")
        show_figure(
            head_maps(weights, read, keys, causal=key == "self"),
            name=f"worked-{key}",
            alt=f"{title} of both heads: from each token read to each it attends to",
        )
        st.write(words)


def show_words(ids: list[int], probabilities: Array, logits: Array, seed: int) -> None:
    """Draw one step of decoding, and the table of all steps."""
    st.markdown("**Logits, softmax, the most probable word**")
    st.latex(r"p = \mathrm{softmax}(x_{last}\, W_{vocabulary})")
    n_steps = len(probabilities)
    step = 1
    if n_steps > 1:
        step = st.slider(
            "Step",
            1,
            n_steps,
            1,
            key=f"worked-step-{n_steps}",
            help="The step of decoding whose numbers and bars are shown.",
        )
    left, right = st.columns([1, 3])
    with left:
        show_matrices((f"Logits of step {step}", logits[step - 1][:, None]), rows=VOCABULARY)
    with right:
        show_figure(
            vocabulary_bars(probabilities[step - 1], VOCABULARY),
            name="worked-words",
            alt=f"Probability of each word at step {step}",
        )
    rows = []
    for number, row in enumerate(probabilities, start=1):
        order = np.argsort(-row)[:3]
        rows.append(
            {
                "step": number,
                "takes": f"{VOCABULARY[order[0]]} {row[order[0]]:.1%}",
                "next best": ", ".join(f"{VOCABULARY[token]} {row[token]:.1%}" for token in order[1:]),
                "had read": " ".join(VOCABULARY[token] for token in ids[:number]),
            }
        )
    show_table(rows, "Steps of greedy decoding")
    text = escape_markdown(" ".join(VOCABULARY[token] for token in ids[1:]))
    how = "the end token came" if ids[-1] == EOS else f"the maximum of {n_steps} words was reached"
    ends_by_itself = seed == SEED and ids[-1] == EOS
    chosen = " This seed was picked because decoding ends; with most it does not." if ends_by_itself else ""
    st.write(
        f"The output is “{text}”, and decoding stopped because {how}. The matrices are random, so the words "
        f"mean nothing: training is what makes them a translation.{chosen}"
    )
