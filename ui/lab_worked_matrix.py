"""Matrices of a worked example as HTML: every digit, in brackets, in both themes."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
import streamlit as st

from engine.layers.tracing import Array

BRACKET = "border:solid currentColor;border-width:0 1px;border-radius:6px"
CELL = "padding:1px clamp(4px,1.2vw,8px);text-align:right;border:0;white-space:nowrap"
NAME = "padding:1px 10px 1px 0;text-align:left;border:0;white-space:nowrap;opacity:0.75"


@dataclass(frozen=True)
class Named:
    """A matrix ``(n_rows, n_columns)`` with what it is called, and its rows."""

    name: str
    matrix: Array
    rows: Sequence[str]


def show_matrices(*matrices: Named) -> None:
    """Draw matrices side by side where there is room, else one below the other."""
    boxes = "".join(f'<div style="max-width:100%">{matrix_html(one)}</div>' for one in matrices)
    st.html(f'<div style="display:flex;flex-wrap:wrap;gap:14px 36px;margin:4px 0 8px">{boxes}</div>')


def matrix_html(named: Named) -> str:
    """One matrix under its name; wider than the screen, it scrolls by itself."""
    rows = "".join(
        f'<tr><th scope="row" style="{NAME};font-weight:normal">{escape(row)}</th>'
        + "".join(f'<td style="{CELL}">{readable_number(value)}</td>' for value in values)
        + "</tr>"
        for row, values in zip(named.rows, named.matrix, strict=True)
    )
    size = " × ".join(map(str, named.matrix.shape))
    return (
        f'<div style="margin-bottom:4px"><b>{escape(named.name)}</b> '
        f'<span style="opacity:0.75;font-size:0.85em">{size}</span></div>'
        f'<div style="overflow-x:auto" tabindex="0" role="region" aria-label="{escape(named.name)}">'
        f'<table style="border-collapse:separate;border-spacing:0;width:auto;{BRACKET};padding:2px 4px;'
        f'font-family:monospace;font-size:clamp(0.7rem,2.9vw,0.85rem);margin:0">{rows}</table></div>'
    )


def readable_number(value: float) -> str:
    """Eight decimals at most; where they would show too little of a number, or too much, a power of ten."""
    if not np.isfinite(value):
        return "NaN" if np.isnan(value) else ("−∞" if value < 0 else "∞")
    if value and not 1e-4 <= abs(value) < 1e7:
        return f"{value:.8e}".replace("-", "−")
    return np.format_float_positional(value, precision=8, trim="-").replace("-", "−")
