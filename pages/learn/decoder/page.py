"""A decoder trained from scratch on the chosen documents."""

import streamlit as st

from pages.learn.decoder.training import show_decoder_training
from ui.documents import document_picker

with st.sidebar:
    documents = document_picker()
show_decoder_training(documents)
