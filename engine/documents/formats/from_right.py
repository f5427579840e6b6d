"""Lines of a PDF's page with text from the right: their characters in the order in which they are read."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, cycle, pairwise
from operator import sub

RIGHT = r"\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefe"
FROM_RIGHT, LETTER = re.compile(f"[{RIGHT}]"), re.compile(r"[^\W\d_]")
ARABIC = re.compile(r"[\u0600-\u08ff\ufb50-\ufdff\ufe70-\ufefe]")
PART = re.compile(rf"[{RIGHT}](?:[\W\d_{RIGHT}]*[{RIGHT}])?")  # without a word from the left
# Words and numbers between them that run from the left; Arabic parts signs from numbers.
WORDS = rf"[^\W\d_{RIGHT}](?:[^{RIGHT}]*[^\W_{RIGHT}])?"
FROM_LEFT = re.compile(rf"{WORDS}|[%$€£₪°]{{0,3}}\d(?:[.,:/+-]?\d)*[%$€£₪°]{{0,3}}|.", re.DOTALL)
FROM_LEFT_IN_ARABIC = re.compile(rf"{WORDS}|\d(?:[.,:/]?\d)*|.", re.DOTALL)
MIRRORED = str.maketrans("()[]{}<>«»", ")(][}{><»«")
CLOSED_FIRST = re.compile(r"[^()\[\]]*[)\]]")
SIGNS = re.compile(r"[\u0591-\u05bd\u05bf\u05c1\u05c2\u064b-\u0652\u0670]")  # of vowels
# They stand without a letter, or lines are single letters; marks of nouns are within a word or another glyph.
LETTERS = rf"[\u0621-\u064a]{{1,2}}{SIGNS.pattern}+"
LONE = rf"(?<![{RIGHT}]){SIGNS.pattern}|^[ \t]*{LETTERS}(?:[ \t]+{LETTERS})*[ \t.]*$"
TORN = re.compile(rf"{LONE}|\u0627\u064b\u0627|[\u064b-\u064d]\u0651?[\u0628-\u0648\u064a]", re.MULTILINE)
LEAST_BLANK, TOUCHING = 0.5, 0.1  # points
LEAST_GAP, BASE, OVERHANG = 0.17, 0.3, 0.3  # times the height of letters
ALEF = "\u0622\u0623\u0625\u0627"
Box = tuple[float, float, float, float]
Boxes = dict[int, Box]  # by the places of characters
NOTHING: Box = (0.0, 0.0, 0.0, 0.0)


def in_reading_order(written: str, box_of: Callable[[int], Box]) -> tuple[str, Sequence[int], Boxes]:
    """Return the characters of a page as they are read, their places in ``written``, and boxes put right.

    PDFium turns round some words from the right and leaves others as they are drawn. So all characters of
    lines with such letters are put in the order of their boxes, and words and numbers from the left between
    them turned back.
    """
    if not FROM_RIGHT.search(written):
        return written, range(len(written)), {}
    is_page_from_right = is_mostly_from_right(written)
    lines, places, moved = list[str](), list[int](), Boxes()
    for order in lines_of(written, box_of):
        line = "".join(written[place] for place in order)
        if FROM_RIGHT.search(line):
            inner = [(n, box_of(n)) for n in order if written[n] not in "\r\n"]
            boxes = {n: box for n, box in inner if box[2] - box[0] > LEAST_BLANK or written[n].strip("\0 ")}
            moved |= (whole := with_signs(written, boxes) if SIGNS.search(line) else {})
            boxes |= whole
            _, bottoms, _, tops = zip(*boxes.values(), strict=True)
            if max(bottoms) - min(bottoms) < max(map(sub, tops, bottoms)):  # it is not turned
                is_from_right = is_page_from_right or is_mostly_from_right(line)
                line, order = as_read(written, order, boxes, is_from_right)
        lines.append(line)
        places += order
    return "".join(lines), places, moved


def lines_of(written: str, box_of: Callable[[int], Box]) -> list[list[int]]:
    """Return the places of each line's characters; PDFium parts a line at vowel signs off it."""
    lines, start, last, have_signs = list[list[int]](), 0, NOTHING, SIGNS.search(written)
    for line in written.splitlines(keepends=True):
        order = [*range(start, start := start + len(line))]
        seen = (place for place in order if have_signs and written[place].strip("\0 \r\n"))
        box = around([box_of(place) for place in seen] or [NOTHING])
        left, bottom, right, top = whole = around((last, box))
        is_beside = abs(right - left - (box[2] - box[0]) - (last[2] - last[0])) < (top - bottom) / 2
        is_beside = is_beside and top - bottom < box[3] - box[1] + last[3] - last[1]
        if lines and is_beside and SIGNS.search(written, lines[-1][0], start):
            lines[-1] += order
        else:
            lines.append(order)
            whole = box
        last = whole
    return lines


def with_signs(written: str, boxes: Boxes) -> Boxes:
    """Return boxes, as high as the line, of glyphs whose box PDFium parted among a letter and its signs."""
    glyphs, last = list[list[int]](), NOTHING
    for place in sorted(boxes, key=lambda place: boxes[place][0] + boxes[place][2]):
        start, low, end, high = last
        last = boxes[place]
        if glyphs and max(map(abs, map(sub, last, (end, low, 2 * end - start, high)))) < TOUCHING:
            glyphs[-1].append(place)
        else:
            glyphs.append([place])
    parted = [glyph for glyph in glyphs if len(glyph) > 1 and any(SIGNS.match(written[n]) for n in glyph)]
    _, low, _, high = around(boxes[n] for n in boxes.keys() - {*chain(*parted)} or boxes)
    middle, whole = low + BASE * (high - low), Boxes()
    for glyph in parted:
        left, bottom, right, top = around(boxes[n] for n in glyph)
        reach = 0 if bottom < middle < top else OVERHANG * (high - low)  # a letter is wider than its sign
        whole |= dict.fromkeys(glyph, (left - reach, low, right + reach, high))
    return whole


def around(boxes: Iterable[Box]) -> Box:
    """Return the box around others."""
    lefts, bottoms, rights, tops = zip(*boxes, strict=True)
    return min(lefts), min(bottoms), max(rights), max(tops)


def is_mostly_from_right(text: str) -> bool:
    """Whether a text is read from the right, in spite of some words from the left."""
    return not text.isascii() and 2 * len(FROM_RIGHT.findall(text)) > len(LETTER.findall(text))


def as_read(written: str, line: Sequence[int], boxes: Boxes, from_right: bool) -> tuple[str, list[int]]:
    """Return the characters of a line as they are read, and their places in ``written``."""
    units = drawn(written, line, boxes)
    seen = "".join(written[unit[0]] for unit in units)
    pattern = FROM_LEFT_IN_ARABIC if ARABIC.search(seen) else FROM_LEFT
    order: list[list[int]] = []
    end = 0
    for start, stop in [(0, len(seen))] if from_right else [part.span() for part in PART.finditer(seen)]:
        order += units[end:start]
        for run in reversed(list(pattern.finditer(seen, start, stop))):
            order += units[slice(*run.span())]
        end = stop
    order += units[end:]
    places = [place for unit in order for place in unit]
    text = "".join(written[place] for place in places)
    if from_right and CLOSED_FIRST.match(text):  # brackets as they are drawn
        text = text.translate(MIRRORED)
    if not from_right and {text.count("(") - text.count(")")} & {2, -2}:  # PDFium has mirrored one
        marks = cycle("()")
        text = re.sub(r"[()]", lambda _: next(marks), text)
    ends = [place for place in line if written[place] in "\r\n"]
    return text + "".join(written[place] for place in ends), [*places, *ends]


def drawn(written: str, line: Sequence[int], boxes: Boxes) -> list[list[int]]:
    """Return the places of a line's characters from the left, the letters and marks of a glyph together.

    As many blanks as have no width go to the widest gaps: their places are often wrong.
    """
    units: list[list[int]] = []
    for place in sorted(boxes, key=lambda n: (boxes[n][0] + boxes[n][2], unicodedata.combining(written[n]))):
        if units and (unicodedata.combining(written[place]) or boxes[place] == boxes[units[-1][0]]):
            units[-1].append(place)
        else:
            units.append([place])
    for unit in units:  # marks behind their letter, and alef behind lam
        unit.sort(key=lambda place: (unicodedata.combining(written[place]) > 0, written[place] in ALEF))
    blanks = iter(n for n in line[1:] if n not in boxes and n - 1 in boxes and written[n] not in "\r\n")
    gaps = {n: boxes[b[0]][0] - boxes[a[0]][2] for n, (a, b) in enumerate(pairwise(units), 1)}
    least = LEAST_GAP * (boxes[units[0][0]][3] - boxes[units[0][0]][1])
    wide = sorted((n for n in gaps if gaps[n] > least), key=lambda n: -gaps[n])
    before = {n: [[blank]] for n, blank in zip(wide, blanks, strict=False)}
    return [each for n, unit in enumerate(units) for each in (*before.get(n, ()), unit)]
