"""Lines of a PDF's page with text from the right: their characters in the order in which they are read."""

import re
import unicodedata
from collections.abc import Callable, Sequence

RIGHT = r"\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefe"
FROM_RIGHT, LETTER = re.compile(f"[{RIGHT}]"), re.compile(r"[^\W\d_]")
ARABIC = re.compile(r"[\u0600-\u08ff\ufb50-\ufdff\ufe70-\ufefe]")
PART = re.compile(rf"[{RIGHT}](?:[^\n]*[{RIGHT}])?")
# Words and numbers between them that run from the left; Arabic parts signs from numbers.
WORDS = rf"[^\W\d_{RIGHT}](?:[^{RIGHT}]*[^\W_{RIGHT}])?"
FROM_LEFT = re.compile(rf"{WORDS}|[%$€£₪°]*\d(?:[.,:/+-]?\d)*[%$€£₪°]*|.", re.DOTALL)
FROM_LEFT_IN_ARABIC = re.compile(rf"{WORDS}|\d(?:[.,:/]?\d)*|.", re.DOTALL)
MIRRORED = str.maketrans("()[]{}<>«»", ")(][}{><»«")
CLOSED_FIRST = re.compile(r"[^()\[\]]*[)\]]")
ALEF = "\u0622\u0623\u0625\u0627"
Box = tuple[float, float, float, float]


def in_reading_order(written: str, box_of: Callable[[int], Box]) -> tuple[str, Sequence[int]]:
    """Return the characters of a page as they are read, and their places in ``written``.

    PDFium turns round some words from the right and leaves others as they are drawn. So all characters of
    lines with such letters are put in the order of their boxes, and words and numbers from the left between
    them turned back.
    """
    if not FROM_RIGHT.search(written):
        return written, range(len(written))
    is_page_from_right = is_mostly_from_right(written)
    text, places, start = "", list[int](), 0
    for line in written.splitlines(keepends=True):
        order = [*range(start, start + len(line))]
        start += len(line)
        if FROM_RIGHT.search(line):
            boxes = {
                n: box_of(n) for n, sign in zip(order, line, strict=True) if sign.strip("\0\ufeff \r\n\t")
            }
            bottoms = [box[1] for box in boxes.values()]
            height = max(box[3] - box[1] for box in boxes.values())
            if max(bottoms) - min(bottoms) < height:  # it is not turned
                from_right = is_page_from_right or is_mostly_from_right(line)
                line, order = as_read(written, order, boxes, from_right)
        text, places = text + line, [*places, *order]
    return text, places


def is_mostly_from_right(text: str) -> bool:
    """Whether a text is read from the right, in spite of some words from the left."""
    return not text.isascii() and 2 * len(FROM_RIGHT.findall(text)) > len(LETTER.findall(text))


def as_read(
    written: str, line: Sequence[int], boxes: dict[int, Box], from_right: bool
) -> tuple[str, list[int]]:
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
    ends = [place for place in line if written[place] in "\r\n"]
    return text + "".join(written[place] for place in ends), [*places, *ends]


def drawn(written: str, line: Sequence[int], boxes: dict[int, Box]) -> list[list[int]]:
    """Return the places of a line's characters from the left, the letters and marks of a glyph together.

    As the boxes of blanks are often wrong, as many as there are go to the widest gaps.
    """
    units: list[list[int]] = []
    for place in sorted(boxes, key=lambda place: boxes[place][0] + boxes[place][2]):
        if units and (unicodedata.combining(written[place]) or boxes[place] == boxes[units[-1][0]]):
            units[-1].append(place)
        else:
            units.append([place])
    for unit in units:  # marks behind their letter, and alef behind lam
        unit.sort(key=lambda place: (unicodedata.combining(written[place]) > 0, written[place] in ALEF))
    blanks = [
        place
        for place in line[1:]
        if place not in boxes and place - 1 in boxes and written[place] not in "\r\n"
    ]
    wide = sorted(range(1, len(units)), key=lambda n: boxes[units[n - 1][0]][2] - boxes[units[n][0]][0])
    for number, blank in zip(sorted(wide[: len(blanks)], reverse=True), blanks, strict=False):
        units.insert(number, [blank])
    return units
