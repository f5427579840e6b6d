"""Documents and chunks: every cut, and every character that the model would never read."""

from collections.abc import Callable

import streamlit as st

from engine.documents.document import Document
from engine.retrieval.embedding_model import Model
from pages.documents.chunk_map import show_corpus_map
from pages.documents.chunks import show_chunks
from pages.documents.files import show_files
from pages.documents.health import show_corpus_health
from pages.documents.index_kinds import show_index
from pages.documents.never_read import show_never_read
from ui.chunk_settings import Cut
from ui.documents import NoDocumentError, document_picker
from ui.models import load_encoder
from ui.settings import cut_settings
from ui.settings_card import show_settings_card
from ui.uploaded_vectors import search_model

VIEWS: dict[str, Callable[[list[Document], Model, Cut], None]] = {
    "Files": show_files,
    "Chunks": show_chunks,
    "Never read": show_never_read,
    "Map": show_corpus_map,
    "Health": show_corpus_health,
    "Index": show_index,
}


def main() -> None:
    """Draw the page."""
    encoder = load_encoder()
    with st.sidebar:
        documents = document_picker()
        show_settings_card(documents, encoder)
        with st.expander("Chunks", icon=":material/content_cut:", expanded=True):
            cut = cut_settings(encoder, documents)
    tabs = st.tabs(list(VIEWS), on_change="rerun", key="documents-tab")
    for tab, show in zip(tabs, VIEWS.values(), strict=True):
        if tab.open:
            with tab:
                if not documents and show is not show_files:
                    raise NoDocumentError
                show(documents, search_model(documents), cut)


main()
