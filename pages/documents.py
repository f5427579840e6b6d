"""Documents and chunks: every cut, and every character that a model would never read, before indexing."""

from collections.abc import Callable

import streamlit as st

from engine import Encoder
from engine.documents.document import Document
from engine.errors import GlassboxError
from ui.answer import escape_markdown
from ui.chunk_settings import Cut, chunk_settings
from ui.corpus import document_picker
from ui.documents_budget import show_budget
from ui.documents_chunks import show_chunks
from ui.documents_files import show_files
from ui.documents_keep import show_keep
from ui.documents_late import show_late
from ui.documents_search import show_corpus_health, show_corpus_map
from ui.frame import require_frame
from ui.models import load_encoder

VIEWS: dict[str, Callable[[list[Document], Encoder, Cut], None]] = {
    "Files": show_files,
    "Chunks": show_chunks,
    "Token budget": show_budget,
    "Late chunking": show_late,
    "Map": show_corpus_map,
    "Health": show_corpus_health,
    "Keep": show_keep,
}
WITHOUT_DOCUMENTS = (show_files, show_keep)  # which have something to show all the same


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
        for tab, show in zip(
            st.tabs(list(VIEWS), on_change="rerun", key="documents-tab"), VIEWS.values(), strict=True
        ):
            if not tab.open:
                continue
            with tab:
                if documents or show in WITHOUT_DOCUMENTS:
                    show(documents, encoder, cut)
                else:
                    st.info("No document is chosen. Add one or pick some under “Search in” in the sidebar.")
    except GlassboxError as error:
        st.error(escape_markdown(str(error)), icon=":material/error:")


main()
