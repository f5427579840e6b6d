"""The faults of a broken encoder: their names and lessons, and figures."""

from collections.abc import Mapping, Sequence
from html import escape
from itertools import cycle

import numpy as np
import plotly.graph_objects as go

from engine.documents.document import Chunk
from engine.inspection.model.faults import PAD_TOKENS
from engine.layers.tracing import Array
from engine.wording import beginning
from ui.colours import CATEGORIES, GREY
from ui.figures import LEGEND_ABOVE, add_line, styled
from ui.text import escape_html

# The label of each fault, its effect, and the lesson.
FAULTS = {
    "no_scaling": (
        "Skip the scaling by √d_head",
        "Attention scores are no longer divided by the root of a head's width, 5.7 in the default model.",
        "Larger scores push the softmax towards its largest key: each token attends to one other and "
        "hardly to the rest. Passages, with many tokens to choose from, move more than short "
        "questions.",
    ),
    "no_residual": (
        "Drop the residual",
        "The input of attention and of the feed-forward network is no longer added back to its output.",
        "Each part of a layer was trained to add a correction to its input. Without the addition only the "
        "correction is left, and the token itself is lost after one layer.",
    ),
    "no_positions": (
        "Forget the position embedding",
        "All position vectors are zero.",
        "Attention has no order of its own, so the text becomes a bag of tokens: “dog bites man” and “man "
        "bites dog” get the same vector. Of all faults that change token vectors, this one and the missing "
        "scaling harm a search least.",
    ),
    "norm_first": (
        "Layer norm before instead of after",
        "Each layer norm comes before its sub-layer, as in GPT-2 and Llama, not after it, as in BERT.",
        "Both orders work when a model is trained with them. These weights were trained with the other one, "
        "and nothing bounds the residual stream any more: all texts get nearly the same vector.",
    ),
    "pad_mean": (
        "Average over the padding",
        f"Texts are padded to {PAD_TOKENS} tokens, and the mean includes the [PAD] positions. Attention "
        "masks them correctly.",
        "The classic bug of mean pooling. Token vectors stay the same, only the average changes: in short "
        "texts, such as questions, padding outweighs the words, while full-length passages stay unchanged.",
    ),
}
COLOURS = dict(zip(FAULTS, cycle(CATEGORIES), strict=False))
DASHES = dict(zip(FAULTS, ("solid", "dash", "dot", "dashdot", "longdash"), strict=True))
SYMBOLS = dict(zip(FAULTS, ("circle", "square", "diamond", "triangle-up", "x"), strict=True))
SNIPPET = 180  # characters shown of a passage


def drift_figure(drifts: Mapping[str, Mapping[str, float]]) -> go.Figure:
    """Lines of each stage's change of direction, one for each fault and one for all together."""
    figure = go.Figure()
    for name, stages in drifts.items():
        label = FAULTS[name][0] if name in FAULTS else "all together"
        colour, marker = COLOURS.get(name, GREY), {"symbol": SYMBOLS.get(name, "star"), "size": 9}
        look = {"mode": "lines+markers", "line_dash": DASHES.get(name, "solid"), "marker": marker}
        labels, hover = map(stage_label, stages), f"{label}<br>%{{x}}: %{{y:.3f}}"
        add_line(figure, labels, stages.values(), label, colour, hover, **look)
    figure.update_yaxes(title="1 − cosine with the intact model", rangemode="tozero")
    figure.update_xaxes(type="category", tickangle=-45)
    figure.update_layout(showlegend=True, legend=LEGEND_ABOVE)
    return styled(figure, height=380)


def stage_label(stage: str) -> str:
    """``layers.0.output -> "layer 0"``."""
    if stage.startswith("layers."):
        return f"layer {stage.split('.')[1]}"
    return "embeddings" if stage.startswith("embeddings") else "text vector"


def ranking_html(
    chunks: Sequence[Chunk], scores: Array, before: Array, after: Array, is_broken: bool, k: int
) -> str:
    """Return the ``k`` best passages of one model as HTML, each with its place, from 1, by the other."""
    html = ""
    own, other = (after, before) if is_broken else (before, after)
    for row in np.argsort(own)[:k]:
        chunk = chunks[row]
        way = "▼" if after[row] > before[row] else "▲" if after[row] < before[row] else "="
        moved = f"{'was' if is_broken else 'now'} {other[row]} {way}"
        html += (
            '<li style="margin:0 0 0.8em 0;list-style:none">'
            f"<b>{own[row]}.</b> {escape_html(chunk.document)} · score {scores[row]:.3f} · "
            f"<b>{moved}</b><br>{escape(beginning(chunk.text, SNIPPET))}</li>"
        )
    return f'<ol style="margin:0;padding:0;overflow-wrap:anywhere;line-height:1.5">{html}</ol>'
