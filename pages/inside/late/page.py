"""Late chunking beside ordinary chunking."""

import streamlit as st

from pages.inside.late.late_chunking import show_late
from ui.chunk_settings import chunk_settings
from ui.documents import required_documents
from ui.models import load_encoder

encoder = load_encoder()
with st.sidebar:
    documents = required_documents()
    with st.expander("Chunks", icon=":material/content_cut:"):
        cut = chunk_settings(encoder)
show_late(documents, encoder, cut)
