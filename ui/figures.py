"""Plotly figures, all in one look that suits both themes."""

import plotly.graph_objects as go

from engine.generation.answering import Timings

BLUE, ORANGE, GREEN, GREY = "#0072B2", "#E69F00", "#009E73", "#8C8C8C"


def timing_figure(timings: Timings) -> go.Figure:
    """Bars of the seconds each stage took, in the order they ran, first at the top."""
    stages = {"Expand question": timings.expand_s} if timings.expand_s else {}
    colours = [ORANGE] * len(stages) + [BLUE, BLUE, BLUE, ORANGE, ORANGE]
    stages |= {
        "Tokenize question": timings.tokenize_s,
        "Encode question": timings.encode_s,
        "Search index": timings.search_s,
        "Read prompt": timings.prompt_s,
        "Generate answer": timings.generate_s,
    }
    figure = go.Figure(
        go.Bar(
            x=list(stages.values()),
            y=list(stages),
            orientation="h",
            marker_color=colours,
            text=[readable_seconds(seconds) for seconds in stages.values()],
            textposition="outside",
            cliponaxis=False,
            hovertemplate="%{y}: %{text}<extra></extra>",
        )
    )
    figure.update_yaxes(autorange="reversed")
    figure.update_xaxes(title="seconds", rangemode="tozero", range=[0, max(stages.values()) * 1.25])
    return styled(figure, height=260)


def token_figure(parts: dict[str, int], budget: int) -> go.Figure:
    """One stacked bar of where a prompt's tokens go, against its budget."""
    figure = go.Figure(
        [
            go.Bar(
                x=[count],
                y=["tokens"],
                name=f"{name} ({count})",
                orientation="h",
                marker_color=colour,
                hovertemplate=f"{name}: {count} tokens<extra></extra>",
            )
            for (name, count), colour in zip(parts.items(), (ORANGE, BLUE, GREY), strict=True)
        ]
    )
    figure.add_vline(
        x=budget, line_dash="dot", annotation_text=f"budget {budget}", annotation_position="top left"
    )
    figure.update_layout(barmode="stack", legend={"orientation": "h", "y": -0.1, "yanchor": "top", "x": 0})
    figure.update_yaxes(visible=False)
    figure.update_xaxes(visible=False)
    return styled(figure, height=170)


def styled(figure: go.Figure, height: int) -> go.Figure:
    """Give a figure the shared margins and size."""
    figure.update_layout(height=height, margin={"l": 0, "r": 8, "t": 24, "b": 8}, font_size=13)
    return figure


def readable_seconds(seconds: float) -> str:
    """``0.0042 -> "4.2 ms"``, ``2.1 -> "2.1 s"``."""
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1000:.1f} ms"
