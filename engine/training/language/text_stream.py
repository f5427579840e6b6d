"""Token streams on disk and random windows of them, for corpora larger than memory."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from ...errors import InputError
from ...layers.tracing import Array
from ...wording import counted

Batch = tuple[Array, Array]  # inputs and targets, (n_sequences, context) each, the targets one token later


def write_tokens(
    blocks: Iterable[str], encode: Callable[[str], Sequence[int]], vocab_size: int, path: Path
) -> Array:
    """Write the token ids of a text, block by block, in two or four bytes each; return them mapped."""
    dtype, n_tokens = np.uint16 if vocab_size <= 1 << 16 else np.uint32, 0
    with path.open("wb") as file:
        for block in blocks:
            ids = np.asarray(encode(block), dtype)
            ids.tofile(file)
            n_tokens += len(ids)
    if n_tokens == 0:
        raise InputError("the corpus has no tokens: give a text")
    return np.memmap(path, dtype, "r", shape=(n_tokens,))


def split_tokens(tokens: Array, context: int) -> tuple[Array, Array]:
    """Split a stream into its training part and its end, which is held out; both are views."""
    n_held_out = max(len(tokens) // 10, context + 1)
    n_training = len(tokens) - n_held_out
    if n_training < context + 1:
        most = len(tokens) // 2 - 1
        raise InputError(
            f"a corpus of {counted(len(tokens), 'token')} is too short for a context of {context}: it takes "
            f"{2 * (context + 1):,}, half of them held out; give more text"
            + (f", or a context of at most {most:,}" if most > 0 else "")
        )
    return tokens[:n_training], tokens[n_training:]


def random_windows(tokens: Array, batch_size: int, context: int, rng: np.random.Generator) -> Iterator[Batch]:
    """Yield batches without end; each row starts at a random place of ``tokens (n_tokens,)``."""
    if len(tokens) <= context:
        raise InputError(
            f"a corpus of {len(tokens):,} tokens has no window of {context} tokens and the next: give more "
            f"text, or a context of at most {max(len(tokens) - 1, 1)}"
        )
    while True:
        yield windows(tokens, rng.integers(0, len(tokens) - context, batch_size), context)


def even_windows(tokens: Array, n_windows: int, context: int) -> Batch:
    """Windows at even distances, always the same, for the held-out loss."""
    last = len(tokens) - context - 1
    # A short text has fewer that do not overlap.
    n_apart = min(n_windows, max(len(tokens) // (context + 1), 1))
    return windows(tokens, np.linspace(0, last, n_apart).astype(int), context)


def windows(tokens: Array, starts: Array, context: int) -> Batch:
    """Inputs and targets that begin at ``starts``: int64 ``(n_starts, context)`` each."""
    rows = np.stack([tokens[start : start + context + 1] for start in starts]).astype(np.int64)
    return rows[:, :-1], rows[:, 1:]
