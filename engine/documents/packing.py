"""Packing of words into chunks of limited numbers of tokens."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from ..tokenizers.text_tokenizer import TextTokenizer
from .sentences import stripped
from .token_spans import TokenSpans
from .word_tokens import Ints

# From a text to the starts of its units, except the first.
FindStarts = Callable[[str], list[int]]


@dataclass(frozen=True)
class Words:
    """The words of a text, and the parts of longer ones, for chunks of up to ``room`` tokens."""

    text: str
    starts: Ints  # these and the next two as in `TokenSpans`
    ends: Ints
    totals: Ints
    # numbers of the parts that begin within a word: they only come first in a chunk, since two parts of a
    # word may have other tokens together than apart
    cuts: Sequence[int]
    room: int  # without special tokens

    def __len__(self) -> int:
        return len(self.starts)

    def span(self, number: int) -> tuple[int, int]:
        """Return start and end of a word."""
        return int(self.starts[number]), int(self.ends[number])

    def reach(self, first: int) -> int:
        """Return the furthest end of a chunk that begins with the word ``first``."""
        totals = memoryview(self.totals.data)
        end = bisect_right(totals, totals[first] + self.room, first + 1) - 1
        cut = bisect_right(self.cuts, first)
        return min(end, self.cuts[cut]) if cut < len(self.cuts) else end

    def reaching(self, last: int, most: int) -> int:
        """Return the earliest beginning of a chunk of ``most`` tokens that ends before the word ``last``."""
        totals = memoryview(self.totals.data)
        first = bisect_left(totals, totals[last] - most, 0, last)
        cut = bisect_left(self.cuts, last)
        return max(first, self.cuts[cut - 1]) if cut else first

    def borders(self, starts: Sequence[int], first: int, last: int) -> list[int]:
        """Return ``first``, the words between at which units with these starts begin, and ``last``."""
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
        """Return the first word of ``text[start:end]`` and the first after it."""
        return bisect_left(self.starts, start), bisect_left(self.starts, end)


MORE = 16  # tokens behind a part of a word that are read with it


def words_of(text: str, tokens: TokenSpans) -> Words:
    """Return the words of a text, none of them cut."""
    return Words(text, tokens.starts, tokens.ends, tokens.totals, (), int(tokens.totals[-1]))


def with_room(words: Words, tokenizer: TextTokenizer, room: int) -> Words:
    """Return words for chunks of ``room`` tokens: longer ones are cut into parts."""
    long = np.flatnonzero(np.diff(words.totals) > room).tolist()
    if not long:
        return replace(words, room=room)
    parts = [list(cut_word(words.text, *words.span(number), tokenizer, room)) for number in long]
    n_parts = np.ones(len(words), np.int32)
    n_parts[long] = [len(each) for each in parts]
    is_part = np.repeat(np.isin(np.arange(len(words)), long), n_parts)
    rows = np.column_stack([words.starts, words.ends, np.diff(words.totals)])  # (start, end, tokens)
    rows = np.repeat(rows, n_parts, axis=0)
    rows[is_part] = [part for each in parts for part in each]
    starts, ends, counts = np.ascontiguousarray(rows.T)  # (n_pieces,) each
    within_word = np.ones(len(starts), bool)
    within_word[np.cumsum(n_parts) - n_parts] = np.isin(np.arange(len(words)), words.cuts)
    totals = np.concatenate([np.zeros(1, np.int32), np.cumsum(counts, dtype=np.int32)])
    return Words(words.text, starts, ends, totals, np.flatnonzero(within_word).tolist(), room)


def cut_word(
    text: str, start: int, end: int, tokenizer: TextTokenizer, room: int
) -> Iterator[tuple[int, int, int]]:
    """Cut a word into parts of at most ``room`` tokens of their own; yield start, end and tokens of each."""
    while start < end:
        n_read = 4 * (room + MORE)  # characters; those far behind the part change none of its tokens
        while True:
            [encoding] = tokenizer.encode_batch([text[start : min(start + n_read, end)]])
            borders = sorted({start + first for first, last in encoding.offsets if last > first} - {start})
            if len(borders) >= room + MORE or start + n_read >= end:
                break
            n_read *= 2
        stop = borders[room - 1] if len(borders) >= room else end
        while (count := n_tokens(text[start:stop], tokenizer)) > room and stop > start + 1:
            before = bisect_left(borders, stop)
            stop = borders[before - 1] if before else start + (stop - start) // 2
        first, last = stripped(text, start, stop)
        if first < last:  # a dropped control character may be white space to Python
            yield first, last, count
        start = stop


def n_tokens(text: str, tokenizer: TextTokenizer) -> int:
    """Return the number of tokens of a text, without special tokens."""
    return len(tokenizer.ids_batch([text])[0]) - tokenizer.n_special


def cut(
    words: Words, levels: Sequence[FindStarts], first: int, last: int, overlap: int
) -> Iterator[tuple[int, int]]:
    """Cut the words from ``first`` to before ``last`` into chunks.

    As many units as fit are packed into a chunk. A unit longer than a chunk is cut into units of the next
    level, at last into words (LangChain's RecursiveCharacterTextSplitter, with lengths in tokens).
    """
    if first < last <= words.reach(first):  # all of them fit
        yield first, last
        return
    if not levels:
        yield from pack(words, range(first, last + 1), overlap)
        return
    borders = words.units(levels[0], first, last)
    begin = 0
    for number, (start, end) in enumerate(pairwise(borders)):
        if words.reach(start) < end:
            yield from pack(words, borders[begin : number + 1], overlap)
            yield from cut(words, levels[1:], start, end, overlap)
            begin = number + 1
    yield from pack(words, borders[begin:], overlap)


def pack(words: Words, borders: Sequence[int], overlap: int) -> Iterator[tuple[int, int]]:
    """Pack as many neighbouring units as fit into each chunk.

    ``borders`` are the first word of each unit, and the end of the last; each unit fits a chunk. A chunk
    repeats up to ``overlap`` tokens of the one before, in whole units, and has at least one new unit.
    """
    unit, n_units = 0, len(borders) - 1
    while unit < n_units:
        end = bisect_right(borders, words.reach(borders[unit])) - 1
        yield borders[unit], borders[end]
        if end == n_units:
            return
        first = borders[end]
        if overlap:
            first = max(words.reaching(borders[end], overlap), words.reaching(borders[end + 1], words.room))
        unit = max(min(bisect_left(borders, first), end), unit + 1)


def slide(words: Words, find_starts: FindStarts, first: int, last: int) -> Iterator[tuple[int, int]]:
    """Begin a chunk at every unit and add the next units that fit; a unit too long is cut into words."""
    borders: list[int] = []
    for start, end in pairwise(words.units(find_starts, first, last)):
        borders += [begin for begin, _ in pack(words, range(start, end + 1), 0)]
    borders.append(last)
    for start in borders[:-1]:
        yield start, borders[bisect_right(borders, words.reach(start)) - 1]
