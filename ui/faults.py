"""A broken model on a page: what each fault is called, its vectors of the corpus, its figures."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from html import escape

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from engine import Encoder
from engine.documents.document import Chunk
from engine.inspection.faults import PAD_TOKENS, Faults, broken_vectors
from engine.layers.tracing import Array
from ui.figures import BLUE, GREEN, GREY, ORANGE, styled

# The name of each fault, what it does, and what is to be learnt from it.
FAULTS = {
    "no_scaling": (
        "Skip the scaling by √d_head",
        "Attention scores are no longer divided by the root of a head's width, 5.7 in the default model.",
        "Scores so much larger push the softmax towards its largest key alone: each token listens to "
        "one other and hardly to the rest. Passages, with many tokens to choose from, move more than short "
        "questions.",
    ),
    "no_residual": (
        "Drop the residual",
        "The input of attention and of the feed-forward network is no longer added back to its output.",
        "Each part of a layer was trained to add a correction to what is there. Without the addition only "
        "the correction is left, and what the token was is gone after one layer.",
    ),
    "no_positions": (
        "Forget the position embedding",
        "All position vectors are zero.",
        "Attention has no order of its own, so the text becomes a bag of tokens: “dog bites man” and “man "
        "bites dog” get the same vector. Of all faults that change token vectors, searches survive this one "
        "and the missing scaling best.",
    ),
    "norm_first": (
        "Layer norm before instead of after",
        "Each layer norm stands in front of its part, as in GPT-2 and Llama, not behind it, as in BERT.",
        "Both orders work when a model is trained with them. These weights were trained with the other one, "
        "and nothing bounds the sum that flows past the norms any more: all texts come out nearly alike.",
    ),
    "pad_mean": (
        "Average over the padding",
        f"Texts are padded to {PAD_TOKENS} tokens, and the mean takes in the [PAD] positions. Attention "
        "masks them as it should.",
        "The classic bug of mean pooling. No token vector moves, only the average: short texts, such as "
        "questions, drown in padding, while passages that fill their place stay as they are.",
    ),
}
COLOURS = dict(zip(FAULTS, (BLUE, ORANGE, GREEN, "#CC79A7", "#56B4E9"), strict=True))
DASHES = dict(zip(FAULTS, ("solid", "dash", "dot", "dashdot", "longdash"), strict=True))
SYMBOLS = dict(zip(FAULTS, ("circle", "square", "diamond", "triangle-up", "x"), strict=True))
SNIPPET = 180  # characters shown of a passage


def fault_switches() -> Faults:
    """Draw a switch a fault; return what is on."""
    columns = st.columns(2)
    on = {
        field: columns[number % 2].toggle(label, key=f"fault-{field}", help=does)
        for number, (field, (label, does, _)) in enumerate(FAULTS.items())
    }
    return Faults(**on)


def names_of(faults: Faults) -> list[str]:
    """Names of the faults that are on."""
    return [field.name for field in fields(faults) if getattr(faults, field.name)]


@st.cache_data(max_entries=32, show_spinner=False)
def broken_corpus(texts: tuple[str, ...], faults: Faults, _encoder: Encoder) -> Array:
    """Embed the passages with faults, once for each set of them: ``(n_texts, d_model)``."""
    bar = st.progress(0.0, "Embedding the corpus with the broken model…")

    def show(done: int, total: int) -> None:
        bar.progress(done / total, f"Embedding the corpus with the broken model: {done} of {total} passages")

    try:
        return broken_vectors(_encoder, texts, faults, show)
    finally:
        bar.empty()


def drift_figure(drifts: Mapping[str, Mapping[str, float]]) -> go.Figure:
    """Lines of how far each stage of a text is turned, one for each fault and one for all together."""
    figure = go.Figure()
    for name, stages in drifts.items():
        label = FAULTS[name][0] if name in FAULTS else "all together"
        figure.add_scatter(
            x=[stage_label(stage) for stage in stages],
            y=list(stages.values()),
            name=label,
            mode="lines+markers",
            line={"color": COLOURS.get(name, GREY), "dash": DASHES.get(name, "solid"), "width": 3},
            marker={"symbol": SYMBOLS.get(name, "star"), "size": 9},
            hovertemplate=f"{label}<br>%{{x}}: %{{y:.3f}}<extra></extra>",
        )
    figure.update_yaxes(title="1 − cosine with the intact model", rangemode="tozero")
    figure.update_xaxes(type="category", tickangle=-45)
    figure.update_layout(showlegend=True, legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0})
    return styled(figure, height=380)


def stage_label(stage: str) -> str:
    """``layers.0.output -> "layer 0"``."""
    if stage.startswith("layers."):
        return f"layer {stage.split('.')[1]}"
    return "embeddings" if stage.startswith("embeddings") else "text vector"


def ranking_html(
    chunks: Sequence[Chunk], scores: Array, before: Array, after: Array, is_broken: bool, k: int
) -> str:
    """Return the ``k`` best passages of one model as HTML, each with its place by the other.

    ``scores`` are that model's, ``before`` and ``after`` the places of all passages, from 1, by the
    intact and by the broken model.
    """
    html = ""
    for row in np.argsort(after if is_broken else before)[:k]:
        place, other = (after[row], before[row]) if is_broken else (before[row], after[row])
        chunk = chunks[row]
        snippet = escape(" ".join(chunk.text[:SNIPPET].split())) + ("…" if len(chunk.text) > SNIPPET else "")
        moved = f"{'was' if is_broken else 'now'} {other} {arrow(before[row], after[row])}"
        html += (
            '<li style="margin:0 0 0.8em 0;list-style:none">'
            f"<b>{place}.</b> {escape(chunk.document)} · score {scores[row]:.3f} · "
            f"<b>{moved}</b><br>{snippet}</li>"
        )
    return f'<ol style="margin:0;padding:0;overflow-wrap:anywhere;line-height:1.5">{html}</ol>'


def arrow(before: int, after: int) -> str:
    """Return which way a passage moved: down where its place got worse."""
    if before == after:
        return "="
    return "▼" if after > before else "▲"
