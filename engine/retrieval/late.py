"""Late chunking (Günther et al. 2024): embed a long text first, split it into chunks afterwards.

Ordinarily each chunk is embedded by itself, so that "it was finished in 1891" lacks what "it" is. Here the
tokens of the whole text attend to each other, and a chunk's vector is the mean over its own tokens.

The cost: all-MiniLM-L6-v2 was trained on contexts of 128 tokens. Its position table has 512 rows, but vectors
from longer contexts were not trained to be comparable, and drift towards the topic of the whole window.
Whether a chunk is found better or worse has to be measured, question by question.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..documents.document import Chunk, Document
from ..errors import InputError
from ..layers.norm import l2_normalize
from ..layers.pooling import mean_pooling
from ..layers.tracing import Array
from ..models.encoder import Encoder
from ..models.parallel import run_parallel
from ..weights.fetch import Progress
from .ranking import min_ranks


@dataclass(frozen=True)
class RankChange:
    """Rank and score of one chunk for a question, by its ordinary and by its late vector."""

    row: int  # the chunk's place among the chunks
    rank: int  # from 1
    score: float  # a cosine
    late_rank: int
    late_score: float


def late_vectors(
    document: Document,
    chunks: Sequence[Chunk],
    encoder: Encoder,
    context_tokens: int = 512,
    on_progress: Progress | None = None,
) -> Array:
    """Embed the chunks of one document in their context.

    The document is read in windows of ``context_tokens``, each half a window after the one before and with
    its own [CLS] and [SEP]; a chunk is pooled from the window whose middle is nearest to its own. Tokens are
    pooled as in the paper's code: [CLS] belongs to the document's first chunk and [SEP] to its last, so that
    a chunk which is the whole document has its ordinary vector.

    ``context_tokens`` counts [CLS] and [SEP]; ``on_progress`` is called with windows read and in all. Returns
    ``(n_chunks, d_model)``, rows of length 1.
    """
    n_special = encoder.tokenizer.n_special
    room = encoder.token_limit(context_tokens) - n_special
    check_chunks(document, chunks)
    [encoding] = encoder.tokenizer.encode_batch([document.text])
    _, offsets, _ = encoder.tokenizer.around(encoding.offsets)
    first, last = token_spans(offsets, chunks)  # (n_chunks,) each
    check_context(chunks, last - first, room, n_special)
    n_tokens = len(encoding) - n_special
    starts = window_starts(first, last, n_tokens, room)  # (n_chunks,)
    vectors = np.empty((len(chunks), encoder.config.d_model), np.float32)
    before, body, after = encoder.tokenizer.around(encoding.ids)

    def read(start: int) -> None:
        """Read one window and pool the chunks that belong to it."""
        [states] = encoder.token_states([[*before, *body[start : start + room], *after]])
        for row in np.flatnonzero(starts == start):
            # [CLS] stands before the window's tokens, and belongs to the first chunk, as [SEP] to the last
            begin = first[row] - start + len(before) * (first[row] > 0)
            end = last[row] - start + len(before) + len(after) * (last[row] == n_tokens)
            vectors[row] = mean_pooling(states.vectors[begin:end])

    windows = np.unique(starts).tolist()
    for n_done, _ in enumerate(run_parallel(read, windows), start=1):
        if on_progress is not None:
            on_progress(n_done, len(windows))
    return l2_normalize(vectors)


def token_spans(offsets: Sequence[tuple[int, int]], chunks: Sequence[Chunk]) -> tuple[Array, Array]:
    """First token of each chunk and the one after its last, not counting [CLS]: ``(n_chunks,)`` each."""
    spans = np.array(offsets, np.int64).reshape(-1, 2)  # (n_tokens, 2)
    first = np.searchsorted(spans[:, 1], [chunk.start for chunk in chunks], side="right")
    last = np.searchsorted(spans[:, 0], [chunk.end for chunk in chunks], side="left")
    # A chunk of characters that the tokenizer drops gets the token before it.
    return np.minimum(first, np.maximum(last - 1, 0)), last


def window_starts(first: Array, last: Array, n_tokens: int, room: int) -> Array:
    """First token of the window that each chunk is pooled from: ``(n_chunks,)``.

    Windows of ``room`` tokens start half a window apart, and the last ends with the document, so that any
    chunk of up to half a window lies in one; a longer one that lies in none gets a window of its own.
    """
    step = max(room // 2, 1)
    furthest = max(n_tokens - room, 0)
    centred = np.clip((first + last - room) // 2, 0, furthest)
    before = centred // step * step
    after = np.minimum(before + step, furthest)  # the last window ends with the document
    nearest = np.where(centred - before < after - centred, before, after)
    holds = (nearest <= first) & (last <= nearest + room)
    return np.where(holds, nearest, centred)


def vector_cosines(ordinary: Array, late: Array) -> Array:
    """Cosine of each chunk's two vectors of length 1: two of ``(n_chunks, d_model)`` to ``(n_chunks,)``."""
    check_alike(ordinary, late)
    return np.clip(np.einsum("nd,nd->n", ordinary.astype(np.float64), late.astype(np.float64)), -1, 1)


def rank_changes(question: Array, ordinary: Array, late: Array) -> list[RankChange]:
    """Ranks and scores of all chunks by ordinary and late vectors ``(n_chunks, d_model)``, best first."""
    check_alike(ordinary, late)
    check_question(question, ordinary)
    scores, late_scores = ordinary @ question, late @ question  # (n_chunks,) each
    before, after = min_ranks(scores), min_ranks(late_scores)
    return [
        RankChange(row, int(before[row]), float(scores[row]), int(after[row]), float(late_scores[row]))
        for row in np.argsort(-late_scores, kind="stable").tolist()
    ]


def check_chunks(document: Document, chunks: Sequence[Chunk]) -> None:
    """Raise `InputError` for a chunk that is not a span of the document."""
    for chunk in chunks:
        if chunk.document != document.name or document.text[chunk.start : chunk.end] != chunk.text:
            raise InputError(
                f"the chunk at {chunk.start} to {chunk.end} of {chunk.document} is not one of "
                f"{document.name}: split this document again"
            )


def check_context(chunks: Sequence[Chunk], n_tokens: Array, room: int, n_special: int) -> None:
    """Raise `InputError` for a chunk of more tokens than fit into a window."""
    if len(chunks) and n_tokens.max() > room:
        chunk = chunks[int(n_tokens.argmax())]
        raise InputError(
            f"the chunk at {chunk.start} of {chunk.document} has {n_tokens.max()} tokens, and a context of "
            f"{room + n_special} has room for {room}: lower the chunk size or raise the context"
        )


def check_alike(ordinary: Array, late: Array) -> None:
    """Raise `InputError` unless two sets of vectors can be compared row by row."""
    if ordinary.shape != late.shape:
        raise InputError(
            f"the vectors have shapes {ordinary.shape} and {late.shape}: give both kinds of the same chunks"
        )


def check_question(question: Array, vectors: Array) -> None:
    """Raise `InputError` for a question's vector that is not finite or not of the vectors' length."""
    if question.shape != vectors.shape[1:]:
        raise InputError(
            f"the question's vector has shape {question.shape}, the chunks' have {vectors.shape[1:]}: embed "
            f"both with one model"
        )
    if not np.isfinite(question).all():
        raise InputError("the question's vector is not finite: it holds NaN or infinity")
