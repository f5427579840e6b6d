"""Estimate of the work and the time of a sweep before it is run."""

import random
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from engine.documents.document import Chunk, Document
from engine.documents.splitters import SPLITTERS, Splitting
from engine.documents.token_spans import token_spans
from engine.evaluation.questions import Question, relevance
from engine.evaluation.sweep import (
    LabelledChunks,
    check_sweep,
    grouped,
    index_bytes,
    make_row,
    scores_of,
    split_documents,
)
from engine.evaluation.sweep_row import BM25, Ranked, resamples, takes_all, values_at
from engine.evaluation.sweep_vectors import IDF
from engine.evaluation.sweep_watch import Watch
from engine.kernels.primitives import prepare_compiled
from engine.layers.tracing import Array
from engine.models.reranker import Reranker
from engine.retrieval.embedding_model import Model
from engine.retrieval.rerank import RERANK_DEPTH
from engine.retrieval.retrievers import SearchInputs, SearchTexts
from engine.retrieval.vector_cache import VectorCache, cached_encode
from engine.settings import Configuration

COUNTING_SECONDS = 0.8  # after which the remaining splittings are extrapolated
SAMPLE_TOKENS = 2048  # embedded to measure the time
SAMPLE_QUESTIONS, SAMPLE_CHUNKS, SAMPLE_K = 64, 2048, 5  # scored to measure the time
SAMPLES = 2  # the quickest counts, without one-time work such as the start of an app
KERNELS_SECONDS = 10  # most time to wait for the encoder's kernels to be loaded or compiled
SAMPLE_PAIRS = 8  # read by a reranker to measure the time
MAXSIM, CROSS_ENCODER = "maxsim", "cross-encoder"
SEED = 0


@dataclass(frozen=True)
class Cost:
    """The work of a sweep, and its time with an empty cache.

    Attributes
    ----------
    n_cells
        Number of distinct cells.
    n_splittings
        Number of splittings, counted for each model.
    n_chunks
        Number of chunks of all splittings.
    n_tokens
        Number of tokens to embed: those of distinct chunks for each model, token limit, use of prompts and
        precision; the pass for "idf" counts for each splitting, since its weights change.
    seconds
        Time on this machine, estimated from a sample.
    is_exact
        Whether all splittings were cut to count this. Otherwise the counts are estimates, too: there are too
        many splittings, or one needs vectors, and is counted as "sentences".
    n_exhausted
        Number of cells that retrieve all chunks, by `takes_all`.
    fewest_chunks
        Number of chunks of the splitting with fewest.
    """

    n_cells: int
    n_splittings: int
    n_chunks: int
    n_tokens: int
    seconds: float
    is_exact: bool
    n_exhausted: int
    fewest_chunks: int


@dataclass
class Count:
    """Counts of the splittings cut so far."""

    n_cut: int = 0
    n_chunks: int = 0
    n_tokens: int = 0
    seconds: float = 0
    n_exhausted: int = 0
    fewest_chunks: int = sys.maxsize
    seen: dict[tuple[str, int | None, str, str], set[int]] = field(default_factory=dict)


def estimate(
    documents: Sequence[Document],
    questions: Sequence[Question],
    cells: Sequence[Configuration],
    models: Mapping[str, Model],
) -> Cost:
    """Count the work of a sweep, and time a sample of it; arguments and errors are those of `sweep`."""
    check_sweep(documents, questions, cells, models)
    distinct = list(dict.fromkeys(cells))
    groups = list(grouped(distinct, lambda cell: (cell.model, cell.splitting)).items())
    random.Random(SEED).shuffle(groups)
    tokens = {
        name: [token_spans(document.text, models[name].tokenizer) for document in documents]
        for name in dict.fromkeys(cell.model for cell in distinct)
    }
    speeds: dict[str, Speed] = {}
    count = Count()
    is_exact = not any(SPLITTERS[splitting.method].needs_embed for (_, splitting), _ in groups)
    begin = time.perf_counter()
    for (name, splitting), of_splitting in groups:
        chunks = split_documents(documents, tokens[name], models[name], countable(splitting), VectorCache())
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
        n_tokens=whole(count.n_tokens, share),
        seconds=count.seconds / max(share, 1e-9),
        is_exact=is_exact and count.n_cut == len(groups),
        n_exhausted=whole(count.n_exhausted, share),
        fewest_chunks=count.fewest_chunks,
    )


def whole(part: int, share: float) -> int:
    """Extrapolate a count of a share to the whole."""
    return round(part / share) if share else 0


def countable(splitting: Splitting) -> Splitting:
    """Return a splitting that needs no vectors, for one that does."""
    return replace(splitting, method="sentences") if SPLITTERS[splitting.method].needs_embed else splitting


def add(
    count: Count, chunks: Sequence[Chunk], cells: Sequence[Configuration], model: Model, speed: "Speed"
) -> None:
    """Add a splitting's chunks, and the texts and tokens that its cells need to embed."""
    count.n_cut += 1
    count.n_chunks += len(chunks)
    count.n_exhausted += sum(takes_all(cell, len(chunks)) for cell in cells)
    count.fewest_chunks = min(count.fewest_chunks, len(chunks))
    for how, of_limit in grouped(cells, lambda one: (one.max_tokens, one.prompts, one.precision)).items():
        limit = model.token_limit(how[0])
        lengths = {hash(chunk.text): min(chunk.n_tokens, limit) for chunk in chunks}
        poolings = {cell.pooling for cell in of_limit if cell.retriever != BM25}
        n_tokens = sum(lengths.values()) if IDF in poolings else 0
        if poolings - {IDF}:
            seen = count.seen.setdefault((cells[0].model, *how), set())
            n_tokens += sum(length for text, length in lengths.items() if text not in seen)
            seen.update(lengths)
        n_read = sum(lengths.values()) if any(cell.retriever == MAXSIM for cell in of_limit) else 0
        count.n_tokens += n_tokens
        reranked = {cell.pooling for cell in of_limit if cell.retriever == CROSS_ENCODER}
        n_pairs = len(reranked) * min(RERANK_DEPTH, len(chunks))  # of each question
        precision = how[2]
        count.seconds += speed.a_token[precision] * (n_tokens + n_read) + speed.a_pair[precision] * n_pairs
    count.seconds += sum(speed.a_chunk[cell.retriever] * len(chunks) for cell in cells)


@dataclass(frozen=True)
class Speed:
    """Seconds to embed a token, to score and evaluate a chunk by each retriever, and to rerank one.

    Those of tokens and of reranking are by the precision; all but the first are for all questions.
    """

    a_token: Mapping[str, float]
    a_chunk: Mapping[str, float]
    a_pair: Mapping[str, float]

    @classmethod
    def of(
        cls,
        questions: Sequence[Question],
        chunks: Sequence[Chunk],
        cells: Sequence[Configuration],
        model: Model,
        all_cells: Sequence[Configuration],
    ) -> "Speed":
        """Time some of the chunks of one splitting."""
        some = chunks[:SAMPLE_CHUNKS]
        own = [cell for cell in all_cells if cell.model == cells[0].model]
        precisions = dict.fromkeys(cell.precision for cell in own)
        read_so = {precision: model.with_precision(precision) for precision in precisions}
        timed = {precision: timed_vectors(some, cells[0], each) for precision, each in read_so.items()}
        vectors, _ = timed[cells[0].precision]
        n_questions = min(len(questions), SAMPLE_QUESTIONS)
        asked = questions[:n_questions]
        labelled = LabelledChunks(asked, some, relevance(asked, some), resamples(n_questions))
        times = len(questions) / n_questions / max(len(some), 1)
        retrievers = dict.fromkeys(cell.retriever for cell in own)
        seconds = {name: scored_seconds(name, labelled, vectors) * times for name in retrievers}
        a_token = {precision: rate for precision, (_, rate) in timed.items()}
        a_pair = dict.fromkeys(precisions, 0.0)
        for precision, each in read_so.items():
            if each.reranker:
                texts = [chunk.text for chunk in some[:SAMPLE_PAIRS]]
                a_pair[precision] = pair_seconds(texts, each.reranker) * len(questions)
        return cls(a_token, seconds, a_pair)


def timed_vectors(chunks: Sequence[Chunk], cell: Configuration, model: Model) -> tuple[Array, float]:
    """Embed a few chunks; return their vectors ``(n_texts, d_model)`` and the seconds per token."""
    pooling = "mean" if model.as_encoder else cell.pooling
    lengths = np.cumsum([chunk.n_tokens for chunk in chunks], dtype=int)
    texts = [chunk.text for chunk in chunks[: int(np.searchsorted(lengths, SAMPLE_TOKENS)) + 1]]
    limit = model.token_limit(cell.max_tokens)
    n_tokens = sum(min(chunk.n_tokens, limit) for chunk in chunks[: len(texts)])
    if model.as_encoder and model.as_encoder.compiled:
        prepare_compiled().join(KERNELS_SECONDS)
    cached_encode(["warm up"], model, pooling, None, VectorCache())
    seconds = []
    for _ in range(SAMPLES):
        begin = time.perf_counter()
        vectors = cached_encode(texts, model, pooling, cell.max_tokens, VectorCache())
        seconds.append(time.perf_counter() - begin)
    return vectors, min(seconds) / max(n_tokens, 1)


def pair_seconds(texts: Sequence[str], reranker: Reranker) -> float:
    """Time a reranker on a few passages; return the seconds of one."""
    seconds = []
    for _ in range(SAMPLES):
        begin = time.perf_counter()
        reranker.score("What is said here?", texts)
        seconds.append(time.perf_counter() - begin)
    return min(seconds) / max(1, len(texts))


def scored_seconds(retriever: str, labelled: LabelledChunks, vectors: Array) -> float:
    """Time a cell, with the sample's vectors repeated in place of the real ones.

    MaxSim is timed as "dense" and a cross-encoder as "weighted"; what they read is counted by `add`.
    """
    name = {MAXSIM: "dense", CROSS_ENCODER: "weighted"}.get(retriever, retriever)
    rows = len(labelled.questions), len(labelled.chunks)
    asked, found = (np.resize(vectors, (n, vectors.shape[1])) for n in rows)
    seconds = []
    for _ in range(SAMPLES):
        watch = Watch(0, 0, None, None)
        texts = SearchTexts(tuple(question.text for question in labelled.questions), tuple(labelled.texts))
        inputs = SearchInputs(texts, asked, found)
        scores = scores_of(name, inputs, watch)
        ranked = Ranked.of(scores, labelled.relevant, SAMPLE_K)
        values = values_at(ranked, labelled.chunks, labelled.questions, SAMPLE_K)
        row = make_row(
            Configuration(retriever=name), values, labelled, index_bytes(name, inputs, labelled), watch
        )
        seconds.append(row.seconds)
    return min(seconds)
