"""Vectors of the texts of a sweep: all poolings in one pass, with a cache."""

from collections.abc import Callable, Sequence

import numpy as np

from engine.layers.tracing import Array
from engine.models.encoder import Encoder
from engine.models.prompts import Role
from engine.retrieval.embedding_model import Model, embedding_spec
from engine.retrieval.vector_cache import VectorCache

BLOCK_TEXTS = 256  # embedded before they are written to the cache
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
    needs none.
    """
    together = [pooling for pooling in poolings if pooling != IDF]
    vectors = {"": np.empty((len(asked) + len(texts), 0), np.float32)}

    def embed(model: Model, poolings: Sequence[str]) -> dict[str, Array]:
        questions = embed_cached(asked, model, poolings, max_tokens, cache, on_embedded, "query")
        chunks = embed_cached(texts, model, poolings, max_tokens, cache, on_embedded)
        return {pooling: np.concatenate([questions[pooling], chunks[pooling]]) for pooling in poolings}

    vectors |= embed(model, together)
    if IDF in poolings:
        assert isinstance(model, Encoder), "checked by check_sweep"
        vectors |= embed(model.with_idf(texts), [IDF])
    return vectors


def embed_cached(
    texts: Sequence[str],
    model: Model,
    poolings: Sequence[str],
    max_tokens: int | None,
    cache: VectorCache,
    on_embedded: Callable[[int], None] = lambda n_more: None,
    role: Role = "document",
) -> dict[str, Array]:
    """Embed texts by several poolings in one pass; each distinct text is embedded once, if not in the cache.

    Parameters
    ----------
    texts, model, poolings, max_tokens
        As in `Encoder.encode`.
    cache
        Cache of vectors, written every `BLOCK_TEXTS` texts, or after each request to a server: what was
        embedded before it failed is kept.
    on_embedded
        Called with the number of texts done since the last call, cached ones included; it may raise to stop.
    role
        Whether the texts are the documents or the questions of a search.

    Returns
    -------
    dict
        Vectors by pooling, float32 ``(n_texts, d_model)``, rows of length 1.
    """
    specs = {pooling: embedding_spec(model, pooling, max_tokens) for pooling in poolings}
    read = model.prompts.before(role, texts)
    found = {pooling: cache.get_many(read, spec) for pooling, spec in specs.items()}
    lacking = [pooling for pooling, (_, known) in found.items() if not known.all()]
    rows: dict[str, list[int]] = {}  # rows of each missing text
    for row in sorted({row for pooling in lacking for row in np.flatnonzero(~found[pooling][1]).tolist()}):
        rows.setdefault(texts[row], []).append(row)
    missing = list(rows)
    on_embedded(len(texts) - len(missing) if poolings else 0)
    n_block = BLOCK_TEXTS if isinstance(model, Encoder) else model.block_texts
    for start in range(0, len(missing), n_block):
        block = missing[start : start + n_block]
        new = model.encode_as(
            role, block, lacking, max_tokens=max_tokens, on_progress=lambda *_: on_embedded(0)
        )
        for pooling in lacking:
            cache.put_many(model.prompts.before(role, block), new[pooling], specs[pooling])
            for text, vector in zip(block, new[pooling], strict=True):
                found[pooling][0][rows[text]] = vector
        on_embedded(len(block))
    return {pooling: vectors for pooling, (vectors, _) in found.items()}
