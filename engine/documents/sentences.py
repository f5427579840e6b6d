"""Division of text into sentences."""

import re
from itertools import pairwise

from .abbreviations import is_of_word

# Atomic groups, as Python before 3.11.4 repeats groups with "*+" and "++" wrongly.
NOTES = r"(?>(?:\[\^?\w{1,3}\])*)"  # numbers of notes: "[3]", "[^1]"
# Closing quotes (English, German, French) and brackets after a mark.
CLOSING = r"(?>(?:[\u00a0\u202f ]?»(?![^\W\d_])|[\"'”’“‘»«›‹)\]*_」』）])*)"
# Marks that end sentences before white space, Arabic, Urdu, Armenian, Syriac, Mongolian, Santali and Tibetan
# ones among them; the Greek semicolon is a question mark, and Armenian and Hindi are also typed with a colon
# and a bar. The dots of a table of contents (". . . 7") end none.
MARKS = ".!?…‼⁇⁈⁉؟۔։܀᠃᠉᱾᱿།༎\u037e"
MARK = (
    rf"(?:[{MARKS}](?<![.!?…].)(?<!\. .)[{MARKS}]*+|;(?<=[ά-ώ][ά-ώ»”\"];)|:(?<=[ա-ֆ]:)"
    rf"|\|(?<=[\u0900-\u0963]\|)){CLOSING}{NOTES}(?! [.།])"
)
# Those of Chinese, Japanese, Devanagari, Ethiopic, Burmese and Khmer need no space.
UNSPACED = "。！？｡।॥።፧፨။។៕"
CLOSING_UNSPACED = '[」』｣”’）)"]'
GOES_ON = r"[、，と]|\w{1,6}[说說道问問答][，。：]"  # after a quotation: "」と", "”她说。"
UNSPACED_MARK = (
    rf"(?:(?>(?:[{UNSPACED}]|．(?!\d))+)|[!?](?<=[\u3040-\u9fff].)[!?]*+)"
    rf"(?:(?!{CLOSING_UNSPACED})|{CLOSING_UNSPACED}++(?!{GOES_ON})){NOTES}"
)
# Possible ends of sentences: after a mark, or before a line break. A full stop within a number or a name
# ("3.5", "engine.py") has no space after it. Looking for the first characters only makes the search faster.
POSSIBLE_END = re.compile(rf"(?=[{MARKS}{UNSPACED}．;:|\n])(?:{MARK}(?=\s)|{UNSPACED_MARK}|(?=\n))")
MARK_AT_END = re.compile(rf"({MARK}|{UNSPACED_MARK})$")
# What may begin a sentence: the first letter of a line, also after a name and a colon, or after a mark.
BEGINNING = re.compile(r"(?:[.!?…]\s+|^(?:[^\n:]{1,40}:[ \t]+)?[^\w\n]*+)(I\b|[^\W\d_])", re.MULTILINE)
UPPER_SHARE = 0.05  # of the beginnings, at most, in a text in lower case
DASH = re.compile(r"(?:[-–—]+ ?)?")  # before the words that say who speaks
GAP = re.compile(r"\s*")
# Longer than any abbreviation; bounds the search at each mark in a text without spaces.
LONGEST_WORD = 64
# Headings, rows of tables, code, directives and lines of dots never continue on the next line.
MARKUP = re.compile(r"[#|=~^`@<>]|[-_*]{3}|\.\. |:\w+:(?!`)|.*(\. ?){4}")
CELL_GAP = " | "  # between the cells of a row, as the readers of HTML and Word write tables
FIELD = re.compile(r"[\w-]+:\s")  # of a record: "date: 2026-03-01"
ITEM = re.compile(r"[-*+•‣◦▪·]\s+|\(?(\d{1,3}|[a-zA-Z])[.)]\s+")
# Columns of text, in characters: a longest line outside is that of a list, a poem or a text not wrapped.
# Narrow ones are recognised by sentences that end within, and by lines that go on in lower case.
NARROWEST, NARROW, WIDEST = 20, 40, 160
SURROUNDINGS = 1_000  # characters of a text that are read around an excerpt
# The characters of a line of set type vary with their widths by about this share of the column.
RAGGED = 0.15


def sentence_spans(text: str) -> tuple[tuple[int, int], ...]:
    """Cut a text into sentences; the spans follow one another and cover it exactly.

    A sentence ends at ``.``, ``!``, ``?`` or ``…`` before white space, at their counterparts in other
    scripts, and at a line break that does not wrap a paragraph (`wrapping_breaks`), except where a full stop
    belongs to a word (`is_of_word`), within a row of a table in Markdown, and before a lower-case letter,
    unless the whole text is in lower case.
    """
    wrapping = wrapping_breaks(text)
    is_lower = is_in_lower_case(text)
    ends = [0]
    first, last = end_of(GAP, text, 0), len(text.rstrip())  # without surrounding white space
    for match in POSSIBLE_END.finditer(text):
        start, end = match.span()
        if first < end < last and is_end(text, first, start, end, wrapping, is_lower):
            ends.append(end)
            first = end_of(GAP, text, end)
    return tuple(pairwise([*ends, len(text)])) if text else ()


def stripped_sentences(text: str) -> list[tuple[int, int]]:
    """Return the spans of a text's sentences without the white space around them; blank ones are left out."""
    spans = (stripped(text, *span) for span in sentence_spans(text))
    return [(start, end) for start, end in spans if start < end]


def stripped(text: str, start: int, end: int) -> tuple[int, int]:
    """Return a span without the white space at its ends; of blanks only, one that ends before it begins."""
    piece = text[start:end]
    return start + len(piece) - len(piece.lstrip()), end - (len(piece) - len(piece.rstrip()))


def lines_around(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the span of the whole lines that a span of a text stands in."""
    last = text.find("\n", end)
    return text.rfind("\n", 0, start) + 1, last if last >= 0 else len(text)


def is_in_lower_case(text: str) -> bool:
    """Whether a text begins its sentences in lower case, as chats and transcripts do."""
    letters = BEGINNING.findall(text)
    if not letters or not letters[0].islower():
        return False
    letters = [each for each in letters if each != "I"]  # of English, which is a capital in chats, too
    return sum(map(str.isupper, letters)) <= UPPER_SHARE * len(letters)


def end_of(pattern: re.Pattern[str], text: str, start: int) -> int:
    """Return the end of what a pattern, such as that of white space, matches at ``text[start]``."""
    match = pattern.match(text, start)
    return match.end() if match else start


def is_end(text: str, first: int, start: int, end: int, wrapping: frozenset[int], is_lower: bool) -> bool:
    """Whether a sentence that begins at ``text[first]`` ends with the mark ``text[start:end]``."""
    mark = text[start:end]
    if not mark:
        return start not in wrapping
    if text[first] == "|":  # a row of a table in Markdown
        return False
    if mark[0] in UNSPACED:
        return True
    following = end_of(GAP, text, end)
    line_end = text.find("\n", end, following)
    letter = end_of(DASH, text, following)
    if text[letter : letter + 1].islower() and (line_end < 0 or line_end in wrapping):
        is_pause = mark[0] == "…" or mark[:2] == ".."
        if not is_lower or is_pause or mark[-1] in "\"'”’“»«":
            return False
    if mark[0] not in ".．" or mark.startswith(".."):
        return True
    before = text[max(first, start - LONGEST_WORD) : start]
    return not is_of_word(before, text[following : following + LONGEST_WORD], is_lower)


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
    beginnings = [re.sub(r"\d", "0", line.split(maxsplit=1)[0]) for line in lines]  # records begin alike
    alike = sum(a == b for a, b in pairwise(beginnings))
    if not NARROWEST <= width <= WIDEST or 2 * alike >= len(lines):
        return []
    full = [
        (start + len(line), after.lstrip()[0].islower())
        for (start, line), (_, after) in pairs
        if len(line.rstrip()) + 1 + len(after.split(maxsplit=1)[0]) > (1 - RAGGED) * width
    ]
    is_prose = len(pairs) > 1 and 2 * len(full) > len(pairs)  # of two lines, the longer one is always full
    if width < NARROW:
        has_ends = any(POSSIBLE_END.search(line + " ") for line in lines)
        has_fields = any(map(FIELD.match, lines))
        runs_on = 2 * sum(goes_on for _, goes_on in full) >= len(pairs)
        if not (is_prose and has_ends and runs_on) or has_fields:
            return []
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
