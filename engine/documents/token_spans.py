"""Where the words of a text are and how many tokens each has: measured once, then counted anywhere.

A WordPiece tokenizer never looks across white space, and seldom across punctuation, so that a stretch of
text that begins and ends between words has the tokens of its words, whatever stands around it. Most words
of a text repeat, and only different ones need be tokenized.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from engine.documents.run_words import BLANKS, Ints, Words, known_of, words_of_runs
from engine.tokenizers.encoding import check_text
from engine.tokenizers.wordpiece import WordPieceTokenizer

BLOCK_CHARACTERS = 1 << 20  # so many are looked at together, which bounds the memory


@dataclass(frozen=True)
class TokenSpans:
    """The words of a text and their tokens.

    Attributes
    ----------
    starts, ends
        The span of each word, ``(n_words,)`` int32, in characters. Together they cover every character
        that is not blank. A punctuation mark or a Chinese character is a word.
    totals
        Tokens of all words before each, and of all, ``(n_words + 1,)`` int32, without special tokens.
    n_special
        Special tokens around every text, such as [CLS] and [SEP].
    """

    starts: Ints
    ends: Ints
    totals: Ints
    n_special: int

    @property
    def n_tokens(self) -> int:
        """Tokens of the whole text, special tokens included."""
        return int(self.totals[-1]) + self.n_special

    def count(self, start: int, end: int) -> int:
        """Return the tokens of ``text[start:end]`` as the model counts them, special tokens included.

        It is exact where the span begins and ends between words; a word cut in two counts whole to the
        part that it begins in.
        """
        first, last = bisect_left(self.starts, start), bisect_left(self.starts, end)
        return int(self.totals[last] - self.totals[first]) + self.n_special


def measure(text: str, tokenizer: WordPieceTokenizer) -> TokenSpans:
    """Find the words of a text and count the tokens of each.

    Parameters
    ----------
    text
        The text.
    tokenizer
        The tokenizer of the model that will read it; an added token with white space in it is not
        looked for.

    Raises
    ------
    InputError
        The text is not a string, or holds half of a surrogate pair.
    """
    check_text(text, "the text")
    known = known_of(tokenizer)
    numbers = Numbers()
    blocks = [number_runs(text, *block, known.blanks, numbers) for block in blocks_of(text, known.blanks)]
    places, which = (np.concatenate(arrays) for arrays in zip(*blocks, strict=True))
    return place_words(places, which, words_of_runs(list(numbers), tokenizer, known), tokenizer.n_special)


class Numbers(dict[str, int]):
    """Different strings, numbered in the order in which they are first asked for."""

    def __missing__(self, key: str) -> int:
        self[key] = number = len(self)
        return number


def blocks_of(text: str, blanks: str) -> Iterator[tuple[int, int]]:
    """Cut a text into long spans that end behind a blank."""
    gap = re.compile(f"[{re.escape(blanks)}]")
    start = 0
    while True:
        match = gap.search(text, start + BLOCK_CHARACTERS)
        end = match.end() if match else len(text)
        yield start, end
        if match is None:
            return
        start = end


def number_runs(text: str, start: int, end: int, blanks: str, numbers: Numbers) -> tuple[Ints, Ints]:
    """Return where each run between blanks of ``text[start:end]`` begins, and its number."""
    runs = re.findall(f"[^{re.escape(blanks)}]+", text[start:end])
    codes = np.frombuffer(text[start:end].encode("utf-32-le"), np.uint32)
    is_blank = np.zeros(max(map(ord, BLANKS)) + 2, bool)
    is_blank[[ord(character) for character in blanks]] = True
    blank = is_blank[np.minimum(codes, len(is_blank) - 1)]
    starts = start + np.flatnonzero(np.diff(blank, prepend=True, append=True))[::2]
    return starts.astype(np.int32), np.fromiter(map(numbers.__getitem__, runs), np.int32, len(runs))


def place_words(places: Ints, which: Ints, words: Words, n_special: int) -> TokenSpans:
    """Put the words of each run where the run is: run ``which[i]`` begins at ``places[i]``."""
    n_words = np.diff(words.first)[which]
    before = np.cumsum(n_words) - n_words
    index = np.repeat(words.first[which] - before, n_words)
    index += np.arange(len(index))
    origin = np.repeat(places, n_words)
    totals = np.zeros(len(index) + 1, np.int32)
    np.cumsum(words.counts[index], out=totals[1:])
    return TokenSpans(origin + words.starts[index], origin + words.ends[index], totals, n_special)
