"""Put words together into chunks of at most a number of tokens."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from engine.documents.run_words import Ints
from engine.documents.token_spans import TokenSpans
from engine.tokenizers.wordpiece import WordPieceTokenizer

# A text in; where its units begin out, but for the first.
FindStarts = Callable[[str], list[int]]


@dataclass(frozen=True)
class Pieces:
    """What chunks of up to ``room`` tokens are made of: words, and parts of words that have more.

    Attributes
    ----------
    text
        The text.
    starts, ends, totals
        As of `TokenSpans`: the span of each piece, and the tokens before it.
    cuts
        Pieces that begin within a word. They may not follow another piece in a chunk, since two parts of
        a word may have other tokens together than alone.
    room
        Most tokens of a chunk, without special ones.
    """

    text: str
    starts: Ints
    ends: Ints
    totals: Ints
    cuts: Sequence[int]
    room: int

    def __len__(self) -> int:
        return len(self.starts)

    def span(self, number: int) -> tuple[int, int]:
        """Return where a piece begins and ends."""
        return int(self.starts[number]), int(self.ends[number])

    def reach(self, first: int) -> int:
        """Return the last piece before which a chunk that begins with ``first`` can end."""
        totals = memoryview(self.totals.data)
        end = bisect_right(totals, totals[first] + self.room, first + 1) - 1
        cut = bisect_right(self.cuts, first)
        return min(end, self.cuts[cut]) if cut < len(self.cuts) else end

    def reaching(self, last: int, most: int) -> int:
        """Return the first piece with which a chunk of ``most`` tokens can begin ending before ``last``."""
        totals = memoryview(self.totals.data)
        first = bisect_left(totals, totals[last] - most, 0, last)
        cut = bisect_left(self.cuts, last)
        return max(first, self.cuts[cut - 1]) if cut else first

    def borders(self, starts: Sequence[int], first: int, last: int) -> list[int]:
        """Return ``first``, ``last``, and between them the pieces with which units begin at these places."""
        inner = np.unique(np.searchsorted(self.starts, np.array(starts, np.int32)))
        return [first, *inner[(inner > first) & (inner < last)].tolist(), last]

    def units(self, find_starts: FindStarts, first: int, last: int) -> list[int]:
        """Return the same for the units that ``find_starts`` finds from ``first`` to before ``last``."""
        if first == last:
            return [first]
        origin = int(self.starts[first])
        text = self.text[origin : self.ends[last - 1]]
        return self.borders([origin + start for start in find_starts(text)], first, last)

    def between(self, start: int, end: int) -> tuple[int, int]:
        """Return the first piece of ``text[start:end]``, and the first one after it."""
        return bisect_left(self.starts, start), bisect_left(self.starts, end)


def pieces_of(text: str, tokens: TokenSpans) -> Pieces:
    """Return the words of a text, none of them cut."""
    return Pieces(text, tokens.starts, tokens.ends, tokens.totals, (), int(tokens.totals[-1]))


def with_room(pieces: Pieces, tokenizer: WordPieceTokenizer, room: int) -> Pieces:
    """Return the pieces for smaller chunks: those with more than ``room`` tokens are cut on."""
    long = np.flatnonzero(np.diff(pieces.totals) > room).tolist()
    if not long:
        return replace(pieces, room=room)
    parts = [list(cut_word(pieces.text, *pieces.span(number), tokenizer, room)) for number in long]
    n_parts = np.ones(len(pieces), np.int32)
    n_parts[long] = [len(each) for each in parts]
    is_part = np.repeat(np.isin(np.arange(len(pieces)), long), n_parts)
    columns = []
    for old, new in zip(
        (pieces.starts, pieces.ends, np.diff(pieces.totals)),
        np.array([part for each in parts for part in each], np.int32).T,  # (start, end, tokens; part)
        strict=True,
    ):
        columns.append(np.repeat(old, n_parts))
        columns[-1][is_part] = new
    starts, ends, counts = columns
    within_word = np.ones(len(starts), bool)
    within_word[np.cumsum(n_parts) - n_parts] = np.isin(np.arange(len(pieces)), pieces.cuts)
    totals = np.concatenate([np.zeros(1, np.int32), np.cumsum(counts, dtype=np.int32)])
    return Pieces(pieces.text, starts, ends, totals, np.flatnonzero(within_word).tolist(), room)


def cut_word(
    text: str, start: int, end: int, tokenizer: WordPieceTokenizer, room: int
) -> Iterator[tuple[int, int, int]]:
    """Cut a word into parts of at most ``room`` tokens; yield where each begins and ends, and its tokens.

    Cutting within a word can change how its parts are tokenized, so the part's own tokens decide.
    """
    while start < end:
        [encoding] = tokenizer.encode_batch([text[start:end]])
        borders = sorted({start + first for first, last in encoding.offsets if last > first} - {start})
        stop = borders[room - 1] if len(borders) >= room else end
        while (count := n_tokens(text[start:stop], tokenizer)) > room and stop > start + 1:
            before = bisect_left(borders, stop)
            stop = borders[before - 1] if before else start + (stop - start) // 2
        part = text[start:stop]
        if part.strip():  # what is dropped as a control character may be white space to Python
            first = start + len(part) - len(part.lstrip())
            yield first, first + len(part.strip()), count
        start = stop


def n_tokens(text: str, tokenizer: WordPieceTokenizer) -> int:
    """Tokens of a text, without special ones."""
    return len(tokenizer.ids_batch([text])[0]) - tokenizer.n_special


def cut(
    pieces: Pieces, levels: Sequence[FindStarts], first: int, last: int, overlap: int
) -> Iterator[tuple[int, int]]:
    """Cut the pieces from ``first`` to before ``last`` into chunks.

    As many units as fit are packed together; one that is longer than a chunk is cut into units of the
    next level, and at last into pieces (LangChain's RecursiveCharacterTextSplitter, in tokens).
    """
    if not levels:
        yield from pack(pieces, range(first, last + 1), overlap)
        return
    borders = pieces.units(levels[0], first, last)
    begin = 0
    for number, (start, end) in enumerate(pairwise(borders)):
        if pieces.reach(start) < end:
            yield from pack(pieces, borders[begin : number + 1], overlap)
            yield from cut(pieces, levels[1:], start, end, overlap)
            begin = number + 1
    yield from pack(pieces, borders[begin:], overlap)


def pack(pieces: Pieces, borders: Sequence[int], overlap: int) -> Iterator[tuple[int, int]]:
    """Put neighbouring units together, as many as fit.

    Parameters
    ----------
    pieces
        What the units are made of.
    borders
        The piece with which each unit begins, and where the last one ends; each unit fits a chunk.
    overlap
        Most tokens that a chunk repeats from the one before, in whole units. Each chunk has a unit that
        the one before has not.
    """
    unit, n_units = 0, len(borders) - 1
    while unit < n_units:
        end = bisect_right(borders, pieces.reach(borders[unit])) - 1
        yield borders[unit], borders[end]
        if end == n_units:
            return
        first = borders[end]
        if overlap:
            first = max(
                pieces.reaching(borders[end], overlap), pieces.reaching(borders[end + 1], pieces.room)
            )
        unit = max(min(bisect_left(borders, first), end), unit + 1)


def slide(pieces: Pieces, find_starts: FindStarts, first: int, last: int) -> Iterator[tuple[int, int]]:
    """Begin a chunk at every unit, with as many of the next ones as fit; one too long is cut into pieces."""
    borders: list[int] = []
    for start, end in pairwise(pieces.units(find_starts, first, last)):
        borders += [begin for begin, _ in pack(pieces, range(start, end + 1), 0)]
    borders.append(last)
    for start in borders[:-1]:
        yield start, borders[bisect_right(borders, pieces.reach(start)) - 1]
