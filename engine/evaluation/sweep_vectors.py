"""Vectors of the texts of a sweep: all poolings in one pass, and none that were made before."""

from collections.abc import Callable, Sequence

import numpy as np

from engine.evaluation.library_model import Model, vector_kind
from engine.layers.tracing import Array
from engine.models.encoder import Encoder
from engine.retrieval.vector_cache import VectorCache

BLOCK_TEXTS = 256  # embedded before they are kept
IDF = "idf"


def n_passes(poolings: Sequence[str]) -> int:
    """How often texts go through the layers: once for all poolings, and once more for "idf"."""
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

    The words' weights of "idf" are those of these chunks. Under the name "" stand vectors without numbers,
    for BM25, which looks at none.
    """
    both = [*asked, *texts]
    together = [pooling for pooling in poolings if pooling != IDF]
    vectors = {"": np.empty((len(both), 0), np.float32)}
    vectors |= embedded(both, model, together, max_tokens, cache, on_embedded)
    if IDF in poolings:
        assert isinstance(model, Encoder), "checked by check_sweep"
        vectors |= embedded(both, model.with_idf(texts), [IDF], max_tokens, cache, on_embedded)
    return vectors


def embedded(
    texts: Sequence[str],
    model: Model,
    poolings: Sequence[str],
    max_tokens: int | None,
    cache: VectorCache,
    on_embedded: Callable[[int], None] = lambda n_more: None,
) -> dict[str, Array]:
    """Embed texts by several poolings in one pass, each once, and only those that the cache does not hold.

    Parameters
    ----------
    texts, model, poolings, max_tokens
        As in `Encoder.encode`.
    cache
        Where vectors are looked up, and kept every `BLOCK_TEXTS` texts.
    on_embedded
        Called with how many texts more are done, those that were found among them; what it raises ends it.

    Returns
    -------
    dict
        Of each pooling float32 ``(n_texts, d_model)``, rows of length 1.
    """
    kinds = {pooling: vector_kind(model, pooling, max_tokens) for pooling in poolings}
    found = {pooling: cache.get_many(texts, kind) for pooling, kind in kinds.items()}
    lacking = [pooling for pooling, (_, known) in found.items() if not known.all()]
    rows: dict[str, list[int]] = {}  # where each missing text stands
    for row in sorted({row for pooling in lacking for row in np.flatnonzero(~found[pooling][1]).tolist()}):
        rows.setdefault(texts[row], []).append(row)
    missing = list(rows)
    on_embedded(len(texts) - len(missing) if poolings else 0)
    for start in range(0, len(missing), BLOCK_TEXTS):
        block = missing[start : start + BLOCK_TEXTS]
        new = model.encode(block, lacking, max_tokens=max_tokens, on_progress=lambda *_: on_embedded(0))
        for pooling in lacking:
            cache.put_many(block, new[pooling], kinds[pooling])
            for text, vector in zip(block, new[pooling], strict=True):
                found[pooling][0][rows[text]] = vector
        on_embedded(len(block))
    return {pooling: vectors for pooling, (vectors, _) in found.items()}
