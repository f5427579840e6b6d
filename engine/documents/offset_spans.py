"""The words of a text and their numbers of tokens, from the offsets of any tokenizer's tokens.

Byte-level BPE and Unigram mark the beginning of a word by the blank before it, so a word by itself
may have other tokens than in its text. The text is therefore tokenized whole.
"""

import re
from collections.abc import Iterator

import numpy as np

from ..tokenizers.text_tokenizer import TextTokenizer
from ..tokenizers.unicode import CHINESE, NONSPACING_MARK, PUNCTUATION, character_class
from .word_tokens import BLANKS

# As in `word_tokens`: punctuation marks and Chinese characters are words of their own, with their marks.
SINGLE = character_class(PUNCTUATION, CHINESE)
MARKS = character_class(NONSPACING_MARK)
WORD = re.compile(f"[{SINGLE}][{MARKS}]*|[^{SINGLE}{re.escape(BLANKS)}]+")


def counted_words(
    text: str, start: int, end: int, tokenizer: TextTokenizer
) -> Iterator[tuple[int, int, int]]:
    """Yield start, end and number of tokens of each word of ``text[start:end]``.

    Words that share a token are joined. A token belongs to the word of its first character that is not blank;
    one of blanks only to the next word, or to the last.
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
