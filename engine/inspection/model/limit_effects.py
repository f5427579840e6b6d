"""How far the vector of a whole text moves by what a token limit truncates."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...errors import InputError
from ...layers.norm import l2_normalize
from ...layers.tracing import Array
from ...models.encoder import Encoder
from ...tokenizers.text_tokenizer import TextTokenizer

# Tokens embedded of a split text, for each limit: of a longer text, evenly spaced windows.
MAX_SPLIT_TOKENS = 4096


@dataclass(frozen=True)
class LimitEffect:
    """The vector of a text under one limit, against vectors of more of the text."""

    max_tokens: int
    cosine_longest: float  # with the vector under the longest limit
    cosine_windows: float  # with the mean of ``n_embedded`` of the ``n_windows`` windows that cover the text
    n_windows: int
    n_embedded: int


def limit_effects(encoder: Encoder, text: str, limits: Sequence[int]) -> list[LimitEffect]:
    """Compare the vectors of a text under several limits, special tokens included, by the model's pooling."""
    if not limits:
        raise InputError("no limit was given: give one or more, such as 256")
    limits = [encoder.token_limit(limit) for limit in limits]
    ids = encoder.tokenizer.encode(text).ids
    windows = {limit: split_windows(ids, limit, encoder.tokenizer) for limit in dict.fromkeys(limits)}
    chosen = {limit: evenly_spaced(split, MAX_SPLIT_TOKENS // limit) for limit, split in windows.items()}
    sequences = [window for split in chosen.values() for window in split]
    vectors = encoder.encode_ids(sequences, encoder.pooling)  # (windows of all limits, d)
    borders = np.cumsum([len(split) for split in chosen.values()])[:-1]
    parts = dict(zip(chosen, np.split(vectors, borders), strict=True))
    longest = parts[max(limits)][0]  # the first window is the part within the limit
    return [
        LimitEffect(
            max_tokens=limit,
            cosine_longest=cosine(parts[limit][0], longest),
            cosine_windows=cosine(parts[limit][0], weighted_mean(parts[limit], chosen[limit])),
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
