"""The vectors of the chosen documents' chunks under every pooling, from one pass through the layers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import streamlit as st

from engine import Encoder
from engine.documents.document import Chunk, Document
from engine.errors import DocumentError
from engine.layers.tracing import Array
from engine.retrieval.embedding_model import embedding_spec
from engine.retrieval.index import Index, index_vectors
from engine.weights.fetch import Progress
from ui.background import in_background
from ui.chunk_settings import Cut
from ui.corpus import all_chunks, content_hash, session_vectors
from ui.documents import OF_DOCUMENTS
from ui.embedding import vectors_now, wanted_vectors

WEIGH = "Weigh the words of the documents, for the mean by IDF"
IDF_S = 4e-5  # to weigh those of a chunk


@dataclass(frozen=True)
class PooledChunks:
    """Chunks of documents, the encoder with their IDF weights, and their vectors by strategy."""

    documents: tuple[Document, ...]
    chunks: tuple[Chunk, ...]
    encoder: Encoder
    vectors: dict[str, Array]  # ``(n_chunks, d_model)`` each, rows of length 1
    max_tokens: int  # that are read of each chunk

    @cached_property
    def digest(self) -> str:
        """What identifies the chunks, the encoder and the vectors in a cache."""
        return f"{content_hash(self.chunks, self.vectors['mean'])} {self.max_tokens}"

    def index(self, strategy: str) -> Index:
        """Return the index of one strategy."""
        spec = embedding_spec(self.encoder, strategy, self.max_tokens)
        words = self.encoder.idf if strategy == "idf" else None
        return index_vectors(self.chunks, self.vectors[strategy], spec, words)


# Hash functions of Streamlit's caches.
DIGESTS: dict[str | type[Any], Callable[[Any], Any]] = {
    Encoder: lambda encoder: embedding_spec(encoder, "mean" if encoder.idf is None else "idf").model,
    PooledChunks: lambda pooled: pooled.digest,
}


def encoder_with_idf(documents: Sequence[Document], encoder: Encoder, cut: Cut) -> Encoder | None:
    """Return the encoder with the IDF weights of documents; None while those of many are not computed."""
    chunks = all_chunks(documents, cut)
    if not chunks:
        raise DocumentError("the chosen documents hold no text to search: choose others")

    def weigh(on_progress: Progress) -> Encoder:
        return cut.encoder(encoder).with_idf([chunk.indexed for chunk in chunks], on_progress)

    key = (tuple(documents), cut, encoder.fingerprint)
    return in_background("idf", WEIGH, key, IDF_S * len(chunks), "improve/poolings", weigh)


@st.cache_resource(max_entries=1, show_spinner=False, **OF_DOCUMENTS)
def pooled_chunks(documents: Sequence[Document], _weighted: Encoder, cut: Cut) -> PooledChunks:
    """Embed documents' chunks under every strategy of an `encoder_with_idf`, as `vectors_now` does."""
    chunks = tuple(all_chunks(documents, cut))
    wanted = wanted_vectors(chunks, _weighted, _weighted.poolings, cut.max_tokens, session_vectors())
    return PooledChunks(tuple(documents), chunks, _weighted, dict(vectors_now(wanted)), cut.max_tokens)
