"""What a model reads of a chunk, what it never sees, and how to mend it."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from engine.documents.document import Chunk
from engine.documents.splitters import MIN_CHUNK_TOKENS
from engine.errors import InputError
from engine.tokenizers.encoding import Encoding
from engine.tokenizers.wordpiece import WordPieceTokenizer

# Texts tokenized at once: the tokens of ten thousand chunks need not lie in memory together.
BATCH_TEXTS = 256


@dataclass(frozen=True)
class Reading:
    """What is read of one text under a limit.

    Attributes
    ----------
    n_tokens
        Tokens of the whole text, [CLS] and [SEP] included, as in every count of tokens here.
    max_tokens
        The limit.
    read_end
        Character where reading stops: ``text[read_end:]`` is never read. A character that several
        tokens share counts as read where its first token is.
    """

    n_tokens: int
    max_tokens: int
    read_end: int

    @property
    def tokens_lost(self) -> int:
        """Tokens that are never read."""
        return max(self.n_tokens - self.max_tokens, 0)


@dataclass(frozen=True)
class Loss:
    """A chunk that passes a limit, and what is read of it."""

    chunk: Chunk
    reading: Reading

    @property
    def tokens_lost(self) -> int:
        """Tokens that are never read."""
        return self.reading.tokens_lost

    @property
    def start(self) -> int:
        """Where the loss begins: ``document.text[start:chunk.end]`` is never read."""
        return self.chunk.start + self.reading.read_end

    @property
    def text(self) -> str:
        """The text that is never read."""
        return self.chunk.text[self.reading.read_end :]


@dataclass(frozen=True)
class Span:
    """A stretch of a document."""

    document: str
    start: int
    end: int


@dataclass(frozen=True)
class CorpusBudget:
    """What an index of some chunks sees and never sees under a limit.

    Where chunks overlap, one can lose a tail that the next one reads. Tokens are counted chunk by
    chunk, so they are lost whoever else reads them; characters are counted once, and unseen only
    where no chunk reads them.

    Attributes
    ----------
    max_tokens
        The limit.
    n_chunks, n_tokens, n_characters
        Chunks, their tokens, and the characters that at least one of them holds.
    losses
        The chunks that pass the limit, those that lose most tokens first.
    unseen
        What no chunk reads, in order of its place in each document.
    """

    max_tokens: int
    n_chunks: int
    n_tokens: int
    n_characters: int
    losses: tuple[Loss, ...] = field(repr=False)
    unseen: tuple[Span, ...] = field(repr=False)

    @property
    def tokens_lost(self) -> int:
        """Tokens of chunks that are never read."""
        return sum(loss.tokens_lost for loss in self.losses)

    @property
    def tokens_share(self) -> float:
        """Share of the chunks' tokens that is never read, 0 to 1."""
        return self.tokens_lost / self.n_tokens if self.n_tokens else 0.0

    @property
    def characters_unseen(self) -> int:
        """Characters that no chunk reads."""
        return sum(span.end - span.start for span in self.unseen)

    @property
    def characters_share(self) -> float:
        """Share of the characters in chunks that no chunk reads, 0 to 1."""
        return self.characters_unseen / self.n_characters if self.n_characters else 0.0


@dataclass(frozen=True)
class Suggestion:
    """A setting under which no chunk loses anything: one of the two values is new, the other as it was.

    ``chunk_tokens`` is None where the chunks can stay as they are.
    """

    chunk_tokens: int | None
    max_tokens: int
    reason: str


def readings(
    texts: Sequence[str], tokenizer: WordPieceTokenizer, limits: Sequence[int]
) -> list[list[Reading]]:
    """Say what is read of texts under several limits, with each text tokenized once.

    Parameters
    ----------
    texts
        The texts.
    tokenizer
        The tokenizer of the model that reads them.
    limits
        Tokens read, [CLS] and [SEP] included.

    Returns
    -------
    list of list of Reading
        For each text, one a limit, in the order given.

    Raises
    ------
    InputError
        No limit, one that leaves no room for text, or a text that is no text.
    """
    check_limits(limits, tokenizer)
    return [
        [Reading(len(encoding), limit, stops_at(encoding, text, limit)) for limit in limits]
        for text, encoding in zip(texts, tokenized(texts, tokenizer), strict=True)
    ]


def corpus_budgets(
    chunks: Sequence[Chunk], tokenizer: WordPieceTokenizer, limits: Sequence[int]
) -> list[CorpusBudget]:
    """Say what an index of chunks never sees under several limits.

    Only chunks that pass the smallest limit are tokenized; the others are read whole.

    Parameters
    ----------
    chunks
        Chunks of one or several documents, counted by ``tokenizer``.
    tokenizer, limits
        As in `readings`.

    Returns
    -------
    list of CorpusBudget
        One a limit, in the order given.
    """
    check_limits(limits, tokenizer)
    long = over_limit(chunks, min(limits))
    rows = readings([chunk.text for chunk in long], tokenizer, limits)
    return [
        corpus_budget(chunks, limit, [Loss(chunk, row[n]) for chunk, row in zip(long, rows, strict=True)])
        for n, limit in enumerate(limits)
    ]


def corpus_budget(chunks: Sequence[Chunk], max_tokens: int, losses: Sequence[Loss]) -> CorpusBudget:
    """Add up what chunks lose under one limit; ``losses`` may hold chunks that lose nothing."""
    losses = sorted((loss for loss in losses if loss.tokens_lost), key=lambda loss: -loss.tokens_lost)
    ends = {loss.chunk: loss.start for loss in losses}
    held, read = defaultdict(list), defaultdict(list)
    for chunk in chunks:
        held[chunk.document].append((chunk.start, chunk.end))
        read[chunk.document].append((chunk.start, ends.get(chunk, chunk.end)))
    n_characters, unseen = 0, []
    for name, spans in held.items():
        within = painted(spans, max(end for _, end in spans))
        n_characters += int(within.sum())
        missed = within & ~painted(read[name], len(within))
        unseen += [Span(name, start, end) for start, end in runs(missed)]
    n_tokens = sum(chunk.n_tokens for chunk in chunks)
    return CorpusBudget(max_tokens, len(chunks), n_tokens, n_characters, tuple(losses), tuple(unseen))


def read_ends(chunks: Sequence[Chunk], tokenizer: WordPieceTokenizer, max_tokens: int) -> list[int]:
    """Character of its document where reading of each chunk stops: its end where it is read whole."""
    [budget] = corpus_budgets(chunks, tokenizer, [max_tokens])
    ends = {loss.chunk: loss.start for loss in budget.losses}
    return [ends.get(chunk, chunk.end) for chunk in chunks]


def stops_at(encoding: Encoding, text: str, max_tokens: int) -> int:
    """Character of a text where reading stops under a limit: its end where nothing is lost."""
    # [CLS] stands at 0 and [SEP] takes the last place, so the last token of the text is the one before.
    return len(text) if len(encoding) <= max_tokens else encoding.offsets[max_tokens - 2][1]


def suggestions(chunks: Sequence[Chunk], max_tokens: int, max_positions: int) -> list[Suggestion]:
    """Ways to have every chunk read whole; none where every chunk is.

    The first keeps to the limit and cuts smaller chunks; the second keeps the chunks and raises the
    limit, where the position table is long enough for the longest of them.

    Parameters
    ----------
    chunks
        The chunks.
    max_tokens
        The limit that they are read under.
    max_positions
        The length of the model's position table, which no limit can pass.
    """
    longest = max((chunk.n_tokens for chunk in over_limit(chunks, max_tokens)), default=0)
    found = []
    if longest and max_tokens >= MIN_CHUNK_TOKENS:
        reason = f"a chunk of {max_tokens} tokens is just what is read of one"
        found.append(Suggestion(max_tokens, max_tokens, reason))
    if 0 < longest <= max_positions:
        reason = f"the longest chunk has {longest} tokens, and the model has {max_positions} positions"
        found.append(Suggestion(None, longest, reason))
    return found


def over_limit(chunks: Sequence[Chunk], max_tokens: int) -> list[Chunk]:
    """Chunks with more tokens than the model reads: the rest of each is silently lost."""
    return [chunk for chunk in chunks if chunk.n_tokens > max_tokens]


def limit_warning(chunks: Sequence[Chunk], max_tokens: int) -> str | None:
    """Say what is lost where chunks pass the model's limit, and how to mend it; None where nothing is."""
    long = over_limit(chunks, max_tokens)
    if not long:
        return None
    lost = sum(chunk.n_tokens - max_tokens for chunk in long)
    return (
        f"{len(long)} of {len(chunks)} chunks have more than the {max_tokens} tokens the model reads, the "
        f"longest {max(chunk.n_tokens for chunk in long)}: {lost} tokens would never be searched. "
        f"Lower the chunk size to {max_tokens}."
    )


def check_limits(limits: Sequence[int], tokenizer: WordPieceTokenizer) -> None:
    """Raise `InputError` for no limit at all, or one that leaves no room for a token of text."""
    if not limits:
        raise InputError("no limit was asked for: give one or more, such as 256")
    shortest = tokenizer.n_special + 1
    if min(limits) < shortest:
        raise InputError(f"a limit of {min(limits)} tokens leaves no room for text: give {shortest} or more")


def tokenized(texts: Sequence[str], tokenizer: WordPieceTokenizer) -> Iterator[Encoding]:
    """Yield the tokens of each text."""
    for start in range(0, len(texts), BATCH_TEXTS):
        yield from tokenizer.encode_batch(texts[start : start + BATCH_TEXTS])


def painted(spans: Sequence[tuple[int, int]], length: int) -> NDArray[np.bool_]:
    """Whether each character of a text lies in one of some spans: ``(length,)``."""
    mask = np.zeros(length, bool)
    for start, end in spans:
        mask[start:end] = True
    return mask


def runs(mask: NDArray[np.bool_]) -> list[list[int]]:
    """Where each run of true values starts and ends."""
    return np.flatnonzero(np.diff(mask, prepend=False, append=False)).reshape(-1, 2).tolist()
