"""The hand-written encoder compared with the official one, text by text, as a table and a figure."""

from collections.abc import Sequence
from contextlib import ExitStack

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from engine import Encoder
from engine.layers.tracing import Array
from engine.verify import StageCheck, official_model, verify_encoder
from ui.colours import BLACK, DIFFERENCE_SCALE
from ui.figures import styled
from ui.models import load_encoder

# The stages of a layer in the order of the forward pass, with their labels.
LAYER_STAGES = {
    "attention.query": "query",
    "attention.key": "key",
    "attention.value": "value",
    "attention.scores": "scores",
    "attention.weights": "weights",
    "attention.context": "context",
    "attention.output": "attention output",
    "attention.norm": "norm",
    "ffn.hidden": "hidden",
    "ffn.activation": "GELU",
    "ffn.output": "ffn output",
    "output": "norm (layer output)",
}
# Smaller differences are drawn as this large, larger ones as 1.
FLOOR = {"float32": 1e-8, "float64": 1e-17}


def verify(text: str, precision: str) -> list[StageCheck]:
    """Compare every stage on a text, under spinners that name the slow steps and count their seconds."""
    encoder = load_encoder()
    with ExitStack() as stack:
        with st.spinner("Loading the official model in a process of its own…", show_time=True):
            if precision == "float64":  # not kept, as it takes twice the memory
                encoder = Encoder.load(encoder.name, dtype=np.float64)
            official = stack.enter_context(official_model(encoder))
        with st.spinner("Running both models…", show_time=True):
            return verify_encoder(encoder, [text], official)


def layer_differences(checks: Sequence[StageCheck], n_layers: int) -> Array:
    """Return the decisive difference of each stage of each layer: ``(n_stages, n_layers)``."""
    by_stage = {check.stage: check.decisive for check in checks}
    return np.array([[by_stage[f"layers.{i}.{stage}"] for i in range(n_layers)] for stage in LAYER_STAGES])


def difference_figure(checks: Sequence[StageCheck], n_layers: int, precision: str) -> go.Figure:
    """Heat map of the differences on a logarithmic scale, a column per layer; a cross marks failures."""
    by_stage = {check.stage: check for check in checks}
    rows = [[by_stage[f"layers.{i}.{stage}"] for i in range(n_layers)] for stage in LAYER_STAGES]
    floor, top = np.log10(FLOOR[precision]), np.log10(max(check.tolerance for check in checks))
    ticks = np.arange(np.ceil(floor), top + 0.5, 2 if precision == "float64" else 1)
    figure = go.Figure(
        go.Heatmap(
            z=[[np.log10(np.clip(check.decisive, FLOOR[precision], 1)) for check in row] for row in rows],
            x=[f"{i}" for i in range(n_layers)],
            y=list(LAYER_STAGES.values()),
            text=[[("" if check.passed else "✗ ") + short(check.decisive) for check in row] for row in rows],
            texttemplate="%{text}",
            textfont={"size": 11, "color": BLACK},
            customdata=[[(check.decisive, check.tolerance) for check in row] for row in rows],
            hovertemplate="layer %{x}, %{y}<br>difference %{customdata[0]:.2e}<br>"
            "tolerance %{customdata[1]:.1e}<extra></extra>",
            zmin=floor,
            zmax=top,
            colorscale=DIFFERENCE_SCALE,
            xgap=1,
            ygap=1,
            colorbar={
                "orientation": "h",
                "y": -0.14,
                "yanchor": "top",
                "thickness": 12,
                "tickvals": ticks,
                "ticktext": [f"1e{tick:.0f}" for tick in ticks],
            },
        )
    )
    figure.update_yaxes(autorange="reversed", ticksuffix=" ", showgrid=False)
    figure.update_xaxes(title="layer", type="category", side="top", showgrid=False)
    return styled(figure, height=520)


def short(value: float) -> str:
    """``3.1e-07 -> "3e-7"``."""
    if value in (0, np.inf):
        return f"{value:.0f}"
    mantissa, exponent = f"{value:.0e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def check_rows(checks: Sequence[StageCheck]) -> list[dict[str, str]]:
    """Return every check as a row of a table."""
    return [
        {
            "stage": check.stage,
            "within": "yes" if check.passed else "NO",
            "decisive difference": f"{check.decisive:.2e}",
            "tolerance": f"{check.tolerance:.1e}",
            "on the official input": f"{check.alone:.2e}",
            "end to end": f"{check.end_to_end:.2e}",
        }
        for check in checks
    ]
