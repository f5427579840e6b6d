"""Silent truncation made loud: what a model never reads of a text, and what that changes."""

from collections.abc import Mapping, Sequence

import numpy as np
import streamlit as st

from engine import Encoder
from engine.errors import GlassboxError
from engine.inspection.truncation import LimitReport, truncation_report
from ui.corpus import bundled_documents, session_documents
from ui.export import show_figure
from ui.frame import require_frame
from ui.limits import cosine_bars, cut_html, limits_of, token_bars
from ui.models import load_encoder
from ui.text import text_html

OWN_TEXT = "A text of your own"
DEFAULT_DOCUMENT, DEFAULT_CHARACTERS = "inside_the_pipeline.md", 3200
MAX_CHARACTERS = 2_000_000
BEFORE, AFTER = 400, 2400  # characters shown around a cut


def default_text() -> str:
    """Return the beginning of a bundled document, up to the end of a paragraph."""
    texts = [document.text for document in bundled_documents() if document.name == DEFAULT_DOCUMENT]
    return texts[0][: texts[0].find("\n\n", DEFAULT_CHARACTERS)] if texts else ""


def text_picker() -> str:
    """Draw the choice of a text; return it."""
    documents = {document.name: document for document in session_documents()}
    name = st.selectbox(
        "Text",
        [OWN_TEXT, *documents],
        help="Paste a text, or take a whole document: those that come with the app, and those that you "
        "added on the first page.",
    )
    if name in documents:
        return documents[name].text
    return st.text_area(
        "Your text",
        default_text(),
        height=180,
        key="truncation-text",
        persist_state="session",
        max_chars=MAX_CHARACTERS,
        placeholder="Paste something longer than a page.",
        help="Read when you leave the box or press Ctrl + Enter. It stays in this session.",
    )


@st.cache_data(show_spinner="Reading it under each limit…", max_entries=64)
def reports_of(text: str, _encoder: Encoder) -> list[LimitReport]:
    """Measure a text once."""
    return truncation_report(_encoder, text, list(limits_of(_encoder)))


def show_cards(text: str, reports: Sequence[LimitReport], whose: Mapping[int, str]) -> None:
    """Draw what each limit reads and loses, side by side."""
    for column, report in zip(st.columns(len(reports)), reports, strict=True):
        lost = len(text) - report.read_end if report.tokens_lost else 0
        with column.container(border=True, height="stretch"):
            st.markdown(f"**Limit {report.max_tokens}**")
            st.caption(whose[report.max_tokens])
            st.metric(
                "Characters never read",
                f"{lost:,} ({lost / len(text):.0%})" if lost else "none",
                help="From the end of the last token that is read to the end of the text.",
            )
            st.write(f"{report.tokens_read:,} tokens read, {report.tokens_lost:,} lost")


def show_text_under(text: str, reports: Sequence[LimitReport]) -> None:
    """Draw the text with what is lost under a limit of the user's choice."""
    st.subheader("What is read, character by character")
    by_limit = {report.max_tokens: report for report in reports}
    default = 256 if 256 in by_limit else max(by_limit)
    limit = st.segmented_control(
        "Limit (tokens)",
        list(by_limit),
        default=default,
        help="The two special tokens that frame every text, [CLS] and [SEP], count against it.",
    )
    chosen = by_limit[limit or default]
    if chosen.tokens_lost:
        st.caption(
            f"Struck through: the {len(text) - chosen.read_end:,} characters after character "
            f"{chosen.read_end:,}. A search cannot find them, and nothing says so: the vector looks like any "
            "other. Dotted marks are the ends of other limits."
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
    """Draw how far the lost part would have moved the vector."""
    st.subheader("What the lost part would have changed")
    longest = max(report.max_tokens for report in reports)
    st.write(
        "Each bar compares the vector of what is read with one that knows more. A cosine of 1 means that the "
        "lost part would change nothing; the lower, the less the vector speaks for the text."
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
    """Say how many windows there are, and where only some of them were embedded."""
    windows = ", ".join(f"{report.n_windows:,} of {report.max_tokens}" for report in reports)
    note = f"This text has {windows} tokens."
    if any(report.n_embedded < report.n_windows for report in reports):
        some = ", ".join(str(report.n_embedded) for report in reports)
        note += f" It is so long that the average is over {some} of them, spread evenly."
    return note


def show_advice() -> None:
    """Say what to do about it."""
    with st.expander("What to do about it", icon=":material/lightbulb:"):
        st.markdown(
            "- **Cut documents into chunks that fit the limit**, and let them overlap a little. Then every "
            "character is in some vector. The page *Ask your documents* does so, and warns where a chunk is "
            "longer than the model reads.\n"
            "- **Count with the model's own tokenizer**, not in words or characters: names, numbers, code "
            "and other languages cost several times as many tokens.\n"
            "- **Raising the limit is no cure.** Beyond 128 tokens the model reads more than it was trained "
            "to, and one vector has to speak for more subjects. Measure before you choose.\n"
            "- **Averaging windows is no cure either**: it speaks for the whole text, but no longer for any "
            "sentence of it. Keep one vector a chunk."
        )


def main() -> None:
    """Draw the page."""
    require_frame("pages/truncation.py")
    st.title("What is never read")
    st.write(
        "A model reads so many tokens and drops the rest without a word. Here you see which characters of a "
        "text are lost under each limit of one model, and how much its vector owes to them."
    )
    try:
        encoder = load_encoder()
        text = text_picker()
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
        st.caption(f"{len(text):,} characters · {n_tokens:,} tokens · encoder {encoder.name}")
        show_cards(text, reports, limits_of(encoder))
        show_bars(reports)
        show_text_under(text, reports)
        show_vectors(reports)
        show_advice()
    except GlassboxError as error:
        st.error(str(error), icon=":material/error:")


main()
