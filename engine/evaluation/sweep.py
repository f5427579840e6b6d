"""Grids of settings, measured: what is shared by several cells is made once.

Cells go in the order of what they share. A document's words are measured once a model, it is cut once a
splitting, and a text is embedded once, by one pass through the layers for all poolings, in however many
splittings it stands; the cache keeps it for the next sweep. Questions are embedded once a model. BM25 is
computed once a splitting, and different k cut the same ranking.
"""

import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np

from engine.documents.document import Chunk, Document
from engine.documents.splitters import Splitting, split
from engine.documents.token_spans import TokenSpans, measure
from engine.errors import InputError
from engine.evaluation.grid import Cell, model_problem
from engine.evaluation.library_model import OWN, LibraryModel, Model
from engine.evaluation.question_values import QuestionValues
from engine.evaluation.questions import Question, relevance
from engine.evaluation.sweep_row import (
    BM25,
    FLOAT_BYTES,
    METRICS,
    Ranked,
    SweepRow,
    bm25_bytes,
    intervals_of,
    resamples,
    values_at,
)
from engine.evaluation.sweep_vectors import embedded, n_passes, vectors_of
from engine.evaluation.sweep_watch import CellProgress, Stopped, Watch
from engine.layers.tracing import Array
from engine.retrieval.mmr import MMR_DEPTH
from engine.retrieval.retrievers import OF_WORDS, Searched, Texts, retriever_scores
from engine.retrieval.vector_cache import VectorCache

Key = TypeVar("Key", bound=Hashable)


def sweep(
    documents: Sequence[Document],
    questions: Sequence[Question],
    cells: Sequence[Cell],
    models: Mapping[str, Model],
    cache: VectorCache | None = None,
    on_progress: CellProgress | None = None,
    is_stopped: Callable[[], bool] | None = None,
    done: Sequence[SweepRow] = (),
) -> Iterator[SweepRow]:
    """Measure every cell of a grid; rows come as they are ready, those that share most together.

    Memory holds the vectors and scores of one splitting at a time, and the cache.

    Parameters
    ----------
    documents, questions
        What is searched, and for what. Of chunks that score alike the first comes first, so documents are
        taken `by_name`: the order in which they are given changes no number.
    cells
        The settings; the same cell is measured once. `fitting` leaves out what a model cannot do.
    models
        The models by the names that the cells call them.
    cache
        Where vectors are looked up and kept; None for one in memory that ends with the sweep.
    on_progress
        Called with cells done, those of ``done`` and parts of one included, and cells in all.
    is_stopped
        Asked often; the rows end soon after it says yes. What was embedded until then stays in the cache.
    done
        Rows of an earlier sweep of the same documents, questions and models; their cells are skipped.

    Returns
    -------
    iterator of SweepRow
        Whatever the order of the cells, each has the same row, but for ``seconds``.

    Raises
    ------
    InputError
        There are no documents or no questions, or a cell names a model that is not given, or cannot be. It
        is raised before anything is measured.
    """
    check_sweep(documents, questions, cells, models)
    finished = {row.cell for row in done}
    distinct = list(dict.fromkeys(cells))
    todo = [cell for cell in distinct if cell not in finished]
    watch = Watch(len(distinct), len(distinct) - len(todo), on_progress, is_stopped)
    cache = VectorCache() if cache is None else cache
    return rows_of(by_name(documents), questions, todo, models, cache, watch)


def by_name(documents: Sequence[Document]) -> list[Document]:
    """Return documents in the order of their names, in which they are measured."""
    return sorted(documents, key=lambda document: document.name)


def check_sweep(
    documents: Sequence[Document],
    questions: Sequence[Question],
    cells: Sequence[Cell],
    models: Mapping[str, Model],
) -> None:
    """Raise `InputError` where something is missing or a cell cannot be measured."""
    for what, given in {"documents": documents, "questions": questions}.items():
        if not given:
            raise InputError(f"there are no {what}: give one or more")
    if missing := {cell.model for cell in cells} - set(models):
        raise InputError(
            f"the grid names the models {sorted(missing)}, given are {sorted(models)}: load them"
        )
    for cell in dict.fromkeys(cells):
        if why := model_problem(cell, models[cell.model]):
            raise InputError(f"{cell}: {why}")


def rows_of(
    documents: Sequence[Document],
    questions: Sequence[Question],
    cells: Sequence[Cell],
    models: Mapping[str, Model],
    cache: VectorCache,
    watch: Watch,
) -> Iterator[SweepRow]:
    """Measure the cells model by model, splitting by splitting, limit by limit."""
    counts = resamples(len(questions))
    try:
        watch.tell()
        for name, of_model in grouped(cells, lambda cell: cell.model).items():
            model = models[name]
            tokens = [measure(document.text, model.tokenizer) for document in documents]
            for splitting, of_splitting in grouped(of_model, lambda cell: cell.splitting).items():
                chunks = cut(documents, tokens, model, splitting, cache)
                judged = Judged(questions, chunks, relevance(questions, chunks), counts)
                for same_limit in grouped(of_splitting, lambda cell: cell.max_tokens).values():
                    yield from measured(same_limit, judged, model, cache, watch)
    except Stopped:
        return


def cut(
    documents: Sequence[Document],
    tokens: Sequence[TokenSpans],
    model: Model,
    splitting: Splitting,
    cache: VectorCache,
) -> list[Chunk]:
    """Cut documents whose words are measured; "semantic" compares sentences by the model's mean vectors."""
    pooling = OWN if isinstance(model, LibraryModel) else "mean"

    def embed(sentences: Sequence[str]) -> Array:
        return embedded(sentences, model, [pooling], None, cache)[pooling]

    pieces = zip(documents, tokens, strict=True)
    return [
        chunk for each, spans in pieces for chunk in split(each, model.tokenizer, splitting, embed, spans)
    ]


@dataclass(frozen=True)
class Judged:
    """Chunks of one splitting, and which of them answer which question.

    ``relevant`` is bool ``(n_questions, n_chunks)``, ``counts`` are those of `resamples`.
    """

    questions: Sequence[Question]
    chunks: Sequence[Chunk]
    relevant: Array
    counts: Array

    @cached_property
    def texts(self) -> list[str]:
        """The chunks' texts."""
        return [chunk.text for chunk in self.chunks]

    @cached_property
    def bm25_bytes(self) -> int:
        """Bytes of BM25's index of the chunks."""
        return bm25_bytes(self.texts)


def measured(
    cells: Sequence[Cell], judged: Judged, model: Model, cache: VectorCache, watch: Watch
) -> Iterator[SweepRow]:
    """Measure cells of one splitting, model and limit: pooling by pooling, retriever by retriever."""
    asked, max_tokens = tuple(question.text for question in judged.questions), cells[0].max_tokens
    poolings = list(dict.fromkeys(cell.pooling for cell in cells if cell.retriever != BM25))
    watch.begin(len(cells), (len(asked) + len(judged.texts)) * n_passes(poolings))
    vectors = vectors_of(asked, judged.texts, model, poolings, max_tokens, cache, watch.tell)
    encoder = None if isinstance(model, LibraryModel) else model
    texts = Texts(asked, tuple(judged.texts), encoder, max_tokens)
    for pooling, of_pooling in grouped(
        cells, lambda cell: "" if cell.retriever == BM25 else cell.pooling
    ).items():
        searched = Searched(texts, *np.split(vectors[pooling], [len(asked)]))
        for retriever, of_retriever in grouped(of_pooling, lambda cell: cell.retriever).items():
            scores = scores_of(retriever, searched, watch)
            ranked = Ranked.of(scores, judged.relevant, max(cell.k for cell in of_retriever))
            n_bytes = index_bytes(retriever, searched, judged)
            for k, of_k in grouped(of_retriever, lambda cell: cell.k).items():
                values = values_at(ranked, judged.chunks, judged.questions, k)
                for cell in of_k:
                    yield finished(cell, values, judged, n_bytes, watch)
                    # The time that somebody looked at a row is not the next one's.
                    watch.since = time.perf_counter()
                    watch.tell(n_measured=1)


def finished(cell: Cell, values: Array, judged: Judged, n_bytes: int, watch: Watch) -> SweepRow:
    """Make a row of the values ``(n_questions, n_metrics)`` of a cell."""
    return SweepRow(
        cell,
        n_chunks=len(judged.chunks),
        n_questions=len(judged.questions),
        metrics=dict(zip(METRICS, values.mean(axis=0).tolist(), strict=True)),
        intervals=intervals_of(values, judged.counts),
        values=QuestionValues.of(METRICS, values),
        seconds=time.perf_counter() - watch.since,
        index_bytes=n_bytes,
    )


def scores_of(retriever: str, searched: Searched, watch: Watch) -> Array:
    """Score the chunks as `retriever_scores` does by default, but for MMR: it orders all that it looks at.

    So its first k are the same for every k up to `MMR_DEPTH`.
    """

    def tell(n_read: int, n_to_read: int) -> None:
        watch.tell(next_cell=n_read / max(n_to_read, 1))

    return retriever_scores(retriever, searched, k=MMR_DEPTH, on_progress=tell)


def index_bytes(retriever: str, searched: Searched, judged: Judged) -> int:
    """Bytes of what a retriever searches: vectors, words, or both."""
    of_words = judged.bm25_bytes if retriever in OF_WORDS else 0
    return of_words + (0 if retriever == BM25 else FLOAT_BYTES * searched.chunk_vectors.size)


def grouped(cells: Sequence[Cell], key: Callable[[Cell], Key]) -> dict[Key, list[Cell]]:
    """Put cells of one key together, in the order in which keys first come."""
    groups: dict[Key, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(key(cell), []).append(cell)
    return groups
