"""The tab of files: the documents of each, and boxes to paste a text and to remove files."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import streamlit as st
from streamlit.column_config import NumberColumn, TextColumn

from engine.documents.document import Chunk, Document, Failure, document_languages
from engine.documents.language import LANGUAGES
from engine.documents.loaders import parse_limited
from engine.errors import InputError
from engine.retrieval.embedding_model import Model
from engine.retrieval.embedding_spec import NO_LIMIT
from engine.retrieval.language_fit import language_note
from engine.wording import counted, without_directions
from pages.documents.index_folder import show_index_folder
from ui.chunk_settings import Cut
from ui.corpus import split_documents, tokens_of
from ui.documents import add_files, searched_files, show_failures, uploads
from ui.languages import show_language_note
from ui.models import load_encoder
from ui.report import Report
from ui.server_settings import limits
from ui.tables import show_table
from ui.text import escape_markdown
from ui.tokens import AS_ENCODER_COUNTS
from ui.uploaded_vectors import uploaded_vectors, vector_files
from ui.widgets import check_typed, kept

MAX_PASTED = 2_000_000  # characters
PASTED = "pasted text"


def show_files(documents: Sequence[Document], model: Model, cut: Cut) -> None:
    """Draw a table of the documents, a box to paste a text, and a choice of files to remove."""
    if not documents:
        st.info("No document is chosen. Add one in the sidebar, paste a text below, or pick some there.")
    elif (uploaded := uploaded_vectors(documents)) is not None and uploaded.reason_unread:
        st.info(f"{escape_markdown(uploaded.reason_unread)}.")
    else:
        chunks = split_documents(documents, cut)
        limit = cut.text_limit(model)
        show_headline(documents, [chunk for own in chunks for chunk in own], limit)
        show_notes(documents)
        languages = document_languages(documents)
        show_language_note(Report(), language_note(languages.values(), model))
        show_documents(documents, chunks, limit, languages)
        st.caption("Add files in the sidebar, or paste a text here. The other tabs show their chunks.")
    st.text_input(
        "Column of CSV files",
        **kept("csv_column"),
        max_chars=200,
        placeholder="all columns",
        help="Of CSV files added from now on, only the cells of this column become text. If it is empty, "
        "every row becomes text of all its columns.",
    )
    paste_box()
    language_box()
    show_index_folder()
    if own := [*uploads(), *vector_files()]:
        with st.expander("Take documents out of this session", icon=":material/delete:"):
            chosen = st.multiselect("Files", own, key="files-removed", placeholder="None")
            st.button("Take them out", on_click=remove_files, disabled=not chosen)


def show_headline(documents: Sequence[Document], chunks: Sequence[Chunk], limit: int) -> None:
    """Say into how many chunks the documents are cut, and how many are not read whole."""
    cut = sum(chunk.n_tokens > limit for chunk in chunks)
    title = f"{counted(len(documents), 'document')} in {counted(len(chunks), 'chunk')}"
    if cut:
        st.warning(
            f"**{title}: {cut:,} are not read to the end.** They have more than the {limit} tokens that the "
            "encoder reads; the tab “Never read” shows the rest, and remedies.",
            icon=":material/content_cut:",
        )
    elif limit == NO_LIMIT:
        st.info(
            f"**{title}.** How many tokens of a chunk the model reads is not known here.",
            icon=":material/content_cut:",
        )
    elif chunks:
        longest = max(chunk.n_tokens for chunk in chunks)
        st.success(
            f"**{title}, each read whole:** the longest has {longest} of the {limit} tokens that the encoder "
            "reads.",
            icon=":material/check_circle:",
        )


def show_notes(documents: Sequence[Document]) -> None:
    """Say of each document what reading left out of it; of many documents the first, and the rest folded."""
    lines = [
        f"**{escape_markdown(document.name)}**: {escape_markdown(note)}"
        for document in documents
        for note in document.notes
    ]
    if lines:
        st.warning("  \n".join(lines[:5]), icon=":material/rule:")
    if len(lines) > 5:
        with st.expander(f"{counted(len(lines) - 5, 'more note')} on what was read"):
            st.markdown("  \n".join(lines[5:500]))


def show_documents(
    documents: Sequence[Document], chunks: Sequence[Sequence[Chunk]], limit: int, languages: Mapping[str, str]
) -> None:
    """Draw a table with a row for each document; ``languages`` are keys of `LANGUAGES`, by its name."""
    encoder = load_encoder()
    rows = [
        {
            "Document": document.name,
            "Title": document.title,
            "Date": document.date,
            "Tags": ", ".join(document.tags),
            "Language": LANGUAGES[languages[document.name]].label,
            "Pages": max((section.page or 0 for section in document.sections), default=0) or None,
            "Rows": sum(section.is_row for section in document.sections) or None,
            "Headings": len({one.headings for one in document.sections if one.headings and not one.is_row})
            or None,
            "Characters": len(document.text),
            "Tokens": tokens_of(document, encoder).n_tokens,
            "Chunks": len(own),
            "Longest chunk": max((chunk.n_tokens for chunk in own), default=0),
        }
        for document, own in zip(documents, chunks, strict=True)
    ]
    filled = [name for name in rows[0] if any(row[name] for row in rows)]
    rows = [{name: row[name] for name in filled} for row in rows]
    show_table(
        rows,
        f"{counted(len(documents), 'document')} with pages, rows, headings, characters, tokens and chunks",
        {
            "Document": TextColumn(width="medium"),
            "Tokens": NumberColumn(format="localized", help=f"In tokens {AS_ENCODER_COUNTS}."),
            "Characters": NumberColumn(format="localized"),
            "Longest chunk": NumberColumn(
                help=f"In tokens {AS_ENCODER_COUNTS}"
                + ("." if limit == NO_LIMIT else f"; it reads {limit} of a chunk.")
            ),
        },
    )


def paste_box() -> None:
    """Draw a box to paste a text that is in no file."""
    with st.expander("Paste a text", icon=":material/content_paste:"), st.form("paste", border=False):
        st.text_input("Name", PASTED, key="paste-name", max_chars=80)
        st.text_area("Text", key="paste-text", height=160, placeholder="Any text, or Markdown.")
        st.form_submit_button("Add it", on_click=add_pasted)
    show_failures(st.session_state.pop("paste-failures", ()))


def language_box() -> None:
    """Draw the choice of another language for the words of a file than the one that was detected."""
    if not uploads():
        return
    with st.expander("Change the language of a file", icon=":material/translate:"):
        file = st.selectbox("File", [*uploads()], key="language-file")
        chosen = st.selectbox(
            "Language of its words",
            ["", *LANGUAGES],
            ["", *LANGUAGES].index(uploads()[file][0].language),
            key=f"language-of-{file}",
            format_func=lambda name: LANGUAGES[name].label if name else "as detected",
            help="BM25 and the quotes reduce words to their stems by it, and leave out its stop words.",
        )
        changed = tuple(replace(document, language=chosen) for document in uploads()[file])
        if changed != uploads()[file]:
            uploads()[file] = changed
            st.rerun()


def add_pasted() -> None:
    """Add a pasted text to the session; one that cannot be read stays in the box."""
    state = st.session_state
    name = without_directions(state["paste-name"]).strip() or PASTED
    # As Markdown, so that its headings are found.
    file = name if name.endswith((".md", ".txt")) else f"{name}.md"
    failures: list[Failure] = []
    try:
        content = check_typed(state["paste-text"], MAX_PASTED).encode("utf-8", "replace")
        failures += add_files({file: parse_limited(file, content, None, limits().reading)})
    except InputError as error:
        failures.append(Failure(file, str(error)))
    state["paste-failures"] = failures
    if not failures:
        state["paste-text"] = ""


def remove_files() -> None:
    """Remove the picked files from the session."""
    state = st.session_state
    for name in state["files-removed"]:
        uploads().pop(name, None)
        vector_files().pop(name, None)
    state["searched"] = [name for name in searched_files() if name not in state["files-removed"]]
    state["files-removed"] = []
