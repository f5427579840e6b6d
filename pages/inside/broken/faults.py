"""The faults of a broken encoder: their names and lessons, and figures."""

from collections.abc import Mapping, Sequence
from html import escape
from itertools import cycle

import numpy as np
import plotly.graph_objects as go

from engine.documents.document import Chunk
from engine.installed import rows_of
from engine.layers.tracing import Array
from engine.wording import beginning
from ui.colours import CATEGORIES, GREY
from ui.figures import LEGEND_ABOVE, add_line, styled
from ui.text import escape_html

FAULTS = {row["fault"]: row for row in rows_of("faults.csv")}  # with label, effect and lesson
COLOURS = dict(zip(FAULTS, cycle(CATEGORIES), strict=False))
DASHES = dict(zip(FAULTS, ("solid", "dash", "dot", "dashdot", "longdash"), strict=True))
SYMBOLS = dict(zip(FAULTS, ("circle", "square", "diamond", "triangle-up", "x"), strict=True))
SNIPPET = 180  # characters shown of a passage


def drift_figure(drifts: Mapping[str, Mapping[str, float]]) -> go.Figure:
    """Lines of each stage's change of direction, one for each fault and one for all together."""
    figure = go.Figure()
    for name, stages in drifts.items():
        label = FAULTS[name]["label"] if name in FAULTS else "all together"
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
