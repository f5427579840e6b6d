"""Token streams on disk and random windows of them, for corpora larger than memory."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from engine.errors import DocumentError, InputError
from engine.layers.tracing import Array
from engine.wording import counted

BLOCK_CHARACTERS = 1 << 20
Batch = tuple[Array, Array]  # inputs and targets, (n_sequences, context) each, the targets one token later


def read_blocks(path: Path, n_characters: int = BLOCK_CHARACTERS) -> Iterator[str]:
    """Read a UTF-8 text of any length, block by block.

    A block ends before a single space between two words, which no token spans, so the blocks have the same
    tokens as the whole text. A block without such a space is continued.

    Raises
    ------
    DocumentError
        The file cannot be read, or is not UTF-8.
    """
    rest = ""
    try:
        with path.open(encoding="utf-8") as file:
            while read := file.read(n_characters):
                rest += read
                end = last_break(rest)
                if end > 0:
                    yield rest[:end]
                    rest = rest[end:]
    except (OSError, UnicodeDecodeError) as error:
        raise DocumentError(
            f"{path.name} cannot be read as UTF-8 text ({error}): give a plain text file"
        ) from error
    if rest:
        yield rest


def last_break(text: str) -> int:
    """Place of the last space with a letter on both sides, 0 if there is none."""
    end = text.rfind(" ")
    while end > 0 and not (text[end - 1].isalpha() and text[end + 1 : end + 2].isalpha()):
        end = text.rfind(" ", 0, end)
    return max(end, 0)


def write_tokens(
    blocks: Iterable[str],
    encode: Callable[[str], Sequence[int]],
    vocab_size: int,
    path: Path,
    on_progress: Callable[[int], None] | None = None,
) -> Array:
    """Write the token ids of a text to a file, block by block, and return the memory-mapped file.

    Parameters
    ----------
    blocks
        The text, in pieces.
    encode
        Returns the ids of a piece.
    vocab_size
        One more than the largest id: up to 65 536, an id takes two bytes, else four.
    path
        The file.
    on_progress
        Called with the number of characters done.

    Returns
    -------
    Array
        ``(n_tokens,)``, mapped from the file: only the parts used are read.

    Raises
    ------
    InputError
        The text has no tokens, or a character that the vocabulary lacks.
    """
    dtype, n_tokens, n_characters = np.uint16 if vocab_size <= 1 << 16 else np.uint32, 0, 0
    with path.open("wb") as file:
        for block in blocks:
            ids = np.asarray(encode(block), dtype)
            ids.tofile(file)
            n_tokens, n_characters = n_tokens + len(ids), n_characters + len(block)
            if on_progress is not None:
                on_progress(n_characters)
    if n_tokens == 0:
        raise InputError("the corpus has no tokens: give a text")
    return np.memmap(path, dtype, "r", shape=(n_tokens,))


def split_tokens(tokens: Array, context: int, held_out: float = 0.1) -> tuple[Array, Array]:
    """Split a stream into its training part and its end, which is held out; both are views.

    Raises
    ------
    InputError
        A part is shorter than one window of ``context + 1`` tokens.
    """
    n_held_out = max(int(len(tokens) * held_out), context + 1)
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
    """Yield batches without end; each row starts at a random place of ``tokens (n_tokens,)``.

    Raises
    ------
    InputError
        There are fewer than ``context + 1`` tokens.
    """
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
    n_apart = min(
        n_windows, max(len(tokens) // (context + 1), 1)
    )  # a short text has fewer apart from each other
    return windows(tokens, np.linspace(0, last, n_apart).astype(int), context)


def windows(tokens: Array, starts: Array, context: int) -> Batch:
    """Inputs and targets that begin at ``starts``: int64 ``(n_starts, context)`` each."""
    rows = np.stack([tokens[start : start + context + 1] for start in starts]).astype(np.int64)
    return rows[:, :-1], rows[:, 1:]
