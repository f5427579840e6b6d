"""The way from a chunk, wherever it is listed, to the page that shows it inside the model."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import streamlit as st

from engine.documents.document import Chunk
from engine.wording import beginning, shortened
from ui.chunk_settings import cut_in_use
from ui.corpus import all_chunks
from ui.current import set_passage
from ui.documents import chosen_documents
from ui.models import load_encoder
from ui.tables import Columns, Rows, show_table
from ui.uploaded_vectors import uploaded_vectors

# The ways to choose what the page reads.
TYPED, CHUNK, PAIR = "Type a text", "Take a chunk of the documents", "Two texts as a pair"


def show_look_inside(chunk: Chunk, key: str) -> None:
    """Draw the button that opens a chunk inside the model, unless uploaded vectors are searched."""
    if uploaded_vectors(chosen_documents()) is not None or not st.button(
        "Look inside this chunk",
        key=f"look-inside-{key}",
        icon=":material/visibility:",
        type="tertiary",
        help="Every tensor of this chunk's way through the encoder, and the attention between its tokens.",
    ):
        return
    own = [document for document in chosen_documents() if document.name == chunk.document]
    places = [(each.start, each.end) for each in all_chunks(own, cut_in_use(load_encoder()))]
    state = st.session_state
    state["inside-model"] = "encoder"
    set_passage(chunk.document, chunk.start, chunk.end)
    if (chunk.start, chunk.end) in places:
        state["source-encoder"] = CHUNK
    else:  # documents are cut otherwise now
        state["source-encoder"], state["inside-text"] = TYPED, chunk.text
    st.switch_page("pages/inside/chunk/page.py")


def chunk_table(
    chunks: Sequence[Chunk],
    rows: Sequence[Mapping[str, Any]],
    key: str,
    alt: str,
    column_config: Mapping[str, Any],
    draw: Callable[[Rows, str, Columns], None] = show_table,
) -> None:
    """Draw a table of chunks, a row each, and the way from one of them to the inside of the model."""
    if not chunks:
        return
    draw(rows, alt, column_config)
    if uploaded_vectors(chosen_documents()) is not None:  # their model's inside is not here
        return
    numbers = range(len(chunks))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        chosen = 0
        if len(chunks) > 1:
            chosen = st.selectbox(
                "Chunk of the table",
                numbers,
                format_func=lambda number: (
                    f"{number + 1} · {shortened(chunks[number].document, 24)} · "
                    f"{beginning(chunks[number].text, 48)}"
                ),
                key=f"chunks-{key}",
                width=480,
            )
        show_look_inside(chunks[chosen], key)
