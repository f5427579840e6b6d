"""The search for the passages that may answer a question."""

from collections.abc import Sequence
from itertools import pairwise
from time import perf_counter

from ..errors import InputError, check_question
from ..retrieval.embedding_model import Model, embedding_spec, encode_by
from ..retrieval.embedding_spec import Query
from ..retrieval.index import Hit, Index
from ..retrieval.parents import search_parents
from ..retrieval.relevance import NullScores, null_scores_of
from ..retrieval.retrievers import found_rows, reason_unavailable
from .answer import Retrieval, SearchTimes
from .settings import DEFAULT_SEARCH, SearchSettings


def retrieve(
    question: str,
    index: Index,
    encoder: Model,
    settings: SearchSettings = DEFAULT_SEARCH,
    null_scores: NullScores | None = None,
) -> Retrieval:
    """Find the ``settings.k`` best passages for a question, and how close they are.

    The question is embedded as the index was: its pooling and token limit. A passage is a chunk, or its
    parent where it has one. The retriever decides which passages are found, and their order; whether a
    passage counts as relevant depends only on its cosine with the question. So a passage with the words of
    the question and another subject is found by BM25, and still is not relevant. ``null_scores`` are those of
    unrelated questions in this index; None computes them here, at the cost of embedding about a hundred
    questions.
    """
    check_question(question)
    if reason := reason_unavailable(settings.retriever, encoder):
        raise InputError(reason)
    null_scores = null_scores_of(index, encoder) if null_scores is None else null_scores
    encoder, k = index.encoder(encoder), settings.k
    pooling, max_tokens = index.spec.pooling, index.spec.max_tokens
    spec = embedding_spec(encoder, pooling, max_tokens)
    start = perf_counter()
    if (with_tokens := encoder.as_encoder) is not None:
        prompted = encoder.prompts.before("query", [question])
        ids = [with_tokens.truncate(each, max_tokens) for each in encoder.tokenizer.ids_batch(prompted)]
        tokenized = perf_counter()
        vectors = with_tokens.encode_ids(ids, pooling)  # (1, d_model)
    else:
        tokenized = start  # the time to tokenize is part of encode_s
        vectors = encode_by(spec, "query", [question], encoder)
    encoded = perf_counter()
    by_cosine, query, order = settings.retriever == "dense", Query(vectors[0], spec), None
    if not by_cosine:
        order = found_rows(settings.retriever, question, query, index, with_tokens, k + 1)
    # One more, for the margin of the last.
    found = search_parents(index, query, k + 1 if k > 0 else k, order)
    index.check_whole()
    searched = perf_counter()
    return Retrieval(
        hits=tuple(found[:k]),
        margins=(margins(found) if by_cosine else (None,) * len(found))[:k],
        null_scores=null_scores,
        min_relevance=settings.min_relevance,
        retriever=settings.retriever,
        times=SearchTimes(tokenized - start, encoded - tokenized, searched - encoded),
    )


def margins(hits: Sequence[Hit]) -> tuple[float | None, ...]:
    """Difference between each hit's score and the next one's; None for the last."""
    return (*(hit.score - following.score for hit, following in pairwise(hits)), None)
