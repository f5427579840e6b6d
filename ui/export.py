"""Figures on a page, each with buttons to save it and its numbers."""

import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Any

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from engine.layers.tracing import Array
from ui.tables import rows_csv


def show_figure(
    figure: go.Figure,
    name: str,
    arrays: Mapping[str, Array],
    alt: str,
    on_click: Callable[[Sequence[Any]], None] | None = None,
    version: str = "",
) -> None:
    """Draw a figure that can be saved as PNG, as a standalone HTML page and as its numbers, the ``arrays``.

    ``name`` is that of the files without suffix, unique on the page as the widgets' key; ``alt`` is the
    figure in words, for screen readers. ``on_click`` is called with the points that are clicked; figures of
    another ``version`` have none of the clicks before.
    """
    key = f"figure-{name}{version}"

    def select() -> None:
        if on_click is not None:
            on_click(st.session_state[key].selection.points)

    # The browser draws the PNG itself, so no server needs a browser of its own.
    buttons = {"modeBarButtons": [["toImage"]], "displayModeBar": True, "displaylogo": False}
    image = {"toImageButtonOptions": {"format": "png", "filename": name, "scale": 2}}
    st.plotly_chart(
        figure,
        config={**buttons, **image},
        key=key,
        on_select="ignore" if on_click is None else select,
        selection_mode="points",
        alt=alt,
    )
    show_save(figure, name, arrays)


def show_save(figure: go.Figure, name: str, arrays: Mapping[str, Array]) -> None:
    """Draw the buttons that save a figure and its numbers; ``name`` as in `show_figure`."""
    with st.popover("Save", icon=":material/download:", type="tertiary", key=f"save-{name}"):
        st.caption("PNG: the camera in the corner of the figure.")
        contents: tuple[tuple[str, Callable[[], str | bytes], str, str], ...] = (
            ("Standalone HTML page", lambda: standalone(figure).to_html(), "html", "text/html"),
            ("Numbers (.npz)", lambda: npz(arrays), "npz", "application/octet-stream"),
            ("Numbers as a table (.csv)", lambda: table(arrays), "csv", "text/csv"),
        )
        for label, content, suffix, mime in contents:
            st.download_button(
                label, content, f"{name}.{suffix}", mime, key=f"{suffix}-{name}", on_click="ignore"
            )


def arrays_of(records: Iterable[object], *names: str) -> dict[str, Array]:
    """Return some attributes of the records, each as an array by its name; None becomes NaN."""
    rows = list(records)
    values = {name: [getattr(row, name) for row in rows] for name in names}
    return {
        name: np.array([np.nan if value is None else value for value in column])
        for name, column in values.items()
    }


def standalone(figure: go.Figure) -> go.Figure:
    """Return a figure in Plotly's own theme, as the app's theme is complete only inside the app."""
    return go.Figure(figure).update_layout(template="plotly_white")


def npz(arrays: Mapping[str, Array]) -> bytes:
    """Return arrays as the content of an .npz file."""
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]
    return buffer.getvalue()


def table(arrays: Mapping[str, Array]) -> str:
    """Return arrays as CSV: a column for one of one dimension, else as many as the last one is long."""
    columns: dict[str, Array] = {}
    for name, array in arrays.items():
        if array.ndim < 2:
            columns[name] = np.atleast_1d(array)
        else:
            parts = array.reshape(-1, array.shape[-1]).T
            columns |= {f"{name}.{number}": part for number, part in enumerate(parts)}
    rows = zip_longest(*columns.values(), fillvalue="")
    return rows_csv([dict(zip(columns, row, strict=True)) for row in rows])
