"""The hand-written encoder compared with the official one, text by text, as a table and a figure."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from engine import Decoder, Encoder
from engine.verify import StageCheck, official_model, verify_model
from engine.weights.fetch import Progress
from ui.colours import BLACK, DIFFERENCE_SCALE
from ui.figures import styled

# The stages of a layer in the order of the forward pass, with their labels.
LAYER_STAGES = {
    "attention.query_norm": "query norm",
    "attention.key_norm": "key norm",
    "attention.query": "query",
    "attention.key": "key",
    "attention.value": "value",
    "attention.scores": "scores",
    "attention.weights": "weights",
    "attention.context": "context",
    "attention.output": "attention output",
    "attention.post_norm": "post norm",
    "attention.norm": "norm",
    "ffn.norm": "ffn norm",
    "ffn.gate": "gate",
    "ffn.hidden": "hidden",
    "ffn.activation": "activation",
    "ffn.output": "ffn output",
    "ffn.post_norm": "ffn post norm",
    "output": "layer output",
}
ROW_HEIGHT, EMPTY_HEIGHT = 34, 112  # pixels
MAX_WRITTEN = 12  # layers, whose differences fit into their cells
# Smaller differences are drawn as this large, larger ones as 1.
FLOOR = {"float32": 1e-8, "float64": 1e-17}


def verify(model: Encoder | Decoder, text: str, precision: str, on_progress: Progress) -> list[StageCheck]:
    """Compare every stage on a text in two steps: the official model is loaded, then both models run."""
    on_progress(0, 2)
    if precision == "float64":  # not kept, as it takes twice the memory
        model = Encoder.load(model.name, dtype=np.float64)
    with official_model(model) as official:
        on_progress(1, 2)
        return verify_model(model, [text], official)


def rows_of(checks: Sequence[StageCheck], n_layers: int) -> dict[str, list[StageCheck | None]]:
    """Return the check of each layer, by stage; None where a layer lacks a stage that others have."""
    by_stage = {check.stage: check for check in checks}
    rows = {stage: [by_stage.get(f"layers.{i}.{stage}") for i in range(n_layers)] for stage in LAYER_STAGES}
    return {stage: row for stage, row in rows.items() if any(row)}


def difference_figure(checks: Sequence[StageCheck], n_layers: int, precision: str) -> go.Figure:
    """Heat map of the differences on a logarithmic scale, a column per layer; a cross marks failures."""
    found = rows_of(checks, n_layers)
    values = [[np.nan if check is None else check.decisive for check in row] for row in found.values()]
    few = n_layers <= MAX_WRITTEN
    rows = [[("", "", "") if check is None else drawn(check) for check in row] for row in found.values()]
    floor, top = np.log10(FLOOR[precision]), np.log10(max(check.tolerance for check in checks))
    ticks = np.arange(np.ceil(floor), top + 0.5, 2 if precision == "float64" else 1)
    figure = go.Figure(
        go.Heatmap(
            z=np.log10(np.clip(values, FLOOR[precision], 1)),
            x=[f"{i}" for i in range(n_layers)],
            y=[LAYER_STAGES[stage] for stage in found],
            text=[[text if few else "✗" * text.startswith("✗") for text, _, _ in row] for row in rows],
            texttemplate="%{text}",
            textfont={"size": 11, "color": BLACK},
            customdata=[[words for _, *words in row] for row in rows],
            hovertemplate="layer %{x}, %{y}<br>difference %{customdata[0]}<br>"
            "tolerance %{customdata[1]}<extra></extra>",
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
    return styled(figure, height=EMPTY_HEIGHT + ROW_HEIGHT * len(rows))


def drawn(check: StageCheck) -> tuple[str, str, str]:
    """Return the text of a check's cell, its difference and its tolerance."""
    sign = "" if check.passed else "✗ "
    return sign + short(check.decisive), check.difference(check.decisive), f"{check.tolerance:.1e}"


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
            "decisive difference": check.difference(check.decisive),
            "tolerance": f"{check.tolerance:.1e}",
            "on the official input": f"{check.alone:.2e}",
            "end to end": f"{check.end_to_end:.2e}",
        }
        for check in checks
    ]
