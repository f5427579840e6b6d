"""The part of a text beyond the token limit, and how far the vector moves without it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.documents.unread_text import read_length
from engine.errors import InputError
from engine.layers.norm import l2_normalize
from engine.layers.tracing import Array
from engine.models.encoder import Encoder
from engine.tokenizers.text_tokenizer import TextTokenizer

# The three limits of all-MiniLM-L6-v2: its training length, that of sentence-transformers, and its position
# table.
LIMITS = (128, 256, 512)

# Tokens embedded of a split text, for each limit: of a longer text, evenly spaced windows.
MAX_SPLIT_TOKENS = 4096


@dataclass(frozen=True)
class LimitReport:
    """The part of a text that is read under one limit.

    Attributes
    ----------
    max_tokens
        The limit, [CLS] and [SEP] included, as in every count of tokens here.
    n_tokens, tokens_read
        Tokens of the whole text, and those read.
    read_end
        Character where reading stops: ``text[read_end:]`` is never read. A character that several
        tokens share counts as read where its first token is.
    cosine_longest
        Cosine of the vector and that under the longest limit.
    cosine_split
        Cosine of the vector and the mean of the vectors of all windows.
    n_windows, n_embedded
        Windows that cover the whole text, and those embedded for the mean.
    """

    max_tokens: int
    n_tokens: int
    tokens_read: int
    read_end: int
    cosine_longest: float
    cosine_split: float
    n_windows: int
    n_embedded: int

    @property
    def tokens_lost(self) -> int:
        """Number of tokens that are never read."""
        return self.n_tokens - self.tokens_read


def truncation_report(encoder: Encoder, text: str, limits: Sequence[int] = LIMITS) -> list[LimitReport]:
    """Report how much of a text is read under each limit, and how its vector differs from the whole text's.

    ``limits`` are one or more, [CLS] and [SEP] included, each within the position table; the reports are in
    their order.

    Raises
    ------
    InputError
        There is no limit, or one beyond the position table, or ``text`` is not a string.
    """
    if not limits:
        raise InputError("no limit was given: give one or more, such as 256")
    limits = [encoder.token_limit(limit) for limit in limits]
    encoding = encoder.tokenizer.encode(text)
    windows = {
        limit: split_windows(encoding.ids, limit, encoder.tokenizer) for limit in dict.fromkeys(limits)
    }
    chosen = {limit: evenly_spaced(split, MAX_SPLIT_TOKENS // limit) for limit, split in windows.items()}
    sequences = [window for split in chosen.values() for window in split]
    vectors = encoder.encode_ids(sequences, encoder.pooling)  # (windows of all limits, d)
    borders = np.cumsum([len(split) for split in chosen.values()])[:-1]
    parts = dict(zip(chosen, np.split(vectors, borders), strict=True))
    longest = parts[max(limits)][0]  # the first window is the part within the limit
    return [
        LimitReport(
            max_tokens=limit,
            n_tokens=len(encoding),
            tokens_read=len(windows[limit][0]),
            read_end=read_length(encoding, text, limit, encoder.tokenizer.n_after),
            cosine_longest=cosine(parts[limit][0], longest),
            cosine_split=cosine(parts[limit][0], weighted_mean(parts[limit], chosen[limit])),
            n_windows=len(windows[limit]),
            n_embedded=len(chosen[limit]),
        )
        for limit in limits
    ]


def split_windows(ids: Sequence[int], max_tokens: int, tokenizer: TextTokenizer) -> list[list[int]]:
    """Cut a tokenized text into windows that fit a limit, each between [CLS] and [SEP]; at least one."""
    before, body, after = tokenizer.around(ids)
    room = max_tokens - tokenizer.n_special
    return [[*before, *body[i : i + room], *after] for i in range(0, max(len(body), 1), room)]


def evenly_spaced(windows: Sequence[list[int]], most: int) -> list[list[int]]:
    """Return at most ``most`` of the windows, evenly spaced, with the first and the last."""
    rows = np.linspace(0, len(windows) - 1, min(len(windows), max(most, 2))).round().astype(int)
    return [windows[row] for row in rows]


def weighted_mean(vectors: Array, windows: Sequence[Sequence[int]]) -> Array:
    """Mean of the vectors of some windows, each weighted by its tokens: ``(n, d_model) -> (d_model,)``."""
    n_tokens = np.array([len(window) for window in windows], vectors.dtype)  # (n,)
    return l2_normalize(n_tokens @ vectors / n_tokens.sum())


def cosine(a: Array, b: Array) -> float:
    """Cosine of two vectors of length 1, clipped to [-1, 1] against rounding."""
    return float(np.clip(a.astype(np.float64) @ b.astype(np.float64), -1, 1))
