"""Pooling compared: what each way from token vectors to one vector does to a text, a pair, a search."""

from collections.abc import Callable, Sequence

import streamlit as st

from engine import Encoder
from engine.documents.document import Document
from engine.errors import GlassboxError
from ui.answer import escape_markdown
from ui.chunk_settings import Cut, chunk_settings
from ui.corpus import document_picker
from ui.frame import require_frame
from ui.models import load_encoder
from ui.pooled_chunks import PooledChunks, chunks_and_encoder, pooled_chunks
from ui.pooling_explained import show_explained
from ui.pooling_geometry import show_geometry
from ui.pooling_mistakes import show_mistakes
from ui.pooling_pair import show_pair
from ui.pooling_search import show_search
from ui.pooling_sentences import show_sentences
from ui.pooling_sts import show_sts
from ui.pooling_tokens import show_tokens


def show_two_texts(encoder: Encoder, max_tokens: int) -> None:
    """Draw a pair of texts under every strategy, and what their similarity is made of."""
    if pair := show_pair(encoder, max_tokens):
        show_explained(encoder, max_tokens, *pair, key="pair")


def show_question(pooled: PooledChunks) -> None:
    """Draw a search under every strategy, and what the similarity of one passage is made of."""
    if found := show_search(pooled):
        show_explained(pooled.encoder, pooled.max_tokens, *found, key="passage")


OF_TEXTS: dict[str, Callable[[Encoder, int], None]] = {
    "Sentences": show_sentences,
    "A pair explained": show_two_texts,
    "Tokens": show_tokens,
    "Scored pairs": show_sts,
}
OF_DOCUMENTS: dict[str, Callable[[PooledChunks], None]] = {
    "Your question": show_question,
    "Mistakes": show_mistakes,
    "Geometry": show_geometry,
}
VIEWS = ("Sentences", "A pair explained", "Your question", "Tokens", "Mistakes", "Scored pairs", "Geometry")


def show_view(view: str, documents: Sequence[Document], encoder: Encoder, cut: Cut) -> None:
    """Draw one view; those of texts know words' weights by the documents, where there are any."""
    if view in OF_TEXTS:
        weighted = chunks_and_encoder(documents, encoder, cut)[1] if documents else encoder
        OF_TEXTS[view](weighted, cut.max_tokens)
    elif documents:
        OF_DOCUMENTS[view](pooled_chunks(documents, encoder, cut))
    else:
        st.info("No document is chosen. Add one or pick some under “Search in” in the sidebar.")


def main() -> None:
    """Draw the page."""
    require_frame("pages/pooling.py")
    st.title("Pooling compared")
    st.write(
        "A model gives every token a vector; a search needs one for the whole text. See what each way to get "
        "there does to sentences, to a question, and to what is found, and what a similarity is made of."
    )
    try:
        encoder = load_encoder()
        with st.sidebar:
            documents = document_picker()
            with st.expander("Chunks", icon=":material/content_cut:"):
                cut = chunk_settings(encoder)
        for tab, view in zip(st.tabs(list(VIEWS), on_change="rerun", key="pooling-tab"), VIEWS, strict=True):
            if tab.open:
                with tab:
                    show_view(view, documents, encoder, cut)
    except GlassboxError as error:
        st.error(escape_markdown(str(error)), icon=":material/error:")


main()
