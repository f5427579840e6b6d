"""Division of text into sentences."""

import re
from itertools import pairwise

# Marks that end sentences, with closing quotes (English, German, French), brackets and numbers of notes
# ("[3]", "[^1]"); those of Chinese and Japanese need no space. The dots of a table of contents (". . . 7")
# end none.
NOTES = r"(?:\[\^?\w{1,3}\])*+"
MARK = rf"""(?<![.!?…])(?<!\. )[.!?…]++["'”’“‘»«)\]*_]*+{NOTES}(?! \.)"""
CJK_MARK = r"[。！？]+[」』”’）]*"
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
# Headings, rows of tables, code, directives and lines of dots never continue on the next line.
MARKUP = re.compile(r"[#|=~^`@<>]|[-_*]{3}|\.\. |:\w+:(?!`)|.*(\. ?){4}")
CELL_GAP = " | "  # between the cells of a row, as the readers of HTML and Word write tables
ITEM = re.compile(r"[-*+•‣◦▪·]\s+|\(?(\d{1,3}|[a-zA-Z])[.)]\s+")
# Columns of text, in characters: a longest line outside is that of a list, a poem or a text not wrapped.
NARROWEST, WIDEST = 40, 160
SURROUNDINGS = 1_000  # characters of a text that are read around an excerpt
# The characters of a line of set type vary with their widths by about this share of the column.
RAGGED = 0.15


def sentence_spans(text: str) -> tuple[tuple[int, int], ...]:
    """Cut a text into sentences; the spans follow one another and cover it exactly.

    A sentence ends at ``.``, ``!``, ``?`` or ``…`` before white space, at their Chinese and Japanese
    counterparts, and at a line break that does not wrap a paragraph (`wrapping_breaks`), except after an
    abbreviation, an initial or the number of a list item, before a lower-case letter, and within a row of a
    table in Markdown. A sentence that ends in an abbreviation ("… of the U.S. It …") is therefore joined
    with the next.
    """
    wrapping = wrapping_breaks(text)
    ends = [0]
    first, last = end_of_gap(text, 0), len(text.rstrip())  # without surrounding white space
    for match in POSSIBLE_END.finditer(text):
        if first < match.end() < last and is_end(text, first, match.start(), match.end(), wrapping):
            ends.append(match.end())
            first = end_of_gap(text, match.end())
    return tuple(pairwise([*ends, len(text)])) if text else ()


def end_of_gap(text: str, start: int) -> int:
    """Return the end of the white space at ``text[start]``."""
    gap = GAP.match(text, start)
    return gap.end() if gap else start


def is_end(text: str, first: int, start: int, end: int, wrapping: frozenset[int]) -> bool:
    """Whether a sentence that begins at ``text[first]`` ends with the mark ``text[start:end]``."""
    mark = text[start:end]
    if not mark:
        return start not in wrapping
    if text[first] == "|":  # a row of a table in Markdown
        return False
    if mark[0] in "。！？":
        return True
    following = end_of_gap(text, end)
    line_end = text.find("\n", end, following)
    if text[following].islower() and (line_end < 0 or line_end in wrapping):
        return False
    if not mark.startswith(".") or mark.startswith(".."):
        return True
    before = text[max(first, start - LONGEST_WORD) : start]
    words = before.split()
    word = re.split(r"[.(\[\"'“‘]", words[-1])[-1] if words else ""
    is_item = word.isdigit() and len(words) == 1
    is_initial = len(word) == 1 and word.isalpha()
    return not (is_item or is_initial or ABBREVIATION.fullmatch(word))


def unwrapped(text: str, start: int, end: int) -> str:
    """Return ``text[start:end]`` with a space for every line break that wraps a paragraph.

    Whole lines on either side, up to `SURROUNDINGS` characters, tell what wraps: the fragments of lines at
    the ends of an excerpt do not look like lines of a column, or like records.
    """
    low, high = max(0, start - SURROUNDINGS), min(len(text), end + SURROUNDINGS)
    first = max(low, text.find("\n", low, start) + 1) if low else 0
    last = max(end, text.rfind("\n", end, high)) if high < len(text) else high
    characters = list(text[first:last])
    for place in wrapping_breaks(text[first:last]):
        characters[place] = " "
    return "".join(characters[start - first : end - first])


def wrapping_breaks(text: str) -> frozenset[int]:
    """Return the places of the line breaks that wrap a paragraph to a column, as in PDF files or e-mail.

    The first word after such a break did not fit on the line before. It wraps if that word is in lower
    case, or if most breaks between neighbouring lines are of this kind: the lines are a column of prose. A
    break between items, headings, rows or records (lines that begin alike: dates, names) never wraps.
    """
    places: list[int] = []
    block: list[tuple[int, str]] = []  # the lines since the last blank one, with their starts
    start = 0
    for line in [*text.split("\n"), ""]:
        if line.strip():
            block.append((start, line))
        else:
            places += wrapping_of_block(block)
            block = []
        start += len(line) + 1
    return frozenset(places)


def wrapping_of_block(block: list[tuple[int, str]]) -> list[int]:
    """Return the breaks that wrap, among lines without a blank line between them."""
    lines = [line.rstrip() for _, line in block]
    if len(lines) < 2:
        return []
    lengths = sorted(map(len, lines))
    width = lengths[-1 - len(lines) // 10]  # a few longer lines are addresses or headers
    pairs = [
        (before, after)
        for place, (before, after) in enumerate(pairwise(block))
        if may_continue(before[1], after[1], is_first=place == 0)
    ]
    alike = sum(shape_of_start(a) == shape_of_start(b) for a, b in pairwise(lines))
    if not NARROWEST <= width <= WIDEST or 2 * alike >= len(lines):
        return []
    full = [
        (start + len(line), after.lstrip()[0].islower())
        for (start, line), (_, after) in pairs
        if len(line.rstrip()) + 1 + len(after.split(maxsplit=1)[0]) > (1 - RAGGED) * width
    ]
    is_prose = len(pairs) > 1 and 2 * len(full) > len(pairs)  # of two lines, the longer one is always full
    return [place for place, goes_on in full if is_prose or goes_on]


def may_continue(line: str, after: str, is_first: bool) -> bool:
    """Whether a paragraph can continue from a line to the next, by their marks and indentations.

    The next line is indented as this one, as the text of its item, or less than the first of a paragraph.
    """
    text, following = line.lstrip(), after.lstrip()
    if MARKUP.match(text) or MARKUP.match(following) or ITEM.match(following):
        return False
    if CELL_GAP in text and CELL_GAP in following:  # rows of a table
        return False
    item = ITEM.match(text)
    indent, next_indent = len(line) - len(text), len(after) - len(following)
    return next_indent in (indent, indent + (item.end() if item else 0)) or (
        is_first and next_indent < indent
    )


def shape_of_start(line: str) -> str:
    """Return the first word of a line with every digit as 0: records of a kind begin alike."""
    return re.sub(r"\d", "0", line.split(maxsplit=1)[0])
