"""Sentences of an answer: where each begins and ends, in characters and in tokens."""

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from engine.generation.stream import TextStream
from engine.tokenizers.bpe import BPETokenizer

# Where a sentence may end: behind a mark with what closes around it, or before a line break. A full
# stop within a number or a name ("3.5", "engine.py") has no space behind it.
POSSIBLE_END = re.compile(r"""[.!?…]+["'”’»)\]*_]*(?=\s)|[。！？]+[」』”’）]*|(?=\n)""")
# A full stop behind these, or behind a single letter ("J. Smith", "the U.S. Senate"), belongs to the word.
ABBREVIATION = re.compile(
    r"(al|approx|art|ca|cf|ch|dept|dr|ed|eq|est|etc|figs?|gen|gov|hon|inc|jr|lt|ltd|mrs?|ms|mt|nos?|op|pp?"
    r"|prof|rep|rev|sec|sen|sgt|sr|st|vol|vs)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Sentence:
    """A sentence: ``text`` is the answer's ``[start:end]``, made by its tokens ``[first_token:last_token]``.

    The white space before a sentence belongs to it, as it does to the tokens of most vocabularies.
    """

    text: str
    start: int
    end: int
    first_token: int
    last_token: int

    @property
    def n_tokens(self) -> int:
        """Number of its tokens."""
        return self.last_token - self.first_token


def sentence_spans(text: str) -> tuple[tuple[int, int], ...]:
    """Cut a text into sentences; the spans follow one another and cover it exactly.

    A sentence ends at ``.``, ``!``, ``?`` or ``…`` before white space, at their Chinese and Japanese
    counterparts, and at a line break; not behind an abbreviation or an initial, not behind the number
    of a list's item, and not where the text goes on in lower case. One that ends in an abbreviation
    ("… of the U.S. It …") is therefore not told apart from the next.
    """
    ends = [0]
    for match in POSSIBLE_END.finditer(text):
        before, after = text[ends[-1] : match.end()], text[match.end() :]
        if before.strip() and after.strip() and is_end(before, match.group(), after):
            ends.append(match.end())
    return tuple(pairwise([*ends, len(text)])) if text else ()


def is_end(before: str, mark: str, after: str) -> bool:
    """Whether a sentence ends between ``before``, which ends with ``mark``, and ``after``."""
    if not mark or mark[0] in "。！？":
        return True
    if after.lstrip()[0].islower() and "\n" not in after[: len(after) - len(after.lstrip())]:
        return False
    if not mark.startswith(".") or mark.startswith(".."):
        return True
    words = before[: len(before) - len(mark)].split()
    word = re.split(r"[.(\[\"'“‘]", words[-1])[-1] if words else ""
    is_item = word.isdigit() and len(words) == 1
    is_initial = len(word) == 1 and word.isalpha()
    return not (is_item or is_initial or ABBREVIATION.fullmatch(word))


def token_texts(ids: Sequence[int], tokenizer: BPETokenizer) -> list[str]:
    """Return what each token adds to the text; a character made by several tokens counts to the last."""
    stream = TextStream()
    texts = [stream.push(tokenizer.token_bytes(number)) for number in ids]
    return [*texts[:-1], texts[-1] + stream.finish()] if texts else []


def token_starts(texts: Sequence[str]) -> list[int]:
    """Return where each token's text begins, in characters, and where the last one ends."""
    return [0, *accumulate(len(text) for text in texts)]


def sentences_of(ids: Sequence[int], tokenizer: BPETokenizer) -> tuple[Sentence, ...]:
    """Cut an answer into sentences that begin and end between two tokens.

    They cover the answer exactly, its characters as its tokens: where one token makes the end of a
    sentence and the beginning of the next, it belongs to the first of them.
    """
    texts = token_texts(ids, tokenizer)
    starts = token_starts(texts)
    text = "".join(texts)
    ends = sorted({bisect_left(starts, end, hi=len(ids)) for _, end in sentence_spans(text)[:-1]} - {0})
    borders = [0, *(end for end in ends if end < len(ids)), len(ids)] if ids else []
    return tuple(
        Sentence(text[starts[first] : starts[last]], starts[first], starts[last], first, last)
        for first, last in pairwise(borders)
    )
