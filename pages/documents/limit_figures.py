"""The effect of a token limit on a text, as figures and as marked text."""

import re
from collections.abc import Sequence
from html import escape
from itertools import pairwise

import plotly.graph_objects as go

from engine.inspection.model.truncation import LimitReport
from ui.chunk_paint import LOST
from ui.colours import BLUE, FAINT, GREEN, GREY, VERMILION, ink
from ui.figures import LEGEND_ABOVE, styled

DIVIDER = (
    "display:inline-block;border:2px {line} currentColor;border-radius:4px;padding:0 6px;margin:2px 4px;"
    "font-size:0.85em;line-height:1.4;font-weight:600;white-space:normal"
)


def token_bars(reports: Sequence[LimitReport]) -> go.Figure:
    """A bar for each limit: the tokens read, then the tokens lost, hatched."""
    labels = [f"limit {report.max_tokens}" for report in reports]
    parts = (
        ("read", BLUE, "", [report.tokens_read for report in reports]),
        ("never read", VERMILION, "/", [report.tokens_lost for report in reports]),
    )
    figure = go.Figure(
        [
            go.Bar(
                x=counts,
                y=labels,
                name=name,
                orientation="h",
                marker={
                    "color": colour,
                    "pattern": {"shape": pattern, "fillmode": "overlay", "fgopacity": 0.3},
                },
                text=[f"{count:,}" if count else "" for count in counts],
                textposition="auto",
                insidetextanchor="middle",
                textfont_size=14,
                insidetextfont_color=ink(colour),
                textangle=0,
                hovertemplate=f"%{{y}}: %{{x:,}} tokens {name}<extra></extra>",
            )
            for name, colour, pattern, counts in parts
        ]
    )
    figure.update_layout(
        barmode="stack",
        legend=LEGEND_ABOVE,
    )
    figure.update_yaxes(autorange="reversed")
    figure.update_xaxes(title="tokens")
    return styled(figure, height=220)


def cosine_bars(reports: Sequence[LimitReport]) -> go.Figure:
    """Bars of the cosines between the vector of the read part and two vectors of more text."""
    labels = [f"limit {report.max_tokens}" for report in reports]
    longest = max(report.max_tokens for report in reports)
    parts = (
        (f"reading up to {longest}", GREY, [report.cosine_longest for report in reports]),
        ("the whole text", GREEN, [report.cosine_split for report in reports]),
    )
    figure = go.Figure(
        [
            go.Bar(
                x=cosines,
                y=labels,
                name=name,
                orientation="h",
                marker_color=colour,
                text=[f"{cosine:.3f}" for cosine in cosines],
                textposition="inside",
                insidetextanchor="end",
                textfont={"size": 14, "color": ink(colour)},
                hovertemplate=f"%{{y}} against {name}: %{{x:.4f}}<extra></extra>",
            )
            for name, colour, cosines in parts
        ]
    )
    figure.update_layout(
        barmode="group",
        legend=LEGEND_ABOVE,
    )
    figure.update_yaxes(autorange="reversed")
    lowest = min(0.0, *(cosine for _, _, cosines in parts for cosine in cosines))
    figure.update_xaxes(title="cosine (1 = the same direction)", range=[lowest, 1.02])
    return styled(figure, height=240)


def cut_html(text: str, reports: Sequence[LimitReport], chosen: LimitReport, before: int, after: int) -> str:
    """Return a text, escaped, around the place where one limit stops.

    Lost text is struck through, and the ends of other limits are marked, from ``before`` characters before
    that place to ``after`` characters after it.
    """
    start = max(0, chosen.read_end - before)
    if blank := re.search(r"\s", text[start : chosen.read_end]) if start else None:
        start += blank.end()  # at a word
    end = min(len(text), chosen.read_end + after)
    ends = {report.read_end for report in reports if report.tokens_lost and start <= report.read_end < end}
    html = note(f"… {start:,} characters before, which are read") if start else ""
    for left, right in pairwise(sorted({start, end, *ends})):
        for report in reports:
            if report.tokens_lost and report.read_end == left:
                html += divider(report, report == chosen)
        piece = escape(text[left:right])
        html += piece if right <= chosen.read_end else f'<del style="{LOST}">{piece}</del>'
    return html + (note(f"… {len(text) - end:,} characters more, never read") if end < len(text) else "")


def note(words: str) -> str:
    """Return a remark of the app, set apart from the text around it."""
    return f'<em style="{FAINT}"> [{words}] </em>'


def divider(report: LimitReport, is_chosen: bool) -> str:
    """Return the mark at the end of a limit; that of the chosen limit is solid and in words."""
    style = DIVIDER.format(line="solid" if is_chosen else "dotted")
    label = f"✂ {report.max_tokens}: reading stops here" if is_chosen else f"{report.max_tokens}"
    return f'<span style="{style}">{label}</span>'
