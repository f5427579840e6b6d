"""A FAISS index over embedded chunks."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from engine.documents.document import Chunk
from engine.errors import InputError
from engine.layers.tracing import Array
from engine.models.encoder import Encoder
from engine.retrieval.vector_cache import VectorCache, cached_encode
from engine.weights.fetch import Progress

if TYPE_CHECKING:
    import faiss


@dataclass(frozen=True)
class Hit:
    """A chunk that was found; ``score`` is the cosine of its vector and the question's."""

    chunk: Chunk
    score: float


@dataclass(frozen=True)
class Index:
    """Chunks and their vectors, ready to search, stamped with how the vectors were made.

    ``vectors`` is float32 ``(n_chunks, d_model)``, rows of length 1.
    """

    chunks: tuple[Chunk, ...] = field(repr=False)
    vectors: Array = field(repr=False)
    faiss: "faiss.IndexFlatIP" = field(repr=False)
    model: str
    pooling: str
    max_tokens: int

    def search(self, query: Array, k: int) -> list[Hit]:
        """Return the ``k`` chunks with the largest inner product with ``query (d_model,)``, best first."""
        if k < 1:
            raise InputError(f"k is {k}: ask for 1 passage or more")
        if query.shape != (self.faiss.d,):
            raise InputError(
                f"the query has shape {query.shape}, the index holds vectors of ({self.faiss.d},)"
            )
        if not np.isfinite(query).all():
            raise InputError("the query vector is not finite: it holds NaN or infinity")
        scores, rows = self.faiss.search(query[None].astype(np.float32), min(k, len(self.chunks)))
        return [Hit(self.chunks[row], float(score)) for row, score in zip(rows[0], scores[0], strict=True)]


def build_index(
    chunks: Sequence[Chunk],
    encoder: Encoder,
    pooling: str = "mean",
    max_tokens: int | None = None,
    on_progress: Progress | None = None,
    cache: VectorCache | None = None,
) -> Index:
    """Embed chunks and put them into an exact inner-product index.

    Parameters
    ----------
    chunks
        The chunks; at least one.
    encoder, pooling, max_tokens
        How they are embedded, as in `Encoder.encode`.
    on_progress
        Called with chunks done and chunks in all.
    cache
        Where vectors are looked up before and kept after; the index is the same as without.
    """
    if not chunks:
        raise InputError("there are no chunks to index: load a document with text")
    texts = [chunk.text for chunk in chunks]
    vectors = (
        encoder.encode(texts, pooling, max_tokens=max_tokens, on_progress=on_progress)
        if cache is None
        else cached_encode(texts, encoder, pooling, max_tokens, cache, on_progress)
    )
    return index_vectors(chunks, vectors, encoder.name, pooling, encoder.token_limit(max_tokens))


def index_vectors(
    chunks: Sequence[Chunk], vectors: Array, model: str, pooling: str, max_tokens: int
) -> Index:
    """Index vectors ``(n_chunks, d_model)`` of length 1 that were made already."""
    import faiss

    vectors = vectors.astype(np.float32)
    index = faiss.IndexFlatIP(vectors.shape[1])
    index.add(vectors)
    return Index(tuple(chunks), vectors, index, model, pooling, max_tokens)


def join_indexes(indexes: Sequence[Index]) -> Index:
    """Make one index of several whose vectors were made alike."""
    stamps = {(index.model, index.pooling, index.max_tokens) for index in indexes}
    if len(stamps) != 1:
        raise InputError(f"indexes made in {len(stamps)} different ways cannot be joined: build them again")
    chunks = [chunk for index in indexes for chunk in index.chunks]
    return index_vectors(chunks, np.concatenate([index.vectors for index in indexes]), *stamps.pop())
