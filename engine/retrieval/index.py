"""Search over embedded chunks."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cached_property
from itertools import chain
from typing import overload

import numpy as np

from ..documents.document import Chunk, Document, document_languages
from ..errors import InputError
from ..layers.tracing import Array
from ..models.encoder import Encoder
from ..models.multi_vector import MultiVectorEncoder
from ..models.precision import PRECISIONS
from ..models.sparse_encoder import SparseEncoder
from ..weights.fetch import Progress
from .bm25 import Bm25, Postings
from .embedding_model import Model, embedding_spec, encode_by
from .embedding_spec import EmbeddingSpec, Query
from .index_choice import EXACT_CHUNKS
from .index_kinds import AnnIndex, exact_nearest, require_whole, rows_of
from .rerank import LateVectors, TokenVectors
from .sparse_index import SparseIndex
from .stored.milvus_store import MilvusVectors
from .vector_cache import VectorCache, cached_encode

Place = tuple[str, int, int]  # of a passage: its document, start and end


@dataclass(frozen=True)
class Hit:
    """A chunk that was found.

    ``score`` is the cosine of its vector and the question's, whatever the retriever: a retriever decides the
    order of hits, the cosine how close each is.
    """

    chunk: Chunk
    score: float

    @property
    def document(self) -> str:
        """The name of its document."""
        return self.chunk.document

    @property
    def text(self) -> str:
        """Its text: the span from ``chunk.start`` to ``chunk.end`` of the document."""
        return self.chunk.text


@dataclass(frozen=True, eq=False)
class MappedTexts(Sequence[str]):
    """The texts of some rows of chunks, which are read when they are asked for."""

    chunks: Sequence[Chunk] = field(repr=False)
    rows: Sequence[int] | Array = field(repr=False)

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, row: int) -> str: ...

    @overload
    def __getitem__(self, row: slice) -> Sequence[str]: ...

    def __getitem__(self, row: int | slice) -> str | Sequence[str]:
        """Read a text, or say of which chunks several are."""
        if isinstance(row, slice):
            return MappedTexts(self.chunks, self.rows[row])
        return self.chunks[int(self.rows[row])].indexed


@dataclass(frozen=True)
class Index:
    """Chunks and their vectors, ready to search.

    BM25's index and token vectors are made when a retriever first needs them, and kept.
    """

    chunks: Sequence[Chunk] = field(repr=False)
    # of the chunks: float32 ``(n_chunks, d_model)``, rows of length 1, or the store that has them
    source: Array | MilvusVectors = field(repr=False)
    spec: EmbeddingSpec
    # the word weights ``(vocab_size,)`` of the pooling ``"idf"``, None for other poolings
    idf: Array | None = field(default=None, repr=False)
    # finds the nearest vectors without reading all of them; None for exact search
    ann: AnnIndex | None = field(default=None, repr=False)
    # the inverted indexes by BM25 and by a learned sparse model, if they are known
    postings: Postings | None = field(default=None, repr=False, compare=False)
    expanded: SparseIndex | None = field(default=None, repr=False, compare=False)
    # rows that may be found, ascending ``(n_allowed,)``; None for all, and without ``ann``
    allowed: Array | None = field(default=None, repr=False)
    # that the chunks are spans of, by their names; search needs none, an answer their text
    documents: Mapping[str, Document] = field(default_factory=dict, repr=False, compare=False)
    # of the vectors of sentences that were read as evidence; without one, the latest are kept in memory
    cache: VectorCache | None = field(default=None, repr=False, compare=False)

    @property
    def n_searched(self) -> int:
        """Number of the chunks that may be found."""
        return len(self.chunks) if self.allowed is None else len(self.allowed)

    @property
    def vectors(self) -> Array:
        """The chunks' vectors; those of a store are fetched at the first access, and kept."""
        if not isinstance(self.source, np.ndarray):
            return self._fetched
        require_whole(self.source)
        return self.source

    def check_whole(self) -> None:
        """Raise `DocumentError` where a file that it is mapped from was cut, also within a search."""
        if isinstance(self.source, np.ndarray):
            require_whole(self.source)
        for each in (self.postings, self.expanded):
            require_whole(*(() if each is None else each.arrays))

    @cached_property
    def _fetched(self) -> Array:
        """All vectors of a store."""
        assert not isinstance(self.source, np.ndarray)
        return self.source.fetch_all()

    @property
    def _store(self) -> MilvusVectors | None:
        """The store to ask for vectors, None where they are here."""
        if isinstance(self.source, np.ndarray) or "_fetched" in vars(self):
            return None
        return self.source

    @property
    def is_mapped(self) -> bool:
        """Whether chunks are read from a large folder when they are asked for: reading all takes long."""
        return not isinstance(self.chunks, tuple)

    @cached_property
    def texts(self) -> Sequence[str]:
        """What is embedded and indexed of the chunks."""
        if self.is_mapped:
            return MappedTexts(self.chunks, range(len(self.chunks)))
        return tuple(chunk.indexed for chunk in self.chunks)

    @cached_property
    def words(self) -> Bm25:
        """BM25's index of the chunks."""
        if self.postings is not None:
            return Bm25.from_postings(self.postings)
        return bm25_of(self.chunks, self.languages)

    @cached_property
    def languages(self) -> dict[str, str]:
        """The language of each document, by its name; where it is one for all, no document is read."""
        if self.postings is not None and len(known := self.postings.languages) == 1:
            return defaultdict(lambda: known[0], {"": known[0]})
        return chunk_languages(self.chunks, self.documents)

    @cached_property
    def tokens(self) -> TokenVectors:
        """Vectors of the chunks' tokens, computed on demand."""
        return TokenVectors(self.texts, self.spec.max_tokens)

    def words_of(self, model: SparseEncoder, on_progress: Progress | None = None) -> SparseIndex:
        """Return the inverted index of the chunks by a learned sparse model, which is kept."""
        if self.expanded is not None and self.expanded.fingerprint == model.fingerprint:
            return self.expanded
        if model.fingerprint not in self._expanded:
            self._expanded[model.fingerprint] = SparseIndex.of(self.texts, model, on_progress)
        return self._expanded[model.fingerprint]

    def late_tokens(self, model: MultiVectorEncoder) -> LateVectors:
        """Return the vectors of the chunks' tokens by a late-interaction model, computed on demand."""
        if id(model) not in self._late:
            self._late[id(model)] = LateVectors(self.texts, model)  # which holds the model
        return self._late[id(model)]

    @cached_property
    def _expanded(self) -> dict[str, SparseIndex]:
        return {}

    @cached_property
    def _late(self) -> dict[int, LateVectors]:
        return {}

    @cached_property
    def _rows(self) -> dict[str, list[int]]:
        """Rows of each document's chunks."""
        rows: dict[str, list[int]] = {}
        for row, chunk in enumerate(self.chunks):
            rows.setdefault(chunk.document, []).append(row)
        return rows

    @cached_property
    def children(self) -> dict[Place, list[int]]:
        """Rows of the chunks of each parent, by its place."""
        rows: dict[Place, list[int]] = {}
        for row, chunk in enumerate(self.chunks):
            if chunk.parent is not None:
                rows.setdefault(place_of(chunk), []).append(row)
        return rows

    def document_text(self, name: str) -> str:
        """Return the text of a document; raise `InputError` for an index that was built without it."""
        if name not in self.documents:
            raise InputError(f"the index lacks the text of {name}: build it with its documents")
        return self.documents[name].text

    def search(self, query: Query, k: int, order: Array | None = None) -> list[Hit]:
        """Return the ``k`` best chunks, best first; all where there are fewer.

        Best are the first in an ``order`` of rows ``(n_found,)``, or else those with the largest inner
        product with the question's vector.
        """
        if k < 1:
            raise InputError(f"k is {k}: ask for 1 passage or more")
        self.check(query)
        vector = query.vector[None].astype(np.float32)
        if order is None:
            [scores], [rows] = self.nearest(vector, min(k, self.n_searched))
        else:
            rows = order[:k]
            scores = self.vectors_of(rows) @ vector[0]
        return [Hit(self.chunks[row], float(score)) for row, score in zip(rows, scores, strict=True)]

    def nearest(self, vectors: Array, k: int) -> tuple[Array, Array]:
        """Return inner products and rows of the ``k`` nearest chunks, nearest first.

        ``(n_questions, d_model)`` float32 to two arrays ``(n_questions, k)``.
        """
        if self.ann is not None:
            return self.ann.nearest(self.vectors, vectors, k, self.allowed)
        store = self._store
        return exact_nearest(self.vectors, vectors, k) if store is None else store.nearest(vectors, k)

    def vectors_of(self, rows: Sequence[int] | Array) -> Array:
        """Return the vectors of some rows: ``(n_rows, d_model)``."""
        store = self._store
        if store is not None:
            return store.fetch(rows)
        return rows_of(self.vectors, rows)

    def only(self, names: Collection[str]) -> "Index":
        """Return the index of some documents, by their names.

        Up to `EXACT_CHUNKS` chunks, or any number without ``ann``, are copied to an index with exact search.
        More are filtered while the whole index is searched; BM25 then counts the words of all documents.
        """
        for name in names:
            if name not in self._rows:
                similar = get_close_matches(name, self._rows, 1, 0.0)
                raise InputError(f"there is no document {name!r} in the index: is it {similar[0]!r}?")
        rows = sorted(chain.from_iterable(self._rows[name] for name in set(names)))
        if self.ann is None or len(rows) <= EXACT_CHUNKS:
            return self.subset(rows)
        return replace(self, allowed=np.array(rows))

    def subset(self, rows: Sequence[int]) -> "Index":
        """Return some rows of the index, in their order, as an index."""
        chunks, vectors = [self.chunks[row] for row in rows], self.vectors_of(list(rows))
        index = index_vectors(chunks, vectors, self.spec, self.idf, self.documents.values())
        return index if self.expanded is None else replace(index, expanded=self.expanded.subset(rows))

    def check(self, query: Query) -> None:
        """Raise `InputError` for a question that cannot be compared with the index."""
        if query.spec != self.spec:
            raise InputError(
                f"the index holds vectors of {self.spec}, and the question's is of {query.spec}: embed both "
                "in one way, or build the index again"
            )
        shape = self.source.shape[1:]
        if query.vector.shape != shape:
            raise InputError(f"the query has shape {query.vector.shape}, the index holds vectors of {shape}")
        if not np.isfinite(query.vector).all():
            raise InputError("the query vector is not finite: it holds NaN or infinity")

    @overload
    def encoder(self, encoder: Encoder) -> Encoder: ...

    @overload
    def encoder(self, encoder: Model) -> Model: ...

    def encoder(self, encoder: Model) -> Model:
        """Return the encoder as the index was made: its word weights if it has any, prompts and precision."""
        if self.idf is not None and (weighted := encoder.as_encoder) is not None:
            encoder = replace(weighted, idf=self.idf)
        for each in model_variants(encoder):
            if embedding_spec(each, self.spec.pooling, self.spec.max_tokens) == self.spec:
                return each
        return encoder


def chunk_languages(chunks: Iterable[Chunk], documents: Mapping[str, Document]) -> dict[str, str]:
    """Return the language of each document that chunks are of, by its name.

    It is that of the document, or of its chunks where that is not known.
    """
    texts: dict[str, list[str]] = {}
    for chunk in chunks:
        texts.setdefault(chunk.document, []).append(chunk.text)
    return document_languages(
        documents.get(name) or Document(name, "\n".join(own)) for name, own in texts.items()
    )


def bm25_of(chunks: Sequence[Chunk], languages: Mapping[str, str] | None = None) -> Bm25:
    """Index the words of chunks, by the languages of their documents if they are known."""
    known = chunk_languages(chunks, {}) if languages is None else languages
    return Bm25([chunk.indexed for chunk in chunks], languages=[known[chunk.document] for chunk in chunks])


def place_of(chunk: Chunk) -> Place:
    """Return the place of a chunk's passage: its parent, or the chunk itself if it has none."""
    passage = chunk.parent or chunk
    return passage.document, passage.start, passage.end


def model_variants(encoder: Model) -> Iterator[Model]:
    """Yield a model with and without prompts, in each precision: as it may have embedded an index."""
    rounded = (inside := encoder.as_encoder) is not None and inside.dtype == np.float32
    others = [name for name in PRECISIONS if rounded and name != "float32"]
    for precision in [None, *others]:
        read = encoder if precision is None else encoder.with_precision(precision)
        yield read
        if read.prompts.in_search:
            yield read.with_prompts("none")


def build_index(
    chunks: Sequence[Chunk],
    encoder: Model,
    pooling: str | None = None,
    max_tokens: int | None = None,
    on_progress: Progress | None = None,
    cache: VectorCache | None = None,
    documents: Iterable[Document] = (),
) -> Index:
    """Embed chunks, at least one, and put them into an exact inner-product index.

    They are embedded as in `embedding_spec`; ``"idf"`` weighs words by these chunks, unless the encoder
    already has word weights. With a cache the index is the same. ``on_progress`` is called with chunks done
    and in all. A search needs no documents; an answer quotes their sentences.
    """
    if not chunks:
        raise InputError("there are no chunks to index: load a document with text")
    texts = [chunk.indexed for chunk in chunks]
    idf = None
    if pooling == "idf" and (weighted := encoder.as_encoder) is not None:
        encoder = weighted if weighted.idf is not None else weighted.with_idf(texts)
        idf = encoder.idf
    spec = embedding_spec(encoder, pooling, max_tokens)
    vectors = embed_chunks(texts, encoder, spec, on_progress, cache)
    return index_vectors(chunks, vectors, spec, idf, documents)


def embed_chunks(
    texts: Sequence[str],
    encoder: Model,
    spec: EmbeddingSpec,
    on_progress: Progress | None = None,
    cache: VectorCache | None = None,
) -> Array:
    """Embed the texts of chunks as a spec states, each once with a cache: ``(n_chunks, d_model)``."""
    if cache is None:
        return encode_by(spec, "document", texts, encoder, on_progress)
    return cached_encode(texts, encoder, spec.pooling, spec.max_tokens, cache, on_progress)


def index_vectors(
    chunks: Sequence[Chunk],
    vectors: Array,
    spec: EmbeddingSpec,
    idf: Array | None = None,
    documents: Iterable[Document] = (),
) -> Index:
    """Index given vectors ``(n_chunks, d_model)``, rows of length 1."""
    by_name = {document.name: document for document in documents}
    return Index(tuple(chunks), vectors.astype(np.float32, copy=False), spec, idf, documents=by_name)


def join_indexes(indexes: Sequence[Index]) -> Index:
    """Join indexes whose vectors have one spec."""
    specs = {index.spec for index in indexes}
    if len(specs) != 1:
        raise InputError(f"indexes made in {len(specs)} different ways cannot be joined: build them again")
    chunks = [chunk for index in indexes for chunk in index.chunks]
    vectors = np.concatenate([index.vectors for index in indexes])
    documents = [document for index in indexes for document in index.documents.values()]
    return index_vectors(chunks, vectors, specs.pop(), indexes[0].idf, documents)
