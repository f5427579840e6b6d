"""Chunks with given vectors: their documents, and their search next to the configurations of a sweep."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

from ..documents.document import Document
from ..documents.splitters import GIVEN
from ..errors import InputError
from ..retrieval.embedding_model import Model
from ..retrieval.index import Index
from ..retrieval.retrievers import reason_unavailable
from ..retrieval.vector_cache import VectorCache
from ..settings import Configuration
from .questions import Question
from .sweep import LabelledChunks, Progress, measure_configurations
from .sweep_row import SweepRow, resamples

ROOM = 2  # times the vectors' bytes: the cache holds those of questions, too, and evicts nothing


@dataclass(frozen=True)
class GivenDocument(Document):
    """A document put together from given chunks."""

    digest: str = ""  # of all chunks and vectors of the file: documents with other vectors are not equal


def given_configurations(
    index: Index, model: str, read_as: Sequence[str], retrievers: Sequence[str], ks: Sequence[int]
) -> list[Configuration]:
    """Return a configuration for each way to search an index, for its longest chunk's size."""
    n_tokens = max(chunk.n_tokens for chunk in index.chunks)
    return [
        Configuration(GIVEN, n_tokens, 0, model, None, index.spec.pooling, retriever, k, *read_as)
        for retriever in retrievers
        for k in ks
    ]


def measure_given(
    index: Index,
    model: Model,
    documents: Sequence[Document],
    questions: Sequence[Question],
    configurations: Sequence[Configuration],
) -> Iterator[SweepRow]:
    """Measure `given_configurations` on an index of given chunks, by the model that made its vectors.

    Documents and questions are as in `sweep`; chunks of other documents are not searched.
    """
    for configuration in configurations:
        if reason := reason_unavailable(configuration.retriever, model):
            raise InputError(reason)
    texts = {document.name: document.text for document in documents}
    rows = [row for row, chunk in enumerate(index.chunks) if chunk.document in texts]
    if not rows:
        raise InputError(
            f"the given chunks are of other documents, such as {index.chunks[0].document!r}, than those that "
            "are searched: search these"
        )
    if index.idf is not None and len(rows) < len(index.chunks):
        raise InputError("pooling idf weighs words by all given chunks: search all of their documents")
    check_places(index, rows, texts, "give the document that it was cut from")
    index = index.subset(rows)
    cache = VectorCache(max_bytes=ROOM * index.vectors.nbytes + len(questions) * index.vectors[0].nbytes)
    cache.put_many(model.prompts.before("document", index.texts), index.vectors, index.spec)
    labelled = LabelledChunks(questions, index.chunks, resamples(len(questions)))
    return measure_configurations(configurations, labelled, model, cache, Progress(len(configurations)))


def check_places(index: Index, rows: Sequence[int], texts: Mapping[str, str], remedy: str) -> None:
    """Raise `InputError` for a chunk that does not stand at its place in the text of its document."""
    for row in rows:
        chunk = index.chunks[row]
        if texts[chunk.document][chunk.start : chunk.end] != chunk.text:
            raise InputError(
                f"given chunk {row} does not stand at {chunk.start} to {chunk.end} of {chunk.document}: "
                f"{remedy}"
            )


def given_documents(index: Index) -> tuple[Index, tuple[GivenDocument, ...]]:
    """Return the documents of given chunks, which tell apart other vectors, and the index in their order."""
    number = {name: place for place, name in enumerate(index.documents)}
    places = [(number[chunk.document], chunk.start, chunk.end) for chunk in index.chunks]
    given, index = index, index.subset(sorted(range(len(places)), key=places.__getitem__))
    texts = {name: document.text for name, document in index.documents.items()}
    check_places(
        given, range(len(places)), texts, "chunks that overlap have to repeat the same text, cut them again"
    )
    digest = sha256(f"{sorted(places)} {index.spec.model} {index.spec.pooling}".encode())
    for chunk in index.chunks:
        digest.update(f"{chunk.document}\0{chunk.text}\0".encode())
    digest.update(index.vectors.tobytes())
    documents = tuple(GivenDocument(name, text, digest=digest.hexdigest()) for name, text in texts.items())
    return replace(index, documents={document.name: document for document in documents}), documents
