"""The places of the words of a text and their numbers of tokens, from which any span can be counted.

A WordPiece tokenizer never joins characters across white space, and seldom across punctuation. A span that
begins and ends between words therefore has the tokens of its words. Most words of a text repeat, and each is
tokenized once. With other tokenizers a span by itself may have a token more or less than within the text.
"""

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

import numpy as np

from ..tokenizers.encoding import check_text
from ..tokenizers.text_tokenizer import TextTokenizer
from ..tokenizers.unicode import CHINESE, NONSPACING_MARK, PUNCTUATION, character_class
from ..tokenizers.wordpiece import WordPieceTokenizer
from .word_tokens import BLANKS, Ints, RunWords, word_cache, words_of_runs

BLOCK_CHARACTERS = 1 << 20  # processed at a time, which bounds the memory
LONGEST_BLOCK = 1 << 21  # where the text has no blank
# Longer runs without a blank, of punctuation or Chinese, are cut, which bounds it, too.
LONGEST_RUN = 1 << 12
BORDER = re.compile(f"(?![\\[\\]<>|_])[{character_class(PUNCTUATION, CHINESE)}]")
# As in `word_tokens`: punctuation marks and Chinese characters are words of their own, with their marks.
SINGLE = character_class(PUNCTUATION, CHINESE)
MARKS = character_class(NONSPACING_MARK)
WORD = re.compile(f"[{SINGLE}][{MARKS}]*|[^{SINGLE}{re.escape(BLANKS)}]+")


@dataclass(frozen=True)
class TokenSpans:
    """The words of a text and their tokens; a punctuation mark or a Chinese character is a word."""

    starts: Ints  # of each word, ``(n_words,)`` int32; the words cover every character that is not blank
    ends: Ints
    totals: Ints  # tokens of all words before each, and of all, ``(n_words + 1,)`` int32
    n_special: int  # tokens around every text, which ``totals`` leave out

    @property
    def n_tokens(self) -> int:
        """Tokens of the whole text, special tokens included."""
        return int(self.totals[-1]) + self.n_special

    def count(self, start: int, end: int) -> int:
        """Return the tokens of ``text[start:end]`` as the model counts them, special tokens included.

        Exact if the span begins and ends between words; a word that is cut counts whole to the part in which
        it begins.
        """
        first, last = bisect_left(self.starts, start), bisect_left(self.starts, end)
        return int(self.totals[last] - self.totals[first]) + self.n_special


def token_spans(text: str, tokenizer: TextTokenizer) -> TokenSpans:
    """Find the words of a text and count the tokens of each; added tokens with white space are ignored."""
    check_text(text, "the text")
    if not isinstance(tokenizer, WordPieceTokenizer):
        words = [word for block in blocks_of(text, BLANKS) for word in counted_words(text, *block, tokenizer)]
        starts, ends, counts = np.array(words, np.int32).reshape(-1, 3).T  # (n_words,) each
        totals = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        return TokenSpans(starts, ends, totals, tokenizer.n_special)
    cache = word_cache(tokenizer)
    numbers: dict[str, int] = defaultdict(count().__next__)  # of runs, in the order of their first lookup
    blocks = [number_runs(text, *block, cache.blanks, numbers) for block in blocks_of(text, cache.blanks)]
    places, which = (np.concatenate(arrays) for arrays in zip(*blocks, strict=True))
    return place_words(places, which, words_of_runs(list(numbers), tokenizer, cache), tokenizer.n_special)


def blocks_of(text: str, blanks: str) -> Iterator[tuple[int, int]]:
    """Yield long spans that cover a text and end behind a blank; without one, after `LONGEST_BLOCK`."""
    gap = re.compile(f"[{re.escape(blanks)}]")
    start = 0
    while True:
        last = min(len(text), start + LONGEST_BLOCK)
        match = gap.search(text, start + BLOCK_CHARACTERS, last)
        end = match.end() if match else last
        yield start, end
        if match is None and end == len(text):
            return
        start = end


def number_runs(text: str, start: int, end: int, blanks: str, numbers: dict[str, int]) -> tuple[Ints, Ints]:
    """Return the start and the number of each run between blanks of ``text[start:end]``."""
    runs = re.findall(f"[^{re.escape(blanks)}]+", text[start:end])
    codes = np.frombuffer(text[start:end].encode("utf-32-le"), np.uint32)
    is_blank = np.zeros(max(map(ord, BLANKS)) + 2, bool)
    is_blank[[ord(character) for character in blanks]] = True
    blank = is_blank[np.minimum(codes, len(is_blank) - 1)]
    starts = start + np.flatnonzero(np.diff(blank, prepend=True, append=True))[::2]
    if max(map(len, runs), default=0) > LONGEST_RUN:
        cut = [list(pieces_of(run)) for run in runs]
        starts = np.array(
            [place + first for place, pieces in zip(starts, cut, strict=True) for first, _ in pieces]
        )
        runs = [piece for pieces in cut for _, piece in pieces]
    return starts.astype(np.int32), np.fromiter(map(numbers.__getitem__, runs), np.int32, len(runs))


def pieces_of(run: str) -> Iterator[tuple[int, str]]:
    """Cut a long run in front of marks, but brackets, as of added tokens: start and text of each piece."""
    start = 0
    while len(run) - start > LONGEST_RUN and (border := BORDER.search(run, start + LONGEST_RUN)):
        yield start, run[start : border.start()]
        start = border.start()
    yield start, run[start:]


def place_words(places: Ints, which: Ints, words: RunWords, n_special: int) -> TokenSpans:
    """Shift the words of each run to its place in the text: run ``which[i]`` begins at ``places[i]``."""
    n_words = np.diff(words.first)[which]
    before = np.cumsum(n_words) - n_words
    index = np.repeat(words.first[which] - before, n_words)
    index += np.arange(len(index))
    origin = np.repeat(places, n_words)
    totals = np.zeros(len(index) + 1, np.int32)
    np.cumsum(words.counts[index], out=totals[1:])
    return TokenSpans(origin + words.starts[index], origin + words.ends[index], totals, n_special)


def counted_words(
    text: str, start: int, end: int, tokenizer: TextTokenizer
) -> Iterator[tuple[int, int, int]]:
    """Yield start, end and number of tokens of each word of ``text[start:end]``.

    Byte-level BPE and Unigram mark the beginning of a word by the blank before it, so a word by itself may
    have other tokens than in its text, which is tokenized whole. Words that share a token are joined. A token
    belongs to the word of its first character that is not blank; one of blanks only to the next word, or to
    the last.
    """
    [encoding] = tokenizer.encode_batch([text[start:end]])
    _, offsets, _ = tokenizer.around(encoding.offsets)
    spans = [(start + first, start + last) for first, last in offsets]
    words = [match.span() for match in WORD.finditer(text, start, end)]
    owners = np.searchsorted(
        [last for _, last in words], [first_letter(text, *span) for span in spans], "right"
    )
    current: tuple[int, int] | None = None
    count, reach = 0, start
    tokens = iter(zip(owners.tolist(), spans, strict=True))
    waiting = next(tokens, None)
    for number, (first, last) in enumerate(words):
        if current is not None and first >= reach:
            yield *current, count
            current, count = None, 0
        current = (first, last) if current is None else (current[0], last)
        while waiting is not None and (waiting[0] <= number or number == len(words) - 1):
            count, reach = count + 1, max(reach, waiting[1][1])
            waiting = next(tokens, None)
    if current is not None:
        yield *current, count


def first_letter(text: str, start: int, end: int) -> int:
    """Return the place of the first character of a span that is not blank, or its end."""
    while start < end and text[start] in BLANKS:
        start += 1
    return start
