"""Documents scored for a query, in the shapes of Cohere, Jina and Hugging Face's TEI.

A cross-encoder scores them where one is served; else the reader does, by how well words of a document
answer the query, and BM25 by the words in common: the sigmoid of the answer's score over that of no answer,
less where BM25 scores a document below the best. TEI's raw scores are those before the last function.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from ..layers.activation import sigmoid
from ..layers.tracing import Array
from ..models.reader import Window
from ..retrieval.bm25 import Bm25
from .batching import Compute
from .bodies import RequestError, RerankBody, model_warnings, warned
from .reading import GROUP_CHARACTERS, check_texts, check_tokens, groups, in_thread, read_pairs
from .served import Served

READER = "glassbox-reader"
# Of BM25, 0 to 1 of the best document's, added to the reader's score: of 16 candidates each, the mean
# reciprocal rank is 0.83 on 160 bundled questions and 0.93 on as many of SQuAD 2.0, by the reader only 0.74
# and 0.91.
WORDS_WEIGHT = 10.0
WORDLESS = -100.0  # the raw score of a document without words, below any other


async def reranked(
    body: RerankBody, served: Served, compute: Compute, cohere: str = ""
) -> dict[str, Any] | list[Any]:
    """Return the documents of a request by their scores, the best first; ``cohere`` is its version."""
    passages, reranker = body.passages, served.encoder.reranker
    field = "documents" if body.texts is None else "texts"
    check_texts(len(passages), served.limits, field)
    name, method = (READER, "reader") if reranker is None else (reranker.name, "cross-encoder")
    warnings = [*body.warnings, *model_warnings(body.model, [name])]
    n_characters = len(body.query) * len(passages) + sum(map(len, passages))
    if reranker is not None:
        pairs = (body.query, passages, reranker, served, body.truncate)
        read = await in_thread(n_characters, read_pairs, *pairs)
        scores, n_tokens = await compute(("pairs", body.raw_scores), read.items, read.sizes), sum(read.sizes)
        truncation = read.truncation()
    else:
        windows, words, truncation = await in_thread(n_characters, read_windows, body, served)
        sizes = [len(window.ids) for _, window in windows]
        found = await compute(("windows",), [window for _, window in windows], sizes)
        margins, n_tokens = np.full(len(passages), WORDLESS), sum(sizes)
        np.maximum.at(margins, [number for number, _ in windows], found)
        margins = np.where(margins > WORDLESS, margins + WORDS_WEIGHT * (words - 1), WORDLESS)
        scores = (margins if body.raw_scores else sigmoid(margins)).tolist()
    order = sorted(range(len(passages)), key=lambda number: -scores[number])[: body.top_n]
    if body.texts is not None:
        return [
            {"index": number, "score": scores[number]}
            | ({"text": passages[number]} if body.return_text else {})
            for number in order
        ]
    return {
        "object": "list",
        "model": name,
        "method": method,
        "results": [
            {"index": number, "relevance_score": scores[number]}
            | ({"document": {"text": passages[number]}} if body.return_documents else {})
            for number in order
        ],
        "usage": {"total_tokens": n_tokens},
        **truncation,
        **warned(warnings),
        **({"meta": {"api_version": {"version": cohere}, **warned(warnings)}} if cohere else {}),
    }


def read_windows(
    body: RerankBody, served: Served, is_stopped: Callable[[], bool] = lambda: False
) -> tuple[list[tuple[int, Window]], Array, dict[str, Any]]:
    """Return the windows of documents that the reader reads with the query, by the numbers of documents.

    And BM25's score of each document as a share of the best, ``(n_documents,)``, all 1 without common words.
    Of a document up to `GROUP_CHARACTERS` are read; of a query the reader reads its first words.
    """
    passages, reader, n_tokens = body.passages, served.reader, 0
    cut = [number for number, text in enumerate(passages) if len(text) > GROUP_CHARACTERS]
    if cut and not served.cuts(body.truncate):
        why = (
            f"documents: text {cut[0]} has {len(passages[cut[0]]):,} characters, over the "
            f'{GROUP_CHARACTERS:,} that are read: cut it, or send "truncate": true'
        )
        raise RequestError(400, why, "documents", "context_length_exceeded")
    if not body.query.strip():
        raise RequestError(400, "query: text 0 is empty: leave it out", "query")
    windows: list[tuple[int, Window]] = []
    for start, group in groups(passages, GROUP_CHARACTERS):
        if is_stopped():
            break
        found = reader.windows(body.query[:GROUP_CHARACTERS], group)
        windows += [(start + window.passage, window) for window in found]
        n_tokens += sum(len(window.ids) for window in found)
        check_tokens(n_tokens, served.limits, "documents", is_all=start + len(group) == len(passages))
    entries = [
        {"index": place, "characters": len(passages[place]), "read": GROUP_CHARACTERS} for place in cut
    ]
    read = [text[:GROUP_CHARACTERS] for text in passages]
    words = Bm25(read).scores([body.query[:GROUP_CHARACTERS]])[0]
    shares = words / words.max() if words.max(initial=0) > 0 else np.ones(len(read))
    return windows, shares, {"truncated": entries} if entries else {}
