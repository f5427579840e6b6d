"""One text given to the encoder whole, without chunks: what each limit reads of it."""

import re
from collections.abc import Mapping, Sequence
from html import escape
from itertools import pairwise

import plotly.graph_objects as go
import streamlit as st

from engine import Encoder
from engine.documents.document import Chunk, Document
from engine.documents.truncation import TruncationReport, over_limit, truncation_reports
from engine.inspection.model.limit_effects import LimitEffect, limit_effects
from engine.wording import counted
from ui.chunk_paint import STRUCK
from ui.chunk_settings import Cut
from ui.colours import FAINT, GREEN, GREY, ink
from ui.corpus import split_documents
from ui.documents import bundled_documents
from ui.export import show_figure
from ui.figures import LEGEND_ABOVE, styled
from ui.models import limits_of, load_encoder
from ui.text import escape_markdown, text_html

PASTED = "A text of your own"
DEFAULT_DOCUMENT, DEFAULT_CHARACTERS = "inside_the_pipeline.md", 3200
MAX_CHARACTERS = 2_000_000
BEFORE, AFTER = 400, 2400  # characters shown around a cut
DIVIDER = (
    "display:inline-block;border:2px {line} currentColor;border-radius:4px;padding:0 6px;margin:2px 4px;"
    "font-size:0.85em;line-height:1.4;font-weight:600;white-space:normal"
)


def show_whole_text(documents: Sequence[Document], encoder: Encoder, cut: Cut) -> None:
    """Draw the effect of each token limit on one text that is not cut into chunks."""
    text = text_picker(documents, cut)
    if not text.strip():
        st.info("There is no text yet. Paste one above, or pick a document.", icon=":material/notes:")
        return
    if len(text) > MAX_CHARACTERS:
        st.info(f"This text is very long: its first {MAX_CHARACTERS:,} characters are measured.")
        text = text[:MAX_CHARACTERS]
    reports, effects = reports_of(text, encoder)
    n_tokens, shortest = reports[min(reports)].n_tokens, min(reports)
    if n_tokens <= shortest:
        st.success(
            f"All of it is read. This text has {n_tokens} tokens, and even the shortest limit reads "
            f"{shortest}: {shortest - n_tokens} more would fit. Paste a longer text to see one cut.",
            icon=":material/check_circle:",
        )
        return
    st.caption(f"{len(text):,} characters · {n_tokens:,} tokens · encoder {escape_markdown(encoder.name)}")
    show_limit_cards(reports, limits_of(encoder))
    show_text_under(text, reports)
    show_vectors(effects)
    show_advice()


def text_picker(documents: Sequence[Document], cut: Cut) -> str:
    """Draw the choice of a text; return the text."""
    by_name = {document.name: document for document in documents}
    name = st.selectbox(
        "Text",
        [PASTED, *by_name],
        key="never-read-text",
        persist_state="session",
        help="Paste a text, or take one of the chosen documents whole.",
    )
    in_one_piece = "This is what the model reads of a text in one piece, without chunks."
    if name in by_name:
        [chunks], limit = split_documents([by_name[name]], cut), cut.text_limit(load_encoder())
        n_cut = len(over_limit(chunks, limit))
        read = f"{n_cut:,} without their end" if n_cut else "each read whole"
        st.info(
            f"{in_one_piece} The app cuts this document into {counted(len(chunks), 'chunk')}, {read}.",
            icon=":material/school:",
        )
        return by_name[name].text
    st.info(
        f"{in_one_piece} The app never does that: added as a document, a text is cut into chunks.",
        icon=":material/school:",
    )
    example = [document.text for document in bundled_documents() if document.name == DEFAULT_DOCUMENT]
    return st.text_area(
        "Your text",
        example[0][: example[0].find("\n\n", DEFAULT_CHARACTERS)] if example else "",
        height=180,
        key="truncation-text",
        persist_state="session",
        placeholder="Paste something longer than a page.",
        help="Read when you leave the box or press Ctrl + Enter. It stays in this session.",
    )


@st.cache_data(show_spinner="Reading it under each limit…", max_entries=64)
def reports_of(text: str, _encoder: Encoder) -> tuple[dict[int, TruncationReport], list[LimitEffect]]:
    """Return what each limit reads of a text, and the effects on its vector, once for a text."""
    limits = list(limits_of(_encoder))
    n_tokens = len(_encoder.tokenizer.ids_batch([text])[0])
    reports = truncation_reports([Chunk("", 0, len(text), text, n_tokens)], _encoder.tokenizer, limits)
    return dict(zip(limits, reports, strict=True)), limit_effects(_encoder, text, limits)


def show_text_under(text: str, reports: Mapping[int, TruncationReport]) -> None:
    """Draw the text with the part that is never read under a chosen limit."""
    st.header("What is read, character by character")
    ends = {limit: each.truncated[0].start for limit, each in reports.items() if each.truncated}
    default = 256 if 256 in reports else max(reports)
    limit = st.segmented_control(
        "Limit (tokens)",
        list(reports),
        default=default,
        required=True,
        help="The special tokens around every text, such as [CLS] and [SEP], count against it.",
    )
    if limit in ends:
        st.caption(
            f"Struck through: the {len(text) - ends[limit]:,} characters after character {ends[limit]:,}. Of "
            "the text in one piece, a search could not find them, and nothing would show it: the vector "
            "looks like any other. Dotted marks are the ends of other limits."
        )
    else:
        st.caption(f"All of it is read under {limit}. Marks are the ends of shorter limits.")
    with st.container(border=True):
        st.html(text_html(truncated_html(text, ends, limit), height=420))


def show_vectors(effects: Sequence[LimitEffect]) -> None:
    """Draw how far the part that is never read would move the vector."""
    st.header("What the rest would have changed")
    limits = [effect.max_tokens for effect in effects]
    st.write(
        "Each bar compares the vector of the part that is read with a vector of more text. A cosine of 1 "
        "means that the rest would change nothing; the lower, the less the vector represents the text."
    )
    by_longest = [effect.cosine_longest for effect in effects]
    by_windows = [effect.cosine_windows for effect in effects]
    rows = zip(limits, by_longest, by_windows, strict=True)
    words = "; ".join(
        f"limit {limit}: {longest:.3f} with reading up to {max(limits)}, {windows:.3f} with the whole text"
        for limit, longest, windows in rows
    )
    parts = (
        (f"reading up to {max(limits)}", GREY, by_longest),
        ("the whole text", GREEN, by_windows),
    )
    figure = go.Figure()
    for name, colour, cosines in parts:
        figure.add_bar(
            x=cosines,
            y=[f"limit {limit}" for limit in limits],
            name=name,
            orientation="h",
            marker_color=colour,
            text=[f"{cosine:.3f}" for cosine in cosines],
            textposition="inside",
            insidetextanchor="end",
            textfont={"size": 14, "color": ink(colour)},
            hovertemplate=f"%{{y}} against {name}: %{{x:.4f}}<extra></extra>",
        )
    figure.update_layout(barmode="group", legend=LEGEND_ABOVE)
    figure.update_yaxes(autorange="reversed")
    figure.update_xaxes(title="cosine (1 = the same direction)")
    show_figure(
        styled(figure, height=240),
        "vector-moved-by-limit",
        f"Cosines. {words}.",
    )
    n_windows = ", ".join(f"{effect.n_windows:,} of {effect.max_tokens}" for effect in effects)
    note = f"This text has {n_windows} tokens."
    if any(effect.n_embedded < effect.n_windows for effect in effects):
        some = ", ".join(str(effect.n_embedded) for effect in effects)
        note += f" It is so long that the average is over {some} of them, spread evenly."
    st.caption(
        f"Reading up to {max(limits)}: the same text under the longest limit there is. The whole text: cut "
        "into windows that fit the limit, each embedded, and their vectors averaged, each by its tokens. "
        f"{note}"
    )


def show_advice() -> None:
    """Draw remedies."""
    with st.expander("What to do about it", icon=":material/lightbulb:"):
        st.markdown(
            "- **Cut documents into chunks that fit the limit**, as this app does. Then every character is "
            "in some vector. It warns of chunks longer than the limit.\n"
            "- **Count with the model's own tokenizer**, not in words or characters: names, numbers, code "
            "and other languages cost several times as many tokens.\n"
            "- **Raising the limit is no cure.** Beyond the length of its training (128 tokens for the "
            "default one) a model reads more than it learnt to, and one vector represents more subjects. "
            "Measure before you choose.\n"
            "- **Averaging windows is no cure either**: the mean represents the whole text, but no single "
            "sentence of it. Keep one vector for each chunk."
        )


def truncated_html(text: str, ends: Mapping[int, int], chosen: int) -> str:
    """Return a text, escaped, around where the ``chosen`` of the limits stops; the rest is struck out."""
    stop = ends[chosen]
    start = max(0, stop - BEFORE)
    if blank := re.search(r"\s", text[start:stop]) if start else None:
        start += blank.end()  # at a word
    end = min(len(text), stop + AFTER)
    borders = {start, end, *(place for place in ends.values() if start <= place < end)}
    note = f'<em style="{FAINT}"> [… {{}}] </em>'  # of the app, set apart from the text
    html = note.format(f"{start:,} characters before, which are read") if start else ""
    for left, right in pairwise(sorted(borders)):
        for limit in (limit for limit, place in ends.items() if place == left):
            words = f"✂ {limit}: reading stops here" if limit == chosen else f"{limit}"
            style = DIVIDER.format(line="solid" if limit == chosen else "dotted")
            html += f'<span style="{style}">{words}</span>'
        part = escape(text[left:right])
        html += part if right <= stop else f'<del style="{STRUCK}">{part}</del>'
    return html + (note.format(f"{len(text) - end:,} characters more, never read") if end < len(text) else "")


def show_limit_cards(
    reports: Mapping[int, TruncationReport], origins: Mapping[int, str], in_use: int | None = None
) -> None:
    """Draw what each limit leaves unread, side by side, with where each limit comes from."""
    for column, (limit, report) in zip(st.columns(len(reports)), reports.items(), strict=True):
        chunks = f"{len(report.truncated):,} of {counted(report.n_chunks, 'chunk')} cut"
        tokens = f"{report.tokens_truncated:,} of {report.n_tokens:,} tokens never read"
        with column.container(border=True, height="stretch"):
            st.markdown(f"**Limit {limit}**" + (" · in use" if limit == in_use else ""))
            st.caption(origins[limit])
            st.metric(
                "Text never read",
                f"{report.share_unread:.1%}" if report.truncated else "none",
                help="Share of the characters that are in no vector.",
            )
            st.write(chunks if report.n_chunks > 1 else tokens)
