"""Reading order of a PDF's page: parts that the file draws apart, columns, and tables row by row."""

import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, chain, pairwise
from statistics import fmean, median

from .from_right import around
from .pdf_columns import are_columns, is_prose, sides_of, text_blocks
from .pdf_lines import (
    ALIGNED,
    CELL_GAP,
    COUNTED,
    FAR,
    FULL,
    GAP,
    LEAST_LINES,
    LEVEL,
    LINE_GAP,
    MARKER,
    MAX_BOXES,
    MAX_EDGE,
    NEAR_ROWS,
    NUMBER,
    ROW_GAP,
    SHORT,
    TALL,
    Line,
    Rule,
    Segment,
    are_aligned,
    boxes_of,
    cells_over,
    is_near_some,
    lines_of,
    whole_of,
    with_drop_caps,
    with_icons,
)
from .pdf_tables import block_text

EXACT = 0.1  # points, between words that begin at the same place
MAX_ROW = 12  # lines of a row
LEAST_RULE = 20  # points, of lines between rows
MAX_MASTHEAD = 8  # lines above a line over the whole width


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
