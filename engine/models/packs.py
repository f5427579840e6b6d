"""Packs of texts: their tokens are the rows of one matrix, without padding."""

from collections.abc import Sequence

import numpy as np

from engine.layers.tracing import Array


def packed(sequences: Sequence[Sequence[int]]) -> tuple[Array, Array, list[slice]]:
    """Return ids and positions of all tokens of a pack, ``(n_tokens,)`` each, and the rows of each text."""
    lengths = [len(sequence) for sequence in sequences]
    ids = np.concatenate([np.asarray(sequence) for sequence in sequences])
    return ids, np.concatenate([np.arange(length) for length in lengths]), row_spans(lengths)


def row_spans(lengths: Sequence[int]) -> list[slice]:
    """Return the rows of each text of a pack, from their numbers of tokens."""
    ends = np.cumsum(lengths).tolist()
    return [slice(end - length, end) for end, length in zip(ends, lengths, strict=True)]
