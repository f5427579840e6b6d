"""Matrices as HTML tables in brackets, with all digits, for both themes."""

from collections.abc import Sequence
from html import escape

import numpy as np
import streamlit as st

from engine.inspection.model.worked_example import WORDS
from engine.layers.tracing import Array
from ui.colours import FAINT

BRACKET = "border:solid currentColor;border-width:0 1px;border-radius:6px"
CELL = "padding:1px clamp(4px,1.2vw,8px);text-align:right;border:0;white-space:nowrap"
NAME = f"padding:1px 10px 1px 0;text-align:left;border:0;white-space:nowrap;{FAINT}"


def show_matrices(*matrices: tuple[str, Array], rows: Sequence[str] = WORDS) -> None:
    """Draw matrices ``(len(rows), n_columns)`` with their names, side by side where there is room."""
    boxes = "".join(
        f'<div style="max-width:100%">{matrix_html(name, matrix, rows)}</div>' for name, matrix in matrices
    )
    st.html(f'<div style="display:flex;flex-wrap:wrap;gap:14px 36px;margin:4px 0 8px">{boxes}</div>')


def matrix_html(name: str, matrix: Array, rows: Sequence[str]) -> str:
    """Return a matrix under its name; one wider than the screen scrolls sideways."""
    lines = "".join(
        f'<tr><th scope="row" style="{NAME};font-weight:normal">{escape(row)}</th>'
        + "".join(f'<td style="{CELL}">{readable_number(value)}</td>' for value in values)
        + "</tr>"
        for row, values in zip(rows, matrix, strict=True)
    )
    size = " × ".join(map(str, matrix.shape))
    return (
        f'<div style="margin-bottom:4px"><b>{escape(name)}</b> '
        f'<span style="{FAINT};font-size:0.85em">{size}</span></div>'
        f'<div style="overflow-x:auto" tabindex="0" role="region" aria-label="{escape(name)}">'
        f'<table style="border-collapse:separate;border-spacing:0;width:auto;{BRACKET};padding:2px 4px;'
        f'font-family:monospace;font-size:clamp(0.7rem,2.9vw,0.85rem);margin:0">{lines}</table></div>'
    )


def readable_number(value: float) -> str:
    """Return a number with up to eight decimals; a very small or large one as a power of ten."""
    if not np.isfinite(value):
        return "NaN" if np.isnan(value) else ("−∞" if value < 0 else "∞")
    if value and not 1e-4 <= abs(value) < 1e7:
        return f"{value:.8e}".replace("-", "−")
    return np.format_float_positional(value, precision=8, trim="-").replace("-", "−")
