"""The time of a sweep before it runs: a sample is embedded and searched, and extrapolated."""

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ..documents.document import Chunk, Document
from ..documents.splitters import SPLITTERS
from ..documents.token_spans import token_spans
from ..kernels.primitives import prepare_compiled
from ..models.embedding_head import MODEL_DEFAULT
from ..models.reader import Reader
from ..models.reranker import Reranker
from ..models.second_models import SECOND_MODELS
from ..retrieval.embedding_model import Model, embedding_spec
from ..retrieval.retrievers import RETRIEVERS, SearchTexts, pair_model, second_model
from ..retrieval.vector_cache import VectorCache, cached_encode
from ..settings import Configuration
from .sweep import (
    IDF,
    LabelledChunks,
    Progress,
    SweepInputs,
    embedding_key,
    grouped,
    measure_configurations,
    reads_vectors,
    split_documents,
)
from .sweep_answers import Answering
from .sweep_row import BM25, resamples

SAMPLE_CHARACTERS = 200_000  # of documents that are cut
SAMPLE_TOKENS, SAMPLE_CHUNKS, SAMPLE_QUESTIONS, SAMPLE_PAIRS = 2048, 2048, 64, 8  # that are timed
KNOWN_SHARE = 0.2  # of an answer's time, in a further configuration: most of its passages were read
SAMPLES = 2  # the quickest counts, without one-time work such as the start of an app
KERNELS_SECONDS = 10  # most time to wait for the encoder's kernels to be loaded or compiled


def sweep_seconds(inputs: SweepInputs, cache: VectorCache | None = None) -> float:
    """Return about how many seconds a `sweep` takes with a cache, or an empty one.

    Texts that are cut twice count twice.
    """
    inputs.check()
    sample, share = some_documents(inputs.documents)
    token_rates: dict[tuple[str, str, str], float] = {}
    row_rates: dict[str, float] = {}
    answer_rates: dict[str, float] = {}
    seconds = 0.0
    by_cut = grouped(list(dict.fromkeys(inputs.configurations)), lambda one: (one.model, one.splitting))
    for (name, splitting), of_cut in by_cut.items():
        model = inputs.models[name]
        tokens = [token_spans(document.text, model.tokenizer) for document in sample]
        if SPLITTERS[splitting.method].needs_embed:  # it compares vectors of sentences
            splitting = replace(splitting, method="sentences")
        chunks = split_documents(sample, tokens, model, splitting, VectorCache())
        if name not in row_rates:
            # Without embedding, a row takes as long as one by BM25.
            asked, some = inputs.questions[:SAMPLE_QUESTIONS], chunks[:SAMPLE_CHUNKS]
            labelled = LabelledChunks(asked, some, resamples(len(asked)))
            by_words = replace(of_cut[0], retriever=BM25)
            rows = measure_configurations([by_words], labelled, model, VectorCache(), Progress())
            row_rates[name] = next(rows).seconds * len(inputs.questions) / len(asked)
        seconds += row_rates[name] * len(of_cut) + beside_seconds(of_cut, chunks, model) / share
        if inputs.answering is not None and inputs.answering.questions and chunks:
            rate = answer_rates.get(name) or answer_seconds(inputs.answering, of_cut[0], chunks, model)
            answer_rates[name] = rate
            n_read = 1 + KNOWN_SHARE * (len(of_cut) - 1)
            seconds += rate * len(inputs.answering.questions) * n_read
        for (prompts, precision, limit), same_embedding in grouped(of_cut, embedding_key).items():
            embedder, key = model.with_prompts(prompts).with_precision(precision), (name, prompts, precision)
            if key not in token_rates:
                token_rates[key] = token_seconds(embedder, chunks, limit)
            most = model.token_limit(limit)
            n_tokens = np.array([min(chunk.n_tokens, most) for chunk in chunks]) / share
            poolings = {one.pooling for one in same_embedding if reads_vectors(one)}
            n_whole = (IDF in poolings) + any(
                RETRIEVERS[one.retriever].needs_tokens for one in same_embedding
            )
            known = embedded(chunks, embedder, poolings - {IDF}, limit, cache)
            seconds += token_rates[key] * float(n_whole * n_tokens.sum() + n_tokens[~known].sum())
            reordered = {(one.pooling, one.retriever) for one in same_embedding}
            for retriever in {name for _, name in reordered if RETRIEVERS[name].pairs}:
                reads = pair_model(retriever, embedder)
                if reads is not None:
                    n_read = min(RETRIEVERS[retriever].pairs, round(len(chunks) / share))
                    n_poolings = sum(name == retriever for _, name in reordered)
                    texts = [chunk.indexed for chunk in chunks[:SAMPLE_PAIRS]]
                    seconds += pair_seconds(texts, reads) * n_read * n_poolings * len(inputs.questions)
    return seconds


def embedded(
    chunks: Sequence[Chunk],
    model: Model,
    poolings: Collection[str],
    max_tokens: int | None,
    cache: VectorCache | None,
) -> NDArray[np.bool_]:
    """Whether each chunk has its vectors by all poolings in a cache: ``(n_chunks,)``."""
    if cache is None:
        return np.full(len(chunks), not poolings)
    texts = model.prompts.before("document", [chunk.indexed for chunk in chunks])
    known = np.full(len(texts), True)
    for pooling in poolings:
        known &= cache.get_many(texts, embedding_spec(model, pooling, max_tokens))[1]
    return known


def some_documents(documents: Sequence[Document]) -> tuple[list[Document], float]:
    """Return the first documents, up to `SAMPLE_CHARACTERS`, and their share of all characters."""
    lengths = np.cumsum([len(document.text) for document in documents], dtype=int)
    n = min(len(documents), int(np.searchsorted(lengths, SAMPLE_CHARACTERS)) + 1)
    return list(documents[:n]), max(1, lengths[n - 1]) / max(1, lengths[-1])


def beside_seconds(configurations: Sequence[Configuration], chunks: Sequence[Chunk], model: Model) -> float:
    """Return the seconds that the second models take to read chunks by themselves, once."""
    texts, seconds = [chunk.indexed for chunk in chunks[:SAMPLE_PAIRS]], 0.0
    for kind in {RETRIEVERS[one.retriever].needs for one in configurations} - {""}:
        if (method := SECOND_MODELS[kind].reads) and (encoder := model.as_encoder) is not None:
            read = getattr(second_model(kind, encoder), method)
            seconds += quickest(partial(read, texts)) * len(chunks) / max(1, len(texts))
    return seconds


def answer_seconds(
    answering: Answering, configuration: Configuration, chunks: Sequence[Chunk], model: Model
) -> float:
    """Return the seconds that a question takes to be answered from chunks that were read for another one."""
    texts = SearchTexts((), ())
    indexed = answering.index(configuration.pooling, chunks[: configuration.k], model, texts, VectorCache())
    settings = replace(answering.settings, write=False)
    one = replace(answering, questions=answering.questions[:1], settings=settings)
    by_vectors = replace(configuration, retriever="dense")
    return quickest(lambda: one.rows(by_vectors, indexed, model))


def token_seconds(model: Model, chunks: Sequence[Chunk], max_tokens: int | None = None) -> float:
    """Return the seconds that a model takes for a token of chunks; a few of them are timed."""
    pooling = MODEL_DEFAULT if model.as_encoder is None else "mean"
    lengths = np.cumsum([chunk.n_tokens for chunk in chunks], dtype=int)
    some = chunks[: int(np.searchsorted(lengths, SAMPLE_TOKENS)) + 1]
    texts, limit = [chunk.indexed for chunk in some], model.token_limit(max_tokens)
    if model.as_encoder is not None and model.as_encoder.compiled:
        prepare_compiled().join(KERNELS_SECONDS)
    cached_encode(["warm up"], model, pooling, None, VectorCache())
    seconds = quickest(lambda: cached_encode(texts, model, pooling, max_tokens, VectorCache()))
    return seconds / max(1, sum(min(chunk.n_tokens, limit) for chunk in some))


def pair_seconds(texts: Sequence[str], reranker: Reranker | Reader) -> float:
    """Return the seconds that a reranker takes for a question and one of some passages."""
    return quickest(lambda: reranker.score("What is said here?", texts)) / max(1, len(texts))


def quickest(work: Callable[[], object]) -> float:
    """Return the seconds of the quickest of `SAMPLES` runs."""
    seconds = []
    for _ in range(SAMPLES):
        begin = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - begin)
    return min(seconds)
