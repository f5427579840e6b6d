"""Reading order of a PDF's page: lines, columns of prose one after the other, and tables row by row."""

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import accumulate, chain, pairwise
from statistics import fmean, median

from .from_right import around, is_mostly_from_right

CELL_GAP = "\t"  # between cells of a line, until heads and feet are found
GAP, LINE_GAP = "\n\n", "\n"  # between columns and pages, and where a sentence goes on in the next
CELL_BREAK = "\x0b"  # between the lines of a cell, until words that two of them share are joined
LEAST_BREAK, ALIGNED = 0.5, 1.5  # times the height of letters, and points: between cells of aligned columns
TWICE = 1.8  # times the usual blank, where one column ends and another begins
WIDER = 1.15  # times the width of letters, between cells
WIDEST_BLANK = 2.0  # times the height of letters, of a line that is set in full
SAME_WIDTH = 0.05  # times it, between places of letters that are all as wide
EXACT = 0.1  # points, between words that begin at the same place
LEAST_LINES = 3  # of a column of prose
LEAST_COLUMN = 20  # of one that is no cell of a table, whatever the file draws together
LEAST_FLOW = 0.3  # of its lines go on in the next one
SHORT = 12  # characters of a line or cell
FULL = 0.8  # of the width of a column, of lines that are set in full
NARROWEST_GAP, MAX_GUTTERS = 0.7, 4  # times the height of letters, between columns; gaps that are tried
SPANNING = 0.25  # of the lines may cross the gap between two columns: titles, figures
PARAGRAPH = 1.6  # times the usual distance of lines
APART = 2.0  # times it: a head or foot in several parts above or below columns
TALL = 1.5  # times the height of the letters: distance of parts of a page
TIGHT = 1.35  # times the height of the letters: distance of the lines of one cell
ROW_GAP = 1.25  # times the usual distance of lines: between the rows of a table
NEAR_HEADS = 3  # lines of a table that may be heads
MAX_ROW = 12  # lines of a row
LEAST_RULE = 20  # points, of lines between rows
NEAR_ROWS = 5  # lines above and below, whose cells tell that a blank parts two
NEAR_LINES = 20  # lines of a table that a line between others is compared with
FAR, MAX_BOXES = 5, 20  # times the height of letters: from one box to another, and boxes of a page
MAX_MASTHEAD = 8  # lines above a line over the whole width
MAX_EDGE = 3  # lines of a head or foot
MAX_LARGE = 100  # letters of a page that may be the first of a text
NARROWEST = 0.23  # times the height of letters, their width
WITHIN_WORD = 0.05  # times the height of the letters: a gap between them
NOTE_SIZE, NOTE_MARK = 0.97, re.compile(r"\^?\d{1,3}|[*†‡]")  # times the letters above, those of a note
ICON = 0.75  # times the usual height of letters
MAX_HEAD = 4  # lines of the names of columns
LEVEL = 0.2  # times the height of letters: from the line of a row
SAME_LINE = 0.5  # times the height of the letters
LEAST_NUMBERED = 20  # lines of a page whose numbers stand in the margin
LEADER_GAP = 2.0  # times the height of letters, between dots that lead to a number
BULLET = re.compile("[•▪■●◦○‣➢✔]")
MARKER = re.compile(r"[•▪■●◦○‣➢✔–—*-]|\(?(?:\d{1,2}|[a-z]|[ivx]{1,4})[.)]")  # of an item of a list

AMOUNT = re.compile(r"\d+[\d.,%)–-]")  # of a sentence
NUMBER = re.compile(r"\D{0,3}\d[\d.,' ]*\D{0,3}")
ITEM = re.compile(r"\d{1,2}[a-z]?|[A-Za-z]")  # the number of one
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


def page_text(segments: Sequence[Segment], rules: Sequence[Rule]) -> str:
    """Return the text of a page; ``rules`` are its horizontal lines: their heights, left and right ends.

    Cells of a table's row have `CELL_GAP` between them, paragraphs and columns a blank line.
    """
    heights = [height for height, left, right in rules if right - left > LEAST_RULE]
    parts: Iterable[list[Line]] = drawn_edges(lines_of(with_late_cells(with_icons(with_drop_caps(segments)))))
    text = ""
    parts = [*chain.from_iterable(below_rules(part, rules) for part in parts)]
    for block in filter(None, chain.from_iterable(blocks_of(part) for part in parts)):
        following = block_text(block, heights)
        text += gap_between(text, following) + following
    return text


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


def drawn_edges(lines: list[Line]) -> tuple[list[Line], list[Line], list[Line]]:
    """Return a head that the file draws after other lines, these, and a foot that it draws before them."""
    places = [(min(each.place for each in line), max(each.place for each in line)) for line in lines]
    if places == sorted(places) or min(places)[0] < 0:
        return [], lines, []

    def is_edge(edge: slice, rest: slice, was: int) -> bool:
        """Whether the file draws lines before or after most of the page, which is in order but for them."""
        first, last = min(low for low, _ in places[edge]), max(high for _, high in places[edge])
        sides = [(low > last) - (high < first) for low, high in places[rest]]
        return 0 not in sides and sides == sorted(sides) and 2 * sides.count(was) > len(sides)

    n = len(lines)
    some = range(min(MAX_EDGE, n - 1), 0, -1)
    head = next((each for each in some if is_edge(slice(each), slice(each, n), -1)), 0)
    foot = n - next((each for each in some if is_edge(slice(n - each, n), slice(head, n - each), 1)), 0)
    return lines[:head], lines[head:foot], lines[foot:]


def below_rules(lines: list[Line], rules: Sequence[Rule]) -> Iterator[list[Line]]:
    """Yield lines, parted by a line over the whole width with columns of prose above or below it."""
    left, right = (
        min((line[0].left for line in lines), default=0.0),
        max((line[-1].right for line in lines), default=0.0),
    )
    whole = [y for y, start, end in rules if end - start > FULL * (right - left)]
    n_above = {sum(line[0].middle > y for line in lines) for y in whole}
    parted = (n for n in n_above if are_columns(lines[n:] if n <= MAX_MASTHEAD else lines[:n]))
    head = max(parted, default=0)
    yield from (lines[:head], lines[head:])


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


def with_late_cells(segments: Sequence[Segment]) -> Sequence[Segment]:
    """Return segments with the lines of a cell as one, in its row, where the file draws such cells last.

    The first, the last or the middle of the lines is level with the row. Other cells begin below one another.
    """
    drawn = sorted(segments, key=lambda each: each.place)
    up = (b.middle - a.middle > LEVEL * (b.top - b.bottom) for a, b in pairwise(drawn))
    start = next((n for n, is_up in enumerate(up, 1) if is_up), 0)
    early, lefts = drawn[:start], sorted(each.left for each in drawn[:start])
    lowest = min((each.bottom for each in early), default=math.inf)
    late = [each for each in drawn[start:] if each.top > lowest and "\n" not in each.text]
    late = [each for each in late if is_near_some(each.left, lefts, EXACT, 1)]
    if not late or drawn[0].place < 0:
        return segments
    rows, height = lines_of(early), max(each.top - each.bottom for each in late)
    falling = [-row[0].middle for row in rows]

    def row_at(middle: float, cell: Segment) -> Line:
        """Return the row at a height that has no other cell there."""
        first, last = (bisect_left(falling, -middle + side * LEVEL * height) for side in (-1, 1))
        return next((row for row in rows[first:last] if len(cells_over([row, [cell]])) > len(row)), [])

    runs: list[list[Segment]] = [[]]
    for above, each in pairwise([late[0], *late]):
        if abs(above.left - each.left) > EXACT or not 0 <= above.middle - each.middle < TALL * height:
            runs.append([])
        runs[-1].append(each)
    found: list[tuple[list[Segment], Line]] = []
    for run in runs if max(map(len, rows)) > 1 and not is_prose(rows) else ():
        levels = [row_at(each.middle, each) for each in run]
        starts = [n + (not levels[0]) for n, row in enumerate(levels) if row]  # or ends
        starts = sorted({0, *starts} - {len(run)}) if len(starts) > 1 and (levels[0] or levels[-1]) else [0]
        for first, last in pairwise([*starts, len(run)]):
            middle = (run[first].middle + run[last - 1].middle) / 2
            row = next(filter(None, levels[first:last]), None) or row_at(middle, run[first])
            found += [(run[first:last], row)] * (last - first > 1 and row != [])
    if not found or found[0][1] is rows[-1]:  # the file draws row by row
        return segments
    cells: dict[int, list[Segment]] = {}
    for lines, (level, *_) in found:
        whole = replace(whole_of(lines), bottom=level.bottom, top=level.top, place=level.place)
        cells |= {id(each): [whole] * (each is lines[0]) for each in lines}
    return [*chain.from_iterable(cells.get(id(each), [each]) for each in segments)]


def gap_between(before: str, text: str) -> str:
    """Return what stands between the text so far and a column or page: one line break in a sentence."""
    if not before:
        return ""
    is_table = CELL_GAP in before[before.rfind("\n") + 1 :] or CELL_GAP in text.split("\n", 1)[0]
    goes_on = before[-1] not in ".!?…:;" and text[:1].islower() and not MARKER.match(text)
    return LINE_GAP if goes_on and not is_table else GAP


def body_of(lines: Sequence[Line]) -> tuple[int, int]:
    """Return where the lines between a head and a foot start and end, if these have parts above both columns.

    Within the columns such a head, or a title above one of them, would interrupt the text between them.
    """
    gutter = gutter_of(lines)
    if gutter is None:
        return 0, len(lines)
    sides = sides_of(lines[1:-1], gutter)
    are_long = min(map(len, sides)) > LEAST_COLUMN
    if not (all(map(is_prose, sides)) or (are_long and are_independent(*sides))):
        return 0, len(lines)
    distances = [a[0].middle - b[0].middle for a, b in pairwise(lines)]
    usual = PARAGRAPH * median(distances)
    lefts = sorted(each.left for line in sides[1] for each in line)

    def n_apart(edge: Sequence[Line], gaps: Sequence[float], longest: float) -> int:
        """Return how many lines from an edge are a head or foot, several only if far from the others."""
        n = 0
        for number, (line, gap) in enumerate(zip(edge[:MAX_EDGE], gaps, strict=False), 1):
            is_whole = (
                len(line) == 1 and len(line[0].text) < longest and not is_near_some(line[0].left, lefts)
            )
            if not is_whole and len({each.left < gutter for each in line}) < 2:
                break
            if gap > (usual if number == 1 else max(usual, APART * (line[0].top - line[0].bottom))):
                n = number
        return n

    head = n_apart(lines, distances, math.inf)
    return head, len(lines) - n_apart(lines[::-1], distances[::-1], 3 * SHORT)


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


def blocks_of(lines: list[Line]) -> Iterator[list[Line]]:
    """Yield the lines in reading order, one after the other what the file draws so side by side."""
    places = [each.place for line in lines for each in line]
    if places == sorted(places):
        yield from text_blocks(lines)
        return
    for box in boxes_beside(lines):
        own = {id(each) for each in box}
        others = ([each for each in line if id(each) not in own] for line in lines)
        main = [line for line in others if line]
        n = 0 if are_columns(main) else sum(line[0].middle > box[0].top for line in main)
        distances = [a[0].middle - b[0].middle for a, b in pairwise(main)]
        while 0 < n < len(main) and distances[n - 1] < ROW_GAP * median(distances):
            n -= 1  # to the start of a paragraph
        yield from blocks_of(main[:n])
        yield from blocks_of(lines_of(box))
        lines = main[n:]
    is_prose_beside = are_columns(lines)
    rest: list[Line] = []
    parts = drawn_parts(lines) if lines else []
    for number, part in enumerate(parts):
        gutter = drawn_gutter(part)
        edge = part[0][0].right if gutter is None else gutter
        after = parts[number + 1 :]
        lefts = (min(each.left for each in chain(*lines)) for lines in after)
        n_tail = next((n for n, left in enumerate(lefts) if left <= edge), len(after))
        tail, after = after[:n_tail], after[n_tail:]
        n_above = lines_above(part, rest) if gutter is not None else 0
        found = []
        for above in (n_above, 0) if (tail or gutter is not None) and not is_prose_beside else ():
            start = len(rest) - above
            near = [rest[max(start - 1, 0) : start], *after[:NEAR_ROWS]]
            for n in (n_tail, 0):
                if row := row_of([*rest[start:], *part, *chain(*tail[:n])], near):
                    found.append((row, start, n))
        if found:  # without a line above or parts far below that would join cells
            row, start, n = max(found, key=lambda each: len(each[0]))
            rest[start:] = [row]
            del parts[number + 1 : number + 1 + n]
            continue
        if gutter is None or are_rows(part, gutter):
            rest += part
            continue
        start = len(rest)  # of lines above that go on in the left block
        while start and rest[start - 1][-1].right < gutter:
            start -= 1
        yield from text_blocks(rest[:start])
        left, right = sides_of(part, gutter)
        del parts[number + 1 : number + 1 + n_tail]
        for side in (rest[start:] + left, [*right, *chain(*tail)]):
            yield from blocks_of(lines_of([*chain(*side)]))
        rest = []
    yield from text_blocks(rest)


def boxes_beside(lines: Sequence[Line]) -> list[list[Segment]]:
    """Return from the top what the file draws apart from the text beside it: captions, boxes of facts."""
    drawn = sorted(chain(*lines), key=lambda each: each.place)
    if not drawn or drawn[0].place < 0:
        return []
    flows: list[list[Segment]] = [[]]  # which run downwards, one part below the other
    left, right = math.inf, -math.inf
    for above, each in pairwise([drawn[0], *drawn]):
        reach = FAR * (each.top - each.bottom)
        is_beside = each.top < above.bottom and (each.left > right + reach or each.right < left - reach)
        if each.bottom > above.top or is_beside:
            flows.append([])
            left, right = math.inf, -math.inf
        flows[-1].append(each)
        left, right = min(left, each.left), max(right, each.right)
    boxes = []
    n_before = next(n for n, flow in enumerate(flows) if lines[0][0] in flow)
    before = flows[: n_before * (n_before <= MAX_BOXES)]
    tables = [run for n, each in enumerate(drawn) if "\n" in each.text and (run := table_in_prose(drawn, n))]
    seen = {id(each) for each in chain(*tables)}
    late = [
        flow
        for n, flow in enumerate(flows[:MAX_BOXES])
        if any(runs_around(other, flow) for other in flows[n_before:n]) and seen.isdisjoint(map(id, flow))
    ]
    for flow in before + tables + late:
        own = {id(each) for each in flow}
        left, bottom, right, top = around(boxes_of(flow))
        others = [each for each in drawn if id(each) not in own and bottom < each.middle < top]
        are_own = [[id(each) in own for each in line] for line in lines]
        n_shared, n_lines = sum(len(set(each)) == 2 for each in are_own), sum(map(any, are_own))
        is_clear = all(each.right < left or right < each.left for each in others)
        is_wordy = others and fmean(len(each.text) for each in others) > 3 * SHORT
        columns = [flow, *(other for other in before if are_columns_beside(flow, other))]
        are_columns = {id(each) for each in others} <= {id(each) for each in chain(*columns)}
        if others and is_clear and (is_wordy or are_columns or 2 * n_shared < n_lines + 1):
            boxes.append((-max(each[0].top for each in columns), flow[0].left, flow))
    return [flow for *_, flow in sorted(boxes, key=lambda box: box[:2])]


def are_columns_beside(one: Sequence[Segment], other: Sequence[Segment]) -> bool:
    """Whether two parts of a page are prose and begin at the same height beside one another."""
    (left, _, right, top), (start, _, end, high) = map(around, map(boxes_of, (one, other)))
    is_level = abs(top - high) < one[0].top - one[0].bottom and (right < start or end < left)
    return is_level and is_prose(lines_of(one)) and is_prose(lines_of(other))


def runs_around(text: Sequence[Segment], box: Sequence[Segment]) -> bool:
    """Whether prose beside a box of prose is as wide as both below it."""
    left, bottom, right, top = around(boxes_of(box))
    beside = [each for each in text if bottom < each.middle < top]
    middle = (left + right) / 2
    is_wider = any(each.top < bottom and each.left < left and middle < each.right for each in text)
    return is_wider and bool(beside) and is_prose(lines_of(beside)) and is_prose(lines_of(box))


def table_in_prose(drawn: Sequence[Segment], number: int) -> list[Segment]:
    """Return a ruled table with its title, nothing unless lines of prose above or below it are wider."""
    table = drawn[number]
    left, bottom, right, top = table.left, table.bottom, table.right, table.top
    start = number
    while start and left - ALIGNED < drawn[start - 1].left and drawn[start - 1].right < right + ALIGNED:
        title = drawn[start - 1]
        if not -ALIGNED < title.bottom - top < title.top - title.bottom:
            break
        start, top = start - 1, title.top
    beside = [each for each in drawn if bottom < each.middle < top and not left < each.left < right]
    first, last = (
        min((each.left for each in beside), default=left),
        max((each.right for each in beside), default=right),
    )
    reach = FAR * 2 * ALIGNED
    goes_on = (
        (abs(each.left - first) < ALIGNED and each.right > left + reach)
        or (each.left < right - reach and abs(each.right - last) < reach)
        for each in drawn
        if len(each.text) > 3 * SHORT and (0 < bottom - each.top < reach or 0 < each.bottom - top < reach)
    )
    return [*drawn[start : number + 1]] if any(goes_on) else []


def drawn_parts(lines: list[Line]) -> list[list[Line]]:
    """Return the lines between which the file goes on from what is above to what is below."""
    places = [[each.place for each in line if each.place >= 0] for line in lines]
    lasts = accumulate((max(each, default=-1) for each in places), max)
    firsts = list(accumulate((min(each, default=math.inf) for each in reversed(places)), min))[::-1]
    starts = [n for n, (last, first) in enumerate(zip(lasts, firsts[1:], strict=False), 1) if last < first]
    return [lines[start:end] for start, end in pairwise([0, *starts, len(lines)])]


def drawn_gutter(lines: Sequence[Line]) -> float | None:
    """Return the middle of the widest gap where the file draws all on the left before all behind it."""
    if len(lines) < 2:
        return None
    segments = sorted(chain(*lines), key=lambda each: each.left)
    ends = accumulate((each.right for each in segments), max)
    lasts = accumulate((each.place for each in segments), max)
    firsts = list(accumulate((each.place for each in reversed(segments)), min))[::-1]
    gaps = [
        (each.left - end, (each.left + end) / 2)
        for each, end, last, first in zip(segments[1:], ends, lasts, firsts[1:], strict=False)
        if last < first and each.left > end
    ]
    return max(gaps)[1] if gaps else None


def are_rows(part: Sequence[Line], gutter: float) -> bool:
    """Whether two blocks side by side are the cells of rows, or the marks and items of a list."""
    left, right = sides_of(part, gutter)
    if is_prose(left) or is_prose(right):
        return False
    n_both = sum(line[0].left < gutter < line[-1].right for line in part)
    if (
        n_both > FULL * len(part)
        and fmean(bool(NUMBER.fullmatch(each.text)) for each in chain(*right)) > FULL
    ):
        return True
    n_lines = [sum(1 + each.text.count("\n") for each in chain(*side)) for side in (left, right)]
    are_marks = all(MARKER.fullmatch(each.text) or COUNTED.fullmatch(each.text) for each in chain(*left))
    return min(n_lines) == 1 or are_marks


def row_of(part: Sequence[Line], near: Sequence[Sequence[Line]]) -> Line | None:
    """Return the row whose cells of several lines are drawn one after the other, if it has another nearby."""
    order = [*chain(*part)]
    cells = [sorted(cell, key=order.index) for cell in cells_over(part)]
    several = [cell for cell in cells if len(cell) > 1]
    flow = len(several) < 2 or any(
        b.text[0].islower() or b.text[0] == "(" for cell in several for b in cell[1:]
    )
    is_of_numbers = any(sum(bool(NUMBER.fullmatch(each.text)) for each in cell) > 1 for cell in several)
    height = max(each.top - each.bottom for each in order)
    is_tight = all(a[0].middle - b[0].middle < TALL * height for a, b in pairwise(part))
    if (
        (not flow and len(cells) <= LEAST_LINES + 1)
        or is_of_numbers
        or not is_tight
        or max(map(len, cells)) > MAX_ROW
    ):
        return None
    row = [whole_of(cell) for cell in cells]
    for others in ([whole_of(cell) for cell in cells_over(lines)] for lines in near if lines):
        (_, bottom, _, top), (_, low, _, high) = map(around, map(boxes_of, (row, others)))
        is_same = len(others) == len(row) or len(others) > len(row) > 2
        is_same = is_same and max(bottom - high, low - top) < (FAR if len(row) > 2 else 1) * height
        if is_same and all(any(are_aligned(each, other) for other in others) for each in row):
            return row
    return None


def lines_above(part: Sequence[Line], rest: Sequence[Line]) -> int:
    """Return how many of the lines above begin a cell in whose middle another cell of its row stands."""
    last = part[-1][0]
    other = next(cell for cell in cells_over(part) if last not in cell)
    top = max(each.middle for each in other) + min(each.middle for each in other) - last.middle
    for n, line in enumerate(reversed(rest), 1):
        if len(line) > 1 or min(last.right, line[0].right) < max(last.left, line[0].left):
            break
        if line[0].middle > top - ALIGNED:
            return n if line[0].middle < top + ALIGNED else 0
    return 0


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


def text_blocks(lines: list[Line]) -> Iterator[list[Line]]:
    """Yield lines in reading order, whatever the file draws first: columns of prose one after the other."""
    first, last = body_of(lines)
    yield from (lines[:first], *columns_in(lines[first:last]), lines[last:])


def are_columns(lines: Sequence[Line]) -> bool:
    """Whether lines are two columns of prose, or more, and longer than a table of sentences."""
    gutter = gutter_of(lines)
    sides = sides_of(lines, gutter) if gutter is not None else ([], [])
    are_prose = all(map(is_prose, sides)) and any(map(is_even_prose, sides))  # a table may be in one of them
    return min(map(len, sides)) > LEAST_COLUMN and (are_prose or all(map(is_even_prose, sides)))


def columns_in(lines: list[Line]) -> Iterator[list[Line]]:
    """Yield the lines in reading order where columns of text stand next to a gap."""
    for gutter in gutters_of(lines)[:MAX_GUTTERS]:
        blocks = [*filter(None, columns_beside(lines, gutter))]
        if len(blocks) > 1:
            yield from blocks
            return
    yield lines


def columns_beside(lines: list[Line], gutter: float) -> Iterator[list[Line]]:
    """Yield the lines in reading order, one after the other what stands before and behind a gap."""
    band: list[Line] = []
    across: list[Line] = []  # lines over the whole width, and tables
    for line in [*lines, None]:
        is_across = line is None or any(each.left < gutter < each.right for each in line)
        if line is not None and not is_across:
            band.append(line)
            continue
        left, right = sides_of(band, gutter)
        are_prose = is_prose(left) and is_prose(right)
        for part in [band] if are_prose else parts_apart(band):
            left, right = sides_of(part, gutter)
            if not (are_prose or are_independent(left, right)) or any(map(has_lines, chain(*part))):
                across += part
                continue
            yield across
            is_from_right = is_mostly_from_right("".join(each.text for line in left for each in line))
            for column in (right, left) if is_from_right else (left, right):
                yield from text_blocks(column)
            across = []
        band = []
        across += [line] if line is not None else []
    yield across


def parts_apart(lines: Sequence[Line]) -> list[list[Line]]:
    """Return the parts of lines that are far above one another."""
    starts = [
        n
        for n, (a, b) in enumerate(pairwise(lines), 1)
        if a[0].middle - b[0].middle > FAR / 2 * (b[0].top - b[0].bottom)
    ]
    return [[*lines[start:end]] for start, end in pairwise([0, *starts, len(lines)])]


def are_independent(left: Sequence[Line], right: Sequence[Line]) -> bool:
    """Whether two parts side by side have their lines at other heights, and are no rows of cells.

    One of them is prose in even lines, or both are long and have their lines at like distances.
    """
    if min(len(left), len(right)) < LEAST_LINES:
        return False
    near, far = sorted(median(a[0].middle - b[0].middle for a, b in pairwise(side)) for side in (left, right))
    are_long = min(len(left), len(right)) > LEAST_COLUMN and far < PARAGRAPH * near
    few, many = sorted(([line[0] for line in side] for side in (left, right)), key=len)
    n_level = sum(
        any(abs(each.middle - other.middle) < LEVEL * (each.top - each.bottom) for other in many)
        for each in few
    )
    is_text = are_long or is_even_prose(left) or is_even_prose(right)
    return is_text and 2 * n_level < len(few)


def is_even_prose(lines: Sequence[Line]) -> bool:
    """Whether lines are prose, and few of them farther apart than the others, as the rows of a table are."""
    distances = [a[0].middle - b[0].middle for a, b in pairwise(lines)]
    n_far = sum(each > ROW_GAP * median(distances) for each in distances)
    are_long = fmean(len(each.text) for line in lines for each in line) > 3 * SHORT
    is_long = len(lines) > 2 * LEAST_LINES and n_far < SPANNING * len(lines)
    return is_long and (are_long or is_prose(lines))


def gutter_of(lines: Sequence[Line]) -> float | None:
    """Return the middle of the widest gap that few lines cross and that has text on both sides."""
    return next(iter(gutters_of(lines)), None)


def gutters_of(lines: Sequence[Line]) -> list[float]:
    """Return the middles of gaps that few lines cross and that have text on both sides, the widest first."""
    if len(lines) < LEAST_LINES:
        return []
    segments = [segment for line in lines for segment in line]
    lefts, rights = map(sorted, zip(*((each.left, each.right) for each in segments), strict=True))
    if lefts[-1] < rights[0]:  # no gap has text on both sides
        return []
    most = SPANNING * len(lines)
    edges = sorted([(each.left, 1) for each in segments] + [(each.right, -1) for each in segments])
    n_open = 0
    found: dict[float, tuple[float, float]] = {}  # the widths and middles of gaps by their starts
    start: float | None = None  # of the gap
    # of the clearest part of the gap: the segments over it, its width and its middle
    fewest, widest, clearest = len(segments), 0.0, 0.0
    for (left, step), (right, _) in pairwise(edges):
        n_open += step
        if n_open > most:
            start = None
            continue
        if start is None:
            start, fewest, widest = left, len(segments), 0.0
        if (-n_open, right - left) > (-fewest, widest):
            fewest, widest, clearest = n_open, right - left, (left + right) / 2
        n_beside = min(bisect_right(rights, clearest), len(lefts) - bisect_left(lefts, clearest))
        if n_beside >= LEAST_LINES:
            found[start] = right - start, clearest
    least = NARROWEST_GAP * median(each.top - each.bottom for each in segments)
    return [middle for width, middle in sorted(found.values(), reverse=True) if width > least]


def sides_of(lines: Sequence[Line], gutter: float) -> tuple[list[Line], list[Line]]:
    """Return the parts of lines before and behind the gap between two columns."""
    left = [part for each in lines if (part := [one for one in each if one.right <= gutter])]
    right = [part for each in lines if (part := [one for one in each if one.left >= gutter])]
    return left, right


def has_lines(cell: Segment) -> bool:
    """Whether a cell of a row has more letters than a line of its height holds."""
    n, height = len(cell.text), cell.top - cell.bottom
    return n > SHORT and "\n" not in cell.text and NARROWEST * n * height > cell.right - cell.left


def is_prose(lines: Sequence[Line]) -> bool:
    """Whether the lines of a column are sentences that go on from one to the next, not cells of a table."""
    if 2 * sum(len(line) > 1 for line in lines) > len(lines):
        gutter = gutter_of(lines)
        return gutter is not None and all(map(is_prose, sides_of(lines, gutter)))
    texts = [" ".join(segment.text for segment in line) for line in lines]
    if len(texts) < LEAST_LINES or fmean(map(len, texts)) < SHORT:
        return False
    left, right = min(line[0].left for line in lines), max(line[-1].right for line in lines)
    is_full = [line[-1].right - line[0].left > FULL * (right - left) for line in lines]
    goes_on = [  # German has capitals within sentences
        a[-1] not in ".!?:;"
        and not MARKER.match(b)
        and (b[0].islower() or a[-1] in ",-" or (full and len(a) > 2 * SHORT and ":" not in b))
        for (a, b), full in zip(pairwise(texts), is_full[:-1], strict=True)
    ]
    return fmean(goes_on) >= LEAST_FLOW or (len(lines) > LEAST_LINES + 2 and fmean(is_full) > 2 * LEAST_FLOW)


def block_text(lines: Sequence[Line], rules: Sequence[float]) -> str:
    """Return the text of lines that follow one another, tables among them row by row."""
    texts, places, tables = list[str](), list[Line](), list[int]()
    for table in tables_of(without_wide_blanks(lines)):
        rows: list[list[Segment | None]] = list(table_rows(table, rules)) if len(table) > 1 else [[*table[0]]]
        if len(rows) > 1 and is_mostly_from_right("".join(cell.text for row in rows for cell in row if cell)):
            rows = [row[::-1] for row in rows]
        rows = [[joined(*row)] for row in rows] if len(table) > 1 and is_list(rows) else rows
        for part in tables_beside(rows) if len(rows) > 2 else [rows]:
            number = len(texts) + 1  # of the table
            for row in part:
                places.append([segment for segment in row if segment])
                text = CELL_GAP.join(each.text if each else "" for each in row)
                texts.append(GAP.join(each.text for each in places[-1]) if "\n" in text else text)
                tables.append(number * (len(rows) > 1 and CELL_GAP in texts[-1]))  # 0: in full
    distances = [a[0].middle - b[0].middle for a, b in pairwise(places)]
    near = sorted(each for each, pair in zip(distances, pairwise(tables), strict=True) if not any(pair))
    usual = near[len(near) // 4] if near else 0.0  # some are those between paragraphs
    parts = texts[:1]
    heights = [each[0].top - each[0].bottom for each in places]
    are_notes = [b < NOTE_SIZE * a for a, b in pairwise(heights)]
    pairs = zip(texts[1:], distances, pairwise(tables), are_notes, strict=True)
    for text, distance, (above, below), is_small in pairs:
        goes_on = parts[-1][-1:].isalpha() or parts[-1].endswith(",")  # within a sentence
        is_number = AMOUNT.match(text) and len(parts[-1]) > 3 * SHORT and goes_on
        is_note = is_small and NOTE_MARK.match(text) and not is_number
        is_in_word = parts[-1][-1:] == "-" and text[:2].isalpha() and text[0].islower()
        is_near = is_in_word or (distance <= PARAGRAPH * usual and not is_note)
        is_near = above == below if above or below else is_near
        parts += ["\n" if is_near else "\n\n", text]
    return "".join(parts)


def tables_beside(rows: Sequence[list[Segment | None]]) -> Iterator[list[list[Segment | None]]]:
    """Yield the rows of tables side by side, which have the same first head."""
    heads = [cell.text if cell else "" for cell in rows[0]]
    starts = [n for n, head in enumerate(heads) if head == heads[0]] if heads[0].isalpha() else [0]
    bounds = [*pairwise([*starts, len(heads)])]
    bounds = bounds if min(end - start for start, end in bounds) > 1 else [(0, len(heads))]
    yield from ([part for row in rows if any(part := row[start:end])] for start, end in bounds)


def without_wide_blanks(lines: Sequence[Line]) -> list[Line]:
    """Return lines, as one segment those set in full, which end where prose nearby does, and items as one."""
    if max(map(len, lines)) == 1:
        return list(lines)
    found = []
    for number, line in enumerate(lines):
        height = line[0].top - line[0].bottom
        is_close = len(line) > 1 and all(b.left - a.right < WIDEST_BLANK * height for a, b in pairwise(line))
        if is_close and not any(map(has_lines, line)):
            near = [*lines[max(number - NEAR_ROWS, 0) : number], *lines[number + 1 : number + NEAR_ROWS + 1]]
            if any(
                len(each) == 1
                and abs(each[0].right - line[-1].right) < ALIGNED
                and -ALIGNED < line[0].left - each[0].left < WIDEST_BLANK * height
                for each in near
            ):
                line = [whole_of(line)]
        found.append(line)
    return with_items(found)


def with_items(lines: Sequence[Line]) -> list[Line]:
    """Return lines, with the texts of numbered items as one, which go on below them up to their values."""
    found, start = list[Line](), 0
    while start < len(lines):
        (*item, text), end, values = lines[start], start + 1, list[Segment]()
        is_item = bool(item and ITEM.fullmatch(item[0].text))
        while is_item and end < len(lines) and not values:
            above, (first, *values) = lines[end - 1][0], lines[end]
            is_close = above.middle - first.middle < PARAGRAPH * (first.top - first.bottom)
            is_item = is_close and abs(first.left - text.left) < ALIGNED and not NUMBER.fullmatch(first.text)
            text, end = whole_of([text, first]), end + 1
        is_whole = is_item and values and all(each.left > text.right for each in values)
        found.append([*item, text, *values] if is_whole else lines[start])
        start = end if is_whole else start + 1
    return found


def is_list(rows: Sequence[Sequence[Segment | None]]) -> bool:
    """Whether rows are the items of a list, whose marks are counted: ``1 | Close``, or ``1.2 | Fees``."""
    firsts = [row[0].text for row in rows if len(row) == 2 and row[0] and row[1]]
    numbers = [int(mark[1]) for mark in map(COUNTED.fullmatch, firsts) if mark]
    is_counted = len(numbers) == len(rows) and all(b in (1, a + 1) for a, b in pairwise(numbers))
    return is_counted and all(row[1] and row[1].text[0].isalpha() for row in rows)


def tables_of(lines: Sequence[Line]) -> Iterator[list[Line]]:
    """Yield runs of lines with several segments, which are tables, and every other line by itself.

    A line of one segment is of a table if it stands between others, within one of their columns.
    """
    run: list[Line] = []
    for number, line in enumerate(lines):
        following = lines[number + 1] if number + 1 < len(lines) else []
        near = run[-NEAR_LINES:]
        if run and len(run) < 3 and all(len(each) == 1 for each in run[1:]):  # a head, names of groups
            following = next((each for each in lines[number + 1 : number + 3] if len(each) > 1), following)
            near += [following] * (min(len(run[0]), len(following)) > 2)
        columns = columns_of(near) if run and len(line) == 1 else []
        is_cell = len(columns) > 1 and len(columns_of([*near, line])) == len(columns)
        goes_on = is_cell and line[0].left > columns[1][0] - 2 and are_near(run[-1], line)
        is_group = len(near) > len(run) and columns and abs(line[0].left - columns[0][0]) < ALIGNED
        is_cell = is_group or (is_cell and (len(following) > 1 or goes_on))
        if len(line) > 1 or is_cell:
            is_head = len(line) == 1 and has_other_columns(run[-NEAR_LINES:], lines[number + 1 : number + 2])
            if (
                is_head
                or is_apart_above(run, line, following)
                or is_apart_below(run[-NEAR_LINES:], line, following)
            ):
                yield run
                run = []
            run.append(line)
            continue
        if run:
            yield run
        run = []
        yield [line]
    if run:
        yield run


def has_other_columns(rows: Sequence[Line], following: Sequence[Line]) -> bool:
    """Whether cells of the line that follows a heading would share a column of the rows above."""
    several = [each for each in rows if len(each) > 1]
    bodies = [*filter(has_digits, several)]
    several = bodies if len(bodies) > 1 else several
    columns = columns_of(several) if len(several) > 1 else []
    return any(len({column_of(each, columns) for each in line}) < len(line) for line in following if columns)


def is_apart_above(run: Sequence[Line], line: Line, following: Line) -> bool:
    """Whether the only line so far, as a heading with a number, is farther above a line than the next one."""
    if len(run) != 1 or not following:
        return False
    if len(run[0]) > 1 and all(any(are_aligned(head, each) for each in line) for head in run[0]):
        return False
    above, below = run[0][0].middle - line[0].middle, line[0].middle - following[0].middle
    return above > max(PARAGRAPH * below, TALL * (run[0][0].top - run[0][0].bottom))


def is_head(rows: Sequence[Line], body: Sequence[Line]) -> bool:
    """Whether rows are the names of the columns of numbers below them, in several lines."""
    columns = columns_of(body)
    heads = [*chain(*rows)]
    are_names = not any(NUMBER.fullmatch(each.text) and not has_letters(each) for each in heads)
    are_numbers = all(fmean(bool(NUMBER.fullmatch(each.text)) for each in row[1:]) > 0.5 for row in body)
    height = max(each.top - each.bottom for each in heads)
    is_tight = all(a[0].middle - b[0].middle < TIGHT * height for a, b in pairwise(rows))
    gap = rows[-1][0].middle - body[0][0].middle
    are_named = all(
        any(each.left < right and left < each.right for each in heads) for left, right in columns[1:]
    )
    is_below = ROW_GAP * max(a[0].middle - b[0].middle for a, b in pairwise(rows)) < gap < FAR * height
    return are_names and are_numbers and is_tight and is_below and are_named


def has_letters(cell: Segment) -> bool:
    """Whether a cell has a letter."""
    return any(map(str.isalpha, cell.text))


def is_apart_below(rows: Sequence[Line], line: Line, following: Line) -> bool:
    """Whether a line far below rows is another table's: a head, or of more cells, or across their columns."""
    if 1 < len(rows) <= MAX_HEAD and min(len(line), len(following)) > 2 and is_head(rows, (line, following)):
        return False
    distances = [a[0].middle - b[0].middle for a, b in pairwise([*rows, line])]
    is_far = len(rows) > 1 and (
        distances[-1] > APART * median(distances[:-1])
        or (len(line) > 1 and distances[-1] > ROW_GAP * max(distances[:-1]))
    )
    below = [line, *[following] * (len(following) > 1)]
    if is_far and distances[-1] > FAR * max(line[0].top - line[0].bottom, median(distances)):
        return True
    if is_far and len(line) > max(map(len, rows)) and distances[-1] > APART * max(distances[:-1]):
        return True
    if is_far and len(line) > 2 and not has_digits(line) and all(map(has_digits, [*rows[1:], following])):
        return True
    return is_far and len(columns_of([*rows, *below])) < len(columns_of(rows))


def has_digits(line: Line) -> bool:
    """Whether a line has a digit."""
    return any(map(str.isdigit, chain.from_iterable(each.text for each in line)))


def are_near(above: Line, line: Line) -> bool:
    """Whether a line follows the one above as closely as lines of one cell do."""
    return above[0].middle - line[0].middle < TIGHT * (line[0].top - line[0].bottom)


def columns_of(lines: Sequence[Line]) -> list[tuple[float, float]]:
    """Return the left and right edges of columns: ranges that some segment covers, with gaps between them.

    The head of several columns would join them, so the lines with fewest segments count last.
    """
    most = max(map(len, lines))
    segments = [each for line in lines if len(line) >= most - (most > 2) or len(line) == 1 for each in line]
    columns: list[tuple[float, float]] = []
    for each in sorted(segments, key=lambda one: one.left):
        if columns and each.left < columns[-1][1] - ALIGNED:
            columns[-1] = columns[-1][0], max(columns[-1][1], each.right)
        else:
            columns.append((each.left, each.right))
    return columns


def under_heads(lines: Sequence[Line], columns: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return columns, joining a head and the cells next to it that have none, as numbers set to the right."""
    table = [cells_of(line, columns) for line in lines]
    for place in range(len(columns) - 1, 0, -1):
        pair = slice(place - 1, place + 1)
        (left, right), *rows = (cells[pair] for cells in table)
        head = left or right
        if (left and right) or head is None or any(map(all, rows)):
            continue
        if not NUMBER.fullmatch(head.text) or not any(row[head is right] for row in rows):
            columns[pair] = [(columns[place - 1][0], columns[place][1])]
            for cells in table:
                cells[pair] = [cells[place - 1] or cells[place]]
    return columns


def table_rows(lines: Sequence[Line], rules: Sequence[float]) -> Iterator[list[Segment | None]]:
    """Yield the rows of a table with a cell for every column, None for an empty one.

    A line that begins in a later column goes on in the row above: with few cells, or where a rule parts the
    rows and none is between both.
    """
    *_, second, most = 1, *sorted(map(len, lines))
    if most > second + 1 and len(lines[0]) < most:  # a line within a cell that is set in full
        most = second
    full = [line for line in lines if len(line) == most]
    columns = under_heads(lines, columns_of(full if 2 * len(full) > len(lines) else lines))
    columns = [*chain.from_iterable(parts_of_column(lines, columns, n) for n in range(len(columns)))]
    top, bottom = lines[0][0].top, lines[-1][0].bottom
    inner = [rule for rule in rules if bottom - 3 < rule < top + 3]
    is_ruled = len(inner) > 2
    usual = median(a[0].middle - b[0].middle for a, b in pairwise(lines)) if len(lines) > 1 else 0.0
    row: list[Segment | None] = []
    above: Line = []
    n_head = names_of_columns(lines, columns, inner)
    if n_head:
        named = [cells_of(line, columns, is_head=True) for line in lines[:n_head]]
        yield [reduce(joined, cells) for cells in zip(*named, strict=True)]
        lines = lines[n_head:]
    for number, line in enumerate(lines):
        cells = cells_of(line, columns)
        n_cells = sum(cell is not None for cell in cells)
        if is_ruled:
            is_below_rule = bool(row) and any(line[0].middle < rule < above[0].middle for rule in inner)
            is_below_group = bool(row) and not row[0] and number == 1 and None not in cells  # of heads
            goes_on = bool(row) and not is_below_rule and None in (row[0], cells[0]) and not is_below_group
        else:
            few = n_cells < len(columns) - 1 or len(columns) == 2
            goes_on = bool(row) and cells[0] is None and few
        pairs = ((a.text, b.text) for a, b in zip(row, cells, strict=False) if a and b)
        is_sum = (
            row and not row[0] and n_cells == 1 and all(NUMBER.fullmatch(each.text) for each in row if each)
        )
        farthest = ROW_GAP if not is_ruled else PARAGRAPH if cells[0] else math.inf  # its name may be below
        is_far = bool(row) and above[0].middle - line[0].middle > farthest * usual
        n_below = [sum(a.left < b.right and b.left < a.right for b in line) for a in above]
        are_groups = number < NEAR_HEADS and sum(n > 1 for n in n_below) > 1  # of columns, with heads below
        # without a name, above the next group
        goes_on = goes_on and not is_sum and not is_far and not are_groups
        if goes_on and not any(map(all, (map(NUMBER.fullmatch, pair) for pair in pairs))):  # of one number
            row = [joined(a, b) for a, b in zip(row, cells, strict=True)]
        else:
            if row:
                yield row
            row = cells
        above = line
    yield row


def names_of_columns(
    lines: Sequence[Line], columns: Sequence[tuple[float, float]], rules: Sequence[float]
) -> int:
    """Return how many lines are the names of columns, none of which stands over two, and no rule between."""
    for n in range(min(MAX_HEAD, len(lines) - 2), 1, -1):
        head, body = lines[:n], lines[n : n + 2]
        parts = [each for line in head for cell in line for each in parts_of(cell, columns, is_head=True)]
        are_single = all(
            sum(each.left < right and left < each.right for left, right in columns) < 2 for each in parts
        )
        is_ruled = any(head[-1][0].middle < rule < head[0][0].middle for rule in rules)
        if min(map(len, body)) > 2 and are_single and not is_ruled and is_head(head, body):
            return n
    return 0


def parts_of_column(
    lines: Sequence[Line], columns: Sequence[tuple[float, float]], number: int
) -> list[tuple[float, float]]:
    """Return a column, or those in it where most lines have several cells, which a head or sum joins."""
    inner = [[each for each in line if column_of(each, columns) == number] for line in lines]
    several = [cells for cells in inner if len(cells) > 1]
    is_parted = len(several) > 1 and 2 * len(several) >= sum(map(bool, inner))
    return columns_of(several) if is_parted else [columns[number]]


def column_of(cell: Segment, columns: Sequence[tuple[float, float]]) -> int:
    """Return the number of the column that a cell overlaps most."""
    overlaps = [min(cell.right, right) - max(cell.left, left) for left, right in columns]
    return max(range(len(columns)), key=overlaps.__getitem__)


def parts_of(cell: Segment, columns: Sequence[tuple[float, float]], is_head: bool) -> Sequence[Segment]:
    """Return the parts of a cell in several columns if they are numbers, or heads far apart, or the cell."""
    parts, rest, are_apart = list[Segment](), cell, is_head
    for place, end, start, _ in cell.breaks[::-1]:
        before, behind = parted_at(rest, place, end, start)
        if column_of(behind, columns) != column_of(before, columns):
            rest = before
            parts.insert(0, behind)
            are_apart &= start - end > LEAST_BREAK * (cell.top - cell.bottom)
    are_numbers = all(NUMBER.fullmatch(each.text) for each in (rest, *parts))
    return [rest, *parts] if are_numbers or are_apart else [cell]


def cells_of(
    line: Line, columns: Sequence[tuple[float, float]], is_head: bool = False
) -> list[Segment | None]:
    """Return the cells of a line, by the columns that its segments overlap most."""
    cells: list[Segment | None] = [None] * len(columns)
    for each in chain.from_iterable(parts_of(cell, columns, is_head) for cell in line):
        column = column_of(each, columns)
        cells[column] = joined(cells[column], each)
    return cells


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
