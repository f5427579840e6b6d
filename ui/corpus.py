"""The documents of a session, and the index over those that are searched."""

from collections.abc import Sequence

import streamlit as st

from engine import Encoder
from engine.documents.document import Document
from engine.documents.loaders import BUNDLED_CORPUS, MAX_BYTES, SUFFIXES, load_corpus, parse_document
from engine.documents.splitters import split_by_tokens
from engine.errors import DocumentError
from engine.retrieval.index import Index, build_index, join_indexes


@st.cache_data(show_spinner=False)
def bundled_documents() -> list[Document]:
    """Return the documents that come with the app."""
    return load_corpus(BUNDLED_CORPUS)


def session_documents() -> list[Document]:
    """Return the bundled documents and those that the user added."""
    uploads: dict[str, Document] = st.session_state.setdefault("uploads", {})
    return [*bundled_documents(), *uploads.values()]


def document_picker() -> list[Document]:
    """Draw upload and selection; return the documents to search, in order."""
    state = st.session_state
    number = state.setdefault("uploader", 0)
    st.file_uploader(
        "Add documents",
        type=[suffix.lstrip(".") for suffix in SUFFIXES],
        accept_multiple_files=True,
        key=f"uploader-{number}",
        on_change=take_uploads,
        args=(f"uploader-{number}",),
        help=f"Text or Markdown in UTF-8, up to {MAX_BYTES // 1024**2} MB a file. They stay in this "
        "session and are gone when you close it.",
    )
    for message in state.get("upload_errors", []):
        st.error(message, icon=":material/error:")
    documents = {document.name: document for document in session_documents()}
    if "searched" not in state:
        state["searched"] = list(documents)
    chosen = st.multiselect(
        "Search in",
        list(documents),
        key="searched",
        persist_state="session",
        help="The first four come with the app; data/README.md says where they are from.",
    )
    return [documents[name] for name in documents if name in chosen]


def take_uploads(key: str) -> None:
    """Read new uploads into the session; a file that cannot be read leaves the others as they are."""
    state = st.session_state
    bundled = {document.name for document in bundled_documents()}
    errors = []
    for file in state[key]:
        try:
            if file.name in bundled:
                raise DocumentError(f"{file.name} has the name of a bundled document: rename it")
            state["uploads"][file.name] = parse_document(file.name, file.getvalue())
            if file.name not in state["searched"]:
                state["searched"] = [*state["searched"], file.name]
        except DocumentError as error:
            errors.append(str(error))
    state["upload_errors"] = errors
    state["uploader"] += 1  # a fresh, empty uploader


def index_documents(
    documents: Sequence[Document], encoder: Encoder, chunk_tokens: int, overlap: int, pooling: str
) -> Index:
    """Index documents; each is split and embedded once for a setting.

    The bundled ones are shared by all sessions, a user's own stay in the user's session.
    """
    bundled = {document.name for document in bundled_documents()}
    parts = []
    for document in documents:
        index = shared_index if document.name in bundled else session_index
        parts.append(index(document, encoder, chunk_tokens, overlap, pooling))
    return join_indexes(parts)


def embed_document(
    document: Document, _encoder: Encoder, chunk_tokens: int, overlap: int, pooling: str
) -> Index:
    """Split and embed one document under a progress bar; the one place that does."""
    bar = st.progress(0.0, f"Embedding {document.name}…")

    def show(done: int, total: int) -> None:
        bar.progress(done / total, f"Embedding {document.name}: {done} of {total} chunks")

    try:
        chunks = split_by_tokens(document, _encoder.tokenizer, chunk_tokens, overlap)
        return build_index(chunks, _encoder, pooling, on_progress=show)
    finally:
        bar.empty()


shared_index = st.cache_resource(max_entries=24, show_spinner=False)(embed_document)
session_index = st.cache_resource(max_entries=24, show_spinner=False, scope="session")(embed_document)
