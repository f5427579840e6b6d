"""The chunks of documents and the index over them, each computed once and cached."""

import hashlib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import streamlit as st

from engine import Encoder
from engine.documents.document import Chunk, Document
from engine.documents.loaders import BUNDLED_INDEX
from engine.documents.splitters import Splitting, split
from engine.documents.token_spans import TokenSpans, token_spans
from engine.errors import DocumentError
from engine.layers.tracing import Array
from engine.retrieval.bm25 import Postings
from engine.retrieval.embedding_model import Model, embed_query, embedding_spec
from engine.retrieval.embedding_spec import Query
from engine.retrieval.index import Index, index_vectors, join_indexes
from engine.retrieval.index_choice import by_size, choose_index
from engine.retrieval.index_kinds import AUTO, FLAT
from engine.retrieval.relevance import NullScores, null_scores_by, null_scores_of
from engine.retrieval.retrievers import RETRIEVERS
from engine.retrieval.vector_cache import VectorCache, cached_encode
from engine.storage.workspace import import_workspace
from engine.wording import counted
from ui.background import computed, keep
from ui.chunk_settings import Cut
from ui.data_folder import VECTORS, kept_folder
from ui.documents import FINGERPRINTS, OF_DOCUMENTS, are_bundled, bundled_names, session_documents
from ui.embedding import NotEmbeddedError, Wanted, vectors_now, wanted_vectors
from ui.models import load_encoder
from ui.progress import counting
from ui.text import escape_markdown
from ui.uploaded_vectors import uploaded_vectors
from ui.widgets import SHORT_CPU_S

INDEX = "index"  # the name of the job that builds one
CHUNK_S = 3e-4  # CPU-seconds to put a chunk into an index and to measure it
MOST_CUTS = 4  # settings of cutting whose chunks a session keeps
SHOWN_EVERY = 20  # documents, of a bar
BY_WORDS = 32  # chunks that are embedded for a question while vectors are missing


def split_documents(documents: Iterable[Document], cut: Cut) -> list[list[Chunk]]:
    """Cut documents, each once a setting; chunks of bundled ones are shared by all sessions."""
    documents = list(documents)
    if (uploaded := uploaded_vectors(documents)) is not None:
        return [uploaded.chunks[document.name] for document in documents]
    bundled, own, encoder = bundled_names(), session_chunks(cut), load_encoder()
    if missing := [each for each in documents if each.name not in bundled and each.fingerprint not in own]:
        drop_replaced()
        with counting("Cutting", "documents") as show:
            for number, document in enumerate(missing, 1):
                own[document.fingerprint] = chunks_of(document, cut.splitting, cut.parent_tokens, encoder)
                if number % SHOWN_EVERY == 0:
                    show(number, len(missing))
    return [
        shared_chunks(document, cut.splitting, cut.parent_tokens, encoder)
        if document.name in bundled
        else own[document.fingerprint]
        for document in documents
    ]


def session_chunks(cut: Cut) -> dict[str, list[Chunk]]:
    """Return the chunks of the user's own documents, by their fingerprints, of the last few settings."""
    kept = st.session_state.setdefault("chunks", {})
    key = cut.splitting, cut.parent_tokens
    kept[key] = kept.pop(key, {})
    while len(kept) > MOST_CUTS:
        del kept[next(iter(kept))]
    return kept[key]


def drop_replaced() -> None:
    """Drop the chunks and tokens of documents that the session no longer has."""
    present = {document.fingerprint for document in session_documents()}
    for kept in (st.session_state.get("tokens", {}), *st.session_state["chunks"].values()):
        for gone in kept.keys() - present:
            del kept[gone]


def all_chunks(documents: Iterable[Document], cut: Cut) -> list[Chunk]:
    """Cut documents as `split_documents` does; return the chunks of all."""
    return [chunk for chunks in split_documents(documents, cut) for chunk in chunks]


def chunks_of(document: Document, splitting: Splitting, parent_tokens: int, _encoder: Encoder) -> list[Chunk]:
    """Cut one document; the tokens of its text are computed once for all settings."""

    def embed(sentences: Sequence[str]) -> Array:
        return cached_encode(sentences, _encoder, "mean", None, vectors_of([document]))

    return split(document, _encoder.tokenizer, splitting, embed, tokens_of(document, _encoder), parent_tokens)


shared_chunks = st.cache_resource(max_entries=256, show_spinner=False, hash_funcs=FINGERPRINTS)(chunks_of)


def tokens_of(document: Document, encoder: Encoder) -> TokenSpans:
    """Return the token spans of a document's text, computed once."""
    kept = st.session_state.setdefault("tokens", {})
    if document.fingerprint not in kept:
        kept[document.fingerprint] = token_spans(document.text, encoder.tokenizer)
    return kept[document.fingerprint]


@st.cache_resource(show_spinner=False)
def shared_vectors() -> VectorCache:
    """Return the vectors of the bundled documents, which all sessions share."""
    cache = VectorCache()
    index = import_workspace(BUNDLED_INDEX.name, BUNDLED_INDEX.read_bytes()).index
    assert index is not None
    cache.put_many(index.texts, index.vectors, index.spec)
    return cache


@st.cache_resource(show_spinner=False)
def kept_vectors(folder: Path) -> VectorCache:
    """Return the vectors kept in a folder of this machine, for all sessions."""
    with suppress(OSError):  # the cache reports it and continues in memory
        folder.mkdir(parents=True, exist_ok=True)
    return VectorCache(folder / VECTORS)


def session_vectors() -> VectorCache:
    """Return the vectors of the user's own documents, on disk if the app may keep files."""
    if (folder := kept_folder()) is not None:
        return kept_vectors(folder)
    return st.session_state.setdefault("vectors", VectorCache())


def vectors_of(documents: Iterable[Document]) -> VectorCache:
    """Return the cache of the vectors of documents, which all sessions share for bundled ones."""
    return shared_vectors() if are_bundled(documents) else session_vectors()


def index_documents(
    documents: Sequence[Document], model: Model, cut: Cut, pooling: str | None = None, kind: str = FLAT
) -> Index:
    """Index documents by a pooling, None for the model's own; no chunk is embedded twice.

    The ``kind`` is one of `INDEX_KINDS`, or `AUTO`; exact search where its recall is too low, and until one
    that takes long is built on the page of documents. Raises
    `NotEmbeddedError` where much is to be embedded first.

    Sessions share only the index of bundled documents, and their vectors; those of a user's own documents
    stay in the session. Uploaded vectors are indexed as they are.
    """
    if (uploaded := uploaded_vectors(documents)) is not None:
        index = uploaded.index
        if index.is_mapped or index.ann is not None:  # as its folder has it
            return index
    else:
        encoder = model.as_encoder
        assert encoder is not None, "the model of documents that the app embeds"
        pooling = pooling or encoder.pooling  # so that pages share one index
        index = (shared_index if are_bundled(documents) else session_index)(documents, encoder, cut, pooling)
    if kind == FLAT or (kind == AUTO and by_size(index.vectors)[0] == FLAT):
        return index
    key, is_short = (tuple(documents), cut, pooling, kind), CHUNK_S * len(index.chunks) <= SHORT_CPU_S
    built = computed(INDEX, key)
    if built is None and is_short:
        with st.spinner("Building the index…"):
            built = keep(INDEX, key, choose_index(index.vectors, kind))
    return index if built is None else replace(index, ann=built[1])


def index_of(documents: Sequence[Document], _model: Encoder, cut: Cut, pooling: str | None) -> Index:
    """Return the index of documents; raises `NotEmbeddedError` where a long rest has no vectors."""
    encoder, bundled = cut.encoder(_model), bundled_names()
    shared = [document for document in documents if document.name in bundled]
    own = [document for document in documents if document.name not in bundled]
    pieces = [all_chunks(part, cut) for part in (shared, own)]
    if pooling == "idf":  # the weights of words depend on all documents
        encoder = encoder.with_idf([chunk.indexed for chunks in pieces for chunk in chunks])
    spec = embedding_spec(encoder, pooling, cut.max_tokens)
    idf = encoder.idf if spec.pooling == "idf" else None
    parts, late = [], None
    for cache, chunks, part in zip((shared_vectors(), session_vectors()), pieces, (shared, own), strict=True):
        if not chunks:
            continue
        wanted = wanted_vectors(chunks, encoder, [spec.pooling], cut.max_tokens, cache)
        try:
            vectors = vectors_now(wanted)
        except NotEmbeddedError as error:
            vectors, late = wanted.vectors, late or error.wanted
        parts.append(index_vectors(chunks, vectors[spec.pooling], spec, idf, part))
    if notice := session_vectors().notice:
        st.warning(escape_markdown(notice), icon=":material/database_off:")
    if not parts:
        raise DocumentError("the chosen documents have no text to search: choose others")
    index = join_indexes(parts)
    if late is not None:
        raise NotEmbeddedError(late, index)
    return index


shared_index = st.cache_resource(max_entries=3, show_spinner=False, hash_funcs=FINGERPRINTS)(index_of)
session_index = st.cache_resource(max_entries=3, show_spinner=False, **OF_DOCUMENTS)(index_of)


@st.cache_resource(max_entries=3, show_spinner="Indexing the words…", **OF_DOCUMENTS)
def words_of(documents: Sequence[Document], cut: Cut, _index: Index) -> Postings:
    """Return BM25's index of the chunks of documents."""
    return _index.words.postings


def index_so_far(
    question: str, documents: Sequence[Document], partial: Index, wanted: Wanted, cut: Cut, model: Model
) -> tuple[Index, NullScores]:
    """Return an index to answer one question while vectors are missing, and its scores by chance.

    The best chunks by words get their vectors now; those of others that have none are 0.
    """
    index = replace(partial, postings=words_of(documents, cut, partial))
    [scores] = index.words.scores([question])  # (n_chunks,)
    vectors = index.vectors.copy()
    best = [row for row in np.argsort(-scores, kind="stable")[:BY_WORDS].tolist() if not vectors[row].any()]
    if best:
        texts = [index.texts[row] for row in best]
        spec = index.spec
        vectors[best] = cached_encode(texts, wanted.encoder, spec.pooling, spec.max_tokens, wanted.cache)
    index = replace(index, source=vectors)
    known = np.flatnonzero(vectors.any(axis=1)).tolist()
    return index, null_scores_of(index.subset(known), model, wanted.cache)


def query_of(question: str, index: Index, model: Model) -> Query:
    """Embed a question as the chunks of an index were embedded."""
    return embed_query(question, index.encoder(model), index.spec.pooling, index.spec.max_tokens)


def warm(index: Index, retriever: str, model: Model) -> None:
    """Compute what a retriever needs of all chunks, besides their vectors, before the first question."""
    one, encoder = RETRIEVERS[retriever], model.as_encoder
    if encoder is not None and encoder.sparse is not None and one.uses_sparse:
        with counting("Expanding", "chunks") as show:
            index.words_of(encoder.sparse, show)
    if encoder is not None and encoder.multi_vector is not None and one.reads_all:
        with counting("Reading tokens", "chunks") as show:
            index.late_tokens(encoder.multi_vector).of(range(len(index.chunks)), None, show)
    if one.uses_bm25:
        with st.spinner(f"Indexing the words of {counted(len(index.chunks), 'chunk')}…", show_time=True):
            _ = index.words  # built on the first access, and kept by the index


@st.cache_resource(max_entries=3, show_spinner="Asking these documents unrelated questions…", **OF_DOCUMENTS)
def null_scores_of_documents(
    documents: Sequence[Document], _model: Model, cut: Cut, pooling: str | None = None
) -> NullScores:
    """Return what unrelated questions score in the index of documents."""
    uploaded = uploaded_vectors(documents)
    if uploaded is not None and uploaded.unrelated is not None:
        return null_scores_by(uploaded.index, uploaded.unrelated)
    index = index_documents(documents, _model, cut, pooling)
    return null_scores_of(index, _model, shared_vectors())


def index_to_ask(
    documents: Sequence[Document], model: Model, cut: Cut, pooling: str | None, retriever: str
) -> tuple[Index, NullScores]:
    """Return the index of documents, ready for a retriever, and what unrelated questions score in it."""
    index = index_documents(documents, model, cut, pooling)
    null_scores = null_scores_of_documents(documents, model, cut, pooling)
    warm(index, retriever, model)
    return index, null_scores


def content_hash(chunks: Sequence[Chunk], vectors: Array) -> str:
    """Return a hash of chunks and their vectors, as a key of caches."""
    digest = hashlib.sha256(np.ascontiguousarray(vectors).tobytes())
    for chunk in chunks:
        place = (chunk.document, chunk.start, chunk.end, chunk.n_tokens, chunk.indexed)
        digest.update(repr(place).encode())
    return digest.hexdigest()
