"""Late chunking beside ordinary chunking."""

import streamlit as st

from pages.inside.late.late_chunking import show_late
from ui.chunk_settings import chunk_settings
from ui.documents import NoDocumentError, document_picker
from ui.models import load_encoder
from ui.settings_card import show_settings_card

encoder = load_encoder()
with st.sidebar:
    documents = document_picker()
    show_settings_card(documents, encoder)
    with st.expander("Chunks", icon=":material/content_cut:"):
        cut = chunk_settings(encoder)
if not documents:
    raise NoDocumentError
show_late(documents, encoder, cut)
