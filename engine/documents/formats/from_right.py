"""Lines of a PDF's page with text from the right: their characters in the order in which they are read."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, pairwise
from operator import sub
from statistics import median

RIGHT = r"\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefe"
FROM_RIGHT, LETTER = re.compile(f"[{RIGHT}]"), re.compile(r"[^\W\d_]")
ARABIC = re.compile(r"[\u0600-\u08ff\ufb50-\ufdff\ufe70-\ufefe]")
PART = re.compile(rf"[{RIGHT}](?:[\W\d_{RIGHT}]*[{RIGHT}])?")  # without a word from the left
# Words and numbers between them that run from the left; Arabic parts signs from numbers.
WORDS = rf"[^\W\d_{RIGHT}](?:[^{RIGHT}]*[^\W_{RIGHT}])?"
FROM_LEFT = re.compile(rf"{WORDS}|[%$€£₪°]{{0,3}}\d(?:[.,:/+-]?\d)*[%$€£₪°]{{0,3}}|.", re.DOTALL)
FROM_LEFT_IN_ARABIC = re.compile(rf"{WORDS}|\d(?:[.,:/]?\d)*[%٪]?|.", re.DOTALL)
ITEM = re.compile(r"^(\W?\w{1,3})[()](?=\s)")  # of a list
SIGNS = re.compile(r"[\u0591-\u05bd\u05bf\u05c1\u05c2\u064b-\u0652\u0670]")  # of vowels
# They stand without a letter, or lines are single letters; marks of nouns are within a word or another glyph.
LETTERS = rf"[\u0621-\u064a]{{1,2}}{SIGNS.pattern}+"
LONE = rf"(?<![{RIGHT}]){SIGNS.pattern}|^[ \t]*{LETTERS}(?:[ \t]+{LETTERS})*[ \t.]*$"
UPRIGHT = r"(?:^[\u3041-\u9fff]\n+){9}"  # lines of one letter
TORN = re.compile(
    rf"{LONE}|\u0627\u064b\u0627|[\u064b-\u064d]\u0651?[\u0628-\u0648\u064a]|{UPRIGHT}", re.MULTILINE
)
THAI_SIGNS = r"\u0e31\u0e34-\u0e3a\u0e47-\u0e4e"
LOOSE, THAI_SIGN = re.compile(rf"(?<![\u0e01-\u0eff])[{THAI_SIGNS}]"), re.compile(rf"[\u0e33{THAI_SIGNS}]")
MARK = re.compile(
    rf"[\u0300-\u036f\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed{THAI_SIGNS}]"
)
TAKEN = re.compile(f"[{RIGHT}\u0e01-\u0eff]")
TOUCHING = 0.1  # points
# times the size of letters: how far off their line are parts of it and signs of vowels, depth and height
SAME_LINE, FAR, DEPTH, HEIGHT = 0.4, 1.0, 0.25, 0.95
LEVEL, THIN = 0.1, 0.03  # powers are farther off, and blanks with a width are wider
LEAST_GAP, SURE_GAP, CELL = 0.1, 0.24, 1.08  # between words, and between cells
LEAST_SIGNED, OVERHANG = 0.2, 0.35  # between words with signs of vowels, and of a letter over its sign
ALEF = "\u0622\u0623\u0625\u0627"
Box = tuple[float, float, float, float]
Boxes = dict[int, Box]  # by the places of characters
Glyph = tuple[float, float, float, float, float, float]  # its box, the line on which it stands, and its size


def in_reading_order(written: str, glyph_of: Callable[[int], Glyph]) -> tuple[str, Sequence[int], Boxes]:
    """Return the characters of a page as they are read, their places in ``written``, and boxes put right.

    PDFium turns round some words from the right, leaves others as they are drawn, and makes boxes as high as
    the line or as single letters. So all characters on a line with such letters are put in the order in which
    they stand, with boxes of one height, and words and numbers from the left between them turned back.
    """
    if written.isascii() or not (FROM_RIGHT.search(written) or LOOSE.search(written)):
        return written, range(len(written)), {}
    is_page_from_right = is_mostly_from_right(written)
    glyphs = {n: glyph_of(n) for n, sign in enumerate(written) if sign not in "\r\n\0"}
    rows = {n: row for row in rows_of(written, glyphs) for n in row}
    text, places, moved, start, opened = "", list[int](), Boxes(), 0, ""
    for line in written.splitlines(keepends=True):
        order = range(start, start := start + len(line))
        rest = [n for n in order if n not in rows]
        for row in (rows[n] for n in order if n in rows and n == rows[n][0]):
            boxes = boxes_of(written, row, glyphs)
            found, at = as_read(written, row, boxes, is_page_from_right)
            found, opened = with_brackets(found, opened)
            moved |= boxes
            text, places = f"{text}{found}\n", [*places, *at, row[-1]]
        if any(written[n].strip("\0 \r\n") for n in rest) or len(rest) == len(order):
            text, places = text + "".join(written[n] for n in rest), [*places, *rest]
    return text, places, moved


def rows_of(written: str, glyphs: dict[int, Glyph]) -> list[list[int]]:
    """Return the places of the characters of each line with letters from the right, but for turned ones.

    Signs of vowels and blanks are of the nearest line.
    """
    off = [n for n in glyphs if written[n].isspace() or MARK.match(written[n])]
    rows: list[list[int]] = []
    for n in sorted(glyphs.keys() - off, key=lambda n: -glyphs[n][4]):
        base, size = glyphs[n][4:]
        if not rows or glyphs[rows[-1][0]][4] - base > SAME_LINE * size:
            rows.append([])
        rows[-1] += [n] * (size > 0)
    rows = [row for row in rows if any(TAKEN.match(written[n]) for n in row)]
    bases = [median(glyphs[n][4] for n in row) for row in rows]
    for n in off if rows else ():
        has_height = glyphs[n][5] > 1 or n - 1 not in glyphs  # some blanks have none
        line, size = glyphs[n if has_height else n - 1][4:]
        distances = [abs(base - line) for base in bases]
        if min(distances) < FAR * size:
            rows[distances.index(min(distances))].append(n)
    return [sorted(row) for row in rows]


def boxes_of(written: str, row: Sequence[int], glyphs: dict[int, Glyph]) -> Boxes:
    """Return boxes, as high as the line, of what is seen; letters share theirs with their signs of vowels."""
    usual = median(glyphs[n][4] for n in row)
    boxes = Boxes()
    for n in row:
        left, _, right, _, base, size = glyphs[n]
        if abs(base - usual) < LEVEL * size or MARK.match(written[n]):
            base = usual
        if right - left > THIN * size or not written[n].isspace():
            boxes[n] = left, base - DEPTH * size, right, base + HEIGHT * size
    parted: list[list[int]] = []  # glyphs whose width PDFium parted among a letter and its signs
    for n in sorted(boxes, key=lambda n: boxes[n][0] + boxes[n][2]):
        start, low, end, high, *_ = glyphs[parted[-1][-1]] if parted else glyphs[n]
        if parted and max(map(abs, map(sub, glyphs[n], (end, low, 2 * end - start, high)))) < TOUCHING:
            parted[-1].append(n)
        else:
            parted.append([n])
    for glyph in parted:
        if len(glyph) > 1 and any(SIGNS.match(written[n]) for n in glyph):
            left, _, right, _ = around(boxes[n] for n in glyph)
            _, low, _, high, _, size = glyphs[glyph[0]]
            reach = 0 if low < usual + LEVEL * size < high else OVERHANG * size  # only signs are seen
            whole = left - reach, usual - DEPTH * size, right + reach, usual + HEIGHT * size
            boxes |= dict.fromkeys(glyph, whole)
    return boxes


def around(boxes: Iterable[Box]) -> Box:
    """Return the box around others."""
    lefts, bottoms, rights, tops = zip(*boxes, strict=True)
    return min(lefts), min(bottoms), max(rights), max(tops)


def is_mostly_from_right(text: str) -> bool:
    """Whether a text is read from the right, in spite of some words from the left."""
    return not text.isascii() and 2 * len(FROM_RIGHT.findall(text)) > len(LETTER.findall(text))


def as_read(written: str, row: Sequence[int], boxes: Boxes, from_right: bool) -> tuple[str, list[int]]:
    """Return the characters of a line as they are read, and their places in ``written``."""
    cells = drawn(written, row, boxes)
    signs = {n: written[n] for n in row} | {-1: " "}
    order: list[list[int]] = []
    for units in reversed(cells) if from_right else cells:
        seen = "".join(signs[unit[0]] for unit in units)
        pattern, end = FROM_LEFT_IN_ARABIC if ARABIC.search(seen) else FROM_LEFT, 0
        is_from_right = from_right or is_mostly_from_right(seen)
        is_turned = is_from_right and (FROM_RIGHT.search(seen) or not LETTER.search(seen))
        for start, stop in [(0, len(seen))] if is_turned else [part.span() for part in PART.finditer(seen)]:
            order += units[end:start]
            for run in reversed(list(pattern.finditer(seen, start, stop))):
                order += units[slice(*run.span())]
            end = stop
        order += [*units[end:], [-1]]
    places = [place for unit in order[:-1] for place in unit]
    return "".join(signs[place] for place in places), places


def with_brackets(text: str, opened: str) -> tuple[str, str]:
    """Return a line with its brackets the right way round, and the pairs of which one is open at its end.

    Some are as they are drawn, and PDFium has mirrored others. An odd one closes that of the line before.
    """
    left_open = ""
    for pair in ("()", "[]", "«»"):
        marks = [pair.index(mark) for mark in text if mark in pair]
        is_odd = len(marks) % 2 == 1
        is_open = is_odd and pair in opened
        if is_odd and not is_open and ITEM.match(text):
            text = ITEM.sub(r"\1)", text)
        elif marks:
            marks = [mark ^ (marks[0] != is_open) for mark in marks]
            depths = [*accumulate((1 - 2 * mark for mark in marks), initial=int(is_open))]
            if min(depths) < 0 or depths[-1] != (is_odd and not is_open):
                marks = [(number + is_open) % 2 for number in range(len(marks))]
            turned = iter(marks)
            text = "".join(pair[next(turned)] if mark in pair else mark for mark in text)
            left_open += pair * (is_odd and not is_open)
    return text, left_open


def drawn(written: str, row: Sequence[int], boxes: Boxes) -> list[list[list[int]]]:
    """Return the places of a line's characters from the left by cells, letters and marks of a glyph together.

    As many blanks as have no width go to the widest gaps: their places are often wrong.
    """
    units: list[list[int]] = []
    middles = {n: left + right for n, (left, _, right, _) in boxes.items()}
    thai = [n for n in boxes if THAI_SIGN.match(written[n])]  # which end with their letter, a tone before am
    middles |= {n: 2 * boxes[n][2] + TOUCHING * (written[n] == "\u0e33") for n in thai}
    for place in sorted(boxes, key=lambda n: (middles[n], unicodedata.combining(written[n]))):
        if units and (MARK.match(written[place]) or boxes[place] == boxes[units[-1][0]]):
            units[-1].append(place)
        else:
            units.append([place])
    for unit in units:  # marks behind their letter, tones behind vowels, and alef behind lam
        unit.sort(key=lambda n: (bool(MARK.match(written[n])), written[n] > "\u0e47", written[n] in ALEF))
    n_blanks = sum(n not in boxes and n - 1 in boxes for n in row)
    size = median(top - bottom for _, bottom, _, top in boxes.values()) / (DEPTH + HEIGHT)
    gaps = [0.0, *(boxes[b[0]][0] - boxes[a[0]][2] for a, b in pairwise(units))]
    has_signs = SIGNS.search("".join(written[n] for n in row))
    least, sure = (LEAST_SIGNED, CELL) if has_signs else (LEAST_GAP, SURE_GAP)
    widest = sorted((n for n, gap in enumerate(gaps) if gap > least * size), key=lambda n: -gaps[n])
    cells: list[list[list[int]]] = [[]]
    for n, unit in enumerate(units):
        if gaps[n] > CELL * size:
            cells.append([])
        elif n in widest[:n_blanks] or gaps[n] > sure * size:
            cells[-1].append([-1])
        cells[-1].append(unit)
    return cells
