"""Ranks that chunks would have if their tails beyond the token limit were read."""

from dataclasses import dataclass, field

import numpy as np

from ...documents.document import Chunk
from ...documents.truncation import tokenized
from ...errors import InputError
from ...layers.tracing import Array
from ...models.encoder import Encoder
from ...retrieval.embedding_model import embedding_spec
from ...retrieval.index import Index
from ...retrieval.late import check_question
from ...retrieval.ranking import min_ranks
from ...weights.fetch import Progress
from ...wording import model_name


@dataclass(frozen=True)
class TailVectors:
    """Vectors of the truncated chunks of an index with their tails read, for any question."""

    index: Index = field(repr=False)
    limit: int  # tokens of a chunk that are read
    rows: tuple[int, ...]  # the truncated chunks, as rows of ``index.chunks``
    # each chunk read in one pass, up to the length of the position table: ``(n_rows, d_model)``
    whole: Array = field(repr=False)
    # the windows that the tails are cut into, chunk after chunk: ``(n_windows, d_model)``
    windows: Array = field(repr=False)
    # the number, among ``rows``, of the chunk of each window: ``(n_windows,)``, ascending
    owners: Array = field(repr=False)


@dataclass(frozen=True)
class RankedScore:
    """The rank of a chunk, 1 for the best, and the score that gives it."""

    rank: int
    score: float


@dataclass(frozen=True)
class Counterfactual:
    """The rank of a truncated chunk for a question, with everything else in the index unchanged."""

    chunk: Chunk
    row: int
    tokens_truncated: int
    now: RankedScore  # as it is
    whole: RankedScore  # with the chunk read in one pass, up to the length of the position table
    # with its tail cut into windows that fit the limit: the best of them counts, or the part read now
    windows: RankedScore

    @property
    def ranks_won(self) -> int:
        """Ranks gained by the better of the two ways; negative where both lose some."""
        return self.now.rank - min(self.whole.rank, self.windows.rank)


def tail_vectors(index: Index, encoder: Encoder, on_progress: Progress | None = None) -> TailVectors:
    """Embed the tails of an index's truncated chunks, by the pooling of the index.

    ``on_progress`` is called with texts embedded and in all: one a chunk and one a window of its tail.
    """
    encoder, spec = index.encoder(encoder), index.spec
    if embedding_spec(encoder, spec.pooling, spec.max_tokens) != spec:
        raise InputError(
            f"the index holds vectors of {spec}, not of {model_name(encoder.name)}: build it again"
        )
    limit = encoder.text_limit(spec.max_tokens)
    rows = [row for row, chunk in enumerate(index.chunks) if chunk.n_tokens > limit]
    room = limit - encoder.tokenizer.n_special
    _, prompt, _ = encoder.tokenizer.around(encoder.tokenizer.encode(encoder.prompts.of("document")).ids)
    whole, windows, n_windows = [], [], []
    for encoding in tokenized([index.chunks[row].indexed for row in rows], encoder.tokenizer):
        before, body, after = encoder.tokenizer.around(encoding.ids)
        whole.append(encoder.truncate([*before, *prompt, *body, *after], encoder.config.max_positions))
        # Counted from the end, so that every window is full, as the chunks of a smaller size would be: one of
        # two or three tokens has a meaningless vector that still ranks first for many questions.
        starts = range(len(body) % room or room, len(body), room)
        own = [[*before, *prompt, *body[start : start + room], *after] for start in starts]
        windows += own
        n_windows.append(len(own))
    sequences = whole + windows
    vectors = encoder.encode_ids(sequences, spec.pooling, on_progress=on_progress).astype(np.float32)
    return TailVectors(
        index=index,
        limit=limit,
        rows=tuple(rows),
        whole=vectors[: len(rows)],
        windows=vectors[len(rows) :],
        owners=np.repeat(np.arange(len(rows)), np.array(n_windows, int)),
    )


def counterfactuals(question: Array, tails: TailVectors) -> list[Counterfactual]:
    """Rank each truncated chunk for a question ``(d_model,)``, those that gain most ranks first."""
    index, rows = tails.index, list(tails.rows)
    check_question(question, index.vectors)
    scores = index.vectors @ question  # (n_chunks,)
    now, whole = scores[rows], tails.whole @ question  # (n_rows,) each
    best = now.copy()  # of each chunk's read part and its windows
    np.maximum.at(best, tails.owners, tails.windows @ question)
    # the rank of each chunk with a new score, the others unchanged: a chunk is not its own rival
    now_ranks, whole_ranks, best_ranks = (min_ranks(new, scores) - (now > new) for new in (now, whole, best))
    found = [
        Counterfactual(
            chunk=index.chunks[row],
            row=row,
            tokens_truncated=index.chunks[row].n_tokens - tails.limit,
            now=RankedScore(int(now_ranks[i]), float(now[i])),
            whole=RankedScore(int(whole_ranks[i]), float(whole[i])),
            windows=RankedScore(int(best_ranks[i]), float(best[i])),
        )
        for i, row in enumerate(rows)
    ]
    return sorted(found, key=lambda one: (-one.ranks_won, one.now.rank))
