"""What a question would have found, had the tails that a token limit cut off been read."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from engine.documents.budget import tokenized
from engine.documents.document import Chunk
from engine.errors import InputError
from engine.layers.tracing import Array
from engine.models.encoder import Encoder
from engine.retrieval.index import Index
from engine.retrieval.late import check_question
from engine.retrieval.ranking import ranks
from engine.retrieval.vector_kind import VectorKind
from engine.weights.fetch import Progress


@dataclass(frozen=True)
class TailVectors:
    """Vectors of the truncated chunks of an index with their tails read; they serve every question.

    Attributes
    ----------
    index
        The index.
    rows
        The truncated chunks, as places in ``index.chunks``.
    whole
        Each chunk read in one go, as far as the position table goes: ``(n_rows, d_model)``.
    windows
        The windows that the lost tails are cut into: ``(n_windows, d_model)``, chunk after chunk. The
        first of a chunk begins within what is read already, so that all are full.
    owners
        The number, among ``rows``, of the chunk that each window is of: ``(n_windows,)``, ascending.
    spans
        What each window reads of its document, ``(start, end)`` in characters.
    """

    index: Index = field(repr=False)
    rows: tuple[int, ...]
    whole: Array = field(repr=False)
    windows: Array = field(repr=False)
    owners: Array = field(repr=False)
    spans: tuple[tuple[int, int], ...] = field(repr=False)


@dataclass(frozen=True)
class Place:
    """The rank of a chunk, 1 for the best, and the cosine that gives it."""

    rank: int
    score: float


@dataclass(frozen=True)
class Counterfactual:
    """Where a question finds a truncated chunk, and where it would with the lost tail read.

    Everything else in the index stays as it is.

    Attributes
    ----------
    chunk, row
        The chunk and its place in the index.
    tokens_lost
        Tokens of it that were never read.
    now
        As it is: the tail unread.
    whole
        Had the chunk been read in one go, as far as the position table goes.
    windows
        Had its tail been cut into windows that fit the limit: the best counts, or what is read now.
    best_window
        What that window reads, ``(start, end)`` in the document; None where it is the one read now.
    """

    chunk: Chunk
    row: int
    tokens_lost: int
    now: Place
    whole: Place
    windows: Place
    best_window: tuple[int, int] | None

    @property
    def ranks_won(self) -> int:
        """Ranks that the better of the two ways would win; negative where both would lose some."""
        return self.now.rank - min(self.whole.rank, self.windows.rank)


def tail_vectors(
    index: Index,
    encoder: Encoder,
    rows: Sequence[int] | None = None,
    on_progress: Progress | None = None,
) -> TailVectors:
    """Embed what the index never read of its chunks.

    Parameters
    ----------
    index
        The index; the vectors are made as its own were, under its pooling.
    encoder
        The model of the index.
    rows
        Chunks of interest, as places in ``index.chunks``; None for all that lost a tail.
    on_progress
        Called with texts embedded and texts in all: one a chunk and one a window of its tail.

    Raises
    ------
    InputError
        The encoder is not the index's, or a row is not in it or lost nothing.
    """
    encoder, kind = index.encoder(encoder), index.kind
    if VectorKind.of(encoder, kind.pooling, kind.max_tokens) != kind:
        raise InputError(f"the index holds vectors of {kind}, not of {encoder.name}: build it again")
    if rows is None:
        rows = [row for row, chunk in enumerate(index.chunks) if chunk.n_tokens > index.kind.max_tokens]
    for row in rows:
        check_row(row, index)
    chunks = [index.chunks[row] for row in rows]
    room = index.kind.max_tokens - encoder.tokenizer.n_special
    whole, windows, spans, n_windows = [], [], [], []
    for chunk, encoding in zip(chunks, tokenized([c.text for c in chunks], encoder.tokenizer), strict=True):
        whole.append(encoder.truncate(encoding.ids, encoder.config.max_positions))
        cls, *body, sep = encoding.ids
        own = [[cls, *body[window], sep] for window in tail_windows(len(body), room)]
        windows += own
        n_windows.append(len(own))
        spans += tail_spans(chunk, encoding.offsets[1:-1], room)
    sequences = whole + windows
    vectors = encoder.encode_ids(sequences, kind.pooling, on_progress=on_progress).astype(np.float32)
    return TailVectors(
        index=index,
        rows=tuple(rows),
        whole=vectors[: len(rows)],
        windows=vectors[len(rows) :],
        owners=np.repeat(np.arange(len(rows)), np.array(n_windows, int)),
        spans=tuple(spans),
    )


def tail_windows(n_tokens: int, room: int) -> list[slice]:
    """Cut what is behind the first ``room`` tokens into windows of ``room``, back from the end.

    So every window is full, as the chunks of a smaller size would be: the vector of the two or three
    tokens that can be left over says nothing, and still comes first for many a question.
    """
    return [slice(start, start + room) for start in range(n_tokens % room or room, n_tokens, room)]


def tail_spans(chunk: Chunk, offsets: Sequence[tuple[int, int]], room: int) -> list[tuple[int, int]]:
    """What each window of a chunk's tail reads of the document, ``(start, end)`` in characters."""
    windows = [offsets[window] for window in tail_windows(len(offsets), room)]
    return [(chunk.start + window[0][0], chunk.start + window[-1][1]) for window in windows]


def counterfactuals(question: Array, tails: TailVectors) -> list[Counterfactual]:
    """Say where a question would find each truncated chunk if its lost tail had been read.

    This is dot products alone: make the tails once, and ask as much as you like.

    Parameters
    ----------
    question
        The question's vector, ``(d_model,)``, of length 1.
    tails
        The truncated chunks, read further.

    Returns
    -------
    list of Counterfactual
        One a truncated chunk; those that would win most ranks first.

    Raises
    ------
    InputError
        The question's vector does not fit the index.
    """
    index, rows = tails.index, list(tails.rows)
    check_question(question, index.vectors)
    scores = index.vectors @ question  # (n_chunks,)
    now, whole = scores[rows], tails.whole @ question  # (n_rows,) each
    best, numbers = best_windows(now, tails.windows @ question, tails.owners)
    now_ranks, whole_ranks, best_ranks = (replaced_ranks(new, now, scores) for new in (now, whole, best))
    found = [
        Counterfactual(
            chunk=index.chunks[row],
            row=row,
            tokens_lost=index.chunks[row].n_tokens - index.kind.max_tokens,
            now=Place(int(now_ranks[i]), float(now[i])),
            whole=Place(int(whole_ranks[i]), float(whole[i])),
            windows=Place(int(best_ranks[i]), float(best[i])),
            best_window=None if numbers[i] < 0 else tails.spans[numbers[i]],
        )
        for i, row in enumerate(rows)
    ]
    return sorted(found, key=lambda one: (-one.ranks_won, one.now.rank))


def best_windows(now: Array, windows: Array, owners: Array) -> tuple[Array, Array]:
    """Best score of each chunk over all its windows, and the window's number, -1 for the one read now.

    ``now (n_rows,)`` are the scores of the windows read now, ``windows (n_windows,)`` of the others.
    """
    best, numbers = now.copy(), np.full(len(now), -1)
    np.maximum.at(best, owners, windows)
    winners = np.flatnonzero((windows == best[owners]) & (windows > now[owners]))
    numbers[owners[winners]] = winners
    return best, numbers


def replaced_ranks(new: Array, now: Array, scores: Array) -> Array:
    """Rank that each chunk would have with a new score in its present one's place, the others unchanged."""
    return ranks(new, scores) - (now > new)  # a chunk does not stand before itself


def check_row(row: int, index: Index) -> None:
    """Raise `InputError` for a chunk that is not in the index or was read whole."""
    if not 0 <= row < len(index.chunks):
        raise InputError(f"chunk {row} is not in the index: it holds 0 to {len(index.chunks) - 1}")
    n_tokens = index.chunks[row].n_tokens
    if n_tokens <= index.kind.max_tokens:
        raise InputError(
            f"chunk {row} lost nothing: it has {n_tokens} tokens and {index.kind.max_tokens} are read of one"
        )
