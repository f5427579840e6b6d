"""The text of chunks beyond a model's token limit, which is never read, and settings without such text."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from engine.documents.document import Chunk
from engine.documents.splitters import MIN_CHUNK_TOKENS
from engine.errors import InputError
from engine.tokenizers.encoding import Encoding
from engine.tokenizers.text_tokenizer import TextTokenizer
from engine.wording import counted

# Texts tokenized at once, which bounds the memory.
BATCH_TEXTS = 256


@dataclass(frozen=True)
class TruncatedChunk:
    """A chunk with more tokens than the limit.

    Attributes
    ----------
    chunk
        The chunk.
    start
        Where its unread text begins: ``document.text[start:chunk.end]``. A character shared by several tokens
        is read if its first token is.
    tokens_lost
        Tokens that are never read.
    """

    chunk: Chunk
    start: int
    tokens_lost: int

    @property
    def text(self) -> str:
        """The text that is never read."""
        return self.chunk.text[self.start - self.chunk.start :]


@dataclass(frozen=True)
class Span:
    """A stretch of a document."""

    document: str
    start: int
    end: int


@dataclass(frozen=True)
class UnreadReport:
    """The unread text of a corpus of chunks under a token limit.

    Where chunks overlap, the unread end of one may be read in the next. Tokens are counted in each chunk
    apart; characters are counted once, and are unseen only if they are read in no chunk.

    Attributes
    ----------
    max_tokens
        The limit.
    n_chunks, n_tokens, n_characters
        Number of chunks, of their tokens, and of the characters in at least one of them.
    truncated
        The chunks over the limit, those with most unread tokens first.
    unseen
        The text read in no chunk, in the order of each document.
    """

    max_tokens: int
    n_chunks: int
    n_tokens: int
    n_characters: int
    truncated: tuple[TruncatedChunk, ...] = field(repr=False)
    unseen: tuple[Span, ...] = field(repr=False)

    @property
    def tokens_lost(self) -> int:
        """Tokens of chunks that are never read."""
        return sum(loss.tokens_lost for loss in self.truncated)

    @property
    def characters_unseen(self) -> int:
        """Characters that no chunk reads."""
        return sum(span.end - span.start for span in self.unseen)

    @property
    def characters_share(self) -> float:
        """Share of the characters in chunks that no chunk reads, 0 to 1."""
        return self.characters_unseen / self.n_characters if self.n_characters else 0.0


@dataclass(frozen=True)
class LimitChange:
    """A change of one of two settings under which every chunk is read whole, and the reason why.

    ``chunk_tokens`` is None if the chunks stay the same.
    """

    chunk_tokens: int | None
    max_tokens: int
    reason: str


def unread_reports(
    chunks: Sequence[Chunk], tokenizer: TextTokenizer, limits: Sequence[int]
) -> list[UnreadReport]:
    """Report the unread text of chunks under several limits.

    Only chunks over the smallest limit are tokenized.

    Parameters
    ----------
    chunks
        Chunks of one or several documents, counted by ``tokenizer``.
    tokenizer
        The tokenizer of the model that reads them.
    limits
        Tokens read, [CLS] and [SEP] included.

    Returns
    -------
    list of UnreadReport
        One per limit, in the order given.

    Raises
    ------
    InputError
        There is no limit, or one leaves no room for text.
    """
    check_limits(limits, tokenizer)
    long = over_limit(chunks, min(limits))
    truncated: list[list[TruncatedChunk]] = [[] for _ in limits]
    for chunk, encoding in zip(long, tokenized([chunk.text for chunk in long], tokenizer), strict=True):
        for limit, found in zip(limits, truncated, strict=True):
            if len(encoding) > limit:
                start = chunk.start + read_length(encoding, chunk.text, limit, tokenizer.n_after)
                found.append(TruncatedChunk(chunk, start, len(encoding) - limit))
    return [unread_report(chunks, limit, found) for limit, found in zip(limits, truncated, strict=True)]


def unread_report(
    chunks: Sequence[Chunk], max_tokens: int, truncated: Sequence[TruncatedChunk]
) -> UnreadReport:
    """Add up the unread text of chunks under one limit; ``truncated`` are those with more tokens."""
    truncated = sorted(truncated, key=lambda each: -each.tokens_lost)
    ends = {each.chunk: each.start for each in truncated}
    held, read = defaultdict(list), defaultdict(list)
    for chunk in chunks:
        held[chunk.document].append((chunk.start, chunk.end))
        read[chunk.document].append((chunk.start, ends.get(chunk, chunk.end)))
    n_characters, unseen = 0, []
    for name, spans in held.items():
        within = span_mask(spans, max(end for _, end in spans))
        n_characters += int(within.sum())
        missed = within & ~span_mask(read[name], len(within))
        unseen += [Span(name, start, end) for start, end in mask_spans(missed)]
    n_tokens = sum(chunk.n_tokens for chunk in chunks)
    return UnreadReport(max_tokens, len(chunks), n_tokens, n_characters, tuple(truncated), tuple(unseen))


def read_ends(chunks: Sequence[Chunk], tokenizer: TextTokenizer, max_tokens: int) -> list[int]:
    """Return the character of its document where reading of each chunk stops, at most the chunk's end."""
    [report] = unread_reports(chunks, tokenizer, [max_tokens])
    ends = {loss.chunk: loss.start for loss in report.truncated}
    return [ends.get(chunk, chunk.end) for chunk in chunks]


def read_length(encoding: Encoding, text: str, max_tokens: int, n_after: int) -> int:
    """Return the number of characters read under a limit, with ``n_after`` special tokens behind the text."""
    return len(text) if len(encoding) <= max_tokens else encoding.offsets[max_tokens - n_after - 1][1]


def limit_changes(chunks: Sequence[Chunk], max_tokens: int, max_positions: int) -> list[LimitChange]:
    """Return changes of settings under which every chunk is read whole; none if every chunk already is.

    The first keeps the limit and makes the chunks smaller; the second keeps the chunks and raises the limit,
    if the position table is long enough for the longest chunk.

    Parameters
    ----------
    chunks
        The chunks.
    max_tokens
        The token limit.
    max_positions
        The length of the model's position table, the highest limit possible.
    """
    longest = max((chunk.n_tokens for chunk in over_limit(chunks, max_tokens)), default=0)
    found = []
    if longest and max_tokens >= MIN_CHUNK_TOKENS:
        reason = f"a chunk of {max_tokens} tokens is just what is read of one"
        found.append(LimitChange(max_tokens, max_tokens, reason))
    if 0 < longest <= max_positions:
        reason = f"the longest chunk has {longest} tokens, and the model has {max_positions} positions"
        found.append(LimitChange(None, longest, reason))
    return found


def over_limit(chunks: Sequence[Chunk], max_tokens: int) -> list[Chunk]:
    """Return the chunks with more tokens than the model reads."""
    return [chunk for chunk in chunks if chunk.n_tokens > max_tokens]


def limit_warning(chunks: Sequence[Chunk], max_tokens: int) -> str | None:
    """Return a warning if chunks are longer than the model's limit, with the way to fix it, else None."""
    long = over_limit(chunks, max_tokens)
    if not long:
        return None
    lost = sum(chunk.n_tokens - max_tokens for chunk in long)
    return (
        f"More than the {max_tokens} tokens that the model reads: {len(long)} of "
        f"{counted(len(chunks), 'chunk')}, the longest {max(chunk.n_tokens for chunk in long)}. "
        f"{counted(lost, 'token')} would never be searched. "
        f"Lower the chunk size to {max_tokens}."
    )


def check_limits(limits: Sequence[int], tokenizer: TextTokenizer) -> None:
    """Raise `InputError` if there is no limit, or one leaves no room for a token of text."""
    if not limits:
        raise InputError("no limit was asked for: give one or more, such as 256")
    shortest = tokenizer.n_special + 1
    if min(limits) < shortest:
        raise InputError(f"a limit of {min(limits)} tokens leaves no room for text: give {shortest} or more")


def tokenized(texts: Sequence[str], tokenizer: TextTokenizer) -> Iterator[Encoding]:
    """Yield the tokens of each text."""
    for start in range(0, len(texts), BATCH_TEXTS):
        yield from tokenizer.encode_batch(texts[start : start + BATCH_TEXTS])


def span_mask(spans: Sequence[tuple[int, int]], length: int) -> NDArray[np.bool_]:
    """Whether each character of a text is in one of the spans: ``(length,)``."""
    mask = np.zeros(length, bool)
    for start, end in spans:
        mask[start:end] = True
    return mask


def mask_spans(mask: NDArray[np.bool_]) -> list[list[int]]:
    """Return start and end of each run of true values."""
    return np.flatnonzero(np.diff(mask, prepend=False, append=False)).reshape(-1, 2).tolist()
