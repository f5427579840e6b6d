"""Division of text into sentences."""

import re
from itertools import pairwise

# Marks that end sentences, with closing quotes or brackets; those of Chinese and Japanese need no space.
MARK, CJK_MARK = r"""[.!?…]+["'”’»)\]*_]*""", r"[。！？]+[」』”’）]*"
# Possible ends of sentences: after a mark, or before a line break. A full stop within a number or a name
# ("3.5", "engine.py") has no space after it.
POSSIBLE_END = re.compile(rf"{MARK}(?=\s)|{CJK_MARK}|(?=\n)")
MARK_AT_END = re.compile(rf"({MARK}|{CJK_MARK})$")
# A full stop after these, or after a single letter ("J. Smith", "the U.S. Senate"), belongs to the word.
ABBREVIATION = re.compile(
    r"(al|approx|art|ca|cf|ch|dept|dr|ed|eq|est|etc|figs?|gen|gov|hon|inc|jr|lt|ltd|mrs?|ms|mt|nos?|op|pp?"
    r"|prof|rep|rev|sec|sen|sgt|sr|st|vol|vs)",
    re.IGNORECASE,
)
GAP = re.compile(r"\s*")
# Longer than any abbreviation; bounds the search at each mark in a text without spaces.
LONGEST_WORD = 64


def sentence_spans(text: str) -> tuple[tuple[int, int], ...]:
    """Cut a text into sentences; the spans follow one another and cover it exactly.

    A sentence ends at ``.``, ``!``, ``?`` or ``…`` before white space, at their Chinese and Japanese
    counterparts, and at a line break, except after an abbreviation, an initial or the number of a list item,
    and before a lower-case letter. A sentence that ends in an abbreviation ("… of the U.S. It …") is
    therefore joined with the next.
    """
    ends = [0]
    first, last = end_of_gap(text, 0), len(text.rstrip())  # without surrounding white space
    for match in POSSIBLE_END.finditer(text):
        if first < match.end() < last and is_end(text, first, match.start(), match.end()):
            ends.append(match.end())
            first = end_of_gap(text, match.end())
    return tuple(pairwise([*ends, len(text)])) if text else ()


def end_of_gap(text: str, start: int) -> int:
    """Return the end of the white space at ``text[start]``."""
    gap = GAP.match(text, start)
    return gap.end() if gap else start


def is_end(text: str, first: int, start: int, end: int) -> bool:
    """Whether a sentence that begins at ``text[first]`` ends with the mark ``text[start:end]``."""
    mark = text[start:end]
    if not mark or mark[0] in "。！？":
        return True
    following = end_of_gap(text, end)
    if text[following].islower() and "\n" not in text[end:following]:
        return False
    if not mark.startswith(".") or mark.startswith(".."):
        return True
    before = text[max(first, start - LONGEST_WORD) : start]
    words = before.split()
    word = re.split(r"[.(\[\"'“‘]", words[-1])[-1] if words else ""
    is_item = word.isdigit() and len(words) == 1
    is_initial = len(word) == 1 and word.isalpha()
    return not (is_item or is_initial or ABBREVIATION.fullmatch(word))
