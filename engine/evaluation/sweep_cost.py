"""What a sweep will cost, told before it is run."""

import random
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from engine.documents.document import Chunk, Document
from engine.documents.splitters import Splitting
from engine.documents.token_spans import measure
from engine.evaluation.grid import Cell
from engine.evaluation.library_model import Model
from engine.evaluation.questions import Question, relevance
from engine.evaluation.sweep import (
    Judged,
    check_sweep,
    cut,
    finished,
    grouped,
    index_bytes,
    scores_of,
)
from engine.evaluation.sweep_row import BM25, Ranked, resamples, takes_all, values_at
from engine.evaluation.sweep_vectors import IDF, embedded
from engine.evaluation.sweep_watch import Watch
from engine.layers.primitives import prepare_compiled
from engine.layers.tracing import Array
from engine.models.encoder import Encoder
from engine.retrieval.retrievers import Searched, Texts
from engine.retrieval.vector_cache import VectorCache

COUNTING_SECONDS = 0.8  # after which the splittings that are left are guessed from those that were cut
SAMPLE_TOKENS = 2048  # embedded to see how long that takes
SAMPLE_QUESTIONS, SAMPLE_CHUNKS, SAMPLE_K = 64, 2048, 5  # scored to see how long that takes
SAMPLES = 2  # of which the quickest counts: what comes between once, as in an app that starts, says nothing
KERNELS_SECONDS = 10  # to wait for the encoder's kernels, if they are still being loaded or compiled
MAXSIM = "maxsim"
SEED = 0


@dataclass(frozen=True)
class Cost:
    """What a sweep is made of, and how long it takes where the cache holds nothing.

    Attributes
    ----------
    n_cells
        Different cells.
    n_splittings
        Ways in which documents are cut, for each model.
    n_chunks
        Chunks of all splittings.
    n_distinct_texts
        Texts of chunks to embed: one that stands in several splittings counts once a model and limit.
    n_tokens
        Tokens that models read of them; a pass for "idf" counts apart, since its weights change with the
        splitting.
    seconds
        Time on this machine, judged by a sample.
    is_exact
        Whether all splittings were cut to count this, as they will be. If not (there are too many, or
        "semantic" is among them, which takes the model to cut and is counted as "sentences"), the counts
        are estimates, too.
    n_exhausted
        Cells that retrieve all chunks there are, of `takes_all`.
    fewest_chunks
        Chunks of the splitting that has fewest.
    """

    n_cells: int
    n_splittings: int
    n_chunks: int
    n_distinct_texts: int
    n_tokens: int
    seconds: float
    is_exact: bool
    n_exhausted: int
    fewest_chunks: int


@dataclass
class Count:
    """Counts of the splittings that were cut so far."""

    n_cut: int = 0
    n_chunks: int = 0
    n_texts: int = 0
    n_tokens: int = 0
    seconds: float = 0
    n_exhausted: int = 0
    fewest_chunks: int = sys.maxsize
    seen: dict[tuple[str, int | None], set[int]] = field(default_factory=dict)


def estimate(
    documents: Sequence[Document],
    questions: Sequence[Question],
    cells: Sequence[Cell],
    models: Mapping[str, Model],
) -> Cost:
    """Count what a sweep has to do, and time a sample of it; arguments and errors are those of `sweep`."""
    check_sweep(documents, questions, cells, models)
    distinct = list(dict.fromkeys(cells))
    groups = list(grouped(distinct, lambda cell: (cell.model, cell.splitting)).items())
    random.Random(SEED).shuffle(groups)
    tokens = {
        name: [measure(document.text, models[name].tokenizer) for document in documents]
        for name in dict.fromkeys(cell.model for cell in distinct)
    }
    speeds: dict[str, Speed] = {}
    count = Count()
    is_exact = all(splitting.method != "semantic" for (_, splitting), _ in groups)
    begin = time.perf_counter()
    for (name, splitting), of_splitting in groups:
        chunks = cut(documents, tokens[name], models[name], countable(splitting), VectorCache())
        if name not in speeds:
            paused = time.perf_counter()
            speeds[name] = Speed.of(questions, chunks, of_splitting, models[name], distinct)
            begin += time.perf_counter() - paused
        add(count, chunks, of_splitting, models[name], speeds[name])
        if time.perf_counter() - begin > COUNTING_SECONDS:
            break
    share = count.n_cut / max(len(groups), 1)
    return Cost(
        n_cells=len(distinct),
        n_splittings=len(groups),
        n_chunks=whole(count.n_chunks, share),
        n_distinct_texts=whole(count.n_texts, share),
        n_tokens=whole(count.n_tokens, share),
        seconds=count.seconds / max(share, 1e-9),
        is_exact=is_exact and count.n_cut == len(groups),
        n_exhausted=whole(count.n_exhausted, share),
        fewest_chunks=count.fewest_chunks,
    )


def whole(part: int, share: float) -> int:
    """Guess the whole of a part that was counted."""
    return round(part / share) if share else 0


def countable(splitting: Splitting) -> Splitting:
    """Return a splitting that takes no model."""
    return replace(splitting, method="sentences") if splitting.method == "semantic" else splitting


def add(count: Count, chunks: Sequence[Chunk], cells: Sequence[Cell], model: Model, speed: "Speed") -> None:
    """Add a splitting's chunks, and the texts and tokens among them that its cells need embedded."""
    count.n_cut += 1
    count.n_chunks += len(chunks)
    count.n_exhausted += sum(takes_all(cell, len(chunks)) for cell in cells)
    count.fewest_chunks = min(count.fewest_chunks, len(chunks))
    for max_tokens, of_limit in grouped(cells, lambda cell: cell.max_tokens).items():
        limit = model.token_limit(max_tokens)
        lengths = {hash(chunk.text): min(chunk.n_tokens, limit) for chunk in chunks}
        poolings = {cell.pooling for cell in of_limit if cell.retriever != BM25}
        n_tokens = sum(lengths.values()) if IDF in poolings else 0
        if poolings - {IDF}:
            seen = count.seen.setdefault((cells[0].model, max_tokens), set())
            n_tokens += sum(length for text, length in lengths.items() if text not in seen)
            count.n_texts += len(lengths.keys() - seen)
            seen.update(lengths)
        n_read = sum(lengths.values()) if any(cell.retriever == MAXSIM for cell in of_limit) else 0
        count.n_tokens += n_tokens
        count.seconds += speed.a_token * (n_tokens + n_read)
    count.seconds += sum(speed.a_chunk[cell.retriever] * len(chunks) for cell in cells)


@dataclass(frozen=True)
class Speed:
    """Seconds that a token takes to embed, and a chunk to be scored and judged by each retriever."""

    a_token: float
    a_chunk: Mapping[str, float]

    @classmethod
    def of(
        cls,
        questions: Sequence[Question],
        chunks: Sequence[Chunk],
        cells: Sequence[Cell],
        model: Model,
        all_cells: Sequence[Cell],
    ) -> "Speed":
        """Time some of the chunks of one splitting."""
        some = chunks[:SAMPLE_CHUNKS]
        vectors, a_token = timed_vectors(some, cells[0], model)
        n_questions = min(len(questions), SAMPLE_QUESTIONS)
        asked = questions[:n_questions]
        judged = Judged(asked, some, relevance(asked, some), resamples(n_questions))
        times = len(questions) / n_questions / max(len(some), 1)
        retrievers = dict.fromkeys(cell.retriever for cell in all_cells if cell.model == cells[0].model)
        seconds = {name: scored_seconds(name, judged, vectors) * times for name in retrievers}
        return cls(a_token, seconds)


def timed_vectors(chunks: Sequence[Chunk], cell: Cell, model: Model) -> tuple[Array, float]:
    """Embed a few chunks, ``(n_texts, d_model)``, and return the seconds that each token took."""
    pooling = "mean" if isinstance(model, Encoder) else cell.pooling
    lengths = np.cumsum([chunk.n_tokens for chunk in chunks], dtype=int)
    texts = [chunk.text for chunk in chunks[: int(np.searchsorted(lengths, SAMPLE_TOKENS)) + 1]]
    limit = model.token_limit(cell.max_tokens)
    n_tokens = sum(min(chunk.n_tokens, limit) for chunk in chunks[: len(texts)])
    if isinstance(model, Encoder) and model.compiled:
        prepare_compiled().join(KERNELS_SECONDS)
    embedded(["warm up"], model, [pooling], None, VectorCache())
    seconds = []
    for _ in range(SAMPLES):
        begin = time.perf_counter()
        vectors = embedded(texts, model, [pooling], cell.max_tokens, VectorCache())[pooling]
        seconds.append(time.perf_counter() - begin)
    return vectors, min(seconds) / max(n_tokens, 1)


def scored_seconds(retriever: str, judged: Judged, vectors: Array) -> float:
    """Time a cell, with the vectors that there are in place of those that there will be.

    MaxSim reads its chunks again, which `add` counts; what else it does is what "dense" does.
    """
    name = "dense" if retriever == MAXSIM else retriever
    rows = len(judged.questions), len(judged.chunks)
    asked, found = (np.resize(vectors, (n, vectors.shape[1])) for n in rows)
    seconds = []
    for _ in range(SAMPLES):
        watch = Watch(0, 0, None, None)
        texts = Texts(tuple(question.text for question in judged.questions), tuple(judged.texts))
        searched = Searched(texts, asked, found)
        scores = scores_of(name, searched, watch)
        ranked = Ranked.of(scores, judged.relevant, SAMPLE_K)
        values = values_at(ranked, judged.chunks, judged.questions, SAMPLE_K)
        row = finished(Cell(retriever=name), values, judged, index_bytes(name, searched, judged), watch)
        seconds.append(row.seconds)
    return min(seconds)
