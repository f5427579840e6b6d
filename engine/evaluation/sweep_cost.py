"""The time of a sweep before it runs: a sample is embedded and searched, and extrapolated."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from functools import partial
from timeit import repeat

import numpy as np

from ..documents.document import Chunk, Document
from ..documents.splitters import SPLITTERS
from ..documents.token_spans import token_spans
from ..kernels.primitives import prepare_compiled
from ..models.embedding_head import MODEL_DEFAULT
from ..models.reader import Reader, shipped_reader
from ..models.reranker import Reranker
from ..models.second_models import SECOND_MODELS
from ..retrieval.embedding_model import Model, embedding_spec
from ..retrieval.retrievers import RETRIEVERS, SearchTexts, second_model
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
NEW_SHARE = 0.45  # of the passages of an answer in a further configuration of a cut: others were read
SAMPLES = 2  # the quickest counts, without one-time work such as the start of an app
Rate = Callable[[Model, Sequence[Chunk], int | None], float]
KERNELS_SECONDS = 10  # most time to wait for the encoder's kernels to be loaded or compiled


def sweep_seconds(inputs: SweepInputs, cache: VectorCache | None = None, timed: Rate | None = None) -> float:
    """Return about how many seconds a `sweep` takes with a cache, or an empty one.

    A text is embedded and read once, however often it is cut. ``timed`` times tokens as `token_seconds` does.
    """
    inputs.check()
    cache = VectorCache() if cache is None else cache
    sample, share = some_documents(inputs.documents)
    token_rates: dict[tuple[str, str, str], float] = {}
    row_rates: dict[str, float] = {}
    answer_rates: dict[str, tuple[float, float]] = {}
    seconds, seen = 0.0, set[Hashable]()
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
            anew = [replace(of_cut[0], retriever=BM25)], labelled, model, VectorCache()
            rows = [next(measure_configurations(*anew, Progress())).seconds for _ in range(SAMPLES)]
            row_rates[name] = min(rows) * len(inputs.questions) / len(asked)
        seconds += row_rates[name] * len(of_cut) + beside_seconds(of_cut, chunks, model) / share
        if inputs.answering is not None and inputs.answering.questions and chunks:
            if name not in answer_rates:
                answer_rates[name] = answer_seconds(inputs.answering, of_cut[0], chunks, model)
            each, token = answer_rates[name]
            new = sum(chunk.n_tokens for chunk in chunks if (name, chunk.indexed) not in seen) / len(chunks)
            n_read = min(len(chunks) / share, of_cut[0].k * (1 + NEW_SHARE * (len(of_cut) - 1)))
            seconds += (each * len(of_cut) + token * new * n_read) * len(inputs.answering.questions)
            seen.update((name, chunk.indexed) for chunk in chunks)
        for (prompts, precision, limit), same_embedding in grouped(of_cut, embedding_key).items():
            embedder, key = model.with_prompts(prompts).with_precision(precision), (name, prompts, precision)
            if key not in token_rates:
                token_rates[key] = (timed or token_seconds)(embedder, chunks, limit)
            most = model.token_limit(limit)
            n_tokens = np.array([min(chunk.n_tokens, most) for chunk in chunks]) / share
            poolings = {one.pooling for one in same_embedding if reads_vectors(one)}
            once, texts = (*key, limit), [chunk.indexed for chunk in chunks]
            n_whole = (IDF in poolings and (*once, *texts) not in seen) + any(
                RETRIEVERS[one.retriever].needs_tokens for one in same_embedding
            )
            given = embedder.prompts.before("document", texts)
            specs = [embedding_spec(embedder, pooling, limit) for pooling in poolings - {IDF}]
            known = np.array([(*once, text) in seen for text in texts], bool)
            known |= np.all([cache.get_many(given, spec)[1] for spec in specs], axis=0)
            seen |= {(*once, *texts), *((*once, text) for text in texts)}
            seconds += token_rates[key] * float(n_whole * n_tokens.sum() + n_tokens[~known].sum())
            reordered = {(one.pooling, one.retriever) for one in same_embedding}
            for retriever in {name for _, name in reordered if RETRIEVERS[name].pairs}:
                reads = shipped_reader(embedder.as_encoder) if retriever == "reader" else embedder.reranker
                if reads is not None:  # else there is no cross-encoder
                    n_read = min(RETRIEVERS[retriever].pairs, round(len(chunks) / share))
                    n_poolings = sum(name == retriever for _, name in reordered)
                    texts = [chunk.indexed for chunk in chunks[:SAMPLE_PAIRS]]
                    seconds += pair_seconds(texts, reads) * n_read * n_poolings * len(inputs.questions)
    return seconds


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
) -> tuple[float, float]:
    """Return the seconds of an answer from chunks that were read for its question, and of a token to read."""
    texts, some = SearchTexts((), ()), chunks[: configuration.k]
    indexed = answering.index(configuration.pooling, some, model, texts, VectorCache())
    settings = replace(answering.settings, write=False)
    one = replace(answering, questions=answering.questions[:1], settings=settings)
    by_vectors, again = replace(configuration, retriever="dense"), one.with_memory()
    anew, known = (quickest(partial(each.rows, by_vectors, indexed, model)) for each in (one, again))
    return known, max(0.0, anew - known) / max(1, sum(chunk.n_tokens for chunk in some))


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
    return min(repeat(work, repeat=SAMPLES, number=1))
