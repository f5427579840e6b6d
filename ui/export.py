"""Figures on a page, each with buttons to save it and its numbers."""

import re
from collections.abc import Callable, Sequence
from html import unescape
from itertools import product
from typing import Any

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from ui.tables import Rows, rows_csv
from ui.text import escape_markdown


def show_figure(
    figure: go.Figure,
    name: str,
    alt: str,
    on_click: Callable[[Sequence[Any]], None] | None = None,
    version: str = "",
) -> None:
    """Draw a figure that can be saved as PNG, as a standalone HTML page and as its numbers.

    ``name`` is that of the files without suffix, unique on the page as the widgets' key; ``alt`` is the
    figure in words, for screen readers. ``on_click`` is called with the points that are clicked; figures of
    another ``version`` have none of the clicks before. The only cell of a heat map is drawn as text.
    """
    if cell := only_cell(figure):
        st.write(escape_markdown(cell))
        return
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
    show_save(figure, name)


def only_cell(figure: go.Figure) -> str:
    """``"S1, [1]: 11.6%"``: the single cell of a heat map in words; empty for other figures."""
    heat, *_ = figure.data
    if heat.type != "heatmap" or np.size(heat.z) != 1:
        return ""
    [cell] = figure_rows(figure)
    shown = (heat.texttemplate or "%{z:.3g}").removeprefix("%{z:").removesuffix("}")
    return f"{cell['y']}, {cell['x']}: {cell['value']:{shown}}"


def show_save(figure: go.Figure, name: str) -> None:
    """Draw the buttons that save a figure and its numbers; ``name`` as in `show_figure`."""
    with st.popover("Save", icon=":material/download:", type="tertiary", key=f"save-{name}"):
        st.caption("PNG: the camera in the corner of the figure.")
        contents: tuple[tuple[str, Callable[[], str], str, str], ...] = (
            ("Standalone HTML page", lambda: standalone(figure).to_html(), "html", "text/html"),
            ("Numbers as a table (.csv)", lambda: rows_csv(figure_rows(figure)), "csv", "text/csv"),
        )
        for label, content, suffix, mime in contents:
            st.download_button(
                label, content, f"{name}.{suffix}", mime, key=f"{suffix}-{name}", on_click="ignore"
            )


def standalone(figure: go.Figure) -> go.Figure:
    """Return a figure in Plotly's own theme, as the app's theme is complete only inside the app."""
    return go.Figure(figure).update_layout(template="plotly_white")


def figure_rows(figure: go.Figure) -> Rows:
    """Return the points of a figure's series, or the cells of a heat map, as rows of a table."""
    rows: list[dict[str, Any]] = []
    for trace in figure.data:
        series = {"series": trace.name} if trace.name else {}
        if (cells := getattr(trace, "z", None)) is None:
            names = [name for name in ("x", "y", "hovertext") if np.ndim(trace[name])]
            points = zip(*(trace[name] for name in names), strict=True)
            rows += [series | dict(zip(names, map(plain, point), strict=True)) for point in points]
            continue
        n_down, n_across = np.shape(cells)
        down, across = (
            range(n) if names is None else map(plain, names)
            for names, n in ((trace.y, n_down), (trace.x, n_across))
        )
        places, values = product(down, across), np.ravel(cells).tolist()
        rows += [series | {"y": y, "x": x, "value": z} for (y, x), z in zip(places, values, strict=True)]
    return rows


def plain(value: object) -> object:
    """Return a label without its markup; a number as it is."""
    return unescape(re.sub("<[^>]*>", " ", value)).strip() if isinstance(value, str) else value
