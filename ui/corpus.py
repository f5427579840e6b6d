"""The documents of a session, and the index over those that are searched."""

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import streamlit as st

from engine import Encoder
from engine.documents.document import Chunk, Document
from engine.documents.loaders import (
    BUNDLED_CORPUS,
    MAX_BYTES,
    SUFFIXES,
    Failure,
    Loaded,
    load_corpus,
    parse_file,
)
from engine.documents.splitters import Splitting, split, split_small_to_big
from engine.documents.token_spans import TokenSpans, measure
from engine.errors import DocumentError
from engine.layers.tracing import Array
from engine.retrieval.background import Background, background_of
from engine.retrieval.index import Index, build_index, join_indexes
from engine.retrieval.retrievers import OF_WORDS
from engine.retrieval.vector_cache import VectorCache, cached_encode
from ui.answer import escape_markdown
from ui.chunk_settings import Cut
from ui.models import load_encoder

PASTED = "pasted text"
# Where the owner of this machine lets the app keep things; by default nothing outlives a session.
WORKSPACES = Path(folder).expanduser() if (folder := os.environ.get("GLASSBOX_WORKSPACES")) else None


@st.cache_data(show_spinner=False)
def bundled_documents() -> list[Document]:
    """Return the documents that come with the app."""
    return load_corpus(BUNDLED_CORPUS)


def bundled_names() -> set[str]:
    """Return the names of the documents that come with the app, which all sessions share."""
    return {document.name for document in bundled_documents()}


def uploads() -> dict[str, tuple[Document, ...]]:
    """Return what the user added in this session: the documents of each file."""
    files: dict[str, tuple[Document, ...]] = st.session_state.setdefault("uploads", {})
    return files


def session_files() -> dict[str, tuple[Document, ...]]:
    """Return the documents of every file there is, the bundled ones first."""
    return {document.name: (document,) for document in bundled_documents()} | uploads()


def session_documents() -> list[Document]:
    """Return the bundled documents and those that the user added."""
    return [document for documents in session_files().values() for document in documents]


def chosen_documents() -> list[Document]:
    """Return the documents that are searched: those picked in the sidebar, all before any choice."""
    files = session_files()
    chosen = st.session_state.get("searched", list(files))
    return [document for name in files if name in chosen for document in files[name]]


def document_picker() -> list[Document]:
    """Draw upload and selection; return the documents to search, in order."""
    upload_box()
    files, state = session_files(), st.session_state
    # What the browser sends before it has drawn a new file knows nothing of it: a new one is picked again
    # until it has come back picked.
    searched = [name for name in dict.fromkeys(state.get("searched", files)) if name in files]
    new = dict.fromkeys(state.get("new_files", ()))
    state["new_files"] = [name for name in new if name in files and name not in searched]
    if "searched" not in state or state["new_files"]:
        state["searched"] = [*searched, *state["new_files"]]
    st.multiselect(
        "Search in",
        list(files),
        key="searched",
        persist_state="session",
        help="The first four come with the app; data/README.md says where they are from.",
    )
    return chosen_documents()


def upload_box() -> None:
    """Draw the place to drop files; read new ones, and say what could not be read."""
    state = st.session_state
    key = f"uploader-{state.setdefault('uploader', 0)}"
    st.file_uploader(
        "Add documents",
        type=[suffix.lstrip(".") for suffix in SUFFIXES],
        accept_multiple_files=True,
        key=key,
        max_upload_size=MAX_BYTES // 1024**2,
        on_change=take_uploads,
        args=(key,),
        help=f"Text, Markdown, HTML, PDF, Word, CSV, JSONL, notebooks, source code, or a .zip of them, up to "
        f"{MAX_BYTES // 1024**2} MB a file. They stay in this session and are gone when you close it, unless "
        "you save them on the page “Documents and chunks”.",
    )
    if state.get("unread"):
        read_uploads()
    show_failures(state.get("upload_failures", []))
    if skipped := state.get("upload_skipped", []):
        st.info(f"{len(skipped):,} files of kinds that are not read were passed over: {listed(skipped)}.")


def take_uploads(key: str) -> None:
    """Take uploaded files to be read in the next run of the page, and empty the uploader."""
    state = st.session_state
    state["unread"] = [*state.get("unread", ()), *((file.name, file.getvalue()) for file in state[key])]
    state["upload_failures"], state["upload_skipped"] = [], []
    state["uploader"] += 1  # a fresh, empty uploader


def read_uploads() -> None:
    """Read files into the session under a progress bar; one that cannot be read never stops the others.

    The run of the page may end wherever it draws, and the next one goes on with what is unread then.
    """
    state = st.session_state
    bar, n_files = st.progress(0.0), len(state["unread"])
    while state["unread"]:
        (name, content), number = state["unread"][0], n_files - len(state["unread"])
        bar.progress(number / n_files, f"Reading {name} ({number + 1} of {n_files})")
        loaded = parse_file(name, content, state.get("csv_column") or None)
        try:
            add_file(name, loaded)
            state["upload_failures"] += loaded.failures
            state["upload_skipped"] += loaded.skipped
        except DocumentError as error:
            state["upload_failures"] += [Failure(name, str(error))]
        state["unread"] = state["unread"][1:]
    bar.empty()


def listed(names: Sequence[str], most: int = 3) -> str:
    """``["a", "b", "c", "d"] -> "a, b, c and 1 more"``, so that no mark in a name is Markdown's."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return escape_markdown(", ".join(names[:most])) + more


def add_file(name: str, loaded: Loaded) -> None:
    """Take a file's documents into the session, to be searched, in the place of one of the same name."""
    check_own(name)
    if loaded.documents:
        st.session_state["new_files"] = [*st.session_state.get("new_files", ()), name]
        uploads()[name] = loaded.documents


def check_own(name: str) -> None:
    """Raise `DocumentError` for a name that a bundled document has: what is of all sessions is told by it."""
    if name in bundled_names():
        raise DocumentError(f"{name} has the name of a bundled document: rename it")


def show_failures(failures: Sequence[Failure]) -> None:
    """List what could not be read, and why."""
    for failure in failures[:3]:
        st.error(escape_markdown(failure.reason), icon=":material/error:")
    if len(failures) > 3:
        with st.expander(f"{len(failures) - 3} more could not be read"):
            for failure in failures[3:]:
                st.text(failure.reason)


def split_documents(documents: Iterable[Document], cut: Cut) -> list[list[Chunk]]:
    """Cut documents, each once for a setting; what comes with the app is cut for all sessions."""
    bundled = bundled_names()
    return [
        (shared_chunks if document.name in bundled else session_chunks)(
            document, cut.splitting, cut.parent_tokens
        )
        for document in documents
    ]


def chunks_of(document: Document, splitting: Splitting, parent_tokens: int) -> list[Chunk]:
    """Cut one document; its text is measured once, whatever the settings."""
    encoder = load_encoder()
    tokens = tokens_of(document.text)
    cache = shared_vectors() if document.name in bundled_names() else session_vectors()

    def embed(sentences: Sequence[str]) -> Array:
        return cached_encode(sentences, encoder, "mean", None, cache)

    if parent_tokens:
        return split_small_to_big(document, encoder.tokenizer, splitting, parent_tokens, tokens, embed)
    return split(document, encoder.tokenizer, splitting, embed, tokens)


shared_chunks = st.cache_resource(max_entries=256, show_spinner=False)(chunks_of)
session_chunks = st.cache_resource(max_entries=4096, show_spinner=False, scope="session")(chunks_of)


@st.cache_resource(max_entries=2048, show_spinner=False, scope="session")
def tokens_of(text: str) -> TokenSpans:
    """Find the tokens of a text, once."""
    return measure(text, load_encoder().tokenizer)


@st.cache_resource(show_spinner=False)
def shared_vectors() -> VectorCache:
    """Return the vectors of what comes with the app, which all sessions share."""
    return VectorCache()


@st.cache_resource(show_spinner=False)
def kept_vectors(folder: Path) -> VectorCache:
    """Return the vectors that are kept on this machine, those of all sessions."""
    with suppress(OSError):  # the cache says so itself, and goes on in memory
        folder.mkdir(parents=True, exist_ok=True)
    return VectorCache(folder / "vectors.sqlite3")


def session_vectors() -> VectorCache:
    """Return the vectors of the user's own documents, kept where the machine's owner lets the app."""
    if WORKSPACES is not None:
        return kept_vectors(WORKSPACES)
    cache: VectorCache = st.session_state.setdefault("vectors", VectorCache())
    return cache


@st.cache_resource(max_entries=3, show_spinner=False, scope="session")
def index_documents(
    documents: Sequence[Document], _encoder: Encoder, cut: Cut, pooling: str = "mean"
) -> Index:
    """Index documents; no chunk is embedded twice.

    The vectors of the bundled ones are shared by all sessions, those of a user's own stay in the user's.
    """
    bar = st.progress(0.0, "Cutting the documents…")
    bundled = bundled_names()
    shared = [document for document in documents if document.name in bundled]
    own = [document for document in documents if document.name not in bundled]
    parts = []
    try:
        pieces = [[c for chunks in split_documents(part, cut) for c in chunks] for part in (shared, own)]
        if pooling == "idf":  # words are weighed by all documents, so not by either part alone
            _encoder = _encoder.with_idf([chunk.text for chunks in pieces for chunk in chunks])
        for cache, chunks in zip((shared_vectors(), session_vectors()), pieces, strict=True):
            if not chunks:
                continue

            def show(done: int, total: int) -> None:
                bar.progress(done / total, f"Embedding: {done:,} of {total:,} chunks")

            parts.append(build_index(chunks, _encoder, pooling, cut.max_tokens, show, cache))
    finally:
        bar.empty()
    if notice := session_vectors().notice:
        st.warning(escape_markdown(notice), icon=":material/database_off:")
    if not parts:
        raise DocumentError("the chosen documents hold no text to search: choose others")
    return join_indexes(parts)


def ready(index: Index, retriever: str) -> None:
    """Have what a retriever needs of all chunks made before the first question waits for it."""
    if retriever in OF_WORDS:
        with st.spinner(f"Indexing the words of {len(index.chunks):,} chunks…", show_time=True):
            _ = index.words  # made when it is first read, and kept by the index


@st.cache_resource(max_entries=3, show_spinner="Asking these documents unrelated questions…", scope="session")
def background_of_documents(
    documents: Sequence[Document], _encoder: Encoder, cut: Cut, pooling: str = "mean"
) -> Background:
    """Return what unrelated questions score in the index of documents."""
    return background_of(index_documents(documents, _encoder, cut, pooling), _encoder)
