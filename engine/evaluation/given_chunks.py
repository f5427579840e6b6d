"""Measure searches of chunks whose vectors are brought along, beside the cells of a sweep."""

from collections.abc import Iterator, Sequence

from engine.documents.document import Document
from engine.errors import InputError
from engine.evaluation.grid import Cell
from engine.evaluation.questions import Question, relevance
from engine.evaluation.sweep import LabelledChunks, measure_cells
from engine.evaluation.sweep_row import SweepRow, resamples
from engine.evaluation.sweep_watch import Watch
from engine.models.encoder import Encoder
from engine.retrieval.embedding_model import Model, no_inside
from engine.retrieval.index import Index, index_vectors
from engine.retrieval.vector_cache import VectorCache

GIVEN = "given"  # in place of a splitter
ROOM = 2  # times the vectors' bytes: the cache holds those of questions, too, and evicts nothing


def given_cells(
    index: Index, model: str, prompts: str, retrievers: Sequence[str], ks: Sequence[int]
) -> list[Cell]:
    """Return a cell for each way to search an index; its size is that of the longest chunk."""
    n_tokens = max(chunk.n_tokens for chunk in index.chunks)
    return [
        Cell(GIVEN, n_tokens, 0, model, None, index.spec.pooling, retriever, k, prompts)
        for retriever in retrievers
        for k in ks
    ]


def measure_given(
    index: Index,
    model: Model,
    documents: Sequence[Document],
    questions: Sequence[Question],
    cells: Sequence[Cell],
) -> Iterator[SweepRow]:
    """Measure cells that differ in retriever and k, on an index in place of chunks that are cut anew.

    Parameters
    ----------
    index, model
        The chunks and vectors, and the model that made them, which embeds the questions.
    documents, questions
        As in `sweep`; chunks of other documents are not searched.
    cells
        As `given_cells` returns them.

    Raises
    ------
    InputError
        A chunk does not stand at its place in its document, none is of the documents, not all are and words
        are weighed by them, or a retriever reads token vectors, which the model does not give.
    """
    if not isinstance(model, Encoder) and any(cell.retriever == "maxsim" for cell in cells):
        raise InputError(f"{no_inside('retriever maxsim', model)}: choose another")
    index = chunks_in(index, documents)
    cache = VectorCache(max_bytes=ROOM * index.vectors.nbytes + len(questions) * index.vectors[0].nbytes)
    cache.put_many(model.prompts.before("document", index.texts), index.vectors, index.spec)
    relevant = relevance(questions, index.chunks)
    labelled = LabelledChunks(questions, index.chunks, relevant, resamples(len(questions)))
    return measure_cells(cells, labelled, model, cache, Watch(len(cells), 0, None, None))


def chunks_in(index: Index, documents: Sequence[Document]) -> Index:
    """Return the part of an index that is of some documents, with each chunk at its place in the text."""
    texts = {document.name: document.text for document in documents}
    rows = [row for row, chunk in enumerate(index.chunks) if chunk.document in texts]
    if not rows:
        raise InputError(
            f"the given chunks are of other documents, such as {index.chunks[0].document!r}, than those that "
            "are searched: search these"
        )
    if index.idf is not None and len(rows) < len(index.chunks):
        raise InputError("pooling idf weighs words by all given chunks: search all of their documents")
    for row in rows:
        chunk = index.chunks[row]
        if texts[chunk.document][chunk.start : chunk.end] != chunk.text:
            raise InputError(
                f"given chunk {row} does not stand at {chunk.start} to {chunk.end} of {chunk.document}: give "
                "the document that it was cut from"
            )
    return index_vectors([index.chunks[row] for row in rows], index.vectors[rows], index.spec, index.idf)
