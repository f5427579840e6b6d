"""Measure every configuration of a grid; work that several configurations share is done once.

They are ordered by shared work. Per model, the tokens of each document are counted once and questions are
embedded once; documents are cut and BM25 is computed once per splitting. A text is embedded once for all
splittings, in one pass through the layers for all poolings, and the cache keeps its vectors for later sweeps.
Different k use the same ranking.
"""

import time
from collections.abc import Callable, Hashable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeVar, cast

import numpy as np

from ..documents.document import Chunk, Document
from ..documents.splitters import Splitting, split
from ..documents.token_spans import TokenSpans, token_spans
from ..errors import InputError
from ..layers.tracing import Array
from ..models.embedding_head import MODEL_DEFAULT
from ..models.prompts import Role
from ..retrieval.embedding_model import Model
from ..retrieval.index import Index, bm25_of
from ..retrieval.ranking import blocks
from ..retrieval.relevance import NullScores
from ..retrieval.rerank import LateVectors
from ..retrieval.retrievers import RETRIEVERS, SearchInputs, SearchTexts, retriever_scores, second_model
from ..retrieval.sparse_index import SparseIndex
from ..retrieval.vector_cache import VectorCache, cached_encode, cached_encode_all
from ..settings import Configuration
from .answers import AnswerRow
from .grid import reason_left_out
from .metrics import METRICS
from .questions import Question, relevance
from .sweep_answers import Answering, KeepingEncoder
from .sweep_row import QuestionValues, Ranked, SweepRow, intervals_of, ranked, resamples, values_at

Key = TypeVar("Key", bound=Hashable)
# Called with the number of configurations done, including parts of those in preparation, and the total.
SweepProgress = Callable[[float, int], None]
IDF = "idf"  # the pooling whose weights are computed from the chunks
RUNS, BRIEF_SECONDS = 3, 0.2  # of one computation that is timed
SCORES = 6_000_000  # of questions with chunks that are in memory at once, in several arrays of 24 MB
# Questions whose results are kept while the others of a configuration are read, answered, or written about.
READ_AT_ONCE, ANSWERED_AT_ONCE, WRITTEN_AT_ONCE = 32, 32, 8
# Results of some questions in a configuration, by their name: how chunks are ranked, and the seconds that it
# took; or the answers.
Part = tuple[list[Ranked], float] | list[AnswerRow]
Parts = MutableMapping[str, Part]
TEXTS_A_CONFIGURATION = 8  # embedded in about the time in which a configuration is measured


@dataclass(frozen=True)
class SweepInputs:
    """What a sweep measures."""

    # chunks with equal scores keep their order, so documents are ordered `by_name`
    documents: Sequence[Document]
    questions: Sequence[Question]
    configurations: Sequence[Configuration]  # repeated ones count once
    models: Mapping[str, Model]  # by the names in the configurations
    answering: Answering | None = None  # None: no question is answered

    def check(self) -> None:
        """Raise `InputError` if one is empty or a configuration cannot be measured: see `fitting`."""
        for what, given in {"documents": self.documents, "questions": self.questions}.items():
            if not given:
                raise InputError(f"there are no {what}: give one or more")
        if missing := {one.model for one in self.configurations} - set(self.models):
            raise InputError(
                f"the grid names the models {sorted(missing)}, given are {sorted(self.models)}: load them"
            )
        for one in dict.fromkeys(self.configurations):
            if reason := reason_left_out(one, self.models[one.model]):
                raise InputError(f"{one}: {reason}")


class Cancelled(Exception):
    """A sweep is stopped on request."""


@dataclass
class Progress:
    """The configurations of a sweep that are done, and the texts embedded for those in preparation."""

    n_configurations: int = 0
    n_done: int = 0
    on_progress: SweepProgress | None = None
    is_stopped: Callable[[], bool] | None = None
    n_texts: int = 0  # to embed for the current configurations
    n_embedded: int = 0
    n_sharing: int = 0  # configurations that need these texts
    n_measured: int = 0  # of them
    since: float = field(default_factory=time.perf_counter)  # time when the previous row was ready

    def start(self, n_sharing: int, n_texts: int) -> None:
        """Start a group of configurations, and the texts that are embedded for them."""
        self.n_done += self.n_measured
        self.n_texts, self.n_sharing, self.n_embedded, self.n_measured = n_texts, n_sharing, 0, 0

    def advance(self, n_embedded: int = 0, n_measured: int = 0, of_next: float = 0.0) -> None:
        """Count texts and configurations, and a part of the next one; raise `Cancelled` on request."""
        self.n_embedded, self.n_measured = self.n_embedded + n_embedded, self.n_measured + n_measured
        if self.is_stopped is not None and self.is_stopped():
            raise Cancelled
        if self.on_progress is not None:
            work = self.n_texts + TEXTS_A_CONFIGURATION * self.n_sharing
            done = self.n_embedded + TEXTS_A_CONFIGURATION * (self.n_measured + of_next)
            self.on_progress(self.n_done + done / max(work, 1) * self.n_sharing, self.n_configurations)


def sweep(
    inputs: SweepInputs,
    cache: VectorCache | None = None,
    on_progress: SweepProgress | None = None,
    is_stopped: Callable[[], bool] | None = None,
    done: Sequence[SweepRow] = (),
    parts: Parts | None = None,
) -> Iterator[SweepRow]:
    """Measure every configuration, and yield rows as they are ready, those with most shared work together.

    Only the vectors of one splitting, `SCORES` scores and the cache are in memory at a time; without a cache
    of vectors there is a temporary one. Except for ``seconds``, rows do not depend on the order of documents
    and configurations. ``on_progress`` is called with configurations done, those of ``done`` and a part of
    the next one included, and in all; ``is_stopped`` often: the rows end soon after it returns true. Vectors
    computed until then stay in the cache, and other results in ``parts``. Rows ``done`` and ``parts``, of the
    same documents, questions and models, are not measured again.
    """
    inputs.check()
    finished = {row.configuration for row in done}
    distinct = list(dict.fromkeys(inputs.configurations))
    todo = [one for one in distinct if one not in finished]
    progress = Progress(len(distinct), len(distinct) - len(todo), on_progress, is_stopped)
    cache = VectorCache() if cache is None else cache
    inputs = replace(inputs, documents=by_name(inputs.documents), configurations=todo)
    return rows_of(inputs, cache, progress, {} if parts is None else parts)


def by_name(documents: Sequence[Document]) -> list[Document]:
    """Return documents in the order of their names."""
    return sorted(documents, key=lambda document: document.name)


def rows_of(inputs: SweepInputs, cache: VectorCache, progress: Progress, parts: Parts) -> Iterator[SweepRow]:
    """Measure configurations model by model, splitting by splitting, embedding by embedding."""
    documents, questions = inputs.documents, inputs.questions
    counts, answering = resamples(len(questions)), inputs.answering and inputs.answering.with_memory()
    try:
        progress.advance()
        for name, of_model in grouped(inputs.configurations, lambda one: one.model).items():
            model = inputs.models[name]
            tokens = [token_spans(document.text, model.tokenizer) for document in documents]
            for splitting, of_splitting in grouped(of_model, lambda one: one.splitting).items():
                chunks = split_documents(documents, tokens, model, splitting, cache)
                labelled = LabelledChunks(questions, chunks, counts)
                for (prompts, precision, _), same_embedding in grouped(of_splitting, embedding_key).items():
                    embedder = model.with_prompts(prompts).with_precision(precision)
                    yield from measure_configurations(
                        same_embedding, labelled, embedder, cache, progress, answering, parts
                    )
    except Cancelled:
        return


def embedding_key(configuration: Configuration) -> tuple[str, str, int | None]:
    """Return the settings that configurations share whose texts are embedded by the same passes."""
    return configuration.prompts, configuration.precision, configuration.max_tokens


def split_documents(
    documents: Sequence[Document],
    tokens: Sequence[TokenSpans],
    model: Model,
    splitting: Splitting,
    cache: VectorCache,
) -> list[Chunk]:
    """Cut documents with known token spans; "semantic" compares sentences by their mean vectors."""
    pooling = "mean" if model.as_encoder else MODEL_DEFAULT

    def embed(sentences: Sequence[str]) -> Array:
        return cached_encode(sentences, model, pooling, None, cache)

    pieces = zip(documents, tokens, strict=True)
    return [one for each, spans in pieces for one in split(each, model.tokenizer, splitting, embed, spans)]


@dataclass(frozen=True)
class LabelledChunks:
    """The chunks of one splitting, and the questions that some of them answer."""

    questions: Sequence[Question]
    chunks: Sequence[Chunk]
    counts: Array  # the result of `resamples`

    @cached_property
    def texts(self) -> list[str]:
        """What is embedded and indexed of the chunks."""
        return [chunk.indexed for chunk in self.chunks]

    @cached_property
    def n_tokens(self) -> Array:
        """The chunks' tokens, ``(n_chunks,)``."""
        return np.array([chunk.n_tokens for chunk in self.chunks])


def measure_configurations(
    configurations: Sequence[Configuration],
    labelled: LabelledChunks,
    model: Model,
    cache: VectorCache,
    progress: Progress,
    answering: Answering | None = None,
    parts: Parts | None = None,
) -> Iterator[SweepRow]:
    """Measure configurations that differ in pooling, retriever and k: pooling by pooling, then retrievers."""
    asked, max_tokens = tuple(question.text for question in labelled.questions), configurations[0].max_tokens
    parts = {} if parts is None else parts
    poolings = list(dict.fromkeys(one.pooling for one in configurations if reads_vectors(one)))
    progress.start(len(configurations), (len(asked) + len(labelled.texts)) * n_passes(poolings))
    vectors = vectors_of(asked, labelled.texts, model, poolings, max_tokens, cache, progress.advance)
    used = [RETRIEVERS[one.retriever] for one in configurations]
    words = bm25_of(labelled.chunks) if any(one.uses_bm25 for one in used) else None  # before a timed search
    encoder, expanded, late = model.as_encoder, None, None
    if any(one.uses_sparse for one in used):
        expanded = SparseIndex.of(labelled.texts, second_model("sparse", encoder))
    if any(one.needs == "multi_vector" for one in used):
        late = LateVectors(labelled.texts, second_model("multi_vector", encoder))
    texts = SearchTexts(
        asked, tuple(labelled.texts), encoder, max_tokens, words, expanded=expanded, late=late
    )
    spent: dict[str, float] = {}
    indexes: dict[str, tuple[Index, NullScores]] = {}  # by their poolings, where questions are answered
    asked_model = model if encoder is None else KeepingEncoder(**vars(encoder))

    def answered(one: Configuration) -> tuple[AnswerRow, ...]:
        if answering is None:
            return ()
        if one.pooling not in indexes:
            indexes[one.pooling] = answering.index(one.pooling, labelled.chunks, model, texts, cache)
        rows, n_asked = list[AnswerRow](), len(answering.questions)
        at_once = WRITTEN_AT_ONCE if answering.settings.write else ANSWERED_AT_ONCE
        for start in range(0, n_asked, at_once):
            some = replace(answering, questions=answering.questions[start : start + at_once])
            key = f"{at_once} answers from {start} on, {one}"
            if key not in parts:

                def report(n: int, of: int, start: int = start) -> None:
                    progress.advance(of_next=(start + n) / (n_asked + 1))

                parts[key] = list(some.rows(one, indexes[one.pooling], asked_model, report))
            rows += cast(list[AnswerRow], parts[key])
        return tuple(rows)

    by_pooling = grouped(configurations, lambda one: one.pooling if reads_vectors(one) else "")
    for pooling, of_pooling in by_pooling.items():
        inputs = SearchInputs(texts, *np.split(vectors[pooling], [len(asked)]))
        spent.pop("dense", None)
        for retriever, of_retriever in grouped(of_pooling, lambda one: one.retriever).items():
            best, seconds = ranked_by(of_retriever, inputs, labelled, progress, spent, parts)
            n_bytes = index_bytes(retriever, inputs)
            for k, of_k in grouped(of_retriever, lambda one: one.k).items():
                values = values_at(best, labelled.chunks, labelled.questions, k)
                for one in of_k:
                    answers = answered(one)
                    row = SweepRow(
                        one,
                        n_chunks=len(labelled.chunks),
                        n_questions=len(asked),
                        metrics=dict(zip(METRICS, values.mean(axis=0).tolist(), strict=True)),
                        intervals=intervals_of(values, labelled.counts),
                        values=QuestionValues.of(tuple(METRICS), values),
                        seconds=time.perf_counter() - progress.since,
                        index_bytes=n_bytes,
                        search_seconds=seconds / len(asked),
                    )
                    yield row.with_answers(answers)
                    # The caller's time with a row does not count for the next row.
                    progress.since = time.perf_counter()
                    progress.advance(n_measured=1)


def n_passes(poolings: Sequence[str]) -> int:
    """Return the number of passes through the layers: one for all poolings, and one more for "idf"."""
    return (IDF in poolings) + any(pooling != IDF for pooling in poolings)


def vectors_of(
    asked: Sequence[str],
    texts: Sequence[str],
    model: Model,
    poolings: Sequence[str],
    max_tokens: int | None,
    cache: VectorCache,
    on_embedded: Callable[[int], None],
) -> dict[str, Array]:
    """Embed questions and chunks by every pooling, ``(n_questions + n_chunks, d_model)`` each.

    The weights of "idf" are computed from these chunks. The name "" has vectors of length 0, for BM25, which
    needs none. ``on_embedded`` is called with the number of texts done since the last call, cached ones
    included; it may raise to stop.
    """
    vectors = {"": np.empty((len(asked) + len(texts), 0), np.float32)}

    def embed(role: Role, texts: Sequence[str], model: Model, poolings: Sequence[str]) -> dict[str, Array]:
        last = 0

        def report(done: int, _: int) -> None:
            nonlocal last
            on_embedded(done - last)
            last = done

        return cached_encode_all(texts, model, poolings, max_tokens, cache, report, role)

    together = [pooling for pooling in poolings if pooling != IDF]
    passes: list[tuple[Model, list[str]]] = [(model, together)] if together else []
    if IDF in poolings:
        encoder = model.as_encoder
        assert encoder is not None, "checked before"
        passes.append((encoder.with_idf(texts), [IDF]))
    for embedder, each in passes:
        questions = embed("query", asked, embedder, each)
        chunks = embed("document", texts, embedder, each)
        vectors |= {name: np.concatenate([questions[name], chunks[name]]) for name in each}
    return vectors


def ranked_by(
    configurations: Sequence[Configuration],
    inputs: SearchInputs,
    labelled: LabelledChunks,
    progress: Progress,
    spent: dict[str, float],
    parts: Parts,
) -> tuple[list[Ranked], float]:
    """Rank the chunks by one retriever for configurations that differ in k, some questions at a time.

    Returns the best of every question, and the seconds of all scores, as `timed_scores`.
    """
    retriever, questions = RETRIEVERS[(name := configurations[0].retriever)], labelled.questions
    depth, best, seconds = max(one.k for one in configurations), list[Ranked](), 0.0
    at_once = min(len(questions), max(1, SCORES // max(1, len(labelled.chunks))))
    at_once = min(at_once, READ_AT_ONCE) if retriever.pairs else at_once
    for rows in blocks(len(questions), at_once):
        key = f"{depth} best from {rows.start} on, {replace(configurations[0], k=depth)}"
        if key not in parts:

            def report(share: float, start: int = rows.start) -> None:
                progress.advance(of_next=min(1.0, (start + at_once * share) / len(questions)))

            report(0)
            is_all = at_once >= len(questions)  # whose scores retrievers share
            scores, took = timed_scores(
                name, inputs if is_all else inputs.of(rows), report, spent if is_all else {}
            )
            relevant = relevance(questions[rows], labelled.chunks)
            found = ranked(scores, relevant, depth, labelled.n_tokens)
            del scores  # before those of the next questions
            if is_all:
                return found, took
            parts[key] = found, took
        found, took = cast(tuple[list[Ranked], float], parts[key])
        best += found
        seconds += took
    return best, seconds


def timed_scores(
    retriever: str, inputs: SearchInputs, report: Callable[[float], None], spent: dict[str, float]
) -> tuple[Array, float]:
    """Return the scores of a retriever, and the seconds that they take where nothing is computed before.

    ``report`` is called with the share that is done; it may raise to stop.
    """
    one = RETRIEVERS[retriever]
    parts = {"dense": one.uses_vectors, "bm25": one.uses_bm25, "sparse": one.uses_sparse}
    needed = [name for name, is_needed in parts.items() if is_needed]
    for name in needed:
        if name not in spent:
            spent[name] = computing_seconds(name, inputs)

    def advance(n_read: int, n_to_read: int) -> None:
        report(n_read / max(n_to_read, 1))

    begin = time.perf_counter()
    scores = retriever_scores(retriever, inputs, advance)
    return scores, time.perf_counter() - begin + sum(spent[name] for name in needed)


def computing_seconds(name: str, inputs: SearchInputs) -> float:
    """Compute cosines, or scores by words; return the seconds, of several runs the least."""
    seconds: list[float] = []
    while not seconds or (len(seconds) < RUNS and sum(seconds) < BRIEF_SECONDS):
        anew = replace(inputs, texts=replace(inputs.texts)) if seconds else inputs
        begin = time.perf_counter()
        _ = getattr(anew if name == "dense" else anew.texts, name)
        seconds.append(time.perf_counter() - begin)
    return min(seconds)


def index_bytes(retriever: str, inputs: SearchInputs) -> int:
    """Return the bytes of the index of a retriever: vectors of chunks or of tokens, words, or several."""
    one, texts = RETRIEVERS[retriever], inputs.texts
    n_bytes = texts.words.postings.n_bytes if texts.words and one.uses_bm25 else 0
    if one.uses_sparse and texts.expanded:
        weights = texts.expanded.weights
        n_bytes += weights.data.nbytes + weights.indices.nbytes + weights.indptr.nbytes
    if one.reads_all:
        n_bytes += texts.late_maxsim.late.nbytes
    return n_bytes + (4 * inputs.chunk_vectors.size if one.uses_vectors else 0)


def reads_vectors(configuration: Configuration) -> bool:
    """Whether the retriever of a configuration reads the vectors of chunks."""
    return RETRIEVERS[configuration.retriever].uses_vectors


def grouped(
    configurations: Sequence[Configuration], key: Callable[[Configuration], Key]
) -> dict[Key, list[Configuration]]:
    """Group configurations by key, in the order of each key's first."""
    groups: dict[Key, list[Configuration]] = {}
    for one in configurations:
        groups.setdefault(key(one), []).append(one)
    return groups
