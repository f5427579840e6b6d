"""Vectors of the texts of a sweep: all poolings in one pass, with a cache."""

from collections.abc import Callable, Sequence

import numpy as np

from engine.layers.tracing import Array
from engine.models.prompts import Role
from engine.retrieval.embedding_model import Model
from engine.retrieval.vector_cache import VectorCache, cached_encode_all

IDF = "idf"


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
    together = [pooling for pooling in poolings if pooling != IDF]
    vectors = {"": np.empty((len(asked) + len(texts), 0), np.float32)}

    def embed_role(
        role: Role, texts: Sequence[str], model: Model, poolings: Sequence[str]
    ) -> dict[str, Array]:
        last = 0

        def report(done: int, _: int) -> None:
            nonlocal last
            on_embedded(done - last)
            last = done

        return cached_encode_all(texts, model, poolings, max_tokens, cache, report, role)

    def embed(model: Model, poolings: Sequence[str]) -> None:
        questions = embed_role("query", asked, model, poolings)
        chunks = embed_role("document", texts, model, poolings)
        vectors.update({each: np.concatenate([questions[each], chunks[each]]) for each in poolings})

    if together:
        embed(model, together)
    if IDF in poolings:
        encoder = model.as_encoder
        assert encoder is not None, "checked by check_sweep"
        embed(encoder.with_idf(texts), [IDF])
    return vectors
