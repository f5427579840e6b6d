"""Measure every cell of a grid of settings; work shared by several cells is done once.

Cells are ordered by shared work. Per model, the tokens of each document are counted once and questions are
embedded once; documents are cut and BM25 is computed once per splitting. A text is embedded once for all
splittings, in one pass through the layers for all poolings, and the cache keeps its vectors for later sweeps.
Different k use the same ranking.
"""

import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import numpy as np

from engine.documents.document import Chunk, Document
from engine.documents.splitters import Splitting, split
from engine.documents.token_spans import TokenSpans, token_spans
from engine.errors import InputError
from engine.evaluation.grid import reason_left_out
from engine.evaluation.metrics import METRICS
from engine.evaluation.question_values import QuestionValues
from engine.evaluation.questions import Question, relevance
from engine.evaluation.sweep_row import (
    BM25,
    FLOAT_BYTES,
    Ranked,
    SweepRow,
    bm25_bytes,
    intervals_of,
    resamples,
    values_at,
)
from engine.evaluation.sweep_vectors import n_passes, vectors_of
from engine.evaluation.sweep_watch import CellProgress, Stopped, Watch
from engine.layers.tracing import Array
from engine.models.embedding_head import OWN
from engine.retrieval.bm25 import Bm25
from engine.retrieval.embedding_model import Model
from engine.retrieval.retrievers import (
    RETRIEVERS,
    SearchInputs,
    SearchTexts,
    retriever_scores,
)
from engine.retrieval.vector_cache import VectorCache, cached_encode
from engine.settings import Configuration

Key = TypeVar("Key", bound=Hashable)
RUNS, BRIEF_SECONDS = 3, 0.2  # of one computation that is timed


def sweep(
    documents: Sequence[Document],
    questions: Sequence[Question],
    cells: Sequence[Configuration],
    models: Mapping[str, Model],
    cache: VectorCache | None = None,
    on_progress: CellProgress | None = None,
    is_stopped: Callable[[], bool] | None = None,
    done: Sequence[SweepRow] = (),
) -> Iterator[SweepRow]:
    """Measure every cell of a grid, and yield rows as they are ready, those with most shared work together.

    Only the vectors and scores of one splitting, and the cache, are in memory at a time.

    Parameters
    ----------
    documents, questions
        The documents to search, and the questions. Chunks with equal scores keep their order, so documents
        are ordered `by_name`, and the order of the argument changes no number.
    cells
        The settings, measured once if repeated. `fitting` leaves out cells that a model cannot do.
    models
        The models by the names in the cells.
    cache
        Cache of vectors; None for a temporary one in memory.
    on_progress
        Called with the number of cells done, including ``done`` and parts of a cell, and the total.
    is_stopped
        Called often; the rows end soon after it returns true. Vectors computed until then stay in the cache.
    done
        Rows of an earlier sweep of the same documents, questions and models, whose cells are skipped.

    Returns
    -------
    iterator of SweepRow
        Except for ``seconds``, rows do not depend on the order of the cells.
    """
    check_sweep(documents, questions, cells, models)
    finished = {row.cell for row in done}
    distinct = list(dict.fromkeys(cells))
    todo = [cell for cell in distinct if cell not in finished]
    watch = Watch(len(distinct), len(distinct) - len(todo), on_progress, is_stopped)
    cache = VectorCache() if cache is None else cache
    return rows_of(by_name(documents), questions, todo, models, cache, watch)


def by_name(documents: Sequence[Document]) -> list[Document]:
    """Return documents in the order of their names."""
    return sorted(documents, key=lambda document: document.name)


def check_sweep(
    documents: Sequence[Document],
    questions: Sequence[Question],
    cells: Sequence[Configuration],
    models: Mapping[str, Model],
) -> None:
    """Raise `InputError` if an argument is empty or a cell cannot be measured."""
    for what, given in {"documents": documents, "questions": questions}.items():
        if not given:
            raise InputError(f"there are no {what}: give one or more")
    if missing := {cell.model for cell in cells} - set(models):
        raise InputError(
            f"the grid names the models {sorted(missing)}, given are {sorted(models)}: load them"
        )
    for cell in dict.fromkeys(cells):
        if why := reason_left_out(cell, models[cell.model]):
            raise InputError(f"{cell}: {why}")


def rows_of(
    documents: Sequence[Document],
    questions: Sequence[Question],
    cells: Sequence[Configuration],
    models: Mapping[str, Model],
    cache: VectorCache,
    watch: Watch,
) -> Iterator[SweepRow]:
    """Measure the cells model by model, splitting by splitting, token limit by token limit."""
    counts = resamples(len(questions))
    try:
        watch.tell()
        for name, of_model in grouped(cells, lambda cell: cell.model).items():
            model = models[name]
            tokens = [token_spans(document.text, model.tokenizer) for document in documents]
            for splitting, of_splitting in grouped(of_model, lambda cell: cell.splitting).items():
                chunks = split_documents(documents, tokens, model, splitting, cache)
                labelled = LabelledChunks(questions, chunks, relevance(questions, chunks), counts)
                for alike in grouped(of_splitting, lambda cell: (cell.max_tokens, *reading(cell))).values():
                    prompts, precision = reading(alike[0])
                    read_so = model.with_prompts(prompts).with_precision(precision)
                    yield from measure_cells(alike, labelled, read_so, cache, watch)
    except Stopped:
        return


def reading(cell: Configuration) -> tuple[str, str]:
    """How a cell's model reads texts: the use of its prompts, and its precision."""
    return cell.prompts, cell.precision


def split_documents(
    documents: Sequence[Document],
    tokens: Sequence[TokenSpans],
    model: Model,
    splitting: Splitting,
    cache: VectorCache,
) -> list[Chunk]:
    """Cut documents with known token spans; "semantic" compares sentences by their mean vectors."""
    pooling = "mean" if model.as_encoder else OWN

    def embed(sentences: Sequence[str]) -> Array:
        return cached_encode(sentences, model, pooling, None, cache)

    pieces = zip(documents, tokens, strict=True)
    return [
        chunk for each, spans in pieces for chunk in split(each, model.tokenizer, splitting, embed, spans)
    ]


@dataclass(frozen=True)
class LabelledChunks:
    """The chunks of one splitting, with their relevance to the questions.

    ``relevant`` is bool ``(n_questions, n_chunks)``, ``counts`` is the result of `resamples`.
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


def measure_cells(
    cells: Sequence[Configuration], labelled: LabelledChunks, model: Model, cache: VectorCache, watch: Watch
) -> Iterator[SweepRow]:
    """Measure cells alike but for pooling, retriever and k: pooling by pooling, retriever by retriever."""
    asked, max_tokens = tuple(question.text for question in labelled.questions), cells[0].max_tokens
    poolings = list(dict.fromkeys(cell.pooling for cell in cells if cell.retriever != BM25))
    watch.begin(len(cells), (len(asked) + len(labelled.texts)) * n_passes(poolings))
    vectors = vectors_of(asked, labelled.texts, model, poolings, max_tokens, cache, watch.tell)
    uses_words = any(RETRIEVERS[cell.retriever].uses_bm25 for cell in cells)
    words = Bm25(labelled.texts) if uses_words else None  # before any search, whose time is measured
    texts = SearchTexts(asked, tuple(labelled.texts), model.as_encoder, max_tokens, words)
    spent: dict[str, float] = {}
    for pooling, of_pooling in grouped(
        cells, lambda cell: "" if cell.retriever == BM25 else cell.pooling
    ).items():
        inputs = SearchInputs(texts, *np.split(vectors[pooling], [len(asked)]))
        spent.pop("dense", None)
        for retriever, of_retriever in grouped(of_pooling, lambda cell: cell.retriever).items():
            scores, seconds = timed_scores(retriever, inputs, watch, spent)
            ranked = Ranked.of(scores, labelled.relevant, max(cell.k for cell in of_retriever))
            n_bytes = index_bytes(retriever, inputs, labelled)
            for k, of_k in grouped(of_retriever, lambda cell: cell.k).items():
                values = values_at(ranked, labelled.chunks, labelled.questions, k)
                for cell in of_k:
                    yield make_row(cell, values, labelled, n_bytes, watch, seconds / len(asked))
                    # The caller's time with a row does not count for the next row.
                    watch.since = time.perf_counter()
                    watch.tell(n_measured=1)


def make_row(
    cell: Configuration,
    values: Array,
    labelled: LabelledChunks,
    n_bytes: int,
    watch: Watch,
    search_seconds: float | None = None,
) -> SweepRow:
    """Make a row from the values ``(n_questions, n_metrics)`` of a cell."""
    return SweepRow(
        cell,
        n_chunks=len(labelled.chunks),
        n_questions=len(labelled.questions),
        metrics=dict(zip(METRICS, values.mean(axis=0).tolist(), strict=True)),
        intervals=intervals_of(values, labelled.counts),
        values=QuestionValues.of(tuple(METRICS), values),
        seconds=time.perf_counter() - watch.since,
        index_bytes=n_bytes,
        search_seconds=search_seconds,
    )


def timed_scores(
    retriever: str, inputs: SearchInputs, watch: Watch, spent: dict[str, float]
) -> tuple[Array, float]:
    """Return the scores of a retriever, and the seconds that they take where nothing is computed before.

    Cosines and BM25's scores are computed once for all retrievers; ``spent`` keeps the seconds of each.
    """
    parts = {"dense": retriever != BM25, "bm25": RETRIEVERS[retriever].uses_bm25}
    needed = [name for name, is_needed in parts.items() if is_needed]
    for name in needed:
        if name not in spent:
            spent[name] = computing_seconds(name, inputs)
    begin = time.perf_counter()
    scores = scores_of(retriever, inputs, watch)
    return scores, time.perf_counter() - begin + sum(spent[name] for name in needed)


def computing_seconds(name: str, inputs: SearchInputs) -> float:
    """Compute the cosines, or BM25's scores; return the seconds, the least of several where it is brief.

    The threads of the pass through the model before may still hold the cores, for longer than a search takes.
    """
    seconds: list[float] = []
    while not seconds or (len(seconds) < RUNS and sum(seconds) < BRIEF_SECONDS):
        anew = replace(inputs, texts=replace(inputs.texts)) if seconds else inputs
        begin = time.perf_counter()
        _ = anew.dense if name == "dense" else anew.texts.bm25
        seconds.append(time.perf_counter() - begin)
    return min(seconds)


def scores_of(retriever: str, inputs: SearchInputs, watch: Watch) -> Array:
    """Score the chunks by `retriever_scores`."""

    def tell(n_read: int, n_to_read: int) -> None:
        watch.tell(next_cell=n_read / max(n_to_read, 1))

    return retriever_scores(retriever, inputs, on_progress=tell)


def index_bytes(retriever: str, inputs: SearchInputs, labelled: LabelledChunks) -> int:
    """Return the bytes of the index of a retriever: vectors, words, or both."""
    of_words = labelled.bm25_bytes if RETRIEVERS[retriever].uses_bm25 else 0
    return of_words + (0 if retriever == BM25 else FLOAT_BYTES * inputs.chunk_vectors.size)


def grouped(
    cells: Sequence[Configuration], key: Callable[[Configuration], Key]
) -> dict[Key, list[Configuration]]:
    """Group cells by key, in the order of each key's first cell."""
    groups: dict[Key, list[Configuration]] = {}
    for cell in cells:
        groups.setdefault(key(cell), []).append(cell)
    return groups
