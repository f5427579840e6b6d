"""Segments of a PDF's page, and its lines: what stands at one height, parted where cells begin."""

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import chain, pairwise
from statistics import fmean, median

from .from_right import around, is_mostly_from_right

CELL_GAP = "\t"  # between cells of a line, until heads and feet are found
GAP, LINE_GAP = "\n\n", "\n"  # between columns and pages, and where a sentence goes on in the next
CELL_BREAK = "\x0b"  # between the lines of a cell, until words that two of them share are joined
LEAST_BREAK, ALIGNED = 0.5, 1.5  # times the height of letters, and points: between cells of aligned columns
TWICE = 1.8  # times the usual blank, where one column ends and another begins
WIDER = 1.15  # times the width of letters, between cells
SAME_WIDTH = 0.05  # times it, between places of letters that are all as wide
LEAST_LINES = 3  # of a column of prose
SHORT = 12  # characters of a line or cell
FULL = 0.8  # of the width of a column, of lines that are set in full
SPANNING = 0.25  # of the lines may cross the gap between two columns: titles, figures
PARAGRAPH = 1.6  # times the usual distance of lines
APART = 2.0  # times it: a head or foot in several parts above or below columns
TALL = 1.5  # times the height of the letters: distance of parts of a page
ROW_GAP = 1.25  # times the usual distance of lines: between the rows of a table
NEAR_ROWS = 5  # lines above and below, whose cells tell that a blank parts two
FAR, MAX_BOXES = 5, 20  # times the height of letters: from one box to another, and boxes of a page
MAX_EDGE = 3  # lines of a head or foot
MAX_LARGE = 100  # letters of a page that may be the first of a text
NARROWEST = 0.23  # times the height of letters, their width
WITHIN_WORD = 0.05  # times the height of the letters: a gap between them
ICON = 0.75  # times the usual height of letters
LEVEL = 0.2  # times the height of letters: from the line of a row
SAME_LINE = 0.5  # times the height of the letters
LEAST_NUMBERED = 20  # lines of a page whose numbers stand in the margin
LEADER_GAP = 2.0  # times the height of letters, between dots that lead to a number
BULLET = re.compile("[•▪■●◦○‣➢✔]")
MARKER = re.compile(r"[•▪■●◦○‣➢✔–—*-]|\(?(?:\d{1,2}|[a-z]|[ivx]{1,4})[.)]")  # of an item of a list
NUMBER = re.compile(r"\D{0,3}\d[\d.,' ]*\D{0,3}")
COUNTED = re.compile(r"(?:\d{1,2}\.)*(\d{1,2})")


@dataclass(frozen=True)
class Segment:
    """Text without a wide gap, and the box around it, whose y grows upwards."""

    text: str
    left: float
    bottom: float
    right: float
    top: float
    # places of blanks that may part cells, their ends, and whether the file draws none there but others
    breaks: tuple[tuple[int, float, float, bool], ...] = ()
    place: int = -1  # in the order in which the file draws the page's letters, if it is of them

    @property
    def middle(self) -> float:
        """The height of the middle of the letters."""
        return (self.bottom + self.top) / 2


Line = list[Segment]  # from left to right
# The height of a horizontal line (or the place of a vertical one), and its ends.
Rule = tuple[float, float, float]


def without_leaders(segments: Sequence[Segment]) -> Sequence[Segment]:
    """Return segments without the dots that lead from a text to a number, where they are far apart."""
    dots = [each for each in segments if not each.text.strip(" .…")]
    dots.sort(key=lambda each: (round(each.bottom), each.left))
    led = {
        id(dot)
        for a, b in pairwise(dots)
        for dot in (a, b)
        if abs(a.bottom - b.bottom) < 1 and b.left - a.right < LEADER_GAP * (a.top - a.bottom)
    }
    return [each for each in segments if id(each) not in led] if led else segments


def without_line_numbers(segments: Sequence[Segment]) -> Sequence[Segment]:
    """Return segments without the numbers of lines in the left margin, as pleadings and transcripts have.

    They are evenly apart, whatever stands beside them: no line, or one of text, not the cells of a row.
    """
    numbers = [each for each in segments if each.text.isdecimal()]
    if len(numbers) < LEAST_NUMBERED:
        return segments
    first = min(numbers, key=lambda each: each.left)
    column = [each for each in numbers if each.left <= first.right and first.left <= each.right]
    column.sort(key=lambda each: -each.middle)
    distances = [a.middle - b.middle for a, b in pairwise(column)]
    counted = [int(b.text) - int(a.text) for a, b in pairwise(column)]
    if len(column) < LEAST_NUMBERED or {*counted} != {1} or max(distances) - min(distances) > ALIGNED:
        return segments
    own, edge = {id(each) for each in column}, max(each.right for each in column)
    top, bottom = column[0].top, column[-1].bottom
    beside = [each for each in segments if bottom < each.middle < top and id(each) not in own]
    rows = [line for line in lines_of(beside) if len(line) > 1]
    is_text = len(beside) < len(column) or fmean(len(each.text) for each in beside) > 3 * SHORT
    is_margin = all(each.left > edge for each in beside) and len(rows) < SPANNING * len(column)
    return [each for each in segments if id(each) not in own] if is_text and is_margin else segments


def with_drop_caps(segments: Sequence[Segment]) -> Sequence[Segment]:
    """Return segments with large first letters in the line that they begin, the upper one next to them."""
    for large in [each for each in segments if len(each.text) == 1 and each.text.isupper()][:MAX_LARGE]:
        height = large.top - large.bottom
        inner = [each for each in segments if TALL * (each.top - each.bottom) < height]
        inner = [each for each in inner if large.bottom < each.middle < large.top]
        beside = [each for each in inner if 0 <= each.left - large.right < height / 2]
        if len(beside) > 1:
            first = max(beside, key=lambda each: each.middle)
            whole = replace(first, text=large.text + first.text, breaks=())
            segments = [whole if each is first else each for each in segments if each is not large]
    return segments


def with_icons(segments: Sequence[Segment]) -> Sequence[Segment]:
    """Return segments with the small letters of an icon, around which text runs, before the first line."""
    usual = median(each.top - each.bottom for each in segments) if segments else 0.0
    small = [each for each in segments if each.top - each.bottom < ICON * usual and each.text[1:].isalpha()]
    for label in small[:MAX_LARGE]:
        near = [each for each in segments if abs(each.middle - label.middle) < FAR * usual]
        long = [each for each in near if len(each.text) > 2 * SHORT]
        beside = [
            each
            for each in long
            if 0 < each.left - label.right < usual and abs(each.middle - label.middle) < FAR / 2 * usual
        ]
        left = min((each.left for each in beside), default=math.inf)
        if any(each.left < label.right and left < each.right for each in long):
            first = max((each for each in beside if each.left < left + ALIGNED), key=lambda each: each.middle)
            icon = [each for each in near if label.left <= each.left and each.right <= label.right]
            icon.sort(key=lambda each: -each.top)
            whole = replace(first, text=" ".join(each.text for each in (*icon, first)), breaks=())
            segments = [whole if each is first else each for each in segments if each not in icon]
    return segments


def lines_of(segments: Sequence[Segment]) -> list[Line]:
    """Return the lines of a page from the top, with the segments that stand at the same height."""
    lines: list[Line] = []
    is_from_right = is_mostly_from_right("".join(segment.text for segment in segments))
    for segment in sorted(segments, key=lambda each: -each.middle):
        last = lines[-1][0] if lines else None
        if last and last.middle - segment.middle < SAME_LINE * min(
            last.top - last.bottom, segment.top - segment.bottom
        ):
            lines[-1].append(segment)
        else:
            lines.append([segment])
    for line in lines:
        line.sort(key=lambda each: -each.right if is_from_right else each.left)
        for place in range(len(line) - 1, 0, -1):
            first, second = line[place - 1 : place + 1]
            mark = first.text
            if is_one_word(first, second):
                line[place - 1 : place + 1] = [replace(first, text=mark + second.text, right=second.right)]
            elif BULLET.fullmatch(mark) or (len(line) == 2 and MARKER.fullmatch(mark)):
                line[place - 1 : place + 1] = [whole_of(line[place - 1 : place + 1])]
    return with_narrow_gaps(lines)


def is_one_word(first: Segment, second: Segment) -> bool:
    """Whether segments touch within a word, between which PDFium has read another line beside."""
    is_level = abs(first.bottom - second.bottom) + abs(first.top - second.top) < ALIGNED
    is_near = abs(second.left - first.right) < WITHIN_WORD * (first.top - first.bottom)
    return is_level and is_near and first.text[-1].isalpha() and second.text[0].islower()


def with_narrow_gaps(lines: Sequence[Line]) -> list[Line]:
    """Return lines whose segments are parted at blanks too where cells of lines nearby begin or end."""
    rows = [line for line in lines if len(line) > 1]
    breaks = {id(cell): breaks_of(cell, line) for line in rows for cell in line}
    parted = {}
    for number, line in enumerate(rows):
        near = [*rows[max(number - NEAR_ROWS, 0) : number], *rows[number + 1 : number + NEAR_ROWS + 1]]
        starts = [cell.left for each in near for cell in each[1:]]
        ends = [cell.right for each in near for cell in each[:-1]]
        pairs = [(end, start) for cell in chain(*near) for _, end, start, _ in breaks[id(cell)]]
        usual = median([start - end for end, start in pairs] or [math.inf])
        for cell in chain(*near):
            least = WIDER * (cell.right - cell.left) / len(cell.text)  # than a blank of a typewriter
            wide = [each for each in breaks[id(cell)] if each[3] or each[2] - each[1] > least]
            if 2 * len(wide) > max(cell.text.count(" "), 4):
                wide = [each for each in wide if each[3]]  # recognition writes wide blanks
            ends += [end for _, end, _, _ in wide]
            starts += [start for _, _, start, _ in wide]
        starts.sort()
        ends.sort()
        parts = []
        for whole in line:
            least = LEAST_BREAK * (whole.top - whole.bottom)
            for place, end, start, is_apart in breaks[id(whole)][::-1]:
                is_wide = is_apart or start - end > least
                is_bound = (
                    start - end > TWICE * usual
                    and sum(max(abs(end - a), abs(start - b)) < ALIGNED for a, b in pairs) > 1
                )
                if is_bound or (is_wide and (is_near_some(start, starts) or is_near_some(end, ends))):
                    whole, behind = parted_at(whole, place, end, start)
                    parts.append(behind)
            parts.append(whole)
        if len(parts) > len(line):
            parted[id(line)] = sorted(parts, key=lambda each: each.left)
    return [parted.get(id(line), line) for line in lines]


def parted_at(cell: Segment, place: int, end: float, start: float) -> tuple[Segment, Segment]:
    """Return the parts of a cell before and behind a blank."""
    rest = cell.text[place:].lstrip()
    cut = len(cell.text) - len(rest)
    before = tuple(each for each in cell.breaks if each[0] < place)
    after = tuple((n - cut, left, right, is_apart) for n, left, right, is_apart in cell.breaks if n > place)
    return (
        replace(cell, text=cell.text[:place], right=end, breaks=before),
        replace(cell, text=rest, left=start, breaks=after),
    )


def breaks_of(cell: Segment, line: Line) -> Sequence[tuple[int, float, float, bool]]:
    """Return where blanks may part cells: nowhere in the letters of a typewriter, which are all as wide."""
    width, *others = ((each.right - each.left) / len(each.text) for each in (cell, *line))
    off = (abs(start - cell.left - (place + 1) * width) for place, _, start, _ in cell.breaks)
    are_alike = len(cell.breaks) > 1 or sum(abs(each - width) < SAME_WIDTH * width / 5 for each in others) > 1
    return () if cell.breaks and are_alike and max(off) < SAME_WIDTH * width else cell.breaks


def is_near_some(place: float, places: Sequence[float], most: float = ALIGNED, least: int = 2) -> bool:
    """Whether a place is that of two others, which are in order, but for rounding."""
    return bisect_right(places, place + most) - bisect_left(places, place - most) >= least


def cells_over(lines: Sequence[Line]) -> list[list[Segment]]:
    """Return the segments of lines from the left, those together that stand over one another."""
    cells: list[list[Segment]] = []
    end = -math.inf
    for each in sorted(chain(*lines), key=lambda one: one.left):
        if each.left < end - ALIGNED:
            cells[-1].append(each)
        else:
            cells.append([each])
        end = max(end, each.right)
    return cells


def are_aligned(one: Segment, other: Segment) -> bool:
    """Whether two cells begin, end or have their middles at the same place."""
    left, right = one.left - other.left, one.right - other.right
    return min(abs(left), abs(right), abs(left + right) / 2) < ALIGNED


def has_lines(cell: Segment) -> bool:
    """Whether a cell of a row has more letters than a line of its height holds."""
    n, height = len(cell.text), cell.top - cell.bottom
    return n > SHORT and "\n" not in cell.text and NARROWEST * n * height > cell.right - cell.left


def whole_of(segments: Iterable[Segment]) -> Segment:
    """Return segments as one, in their order."""
    return reduce(lambda first, second: joined(first, second) or first, segments)


def boxes_of(segments: Iterable[Segment]) -> Iterator[tuple[float, float, float, float]]:
    """Yield the boxes of segments."""
    return ((each.left, each.bottom, each.right, each.top) for each in segments)


def joined(first: Segment | None, second: Segment | None) -> Segment | None:
    """Return a cell of two segments, in their order."""
    if first is None or second is None:
        return first or second
    box = around(boxes_of((first, second)))
    between = CELL_BREAK if second.top < first.middle or first.text.endswith("-") else " "
    return Segment(f"{first.text}{between}{second.text}", *box, place=first.place)
