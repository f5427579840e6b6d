"""A FAISS index over embedded chunks."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from engine.documents.document import Chunk
from engine.errors import InputError
from engine.layers.tracing import Array
from engine.models.encoder import Encoder
from engine.retrieval.bm25 import Bm25
from engine.retrieval.rerank import TokenVectors
from engine.retrieval.vector_cache import VectorCache, cached_encode
from engine.retrieval.vector_kind import Query, VectorKind
from engine.weights.fetch import Progress

if TYPE_CHECKING:
    import faiss


@dataclass(frozen=True)
class Hit:
    """A chunk that was found; ``score`` is the cosine of its vector and the question's.

    It is so whatever found the chunk: a retriever decides the order of hits, the cosine how close each is.
    """

    chunk: Chunk
    score: float


@dataclass(frozen=True)
class Index:
    """Chunks and their vectors, ready to search, stamped with how the vectors were made.

    ``vectors`` is float32 ``(n_chunks, d_model)``, rows of length 1. ``idf`` are the weights that words had
    in them, ``(vocab_size,)``, where the pooling has such. What else a retriever reads of the chunks is
    made when it is first needed, and kept.
    """

    chunks: tuple[Chunk, ...] = field(repr=False)
    vectors: Array = field(repr=False)
    faiss: "faiss.IndexFlatIP" = field(repr=False)
    kind: VectorKind
    idf: Array | None = field(default=None, repr=False)

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """The chunks' texts."""
        return tuple(chunk.text for chunk in self.chunks)

    @cached_property
    def words(self) -> Bm25:
        """BM25's index of the chunks."""
        return Bm25(self.texts)

    @cached_property
    def tokens(self) -> TokenVectors:
        """Vectors of the chunks' tokens, as they are read."""
        return TokenVectors(self.texts, self.kind.max_tokens)

    def search(self, query: Query, k: int, order: Array | None = None) -> list[Hit]:
        """Return the ``k`` best chunks, best first.

        Parameters
        ----------
        query
            The question's vector.
        k
            How many; all where there are fewer.
        order
            Rows of the chunks, best first ``(n_chunks,)``; None for those with the largest inner product
            with the question's vector.

        Raises
        ------
        InputError
            ``k`` is below 1, or the question was embedded in another way than the chunks, which no shape
            would show, or is not finite.
        """
        if k < 1:
            raise InputError(f"k is {k}: ask for 1 passage or more")
        self.check(query)
        vector = query.vector[None].astype(np.float32)
        if order is None:
            [scores], [rows] = self.faiss.search(vector, min(k, len(self.chunks)))
        else:
            rows = order[:k]
            scores = self.vectors[rows] @ vector[0]
        return [Hit(self.chunks[row], float(score)) for row, score in zip(rows, scores, strict=True)]

    def check(self, query: Query) -> None:
        """Raise `InputError` for a question that cannot be compared with the index."""
        if query.kind != self.kind:
            raise InputError(
                f"the index holds vectors of {self.kind}, and the question's is of {query.kind}: embed both "
                "in one way, or build the index again"
            )
        if query.vector.shape != (self.faiss.d,):
            raise InputError(
                f"the query has shape {query.vector.shape}, the index holds vectors of ({self.faiss.d},)"
            )
        if not np.isfinite(query.vector).all():
            raise InputError("the query vector is not finite: it holds NaN or infinity")

    def encoder(self, encoder: Encoder) -> Encoder:
        """Return the encoder with the weights of words that the index's vectors were made with, if any."""
        return encoder if self.idf is None else replace(encoder, idf=self.idf)


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
        How they are embedded, as in `Encoder.encode`; ``"idf"`` weighs words by these chunks, unless the
        encoder has weights of a corpus already.
    on_progress
        Called with chunks done and chunks in all.
    cache
        Where vectors are looked up before and kept after; the index is the same as without.
    """
    if not chunks:
        raise InputError("there are no chunks to index: load a document with text")
    texts = [chunk.text for chunk in chunks]
    if pooling == "idf" and encoder.idf is None:
        encoder = encoder.with_idf(texts)
    vectors = (
        encoder.encode(texts, pooling, max_tokens=max_tokens, on_progress=on_progress)
        if cache is None
        else cached_encode(texts, encoder, pooling, max_tokens, cache, on_progress)
    )
    kind = VectorKind.of(encoder, pooling, max_tokens)
    return index_vectors(chunks, vectors, kind, encoder.idf if pooling == "idf" else None)


def index_vectors(
    chunks: Sequence[Chunk], vectors: Array, kind: VectorKind, idf: Array | None = None
) -> Index:
    """Index vectors ``(n_chunks, d_model)`` of length 1 that were made already."""
    import faiss

    vectors = vectors.astype(np.float32)
    index = faiss.IndexFlatIP(vectors.shape[1])
    index.add(vectors)
    return Index(tuple(chunks), vectors, index, kind, idf)


def join_indexes(indexes: Sequence[Index]) -> Index:
    """Make one index of several whose vectors were made alike."""
    kinds = {index.kind for index in indexes}
    if len(kinds) != 1:
        raise InputError(f"indexes made in {len(kinds)} different ways cannot be joined: build them again")
    chunks = [chunk for index in indexes for chunk in index.chunks]
    vectors = np.concatenate([index.vectors for index in indexes])
    return index_vectors(chunks, vectors, kinds.pop(), indexes[0].idf)
