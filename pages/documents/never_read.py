"""The tab of text that the encoder never reads: of the chunks, or of one text without chunks."""

from collections.abc import Mapping, Sequence

import numpy as np
import streamlit as st

from engine import Encoder
from engine.documents.document import Document
from engine.inspection.model.truncation import LimitReport, truncation_report
from engine.retrieval.embedding_model import Model
from engine.wording import counted
from pages.documents.limit_figures import cosine_bars, cut_html, token_bars
from pages.documents.unread_chunks import show_budget
from ui.chunk_settings import Cut
from ui.corpus import split_documents
from ui.documents import NoDocumentError, bundled_documents
from ui.export import show_figure
from ui.given_vectors import given_of, reason_unavailable
from ui.models import limits_of, load_encoder
from ui.text import escape_markdown, text_html

VIEWS = ("Your chunks", "One whole text")
OWN_TEXT = "A text of your own"
DEFAULT_DOCUMENT, DEFAULT_CHARACTERS = "inside_the_pipeline.md", 3200
MAX_CHARACTERS = 2_000_000
BEFORE, AFTER = 400, 2400  # characters shown around a cut


def default_text() -> str:
    """Return the beginning of a bundled document, up to the end of a paragraph."""
    texts = [document.text for document in bundled_documents() if document.name == DEFAULT_DOCUMENT]
    return texts[0][: texts[0].find("\n\n", DEFAULT_CHARACTERS)] if texts else ""


def text_picker(documents: Sequence[Document], cut: Cut) -> str:
    """Draw the choice of a text; return the text."""
    by_name = {document.name: document for document in documents}
    name = st.selectbox(
        "Text",
        [OWN_TEXT, *by_name],
        key="never-read-text",
        persist_state="session",
        help="Paste a text, or take one of the chosen documents whole.",
    )
    in_one_piece = "This is what the model reads of a text in one piece, without chunks."
    if name in by_name:
        st.info(f"{in_one_piece} {chunks_words(by_name[name], cut)}", icon=":material/school:")
        return by_name[name].text
    st.info(
        f"{in_one_piece} The app never does that: added as a document, a text is cut into chunks.",
        icon=":material/school:",
    )
    return st.text_area(
        "Your text",
        default_text(),
        height=180,
        key="truncation-text",
        persist_state="session",
        placeholder="Paste something longer than a page.",
        help="Read when you leave the box or press Ctrl + Enter. It stays in this session.",
    )


def chunks_words(document: Document, cut: Cut) -> str:
    """Say how many chunks the app makes of a document, and how many of them are not read whole."""
    [chunks], limit = split_documents([document], cut), cut.text_limit(load_encoder())
    n_cut = sum(chunk.n_tokens > limit for chunk in chunks)
    read = f"{n_cut:,} of which without their end" if n_cut else "each of which is read whole"
    return f"The app cuts this document into {counted(len(chunks), 'chunk')}, {read}."


@st.cache_data(show_spinner="Reading it under each limit…", max_entries=64)
def reports_of(text: str, _encoder: Encoder) -> list[LimitReport]:
    """Compute the effect of each limit on a text, once."""
    return truncation_report(_encoder, text, list(limits_of(_encoder)))


def show_cards(text: str, reports: Sequence[LimitReport], origins: Mapping[int, str]) -> None:
    """Draw the tokens read and lost under each limit, side by side."""
    for column, report in zip(st.columns(len(reports)), reports, strict=True):
        lost = len(text) - report.read_end if report.tokens_lost else 0
        with column.container(border=True, height="stretch"):
            st.markdown(f"**Limit {report.max_tokens}**")
            st.caption(origins[report.max_tokens])
            st.metric(
                "Characters not read",
                f"{lost:,} ({lost / len(text):.0%})" if lost else "none",
                help="From the end of the last token that is read to the end of the text.",
            )
            st.write(f"{report.tokens_read:,} tokens read, {report.tokens_lost:,} lost")


def show_text_under(text: str, reports: Sequence[LimitReport]) -> None:
    """Draw the text with the part that is lost under a chosen limit."""
    st.header("What is read, character by character")
    by_limit = {report.max_tokens: report for report in reports}
    default = 256 if 256 in by_limit else max(by_limit)
    limit = st.segmented_control(
        "Limit (tokens)",
        list(by_limit),
        default=default,
        help="The special tokens around every text, such as [CLS] and [SEP], count against it.",
    )
    chosen = by_limit[limit or default]
    if chosen.tokens_lost:
        st.caption(
            f"Struck through: the {len(text) - chosen.read_end:,} characters after character "
            f"{chosen.read_end:,}. Of the text in one piece, a search could not find them, and nothing would "
            "show it: the vector looks like any other. Dotted marks are the ends of other limits."
        )
    else:
        st.caption(f"Nothing is lost under {chosen.max_tokens}. Marks are the ends of shorter limits.")
    with st.container(border=True):
        st.html(text_html(cut_html(text, reports, chosen, BEFORE, AFTER), height=420))


def show_bars(reports: Sequence[LimitReport]) -> None:
    """Draw the tokens read and lost under each limit."""
    counts = {
        "max_tokens": np.array([report.max_tokens for report in reports]),
        "tokens_read": np.array([report.tokens_read for report in reports]),
        "tokens_lost": np.array([report.tokens_lost for report in reports]),
    }
    words = "; ".join(
        f"limit {report.max_tokens}: {report.tokens_read} read, {report.tokens_lost} lost"
        for report in reports
    )
    show_figure(token_bars(reports), "tokens-read-and-lost", counts, f"Tokens read and lost. {words}.")


def show_vectors(reports: Sequence[LimitReport]) -> None:
    """Draw how far the lost part would move the vector."""
    st.header("What the lost part would have changed")
    longest = max(report.max_tokens for report in reports)
    st.write(
        "Each bar compares the vector of the part that is read with a vector of more text. A cosine of 1 "
        "means that the lost part would change nothing; the lower, the less the vector represents the text."
    )
    cosines = {
        "max_tokens": np.array([report.max_tokens for report in reports]),
        "cosine_longest": np.array([report.cosine_longest for report in reports]),
        "cosine_split": np.array([report.cosine_split for report in reports]),
    }
    words = "; ".join(
        f"limit {report.max_tokens}: {report.cosine_longest:.3f} with reading up to {longest}, "
        f"{report.cosine_split:.3f} with the whole text"
        for report in reports
    )
    show_figure(cosine_bars(reports), "vector-moved-by-limit", cosines, f"Cosines. {words}.")
    st.caption(
        f"Reading up to {longest}: the same text under the longest limit there is. The whole text: cut into "
        "windows that fit the limit, each embedded, and their vectors averaged, each by its tokens. "
        + window_note(reports)
    )


def window_note(reports: Sequence[LimitReport]) -> str:
    """Say how many windows there are, and how many were embedded if not all."""
    windows = ", ".join(f"{report.n_windows:,} of {report.max_tokens}" for report in reports)
    note = f"This text has {windows} tokens."
    if any(report.n_embedded < report.n_windows for report in reports):
        some = ", ".join(str(report.n_embedded) for report in reports)
        note += f" It is so long that the average is over {some} of them, spread evenly."
    return note


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


def show_never_read(documents: Sequence[Document], model: Model, cut: Cut) -> None:
    """Draw the text that the encoder never reads, of the chunks or of one whole text."""
    if (given := given_of(documents)) is not None:
        raise NoDocumentError(
            reason_unavailable(given, "What is never read is found by reading the documents anew")
        )
    encoder = model.as_encoder
    assert encoder is not None, "the model of documents that the app embeds"
    view = st.segmented_control(
        "Show",
        VIEWS,
        default=VIEWS[0],
        required=True,
        key="never-read-view",
        persist_state="session",
        help="Your chunks, with the settings of the sidebar; or one text given to the model whole.",
    )
    if view == VIEWS[0]:
        show_budget(documents, encoder, cut)
    else:
        show_whole_text(documents, encoder, cut)


def show_whole_text(documents: Sequence[Document], encoder: Encoder, cut: Cut) -> None:
    """Draw the effect of each token limit on one text that is not cut into chunks."""
    text = text_picker(documents, cut)
    if not text.strip():
        st.info("There is no text yet. Paste one above, or pick a document.", icon=":material/notes:")
        return
    if len(text) > MAX_CHARACTERS:
        st.info(f"This text is very long: its first {MAX_CHARACTERS:,} characters are measured.")
        text = text[:MAX_CHARACTERS]
    reports = reports_of(text, encoder)
    shortest = min(report.max_tokens for report in reports)
    n_tokens = reports[0].n_tokens
    if n_tokens <= shortest:
        st.success(
            f"Nothing is lost. This text has {n_tokens} tokens, and even the shortest limit reads "
            f"{shortest}: {shortest - n_tokens} more would fit. Paste a longer text to see one cut.",
            icon=":material/check_circle:",
        )
        return
    st.caption(f"{len(text):,} characters · {n_tokens:,} tokens · encoder {escape_markdown(encoder.name)}")
    show_cards(text, reports, limits_of(encoder))
    show_bars(reports)
    show_text_under(text, reports)
    show_vectors(reports)
    show_advice()
