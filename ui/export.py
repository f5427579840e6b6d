"""Figures on a page, each with a way to take it and its numbers away."""

import io
from collections.abc import Mapping

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from engine.layers.tracing import Array


def show_figure(figure: go.Figure, name: str, arrays: Mapping[str, Array], alt: str) -> None:
    """Draw a figure that can be saved as PNG, as a standalone HTML page and as its numbers (.npz).

    Parameters
    ----------
    figure
        The figure.
    name
        Name of the files without suffix; unique on the page, since it is the widgets' key too.
    arrays
        What the figure shows, by name.
    alt
        What the figure shows, in words, for those who cannot see it.
    """
    # The browser draws the PNG itself, so no server needs a browser of its own.
    buttons = {"modeBarButtons": [["toImage"]], "displayModeBar": True, "displaylogo": False}
    image = {"toImageButtonOptions": {"format": "png", "filename": name, "scale": 2}}
    st.plotly_chart(figure, config={**buttons, **image}, key=f"figure-{name}", alt=alt)
    show_save(figure, name, arrays)


def show_save(figure: go.Figure, name: str, arrays: Mapping[str, Array]) -> None:
    """Draw the ways to take a figure and its numbers away; ``name`` as in `show_figure`."""
    with st.popover("Save", icon=":material/download:", type="tertiary", key=f"save-{name}"):
        st.caption("PNG: the camera in the corner of the figure.")
        st.download_button(
            "Standalone HTML page",
            lambda: standalone(figure).to_html(include_plotlyjs=True),
            file_name=f"{name}.html",
            mime="text/html",
            key=f"html-{name}",
            on_click="ignore",
        )
        st.download_button(
            "Numbers (.npz)",
            lambda: npz(arrays),
            file_name=f"{name}.npz",
            mime="application/octet-stream",
            key=f"npz-{name}",
            on_click="ignore",
        )


def standalone(figure: go.Figure) -> go.Figure:
    """Return a figure in Plotly's own theme; the app's has colours and margins that its pages fill in."""
    return go.Figure(figure).update_layout(template="plotly_white")


def npz(arrays: Mapping[str, Array]) -> bytes:
    """Return arrays as the content of an .npz file."""
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]
    return buffer.getvalue()
