"""Letters of a PDF's page (PDFium), put together to words and segments of lines."""

import ctypes
import math
import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from itertools import chain, count, pairwise, repeat
from statistics import median
from typing import Any

import numpy as np

from .from_right import FROM_RIGHT, RIGHT, TOUCHING, Glyph, around, in_reading_order
from .pdf_grids import Rules, merged
from .pdf_layout import EXACT
from .pdf_lines import ALIGNED, BULLET, LEAST_BREAK, Rule, Segment
from .plain import BULLETS

SHARED = 0.3  # of the height of two letters in one line
# times the height of letters, of different sizes, of one, and before a power
NO_GAP, NO_LEVEL_GAP, POWER_GAP = 0.08, 0.045, 0.25
# times the size: gaps that are no blanks
THIN_BLANK, QUARTER, MARK_GAP, SIGN_GAP, AM_GAP = 0.22, 0.27, 0.5, 0.33, 0.7
SMALL, WIDEST_POWER = 0.9, 2.5  # times the height of their word, the height of powers, and their width
MAX_POWERS = 1000  # of a page that are looked for their place
LOWEST = 0.25  # times the size: how far letters reach below their line
RAISED = 1.75  # times the height of a power at most
RAISED_BOX = 0.17  # times the height of letters, between their line and a glyph above it
CELL, BLANK = 0.9, 0.35  # times the height of letters: a gap between two cells, and one between words
LEAST_LETTERS, LETTERS, VOWELS = 5, 0.6, 0.22  # of a text, and the shares of both in words
TILTED, LEAST_TILT = 4, 0.03  # of text in no quarter turn, and quarter turns it is off one at least
UNMAPPED = 0.3  # of the letters of a segment have no character
# Hyphens as PDFium and producers write those at ends of lines.
SIGNS = dict.fromkeys((0x02, 0xAD, 0x2010), "-") | BULLETS
UNKNOWN = "\ufffe"  # as it writes them, and glyphs without a character, in a page's whole text
CONTROL = re.compile(r"[\0-\x08\x0e-\x1f]")  # what letters without a map have for a code
DIGITS, SIGNED_DIGIT = re.compile(r"[\d+−-]+"), re.compile(r"[+−-]?\d")
POWER = re.compile(r"[\d+−–-]+([.,/]\d+)*")
CHARGE = re.compile(r"\d?[+−–-]")
LETTER_POWER = re.compile("[b-df-nps-z]")  # no ordinal of one letter, as 1e, 1o, 1a, 1r
ACCENTS = {  # and the characters that combine with a letter
    "`": "\u0300", "´": "\u0301", "ˆ": "\u0302", "˜": "\u0303", "¯": "\u0304", "˘": "\u0306", "˙": "\u0307",
    "¨": "\u0308", "˚": "\u030a", "˝": "\u030b", "ˇ": "\u030c", "¸": "\u0327", "˛": "\u0328",
}  # fmt: skip
STROKES = {"d\u0304": "đ", "D\u0304": "Đ"}
STRAY_ACCENT, FARTHEST = re.compile(rf"[ \0]+[{''.join(ACCENTS)}](?=\s|$)"), 200  # characters
NEAR, LEAST_BLANK, SPACED, NARROW, LONGEST = 8, 0.1, 0.12, 0.18, 8  # letters, and times their height
CORK = dict(zip("\x1b\x1c\x1d\x1e\x1fÿ¿", "ﬀﬁﬂﬃﬄß£", strict=True))  # codes of the bitmap fonts of TeX
NO_LETTERS = {"\0", "_", *ACCENTS}  # between which gaps tell nothing
SINGLE = "".join(ACCENTS) + RIGHT  # letters that are read one by one
# Lines of fractions: points at most, times the height of numbers to them, and the share that numbers fill.
LONGEST_FRACTION, FRACTION, FILLED = 60, 1.2, 0.75
LONGEST_STROKE = 8.0  # points: of an underscore
LEVEL = 0.1  # times the height of letters: differences of it
WIDEST, WIDEST_SIGN, SIGNS_FROM = 0.8, 1.5, 0x2E80  # their width in a word, also where they are signs of CJK
SAME = 0.001  # times it: a difference by rounding
PLAIN = rf"[\d+−-]+|[^\s\0\d+−{SINGLE}-]+"  # words whose ends tell the box around them
BLANK_AND_WORD = re.compile(rf"([\s\0]*)(?:({PLAIN})(?![^\s\0])|([^\s\0]+))")
WIDE, MARK = r"[\u2e80-\ud7ff\uff01-\uff5e]", r"[\u3001-\u301f\u30fb\uff01-\uff0f\uff1a-\uff1f]"
INDIC = r"[\u0900-\u0d7f\u0e33]"  # letters and vowel signs, of which PDFium parts the box of a letter's glyph
LEFT_SIGNS, LEFT_GAP = "\u09c7\u09c8\u09cb\u09cc", 0.75  # vowels of Bengali that stand before their letter
SIGN = re.compile(r"[\u0900-\u0eff]")  # also a letter
TWICE, MAX_TWICE, SHADOW = re.compile(r"([\w-])(?=\1)"), 6, 0.3  # letters, and times the width of one
REPEATED = re.compile(rf"(?=({SIGN.pattern}{{2,4}})\S{{1,3}}?(\1)( ?))")
HANGUL = re.compile("[\uac00-\ud7a3][\uac00-\ud7a3(]|[,.)!?][\uac00-\ud7a3]")
THIN_GAP = re.compile(rf"((?<={MARK}) | (?={MARK}))|(?<={WIDE}|{INDIC}) (?=\S)|(?<=\S) (?={WIDE})")
SIGNED, WITH_DIGIT = re.compile(rf"(?<={INDIC}){INDIC}(?=( ?)\S)"), re.compile(rf"{WIDE}\d|\d{WIDE}")
EDGES = [ctypes.c_double() for _ in range(4)]  # of a letter
Box = tuple[float, float, float, float]  # left, bottom, right and top
BlockOf = Callable[[int], object]  # of a character, by its place
Run = tuple[str, str, Sequence[int], int, bool, Box | None, bool]


def segments_of(
    text: Any, lines: Rules, block_of: BlockOf | None = None
) -> Iterator[tuple[int, Segment, str]]:
    """Yield direction and segments of a page's characters, parted by rules, and a font without map.

    The blocks of a tagged page, by the places of characters, part them, too.
    """
    import pypdfium2.raw as pdfium

    characters = text.raw
    across = merged(lines.horizontal)
    rules_at = cache(lambda turns: sorted(turned_rules(lines, turns).vertical))
    letters: list[str] = []
    breaks: list[tuple[int, float, float, bool]] = []
    n_unmapped, turns, font, place = 0, 0, "", 0
    left = bottom = right = top = 0.0
    # the boxes of the last letter that stands on its line, and of the one before an index
    before = base = (0.0, 0.0, 0.0, 0.0)
    was_raised = False

    def segment() -> tuple[int, Segment, str] | None:
        nonlocal n_unmapped
        written = "".join(letters)
        if not written.isascii() or "\x02" in written:
            written = written.translate(SIGNS)
        is_unmapped = n_unmapped > UNMAPPED * len(written)
        if n_unmapped and not is_unmapped:
            written = CONTROL.sub("\ufffd", written)
        parted = tuple(breaks)
        letters.clear()
        breaks.clear()
        n_unmapped = 0
        if not written.strip():
            return None
        return turns, Segment(written, left, bottom, right, top, parted, place), font if is_unmapped else ""

    block: object = None

    def crosses(start: float, end: float, middle: float) -> bool:
        """Whether a vertical line crosses the gap between two places."""
        rules = rules_at(turns % TILTED)
        near = rules[bisect_right(rules, (start - 1,)) : bisect_left(rules, (end + 1,))] if rules else ()
        return any(low < middle < high for _, low, high in near)

    strokes = [each for each in across if each[2] - each[1] < LONGEST_STROKE]
    runs = with_fractions(characters, runs_of(text, rules_at(0), strokes, block_of), across)
    for blank, word, at, now, is_unknown, box, is_drawn_apart in runs:
        own = block_of(at[0]) if block_of else None
        is_new_line = "\n" in blank  # also before and behind a power, or a number below the line
        parts = [(word, box)] if box else parts_of_word(characters, at, word, now)
        for written, edges in parts:
            height = max(edges[3] - edges[1], 1.0)
            if letters:
                if before is not base and CHARGE.fullmatch(written) and is_raised(edges, base):
                    before = base  # of an ion, whose index is below its charge
                gap = max(edges[0] - right, left - edges[2])
                is_power = is_raised(edges, before) and is_exponent(written, letters[-1], height, before)
                is_power &= now != TILTED
                is_level = are_level(edges, before) and not (was_raised and written[0] in ",.;:)?!")
                least_gap = NO_LEVEL_GAP if is_level else POWER_GAP if is_power else NO_GAP
                is_judged = blank == " " and is_level and not (was_raised or FROM_RIGHT.match(written))
                is_close = blank and now != TILTED and not is_judged and -height < gap < least_gap * height
                if is_close and pdfium.FPDFText_IsGenerated(characters, at[0] - 1) == 1:
                    blank = ""  # before a letter of another size, or within a word of slanted letters
                shared = min(edges[3], before[3]) - max(edges[1], before[1])
                is_off = shared < SHARED * min(height, before[3] - before[1])
                is_low = height < (top - bottom) / 2  # as the ink of a full stop
                is_apart = gap > CELL * (top - bottom if is_low else height)
                if is_apart and blank == " " and pdfium.FPDFText_IsGenerated(characters, at[0] - 1) != 1:
                    # recognition writes it as wide as letters
                    _, _, end, _ = turned(loose_box(characters, at[0] - 1), now)
                    is_word = BLANK * height < end - right < max(height, top - bottom)
                    is_apart = not is_word or edges[0] - end > CELL * height
                if is_new_line:
                    small, large = sorted((height, before[3] - before[1]))
                    # the next line begins where this one does, of letters as high
                    is_below = abs(edges[0] - left) + large - small < EXACT and written[0] != "."
                    is_apart = is_below or not -small <= gap <= BLANK * large or large > RAISED * small
                middle = (edges[1] + edges[3]) / 2
                # by a vertical line between the end of the text and the letter
                is_ruled = crosses(right, edges[0], middle) or crosses(edges[2], left, middle)
                # It may cross a title, which draws its blank, or end a word.
                if is_ruled and not is_apart:
                    is_drawn = blank == " " and pdfium.FPDFText_IsGenerated(characters, at[0] - 1) == 0
                    is_ruled = not (gap < BLANK * height if is_drawn else abs(gap) < TOUCHING and not blank)
                is_apart = is_apart or is_ruled or (own is not block and None not in (own, block))
                if (now != turns or is_off or is_apart) and (whole := segment()):
                    yield whole
            if not letters:
                turns, (left, bottom, right, top), blank, place, block = now, edges, "", at[0], own
                was_raised = False
            elif is_power and not blank:
                letters.append("^" * (not was_raised))
                was_raised = True
            else:
                was_raised = False
            is_leader = written[0] == "." or (letters and letters[-1].endswith(" ."))  # dots before a number
            if blank and letters and edges[2] > right and not is_leader:
                breaks.append((sum(map(len, letters)), right, edges[0], is_drawn_apart))
            letters.append(" " + written if blank else written)
            before = before if was_raised else edges
            is_index = len(letters) > 1 and edges[1] < base[1] and height < SMALL * (base[3] - base[1])
            base = base if is_index else before
            if is_unknown:
                unknown = map(pdfium.FPDFText_HasUnicodeMapError, repeat(characters), at)
                n_unmapped += min(sum(each == 1 for each in unknown), len(written))
                font = font_of(characters, at[0])
            left, bottom = min(left, edges[0]), min(bottom, edges[1])
            right, top = max(right, edges[2]), max(top, edges[3])
            blank, is_new_line = "", False
    if letters and (whole := segment()):
        yield whole


def runs_of(
    text: Any, rules: Sequence[Rule], strokes: Sequence[Rule], block_of: BlockOf | None
) -> Iterator[Run]:
    """Yield the words of a page, as one those of a line that `segments_of` would join by blanks anyway.

    They come with the blank before them, the places of the characters, the quarter turns of the line, whether
    the font has no map to characters, and the box, None where letters may be raised.
    """
    import pypdfium2.raw as pdfium

    characters = text.raw
    written, places, moved = in_reading_order(all_characters(text), partial(glyph_of, characters))
    written, places = without_shadows(characters, written, places)
    written, places = without_repeated(characters, written, places)
    written, places = without_thin_blanks(characters, written, places)
    written, places = with_accents_at_letters(characters, written, places)
    written, places = with_underscores(characters, written, places, strokes)
    if block_of:
        written, places = parted(written, places, block_of)
    for is_judged in (False, True):
        words = list(BLANK_AND_WORD.finditer(written))
        spans = np.array([word.span(word.lastindex or 0) for word in words], int).reshape(-1, 2)
        ends = (spans - np.array((0, 1))).ravel().tolist()
        ends = ends if isinstance(places, range) else [places[end] for end in ends]
        edges = boxes_of(characters, ends).reshape(-1, 2, 4)  # of first and last letters
        if is_judged or FROM_RIGHT.search(written) or not are_doubtful(characters, places, edges, spans):
            break
        written, places = with_blanks(characters, written, places)
    if not words:
        return
    page = ctypes.cast(characters, ctypes.c_void_p).value
    # Direction and font seldom change within a word.
    has_no_map = by_address("FPDFText_HasUnicodeMapError", ctypes.c_void_p, ctypes.c_int)
    unknown = np.array([*map(has_no_map, repeat(page), ends[::2])]) == 1
    for corners, (start, stop) in zip(edges, spans.tolist() if moved else (), strict=False):
        if moved.keys() >= {*places[start:stop]}:
            left, bottom, right, top = around(moved[place] for place in places[start:stop])
            corners[:] = left, top, right, bottom
    for word, start in enumerate([] if written.isascii() else spans[:, 0].tolist()):
        if BULLET.match(written[start].translate(BULLETS)):  # of a font with one box for all its symbols
            *_, line, size = glyph_of(characters, places[start])
            edges[word, :, 1] = np.minimum(edges[word, :, 1], line + size)
            edges[word, :, 3] = np.maximum(edges[word, :, 3], line - LOWEST * size)
    first, last = edges[:, 0], edges[:, 1]
    low, high = np.minimum(first, last)[:, (0, 3)], np.maximum(first, last)[:, (2, 1)]  # (n, 2)
    # a word that a hyphen parts is on two lines, or in two columns
    is_split = np.abs(np.diff(edges[:, :, 3])[:, 0]) > LEAST_BREAK * (edges[:, 0, 1] - edges[:, 0, 3])
    order = with_powers(low, np.where(is_split[:, None], low, high))
    if order != sorted(order):
        words, spans = [words[number] for number in order], spans[order]
        edges, low, high, unknown = edges[order], low[order], high[order], unknown[order]
    starts, stops = spans.T
    codes = np.frombuffer(written.encode("utf-32-le", "surrogatepass"), np.uint32)
    heights = edges[:, 0, 1] - edges[:, 0, 3]
    off = np.abs(np.diff(edges[:, :, (1, 3)], axis=1)).sum(axis=(1, 2))
    is_level = off < LEVEL * heights
    turns = np.zeros(len(words), int)
    odd = np.flatnonzero(~is_level | (edges[:, 1, 0] <= edges[:, 0, 0]))
    for some in (odd, range(len(words))):
        for number in some:
            quarters = max(pdfium.FPDFText_GetCharAngle(characters, places[int(starts[number])]), 0) / (
                math.pi / 2
            )
            is_tilted = abs(quarters - round(quarters)) > LEAST_TILT
            turns[number] = TILTED if is_tilted else round(quarters) % 4
        if not (turns == TILTED).any():
            break
    widest = np.where(codes[starts] < SIGNS_FROM, WIDEST, WIDEST_SIGN)
    is_plain = (high - low)[:, 0] < widest * heights * (stops - starts)
    is_plain &= is_level & (turns == 0) & ~unknown & (edges[:, 1, 0] >= edges[:, 0, 0])
    is_plain &= [word.lastindex == 2 for word in words]
    ends_in_digit = (codes[stops - 1] >= ord("0")) & (codes[stops - 1] <= ord("9")) & (stops - starts > 1)
    for word in np.flatnonzero(is_plain & ends_in_digit).tolist():  # it may be a font's own power
        _, top, _, bottom = edges[word, 1].tolist()
        is_plain[word] = raised_glyph(characters, places[stops[word] - 1], bottom, top) is None

    gaps = low[1:, 0] - high[:-1, 0]
    off = (np.abs(np.diff(low, axis=0)) + np.abs(np.diff(high, axis=0)))[:, 1]
    lines = np.sort([place for place, _, _ in rules])
    n_rules = np.searchsorted(lines, low[1:, 0] + 1) - np.searchsorted(lines, high[:-1, 0] - 1, "right")
    goes_on = is_plain[1:] & is_plain[:-1] & (off < SAME * heights[1:]) & (n_rules <= 0)
    goes_on &= (gaps >= NO_GAP * heights[1:]) & (gaps <= LEAST_BREAK * heights[1:])
    has_blank = (starts[1:] - stops[:-1] == 1) & (codes[starts[1:] - 1] == ord(" "))
    goes_on &= has_blank
    if block_of:
        blocks = [block_of(places[start]) for start in starts.tolist()]
        goes_on &= np.array([first is second for first, second in pairwise(blocks)], bool)
    are_apart = np.zeros(len(gaps), bool)
    if np.count_nonzero((gaps > CELL * heights[1:]) & (off < heights[1:])) > 2:  # columns, perhaps
        goes_on &= ~begin_alike(low[:, 0])[1:]
        has_blank &= (off < heights[1:]) & (gaps > 0) & (gaps < CELL * heights[1:])
        blanks = np.flatnonzero(has_blank)
        are_apart[blanks] = drawn_apart(characters, [places[n - 1] for n in starts[1:][blanks].tolist()])
    runs = np.flatnonzero(np.concatenate([[True], ~goes_on | are_apart]))
    lows, highs = np.minimum.reduceat(low, runs).tolist(), np.maximum.reduceat(high, runs).tolist()
    bounds = pairwise([*runs.tolist(), len(words)])
    for (start, end), (left, bottom), (right, top) in zip(bounds, lows, highs, strict=True):
        whole = slice(starts[start], stops[end - 1])
        box = (left, bottom, right, top) if is_plain[start] or moved.keys() >= {*places[whole]} else None
        turn, is_unknown, is_apart = int(turns[start]), bool(unknown[start]), start and are_apart[start - 1]
        yield words[start][1], written[whole], places[whole], turn, is_unknown, box, bool(is_apart)


def parted(
    written: str, places: Sequence[int], block_of: Callable[[int], object]
) -> tuple[str, Sequence[int]]:
    """Return characters and their places with a blank between two blocks in a word, as of narrow cells."""
    ends: list[int] = []
    for word in BLANK_AND_WORD.finditer(written):
        start, end = word.span(word.lastindex or 0)
        if block_of(places[start]) is not block_of(places[end - 1]):
            blocks = [*map(block_of, places[start:end])]
            ends += [n for n, (a, b) in enumerate(pairwise(blocks), start + 1) if a is not b and a and b]
    bounds = [*pairwise([0, *ends, len(written)])]
    if len(bounds) > 1:
        places = [*chain(*([*places[start:end], places[end - 1]] for start, end in bounds))][:-1]
    return " ".join(written[start:end] for start, end in bounds), places


def drawn_apart(characters: Any, blanks: Sequence[int]) -> np.ndarray:
    """Return at which blanks the file draws none, if it draws most: cells end there."""
    page = ctypes.cast(characters, ctypes.c_void_p).value
    is_generated = by_address("FPDFText_IsGenerated", ctypes.c_void_p, ctypes.c_int)
    are_apart = np.array([*map(is_generated, repeat(page), blanks)]) == 1
    return are_apart & (2 * are_apart.sum() < len(blanks))


def begin_alike(places: np.ndarray) -> np.ndarray:
    """Return which words begin at the same place as two others, as in the columns of tables."""
    order = np.argsort(places)
    ends = np.flatnonzero(places[order[2:]] - places[order[:-2]] < EXACT)
    found = np.zeros(len(places), bool)
    found[order[ends[:, None] + [0, 1, 2]]] = True
    return found


def with_fractions(characters: Any, runs: Iterable[Run], across: Sequence[Rule]) -> Iterable[Run]:
    """Return the runs of a page, as one with a stroke those above and below a short line within a line."""
    short = [(y, left, right) for y, left, right in across if right - left < LONGEST_FRACTION]
    if not short:
        return runs
    found = list(runs)
    ends = [around([loose_box(characters, at[0]), loose_box(characters, at[-1])]) for _, _, at, *_ in found]
    lefts, bottoms, rights, tops = np.array(ends).reshape(-1, 4).T
    heights, middles = tops - bottoms, (tops + bottoms) / 2
    order = [[run] for run in found]
    for y, left, right in short:
        near = np.abs(middles - y) / heights
        is_within = (lefts > left - 1) & (rights < right + 1) & (near < FRACTION)
        above, below = (np.flatnonzero(is_within & each).tolist() for each in (middles > y, middles < y))
        gaps = np.minimum(np.abs(left - rights), np.abs(lefts - right))
        beside = np.flatnonzero(~is_within & (near < SHARED) & (gaps < heights)).tolist()
        filled = np.ptp([*lefts[is_within], *rights[is_within]]) if above and below else 0.0
        if beside and filled > FILLED * (right - left) and all(order[n] for n in above + below):
            texts = [" ".join(found[n][1] for n in side) for side in (above, below)]
            text = "/".join(each if re.fullmatch(r"[\w.,]+|.", each) else f"({each})" for each in texts)
            box, is_before = (left, bottoms[beside[0]], right, tops[beside[0]]), lefts[beside[0]] < left
            order[beside[0]].insert(int(is_before), (" ", text, found[above[0]][2], 0, False, box, False))
            for n in above + below:
                order[n] = []
    return chain.from_iterable(order)


def are_doubtful(characters: Any, places: Sequence[int], edges: np.ndarray, spans: np.ndarray) -> bool:
    """Whether words of a line are close together, or of one letter, or the longest have gaps."""
    first, last, lengths = edges[1:, 0].T, edges[:-1, 1].T, spans[:, 1] - spans[:, 0]
    gaps, heights = first[0] - last[2], first[1] - first[3]
    in_line = (np.abs(first[1] - last[1]) < LEVEL * heights) & (np.abs(gaps) < CELL * heights)
    is_letter = in_line & (lengths[1:] == 1)
    is_spaced = is_letter[3:] & is_letter[2:-1] & is_letter[1:-2] & is_letter[:-3]
    if is_spaced.any() or (in_line & (gaps < NARROW * heights)).any():
        return True
    longest = spans[np.argsort(lengths)[-LONGEST:]]
    within = boxes_of(characters, [places[n] for start, end in longest.tolist() for n in range(start, end)])
    gaps = (within[1:, 0] - within[:-1, 2]) / np.maximum(within[1:, 1] - within[1:, 3], SAME)
    gaps[np.cumsum(longest[:, 1] - longest[:, 0])[:-1] - 1] = 0  # between two words
    return bool(((gaps > NARROW) & (gaps < CELL)).any())


def with_blanks(characters: Any, written: str, places: Sequence[int]) -> tuple[str, list[int]]:
    """Return characters and their places with blanks where gaps are wider than those around them.

    PDFium overlooks narrow gaps and finds some within spaced and slanted words, and producers write blanks
    that they draw the next letter over.
    """
    import pypdfium2.raw as pdfium

    at = [n for n, sign in enumerate(written) if not sign.isspace() and sign not in NO_LETTERS]
    boxes = boxes_of(characters, [places[n] for n in at])
    lefts, tops, rights, bottoms = boxes.T
    heights = np.maximum(tops - bottoms, 1.0)[1:]
    is_ligature = ~np.diff(boxes[:, ::2], axis=0).any(axis=1)  # whose letters have one box
    gaps = np.where(is_ligature, 0, lefts[1:] - rights[:-1]) / heights
    is_level = np.abs(np.diff(tops)) + np.abs(np.diff(bottoms)) < SHARED * heights
    is_level &= (gaps > -1) & (gaps < CELL)
    lines = np.cumsum((np.abs(np.diff(tops + bottoms)) > heights) | (gaps < -1))
    near, others = (
        np.lib.stride_tricks.sliding_window_view(np.pad(each, NEAR, constant_values=np.inf), 2 * NEAR + 1)
        for each in (np.where(is_level, gaps, np.inf), lines.astype(float))
    )
    near = np.sort(np.where(others == lines[:, None], near, np.inf), axis=1)
    n_near = np.isfinite(near).sum(axis=1)
    low, middle = (near[np.arange(len(near)), (n_near * share).astype(int)] for share in (0.2, 0.5))
    usual = np.minimum(middle, np.maximum(low, NO_LEVEL_GAP))  # of the gaps within words
    known = gaps[is_level & (np.diff(at) == 2) & (gaps - usual > LEAST_BLANK)]  # between words
    least = max(LEAST_BLANK, 0.6 * np.quantile([*known, LEAST_BLANK][: known.size or 1], 0.1))
    beside = np.pad(np.where(is_level, gaps, 0), 1)
    smaller, larger = np.sort([beside[:-2], beside[2:]], axis=0)
    lacks = is_level & (gaps - np.maximum(usual, np.minimum(larger, NO_LEVEL_GAP)) > least)
    wider = gaps - np.where(smaller < -NARROW, smaller, usual)  # than beside, in words of slanted letters
    signs, copies = list(written), [1] * len(written)
    for number in np.flatnonzero(lacks | (is_level & (wider < NO_LEVEL_GAP))).tolist():
        first, second = at[number], at[number + 1]
        pair = written[first] + written[second]
        blank = written.find(" ", first, second)
        if lacks[number] and second == first + 1 and ord(max(pair)) < SIGNS_FROM:
            pdfium.FPDFText_GetCharOrigin(characters, places[first], *EDGES[:2])
            if abs(EDGES[0].value - lefts[number]) < 10 * SAME * heights[number]:  # no box of its ink
                signs[first] += " "
                copies[first] = 2
        elif wider[number] < NO_LEVEL_GAP and blank > 0 and "\n" not in written[first:second]:
            if pdfium.FPDFText_IsGenerated(characters, places[blank]) != 1:
                left, _, right, _ = loose_box(characters, places[blank])
                is_none = wider[number] > -LEAST_BLANK and lefts[number + 1] < (left + right) / 2
            elif gaps[number] < SPACED:
                is_none = re.search(r"\w", pair) is not None
            else:
                line = [written[at[n]].isalpha() for n in np.flatnonzero(lines == lines[number]).tolist()]
                is_none = sum(line) > max(4, LETTERS * len(line)) and any(map(str.isalpha, pair))
            if is_none:
                signs[blank], copies[blank] = "", 0
    return "".join(signs), [place for place, n in zip(places, copies, strict=True) for _ in range(n)]


def boxes_of(characters: Any, places: Sequence[int]) -> np.ndarray:
    """Return left, top, right and bottom of characters, as high as the letters of their font."""
    boxes = np.zeros((len(places), 4), np.float32)
    page, n_bytes = ctypes.cast(characters, ctypes.c_void_p).value, boxes.strides[0]
    get_box = by_address("FPDFText_GetLooseCharBox", ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)
    deque(map(get_box, repeat(page), places, count(boxes.ctypes.data, n_bytes)), maxlen=0)
    return boxes.astype(float)


@cache
def by_address(name: str, *types: Any, returns: Any = ctypes.c_int) -> Any:
    """Return a function of PDFium that takes bare addresses and keeps Python's lock: twice as fast a call."""
    import pypdfium2.raw as pdfium

    function = ctypes.cast(getattr(pdfium, name), ctypes.c_void_p).value or 0
    return ctypes.PYFUNCTYPE(returns, *types)(function)


def without_shadows(characters: Any, written: str, places: Sequence[int]) -> tuple[str, Sequence[int]]:
    """Return characters and places without letters that the file draws again over themselves, as shadows."""
    left_out = set()
    for number, found in enumerate(TWICE.finditer(written)):
        n = found.end()
        (left, low, *_), (west, bottom, east, top) = (loose_box(characters, places[at]) for at in (n - 1, n))
        across, down = abs(west - left), abs(bottom - low)
        # but not for the letters of a ligature, which have one box
        reach = max(SHADOW * (east - west), LEVEL * (top - bottom) * (down > SAME))  # also of narrow letters
        if max(across, down) > 0 and across < reach and down < SHADOW * (top - bottom):
            left_out.add(n)
        elif not left_out and number > MAX_TWICE:
            break
    kept = [n for n in range(len(places)) if n not in left_out] if left_out else []
    return ("".join(written[n] for n in kept), [places[n] for n in kept]) if kept else (written, places)


def without_repeated(characters: Any, written: str, places: Sequence[int]) -> tuple[str, Sequence[int]]:
    """Return characters and places without those that a sign above a letter of India or Thailand repeats.

    Browsers write the letter and the sign for both glyphs, the second of which is drawn over the first.
    """
    if written.isascii() or not SIGN.search(written):
        return written, places
    signs = [*written]
    for found in REPEATED.finditer(written):
        start, end = found.span(2)
        before, again = (glyph_of(characters, places[n]) for n in (start - 1, start))
        if again[0] < before[0] and abs(again[4] - before[4]) < RAISED_BOX * before[5]:
            signs[start:end] = [""] * (end - start)
            after = glyph_of(characters, places[min(end + 1, len(places) - 1)])
            if found[3] and after[0] - before[2] < BLANK * before[5]:
                signs[end] = ""
    return "".join(signs), [place for place, each in zip(places, signs, strict=True) for _ in each]


def without_thin_blanks(characters: Any, written: str, places: Sequence[int]) -> tuple[str, Sequence[int]]:
    """Return characters and places without the blanks that PDFium sees beside letters of East Asia and India.

    Producers that write blanks set a gap between the former and numbers, as do others that set one between
    all; and all have one beside marks. Of one glyph for a letter and the sign behind it PDFium may see a part
    of the width: behind most of a page.
    """
    import pypdfium2.raw as pdfium

    if written.isascii() or not re.search(f"[{WIDE[1:-1]}{INDIC[1:-1]}]", written):
        return written, places
    is_made = partial(pdfium.FPDFText_IsGenerated, characters)
    has_blanks = any(sign == " " and is_made(n) == 0 for n, sign in zip(places, written, strict=True))
    are_set_apart = WITH_DIGIT.search(written) is None

    def gap_behind(n: int, after: int) -> tuple[float, bool]:
        """Return the gap behind a character, times its size, and whether it shares a glyph."""
        first, last, second = (glyph_of(characters, places[each]) for each in (max(n - 1, 0), n, after))
        is_parted = abs(last[0] - first[2]) + abs(last[2] - 2 * last[0] + first[0]) < TOUCHING
        return (second[0] - last[2]) / max(last[5], 1.0), is_parted

    glyphs = [(found.start(), *gap_behind(found.start(), found.end(1))) for found in SIGNED.finditer(written)]
    is_seen_in_part = median([gap for _, gap, is_parted in glyphs if is_parted] or [0.0]) > NO_LEVEL_GAP
    signs = [*written]
    for n, gap, is_parted in glyphs:
        if is_parted and THIN_BLANK < gap < CELL and not is_seen_in_part and not written[n + 1].isspace():
            signs[n] += " "  # which PDFium overlooks
    for found in THIN_GAP.finditer(written):
        n = found.start()
        gap, is_parted = gap_behind(n - 1, n + 1)
        least = QUARTER * are_set_apart if not has_blanks else THIN_BLANK
        if found[1]:
            least = MARK_GAP
        elif written[n - 1] == "\u0e33":
            least = AM_GAP * is_parted
        elif re.match(INDIC, written[n - 1]):
            is_sign = is_parted and "Mc" in map(unicodedata.category, written[n - 2 : n])
            least = (LEFT_GAP if written[n - 1] in LEFT_SIGNS else SIGN_GAP) * (is_sign and is_seen_in_part)
        least = least if not HANGUL.search(written[n - 1 : n + 2 : 2]) else SPACED
        if abs(gap) < least and is_made(places[n]) == 1:
            signs[n] = ""
    return "".join(signs), [place for place, each in zip(places, signs, strict=True) for _ in each]


def with_powers(low: np.ndarray, high: np.ndarray) -> list[int]:
    """Return the order of a page's words in which powers and indexes follow theirs.

    Browsers print what a style sheet has raised (`position: relative`) behind all other text.
    """
    order, (widths, heights) = list(range(len(low))), (high - low).T
    goes_on = np.abs(np.diff(low[:, 1])) < LEVEL * heights[1:]
    goes_on &= np.abs(low[1:, 0] - high[:-1, 0]) < 2 * BLANK * heights[1:]
    is_small = (widths < WIDEST_POWER * heights) & (heights < SMALL * heights.max())
    rights, reach = np.sort(high[:, 0]), POWER_GAP * heights.max()
    is_small &= np.searchsorted(rights, low[:, 0] + reach) > np.searchsorted(rights, low[:, 0] - reach)
    for number in np.flatnonzero(is_small & ~np.concatenate([[False], goes_on]))[:MAX_POWERS].tolist():
        shared = np.minimum(high[:, 1], high[number, 1]) - np.maximum(low[:, 1], low[number, 1])
        is_before = np.abs(high[:, 0] - low[number, 0]) < POWER_GAP * heights
        is_before &= heights[number] < SMALL * heights
        is_before &= shared > SHARED * heights[number]
        for before in np.flatnonzero(is_before)[: not is_before[max(number - 1, 0)]].tolist():
            order.remove(number)
            order.insert(order.index(before) + 1, number)
    return order


def string_of(call: Any, *arguments: Any) -> str:
    """Return the text that a function of PDFium writes into a buffer, which it asks for first."""
    import pypdfium2.raw as pdfium

    n_bytes = call(*arguments, None, 0)
    buffer = ctypes.create_string_buffer(max(n_bytes, 2))
    call(*arguments, ctypes.cast(buffer, ctypes.POINTER(pdfium.FPDF_WCHAR)), n_bytes)
    return buffer.raw[: max(n_bytes - 2, 0)].decode("utf-16-le", "replace")


def font_of(characters: Any, place: int) -> str:
    """Return the name of a character's font."""
    import pypdfium2.raw as pdfium

    buffer = ctypes.create_string_buffer(200)
    pdfium.FPDFText_GetFontInfo(characters, place, buffer, len(buffer), ctypes.c_int())
    return buffer.value.decode("utf-8", "replace") or "?"


def all_characters(text: Any) -> str:
    """Return the characters of a page at the places by which PDFium counts them."""
    n_characters = text.count_chars()
    written: str = text.get_text_range(0, n_characters) if n_characters else ""
    if len(written) != n_characters:  # it leaves out codes without a character
        written = UNKNOWN * n_characters
    codes = "".join(filter(written.__contains__, (UNKNOWN, *CORK)))
    return re.sub(f"[{codes}]", lambda m: character_at(text.raw, m.start()), written) if codes else written


def character_at(characters: Any, place: int) -> str:
    """Return a character, of fonts without map and name by TeX's codes; U+FFFD where a glyph has none."""
    import pypdfium2.raw as pdfium

    code = chr(pdfium.FPDFText_GetUnicode(characters, place))
    if code in CORK and pdfium.FPDFText_HasUnicodeMapError(characters, place) == 1:
        return CORK[code] if font_of(characters, place) == "?" else code
    if code != "\0" or pdfium.FPDFText_IsGenerated(characters, place) == 1:
        return code
    pdfium.FPDFText_GetCharBox(characters, place, *EDGES)
    left, right, bottom, top = (edge.value for edge in EDGES)
    return "\ufffd" if right > left and top > bottom else " "


def raised_glyph(characters: Any, place: int, bottom: float, top: float) -> tuple[float, float] | None:
    """Return the lower and upper edge of a digit that its font draws as a power, None for others."""
    import pypdfium2.raw as pdfium

    pdfium.FPDFText_GetCharOrigin(characters, place, *EDGES[:2])
    base = EDGES[1].value
    pdfium.FPDFText_GetCharBox(characters, place, *EDGES)
    is_raised = EDGES[2].value - base > RAISED_BOX * (top - bottom)
    return (EDGES[2].value, EDGES[3].value) if is_raised else None


def loose_box(characters: Any, place: int) -> Box:
    """Return the box of a character, as high as the letters of its font."""
    import pypdfium2.raw as pdfium

    box = pdfium.FS_RECTF()
    pdfium.FPDFText_GetLooseCharBox(characters, place, box)
    return box.left, box.bottom, box.right, box.top


def glyph_of(characters: Any, place: int) -> Glyph:
    """Return the box of a character, the height of the line on which it stands, and its size.

    The size of a turned one is 0.
    """
    import pypdfium2.raw as pdfium

    m = pdfium.FS_MATRIX()
    pdfium.FPDFText_GetMatrix(characters, place, m)
    size = pdfium.FPDFText_GetFontSize(characters, place) * m.d if m.d > abs(m.b) else 0.0
    pdfium.FPDFText_GetCharOrigin(characters, place, *EDGES[:2])
    return *loose_box(characters, place), EDGES[1].value, size


def parts_of_word(characters: Any, at: Sequence[int], word: str, turns: int) -> Iterator[tuple[str, Box]]:
    """Yield a word with the box around it, or each letter of it where some are raised, as powers are."""

    def box_of(place: int) -> Box:
        left, bottom, right, top = loose_box(characters, at[place])
        if place and turns == 0 and (digit := SIGNED_DIGIT.match(word, place)):
            bottom, top = raised_glyph(characters, at[digit.end() - 1], bottom, top) or (bottom, top)
        return turned((left, bottom, right, top), turns)

    places = {0, len(word) - 1, *(found.end() - 1 for found in DIGITS.finditer(word))}
    first_edges, *others = boxes = [box_of(place) for place in sorted(places)]
    left, _, right, _ = whole = around(boxes)
    widest = WIDEST if ord(word[0]) < SIGNS_FROM else WIDEST_SIGN
    is_narrow = right - left < widest * len(word) * (first_edges[3] - first_edges[1])
    is_level = all(are_level(first_edges, each) for each in others)
    is_whole = (is_level and is_narrow) or have_one_line(characters, at, word)
    if is_whole and not re.search(f"[{SINGLE}]", word):
        yield word, whole
    else:
        yield from with_accents((letter, box_of(place)) for place, letter in enumerate(word))


def have_one_line(characters: Any, places: Sequence[int], word: str) -> bool:
    """Whether letters whose boxes are those of their ink are of one size and line, and no digit is raised."""
    import pypdfium2.raw as pdfium

    found, end = set(), math.inf
    for place, letter in zip(places, word, strict=True):
        left, bottom, right, top = loose_box(characters, place)
        if left - end > BLANK * (top - bottom):  # they may be in two cells
            return False
        end = right
        pdfium.FPDFText_GetCharOrigin(characters, place, *EDGES[:2])
        line, size = EDGES[1].value, pdfium.FPDFText_GetFontSize(characters, place)
        pdfium.FPDFText_GetCharBox(characters, place, *EDGES)
        is_high = EDGES[2].value - line > SHARED * (EDGES[3].value - EDGES[2].value)
        found.add((round(line, 2), size, letter.isdigit() and is_high))
    return len(found) == 1 and not next(iter(found))[2]


def with_accents_at_letters(
    characters: Any, written: str, places: Sequence[int]
) -> tuple[str, Sequence[int]]:
    """Return characters and their places, with accents behind the letters of the line over which they stand.

    PDFium takes some for signs at the end of the line.
    """
    if written.isascii() and "`" not in written:
        return written, places
    signs, left_out = list(written), set()
    for found in STRAY_ACCENT.finditer(written):
        left, bottom, right, top = loose_box(characters, places[found.end() - 1])
        start, end = written.rfind("\n", 0, found.start()) + 1, written.find("\n", found.end())
        for n in range(
            max(start, found.start() - FARTHEST), min(end % (len(written) + 1), found.end() + FARTHEST)
        ):
            if written[n].isalpha():
                west, south, east, north = loose_box(characters, places[n])
                if west < (left + right) / 2 < east and south < (bottom + top) / 2 < north:
                    signs[n] = composed(signs[n], found[0][-1], bottom - south < LEVEL * (north - south))[:1]
                    left_out |= {*range(*found.span())}
                    break
    kept = [n for n in range(len(signs)) if n not in left_out] if left_out else []
    return ("".join(signs[n] for n in kept), [places[n] for n in kept]) if kept else (written, places)


def with_underscores(
    characters: Any, written: str, places: Sequence[int], strokes: Sequence[Rule]
) -> tuple[str, Sequence[int]]:
    """Return characters and places with the underscores that TeX draws as strokes between two letters."""
    import pypdfium2.raw as pdfium

    if not strokes:
        return written, places
    at = [n for n, sign in enumerate(written) if sign.isalnum()]
    lefts, tops, rights, bottoms = boxes_of(characters, [places[n] for n in at]).T
    middles, signs = (tops + bottoms) / 2, [*written]
    for y, left, right in strokes:
        on_line = (bottoms - ALIGNED < y) & (y < middles)
        before = np.flatnonzero(on_line & (np.abs(rights - left) < ALIGNED))
        behind = np.flatnonzero(on_line & (np.abs(lefts - right) < ALIGNED))
        is_blank = before.size and behind.size and written[(n := at[before[0]] + 1) : at[behind[0]]] == " "
        if is_blank and pdfium.FPDFText_IsGenerated(characters, places[n]) == 1:  # others may be underlined
            signs[n] = "_"
    return "".join(signs), places


def with_accents(letters: Iterable[tuple[str, Box]]) -> Iterator[tuple[str, Box]]:
    """Yield letters, those over or under which TeX has set an accent as one character: ``ü`` for ``¨u``."""
    last: tuple[str, Box] | None = None
    for letter, box in letters:
        if last is not None:
            accent, base = (last[0], letter) if last[0] in ACCENTS else (letter, last[0])
            middle = (box[0] + box[2]) / 2 if accent == letter else (last[1][0] + last[1][2]) / 2
            around = last[1] if accent == letter else box
            is_low = abs(box[1] - last[1][1]) < LEVEL * (box[3] - box[1])
            whole = composed(base.replace("ı", "i"), accent, is_low)
            if len(whole) == 1 and around[0] < middle < around[2]:
                last = whole, around
                continue
            yield last
        last = letter, box
    if last is not None:
        yield last


def composed(letter: str, accent: str, is_low: bool) -> str:
    """Return a letter with an accent, as two characters where there is none; a low macron is a stroke."""
    whole = unicodedata.normalize("NFC", letter + ACCENTS.get(accent, "\0"))
    return STROKES.get(whole, whole) if is_low else whole


def are_level(box: Box, other: Box) -> bool:
    """Whether two letters are of the same size and stand on the same line."""
    return abs(box[1] - other[1]) + abs(box[3] - other[3]) < LEVEL * (box[3] - box[1])


def is_raised(box: Box, before: Box) -> bool:
    """Whether a letter is not larger than the one before and stands above its line, as powers do."""
    height, rise = before[3] - before[1], box[1] - before[1]
    largest = 1.3 if rise > 0.5 * height else 1.02  # boxes of ink may be as low as those of "m"
    return box[3] - box[1] < largest * height and rise > 0.2 * height


def is_exponent(written: str, base: str, height: float, before: Box) -> bool:
    """Whether raised letters are a power: a number, or a small letter above a number."""
    if LETTER_POWER.fullmatch(written):
        return base[-1].isdigit() and 0.5 < height / (before[3] - before[1]) < SMALL
    return POWER.fullmatch(written) is not None and base[-1] != "["


def looks_like_words(text: str) -> bool:
    """Whether the codes of letters without a map are letters of Latin words, as they are in old files."""
    letters = [sign for sign in text.lower() if "a" <= sign <= "z"]
    n_others = sum(not sign.isspace() and not sign.isdigit() for sign in text)
    is_plain = len(letters) > LEAST_LETTERS and len(letters) > LETTERS * n_others
    return is_plain and sum(sign in "aeiouy" for sign in letters) > VOWELS * len(letters)


def turned_rules(rules: Rules, turns: int) -> Rules:
    """Return the lines of a page as they stand when its text runs from left to right."""
    if not turns:
        return rules
    boxes = [(left, y, right, y) for y, left, right in rules.horizontal]
    boxes += [(x, bottom, x, top) for x, bottom, top in rules.vertical]
    across, down = list[Rule](), list[Rule]()
    for left, bottom, right, top in (turned(box, turns) for box in boxes):
        if bottom == top:
            across.append((top, left, right))
        else:
            down.append((left, bottom, top))
    return Rules(across, down)


def turned(box: Box, turns: int) -> Box:
    """Return a box as it stands when its text runs from left to right."""
    left, bottom, right, top = box
    return (  # where lines run to the right, downwards, to the left, and upwards
        box, (-top, left, -bottom, right), (-right, -top, -left, -bottom), (bottom, -right, top, -left)
    )[turns % TILTED]  # fmt: skip
