"""Documents and chunks: every cut, and every character that a model would never read, before indexing."""

import streamlit as st

from engine.errors import GlassboxError
from ui.answer import escape_markdown
from ui.chunk_settings import chunk_settings
from ui.corpus import document_picker, split_documents
from ui.documents_budget import show_budget
from ui.documents_chunks import show_chunks
from ui.documents_files import show_files
from ui.documents_keep import show_keep
from ui.documents_late import show_late
from ui.documents_search import show_corpus_health, show_corpus_map
from ui.frame import require_frame
from ui.models import load_encoder

TABS = ("Files", "Chunks", "Token budget", "Late chunking", "Map", "Health", "Keep")


def main() -> None:
    """Draw the page."""
    require_frame("pages/documents.py")
    st.title("Documents and chunks")
    st.write(
        "See every cut before it is made: what each file gives, where its chunks begin and end, and the text "
        "that a model would never read."
    )
    try:
        encoder = load_encoder()
        with st.sidebar:
            documents = document_picker()
            with st.expander("Chunks", icon=":material/content_cut:", expanded=True):
                cut = chunk_settings(encoder)
        files, chunks, budget, late, where, health, keep = st.tabs(
            TABS, on_change="rerun", key="documents-tab"
        )
        if files.open:
            with files:
                show_files(documents, split_documents(documents, cut), cut.max_tokens)
        if keep.open:
            with keep:
                show_keep(encoder, cut)
        if not documents and not (files.open or keep.open):
            st.info("No document is chosen. Add one or pick some under “Search in” in the sidebar.")
            return
        if chunks.open:
            with chunks:
                show_chunks(documents, encoder, cut)
        if budget.open:
            with budget:
                show_budget(documents, encoder, cut)
        if late.open:
            with late:
                show_late(documents, encoder, cut)
        if where.open:
            with where:
                show_corpus_map(documents, encoder, cut)
        if health.open:
            with health:
                show_corpus_health(documents, encoder, cut)
    except GlassboxError as error:
        st.error(escape_markdown(str(error)), icon=":material/error:")


main()
