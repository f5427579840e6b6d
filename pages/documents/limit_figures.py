"""The effect of token limits as figures and as marked text."""

import re
from collections.abc import Mapping, Sequence
from html import escape
from itertools import pairwise

import plotly.graph_objects as go
import streamlit as st

from engine.documents.truncation import TruncationReport
from engine.wording import counted
from ui.chunk_paint import LOST
from ui.colours import FAINT, ink
from ui.figures import LEGEND_ABOVE, styled

DIVIDER = (
    "display:inline-block;border:2px {line} currentColor;border-radius:4px;padding:0 6px;margin:2px 4px;"
    "font-size:0.85em;line-height:1.4;font-weight:600;white-space:normal"
)


def limit_bars(
    limits: Sequence[int], parts: Sequence[tuple[str, str, Sequence[float]]], title: str
) -> go.Figure:
    """Draw a group of bars for each limit; ``parts`` are the name, the colour and the values of each."""
    figure = go.Figure(
        [
            go.Bar(
                x=values,
                y=[f"limit {limit}" for limit in limits],
                name=name,
                orientation="h",
                marker_color=colour,
                text=[f"{value:.3f}" for value in values],
                textposition="inside",
                insidetextanchor="end",
                textfont={"size": 14, "color": ink(colour)},
                hovertemplate=f"%{{y}} against {name}: %{{x:.4f}}<extra></extra>",
            )
            for name, colour, values in parts
        ]
    )
    figure.update_layout(barmode="group", legend=LEGEND_ABOVE)
    figure.update_yaxes(autorange="reversed")
    figure.update_xaxes(title=title)
    return styled(figure, height=240)


def truncated_html(text: str, ends: Mapping[int, int], chosen: int, before: int, after: int) -> str:
    """Return a text, escaped, around the place where the ``chosen`` limit stops.

    ``ends`` are the characters where each limit stops reading. Text that is not read is struck through, and
    the ends of other limits are marked, from ``before`` characters before that place to ``after`` after it.
    """
    stop = ends[chosen]
    start = max(0, stop - before)
    if blank := re.search(r"\s", text[start:stop]) if start else None:
        start += blank.end()  # at a word
    end = min(len(text), stop + after)
    borders = {start, end, *(place for place in ends.values() if start <= place < end)}
    html = note(f"… {start:,} characters before, which are read") if start else ""
    for left, right in pairwise(sorted(borders)):
        html += "".join(divider(limit, limit == chosen) for limit, place in ends.items() if place == left)
        part = escape(text[left:right])
        html += part if right <= stop else f'<del style="{LOST}">{part}</del>'
    return html + (note(f"… {len(text) - end:,} characters more, never read") if end < len(text) else "")


def note(words: str) -> str:
    """Return a remark of the app, set apart from the text around it."""
    return f'<em style="{FAINT}"> [{words}] </em>'


def divider(limit: int, is_chosen: bool) -> str:
    """Return the mark at the end of a limit; that of the chosen limit is solid and in words."""
    style = DIVIDER.format(line="solid" if is_chosen else "dotted")
    label = f"✂ {limit}: reading stops here" if is_chosen else f"{limit}"
    return f'<span style="{style}">{label}</span>'


def show_limit_cards(
    reports: Mapping[int, TruncationReport], origins: Mapping[int, str], in_use: int | None = None
) -> None:
    """Draw what each limit leaves unread, side by side, with where each limit comes from."""
    for column, (limit, report) in zip(st.columns(len(reports)), reports.items(), strict=True):
        chunks = f"{len(report.truncated):,} of {counted(report.n_chunks, 'chunk')} cut, "
        with column.container(border=True, height="stretch"):
            st.markdown(f"**Limit {limit}**" + (" · in use" if limit == in_use else ""))
            st.caption(origins[limit])
            st.metric(
                "Text never read",
                f"{report.share_unread:.1%}" if report.truncated else "none",
                help="Share of the characters that are in no vector.",
            )
            st.write(
                f"{chunks if report.n_chunks > 1 else ''}{report.tokens_truncated:,} of "
                f"{report.n_tokens:,} tokens never read"
            )
