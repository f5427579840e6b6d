"""Packing of words into chunks of limited numbers of tokens."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from engine.documents.token_spans import TokenSpans
from engine.documents.word_tokens import Ints
from engine.tokenizers.text_tokenizer import TextTokenizer

# From a text to the starts of its units, except the first.
FindStarts = Callable[[str], list[int]]


@dataclass(frozen=True)
class Pieces:
    """The pieces of chunks of up to ``room`` tokens: words, and parts of longer words.

    Attributes
    ----------
    text
        The text.
    starts, ends, totals
        As in `TokenSpans`: the span of each piece, and the number of tokens before it.
    cuts
        Numbers of the pieces that begin within a word. They only come first in a chunk, since two parts of a
        word may have other tokens together than alone.
    room
        Most tokens of a chunk, without special tokens.
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
        """Return start and end of a piece."""
        return int(self.starts[number]), int(self.ends[number])

    def reach(self, first: int) -> int:
        """Return the furthest end of a chunk that begins with the piece ``first``."""
        totals = memoryview(self.totals.data)
        end = bisect_right(totals, totals[first] + self.room, first + 1) - 1
        cut = bisect_right(self.cuts, first)
        return min(end, self.cuts[cut]) if cut < len(self.cuts) else end

    def reaching(self, last: int, most: int) -> int:
        """Return the earliest beginning of a chunk of ``most`` tokens that ends before the piece ``last``."""
        totals = memoryview(self.totals.data)
        first = bisect_left(totals, totals[last] - most, 0, last)
        cut = bisect_left(self.cuts, last)
        return max(first, self.cuts[cut - 1]) if cut else first

    def borders(self, starts: Sequence[int], first: int, last: int) -> list[int]:
        """Return ``first``, the pieces between at which units with these starts begin, and ``last``."""
        inner = np.unique(np.searchsorted(self.starts, np.array(starts, np.int32)))
        return [first, *inner[(inner > first) & (inner < last)].tolist(), last]

    def units(self, find_starts: FindStarts, first: int, last: int) -> list[int]:
        """Return the same for the units found by ``find_starts`` from ``first`` to before ``last``."""
        if first == last:
            return [first]
        origin = int(self.starts[first])
        text = self.text[origin : self.ends[last - 1]]
        return self.borders([origin + start for start in find_starts(text)], first, last)

    def between(self, start: int, end: int) -> tuple[int, int]:
        """Return the first piece of ``text[start:end]`` and the first after it."""
        return bisect_left(self.starts, start), bisect_left(self.starts, end)


def pieces_of(text: str, tokens: TokenSpans) -> Pieces:
    """Return the words of a text as pieces, none of them cut."""
    return Pieces(text, tokens.starts, tokens.ends, tokens.totals, (), int(tokens.totals[-1]))


def with_room(pieces: Pieces, tokenizer: TextTokenizer, room: int) -> Pieces:
    """Return pieces for chunks of ``room`` tokens: those with more tokens are cut."""
    long = np.flatnonzero(np.diff(pieces.totals) > room).tolist()
    if not long:
        return replace(pieces, room=room)
    parts = [list(cut_word(pieces.text, *pieces.span(number), tokenizer, room)) for number in long]
    n_parts = np.ones(len(pieces), np.int32)
    n_parts[long] = [len(each) for each in parts]
    is_part = np.repeat(np.isin(np.arange(len(pieces)), long), n_parts)
    rows = np.column_stack([pieces.starts, pieces.ends, np.diff(pieces.totals)])  # (start, end, tokens)
    rows = np.repeat(rows, n_parts, axis=0)
    rows[is_part] = [part for each in parts for part in each]
    starts, ends, counts = np.ascontiguousarray(rows.T)  # (n_pieces,) each
    within_word = np.ones(len(starts), bool)
    within_word[np.cumsum(n_parts) - n_parts] = np.isin(np.arange(len(pieces)), pieces.cuts)
    totals = np.concatenate([np.zeros(1, np.int32), np.cumsum(counts, dtype=np.int32)])
    return Pieces(pieces.text, starts, ends, totals, np.flatnonzero(within_word).tolist(), room)


def cut_word(
    text: str, start: int, end: int, tokenizer: TextTokenizer, room: int
) -> Iterator[tuple[int, int, int]]:
    """Cut a word into parts of at most ``room`` tokens; yield start, end and number of tokens of each.

    The tokens of a part may differ from those of the whole word, so each part is tokenized itself.
    """
    while start < end:
        [encoding] = tokenizer.encode_batch([text[start:end]])
        borders = sorted({start + first for first, last in encoding.offsets if last > first} - {start})
        stop = borders[room - 1] if len(borders) >= room else end
        while (count := n_tokens(text[start:stop], tokenizer)) > room and stop > start + 1:
            before = bisect_left(borders, stop)
            stop = borders[before - 1] if before else start + (stop - start) // 2
        part = text[start:stop]
        if part.strip():  # a dropped control character may be white space to Python
            first = start + len(part) - len(part.lstrip())
            yield first, first + len(part.strip()), count
        start = stop


def n_tokens(text: str, tokenizer: TextTokenizer) -> int:
    """Return the number of tokens of a text, without special tokens."""
    return len(tokenizer.ids_batch([text])[0]) - tokenizer.n_special


def cut(
    pieces: Pieces, levels: Sequence[FindStarts], first: int, last: int, overlap: int
) -> Iterator[tuple[int, int]]:
    """Cut the pieces from ``first`` to before ``last`` into chunks.

    As many units as fit are packed into a chunk. A unit longer than a chunk is cut into units of the next
    level, at last into pieces (LangChain's RecursiveCharacterTextSplitter, with lengths in tokens).
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
    """Pack as many neighbouring units as fit into each chunk.

    Parameters
    ----------
    pieces
        The pieces of the units.
    borders
        The first piece of each unit, and the end of the last; each unit fits a chunk.
    overlap
        Most tokens that a chunk repeats from the previous one, in whole units. Each chunk has at least one
        new unit.
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
    """Begin a chunk at every unit and add the next units that fit; a unit too long is cut into pieces."""
    borders: list[int] = []
    for start, end in pairwise(pieces.units(find_starts, first, last)):
        borders += [begin for begin, _ in pack(pieces, range(start, end + 1), 0)]
    borders.append(last)
    for start in borders[:-1]:
        yield start, borders[bisect_right(borders, pieces.reach(start)) - 1]
