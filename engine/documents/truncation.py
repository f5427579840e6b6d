"""The text of chunks beyond a model's token limit, which is in no vector."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..tokenizers.encoding import Encoding
from ..tokenizers.text_tokenizer import TextTokenizer
from ..wording import counted
from .document import Chunk

# Texts tokenized at once, which bounds the memory.
BATCH_TEXTS = 256


@dataclass(frozen=True)
class TruncatedChunk:
    """A chunk whose last ``tokens_truncated`` tokens are beyond the limit."""

    chunk: Chunk
    start: int  # ``document.text[start:chunk.end]`` is not read; a character is read if its first token is
    tokens_truncated: int

    @property
    def text(self) -> str:
        """The text that is not read."""
        return self.chunk.text[self.start - self.chunk.start :]


@dataclass(frozen=True)
class TruncationReport:
    """What a token limit truncates of a corpus of chunks.

    Where chunks overlap, the truncated end of one may be read in the next. Tokens are counted in each chunk
    apart; characters are counted once, and are unread only if they are read in no chunk.
    """

    max_tokens: int  # the limit
    n_chunks: int
    n_tokens: int  # of all chunks
    n_characters: int  # in at least one of them
    characters_unread: int  # that no chunk reads
    truncated: tuple[TruncatedChunk, ...] = field(repr=False)  # those with most truncated tokens first

    @property
    def tokens_truncated(self) -> int:
        """Tokens of chunks beyond the limit."""
        return sum(each.tokens_truncated for each in self.truncated)

    @property
    def share_unread(self) -> float:
        """Share of the characters that no chunk reads, 0 to 1."""
        return self.characters_unread / self.n_characters if self.n_characters else 0.0


def truncation_reports(
    chunks: Sequence[Chunk], tokenizer: TextTokenizer, limits: Sequence[int]
) -> list[TruncationReport]:
    """Report what each of several limits truncates, special tokens included in the counts.

    ``tokenizer`` is that of the model, by which the chunks' tokens are counted. Only chunks over the smallest
    limit are tokenized. `InputError` where there is no limit, or one leaves no room for text.
    """
    if not limits:
        raise InputError("no limit was asked for: give one or more, such as 256")
    shortest = tokenizer.n_special + 1
    if min(limits) < shortest:
        raise InputError(f"a limit of {min(limits)} tokens leaves no room for text: give {shortest} or more")
    long = over_limit(chunks, min(limits))
    truncated: list[list[TruncatedChunk]] = [[] for _ in limits]
    for chunk, encoding in zip(long, tokenized([chunk.indexed for chunk in long], tokenizer), strict=True):
        for limit, found in zip(limits, truncated, strict=True):
            if len(encoding) > limit:
                read = (
                    encoding.offsets[limit - tokenizer.n_after - 1][1] + len(chunk.text) - len(chunk.indexed)
                )
                start = chunk.start + max(0, read)
                found.append(TruncatedChunk(chunk, start, len(encoding) - limit))
    return [truncation_report(chunks, limit, found) for limit, found in zip(limits, truncated, strict=True)]


def truncation_report(
    chunks: Sequence[Chunk], max_tokens: int, truncated: Sequence[TruncatedChunk]
) -> TruncationReport:
    """Add up what one limit truncates; ``truncated`` are the chunks over it."""
    ends = {each.chunk: each.start for each in truncated}
    whole, read = defaultdict(list), defaultdict(list)
    for chunk in chunks:
        whole[chunk.document].append((chunk.start, chunk.end))
        read[chunk.document].append((chunk.start, ends.get(chunk, chunk.end)))
    n_characters = characters_unread = 0
    for name, spans in whole.items():
        within = span_mask(spans, max(end for _, end in spans))
        n_characters += int(within.sum())
        characters_unread += int((within & ~span_mask(read[name], len(within))).sum())
    n_tokens = sum(chunk.n_tokens for chunk in chunks)
    worst_first = tuple(sorted(truncated, key=lambda each: -each.tokens_truncated))
    return TruncationReport(max_tokens, len(chunks), n_tokens, n_characters, characters_unread, worst_first)


def read_ends(chunks: Sequence[Chunk], tokenizer: TextTokenizer, max_tokens: int) -> list[int]:
    """Return the character of its document where reading of each chunk stops, at most the chunk's end."""
    [report] = truncation_reports(chunks, tokenizer, [max_tokens])
    ends = {each.chunk: each.start for each in report.truncated}
    return [ends.get(chunk, chunk.end) for chunk in chunks]


def over_limit(chunks: Sequence[Chunk], max_tokens: int) -> list[Chunk]:
    """Return the chunks with more tokens than the model reads."""
    return [chunk for chunk in chunks if chunk.n_tokens > max_tokens]


def limit_warning(chunks: Sequence[Chunk], max_tokens: int) -> str | None:
    """Return a warning if chunks are longer than the model's limit, with the way to fix it, else None."""
    long = over_limit(chunks, max_tokens)
    if not long:
        return None
    n_truncated = sum(chunk.n_tokens - max_tokens for chunk in long)
    return (
        f"More than the {max_tokens} tokens that the model reads: {len(long)} of "
        f"{counted(len(chunks), 'chunk')}, the longest {max(chunk.n_tokens for chunk in long)}. "
        f"{counted(n_truncated, 'token')} would never be searched. "
        f"Lower the chunk size to {max_tokens}."
    )


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
