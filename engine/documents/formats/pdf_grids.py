"""Tables of a PDF's page with lines around their cells: every text is in the cell that it stands in."""

import math
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby, pairwise
from operator import itemgetter

from .from_right import is_mostly_from_right
from .pdf_columns import LEAST_COLUMN
from .pdf_layout import page_text
from .pdf_lines import CELL_GAP, Line, Rule, Segment, cells_over, lines_of, whole_of

TOUCH = 3.0  # points between lines that meet, and between drawn lines that are one
OFF_LEVEL = 0.2  # times the height of letters, from one line of a row to another
MAX_PAIRS = 200_000  # of lines on a page that are compared
MAX_LINES = 25  # of a cell: more are a column of prose
MOST_WHOLE = 4  # times rows with several lines that are one, to those that are several
LEAST_BODY = 4  # rows between two lines, above which are heads only
LEAST_CELL = 10.0  # points, the size of a cell without an outer line
NUMBER = re.compile(r"\D{0,3}\d")
MOST, SHORT = 0.6, 0.6  # of the cells of a row, and of the width of a column
MOST_HEADS = 2  # rows of names of columns
MAX_REPEATED = 60  # characters of a merged cell that stands in all its places, where its row has no other
MOST_NAMED = 0.8  # of the rows, where each has a name
WORD = re.compile(r"[^\W\d_]{3}")
FEW_BOXES, LEAST_LABELS = 0.35, 4  # of the places between lines; of a form
MOST_OF_BOX, MOST_TORN = 0.35, 0.25  # of the letters of a form, and of its lines, with several parts
MAX_COLUMNS, LEAST_FILLED = 60, 0.4  # more columns, or fewer cells with a text, are of a drawing
Place = tuple[int, int]  # row and column


@dataclass(frozen=True)
class Rules:
    """The straight lines of a page."""

    horizontal: Sequence[Rule] = ()
    vertical: Sequence[Rule] = ()


@dataclass(frozen=True)
class Grid:
    """Lines that meet around cells: their heights from the top, and their places from the left."""

    rules: Rules
    heights: Sequence[float]
    places: Sequence[float]


def merged(rules: Iterable[Rule]) -> list[Rule]:
    """Return lines with those joined that lie on one another or follow one another."""
    found: list[Rule] = []
    level = 0.0
    rows: list[tuple[float, float, float]] = []
    for place, start, end in sorted(rules):
        level = place if not rows or place - level > TOUCH else level
        rows.append((level, start, end))
    for place, start, end in sorted(rows):
        if found and found[-1][0] == place and start <= found[-1][2] + TOUCH:
            found[-1] = place, found[-1][1], max(found[-1][2], end)
        else:
            found.append((place, start, end))
    return found


def grids_of(rules: Rules) -> Iterator[Grid]:
    """Yield the sets of lines that meet, with at least two rows and two columns between them."""
    across, down = merged(rules.horizontal), merged(rules.vertical)
    if len(across) * len(down) > MAX_PAIRS:
        return
    meeting = {
        ("across", i): [
            ("down", j)
            for j, (x, bottom, top) in enumerate(down)
            if left - TOUCH < x < right + TOUCH and bottom - TOUCH < y < top + TOUCH
        ]
        for i, (y, left, right) in enumerate(across)
    }
    for one, others in list(meeting.items()):
        for other in others:
            meeting.setdefault(other, []).append(one)
    left_over = dict.fromkeys(meeting)  # in order, so that a page is read alike each time
    while left_over:
        part, edge = set(), [left_over.popitem()[0]]
        while edge:
            part.add(edge[-1])
            edge += [each for each in meeting[edge.pop()] if each not in part]
        for each in part:
            left_over.pop(each, None)
        own = Rules(
            [across[i] for kind, i in part if kind == "across"],
            [down[i] for kind, i in part if kind == "down"],
        )
        heights = with_ends([y for y, _, _ in own.horizontal], own.vertical)[::-1]
        places = with_ends([x for x, _, _ in own.vertical], own.horizontal)
        if len(heights) > 2 and 2 < len(places) <= MAX_COLUMNS:
            yield Grid(own, heights, places)


def with_ends(places: Iterable[float], crossing: Sequence[Rule]) -> list[float]:
    """Return the places of lines in order, and those where the lines across them end without one."""
    found = sorted(set(places))
    first, last = (
        (min(start for _, start, _ in crossing), max(end for _, _, end in crossing)) if crossing else (0, 0)
    )
    before = [first] if found and first < found[0] - LEAST_CELL else []
    return [*before, *found, *([last] if found and last > found[-1] + LEAST_CELL else [])]


def with_grids(segments: Sequence[Segment], rules: Rules) -> list[Segment]:
    """Return the segments of a page, those within a ruled table as one with its rows."""
    rest = list(segments)
    for grid in grids_of(rules):
        inner = [
            each
            for each in rest
            if grid.places[0] < (each.left + each.right) / 2 < grid.places[-1]
            and grid.heights[-1] < each.middle < grid.heights[0]
        ]
        of_form: list[list[list[Segment]]] = []
        rows = list(rows_of(inner, grid, of_form))
        if len(rows) > 1 and max(sum(map(bool, row)) for row in rows) > 1:
            rest = [each for each in rest if each not in inner]
            step = -1 if is_mostly_from_right("".join(chain(*rows))) else 1
            text = "\n".join(CELL_GAP.join(row[::step]).rstrip(CELL_GAP) for row in rows)
            box = grid.places[0], grid.heights[-1], grid.places[-1], grid.heights[0]
            rest.append(Segment(text, *box, place=min(each.place for each in inner)))
        for row in of_form:
            level = max(chain(*row), key=lambda each: each.middle)
            own = {id(each) for each in chain(*row)}
            rest = [each for each in rest if id(each) not in own]
            cells = [whole_of(chain(*lines_of(cell))) for cell in row]
            if max(map(len, row)) > LEAST_COLUMN:  # columns of the page
                cells = [replace(a, text=page_text(b, ())) for a, b in zip(cells, row, strict=True)]
            rest += [replace(cell, bottom=level.bottom, top=level.top) for cell in cells]
    return rest


def rows_of(
    segments: Iterable[Segment], grid: Grid, of_form: list[list[list[Segment]]]
) -> Iterator[list[str]]:
    """Yield the texts of the cells, row by row; merged ones stand in all their places; none of prose.

    The cells of single rows are added to ``of_form`` if the grid is no table as a whole.
    """
    n_rows, n_columns = len(grid.heights) - 1, len(grid.places) - 1
    across, down = grid.rules.horizontal, grid.rules.vertical
    above = [
        [row == 0 or is_ruled(across, grid.heights[row], *pair) for pair in pairwise(grid.places)]
        for row in range(n_rows)
    ]
    neighbors = [
        [column == 0 or is_ruled(down, grid.places[column], bottom, top) for column in range(n_columns)]
        for top, bottom in pairwise(grid.heights)
    ]
    falling = [-height for height in grid.heights]
    placed: list[list[tuple[int, Segment]]] = [[] for _ in range(n_rows)]
    for each in segments:
        column = bisect_right(grid.places, (each.left + each.right) / 2) - 1
        placed[bisect_right(falling, -each.middle) - 1].append((column, each))

    def origin(row: int, column: int) -> Place:
        """Return the first place of the cell that a place belongs to."""
        while not above[row][column]:
            row -= 1
        while not neighbors[row][column]:
            column -= 1
        return row, column

    def cells_at() -> dict[Place, list[Segment]]:
        """Return the texts of the cells, by the first place of each."""
        found = {origin(row, column): list[Segment]() for row in range(n_rows) for column in range(n_columns)}
        for row, inner in enumerate(placed):
            for column, each in inner:
                found[origin(row, column)].append(each)
        return found

    drawn = cells_at()
    boxes = {place: box for place, box in drawn.items() if box}
    has_fields = len(drawn) < FEW_BOXES * n_rows * n_columns and are_fields(boxes.values())
    lengths = [sum(len(each.text) for each in box) for box in boxes.values()]
    is_form = has_fields and max(lengths) < MOST_OF_BOX * sum(lengths)
    for row, inner in enumerate(placed):
        neighbors[row] = with_undrawn(neighbors[row], inner, grid.places)
    names = lines_of([each for inner in placed for column, each in inner if not column])
    # no line is before or between them
    if grid.places[0] < min(down)[0] and len(names) > MOST_NAMED * n_rows:
        for line in above:
            line[0] = True
    texts = cells_at()
    lines = {place: lines_of(inner) for place, inner in texts.items() if inner}
    # with columns of its own, or another table in it
    is_box = any(sum(len(line) > 1 for line in each) > 1 for each in lines.values())
    is_box |= any("\n" in each.text for inner in texts.values() for each in inner)
    n_lines, n_torn = Counter[int](), Counter[int]()
    for (_, column), cell in lines.items():
        n_lines[column] += len(cell)
        n_torn[column] += sum(len(line) > 1 for line in cell)
    # or lines lack between columns
    is_box |= any(n_torn[column] > max(n_lines[column], n_rows) / 2 for column in n_torn)
    is_box |= len(lines) < LEAST_FILLED * len(texts) or max(map(len, lines.values())) > MAX_LINES
    if is_box and not is_form:
        members = [{origin(n, column) for column in range(n_columns)} & lines.keys() for n in range(n_rows)]
        of_form += rows_apart(texts, lines, members)
        return
    if has_fields:
        for _, row_of_boxes in groupby(sorted(boxes), key=itemgetter(0)):
            yield [text_of_box(boxes[place]) for place in row_of_boxes]
        return
    widths = [right - left for left, right in pairwise(grid.places)]
    found = []
    for row in range(n_rows):
        origins = [origin(row, column) for column in range(n_columns)]
        if any(place[0] == row and place in lines for place in origins):
            whole = [lines.get(place, []) for place in origins]
            is_only = row == 1 and n_rows == 2 and len({*map(len, whole)}) == 1  # below the heads
            found.append((whole, list(parts_of_row(whole, widths, is_only)), len(set(origins)) == 1))
    # rows with cells of several lines, but the heads, tell that all are parted by lines
    parted = [n for n, (_, parts, _) in enumerate(found) if n and len(parts) > 1]
    body = parted[0] if len(parted) > 1 or any(len(found[n][1]) > LEAST_BODY for n in parted) else 1
    n_whole = sum(
        len(parts) == 1 and max(map(len, whole)) > 1 > is_one for whole, parts, is_one in found[body:]
    )
    are_ruled = MOST_WHOLE * n_whole > len(parted)
    for number, (whole, parts, is_one) in enumerate(found):
        for part in [whole] if are_ruled else parts:
            cells = [text_of(each) for each in part]
            alike = {*filter(None, cells)}
            is_note = len(alike) == 1 and max(map(cells.count, alike)) > 1
            is_note &= number > MOST_HEADS or len("".join(alike)) > MAX_REPEATED
            yield [*alike] if is_note else cells[:1] if is_one else cells


def rows_apart(
    texts: Mapping[Place, list[Segment]], lines: Mapping[Place, list[Line]], members: Sequence[set[Place]]
) -> Iterator[list[list[Segment]]]:
    """Yield the cells of rows that share none with others, of single lines or columns of the page each."""
    n_spanned = Counter(chain(*members))
    for places in map(sorted, members):
        if len(places) < 2 or any(n_spanned[place] > 1 for place in places):
            continue
        row = [lines[place] for place in places]
        n_long = sum(sum(len(line) > 1 for line in each) > LEAST_COLUMN for each in row)
        is_whole = all(len(line) == 1 and "\n" not in line[0].text for line in chain(*row))
        if n_long > 1 or (is_whole and len([*parts_of_row(row, [math.inf] * len(places), False)]) == 1):
            yield [texts[place] for place in places]


def are_fields(boxes: Collection[Sequence[Segment]]) -> bool:
    """Whether most boxes have a label, as the fields of a form; few have a table, none a column of values."""
    lines = [lines_of(box) for box in boxes]
    texts = ["".join(each.text for each in box) for box in boxes]
    n_torn = sum(len(line) > 2 or sum(has_word([each]) for each in line) > 1 for line in chain(*lines))
    return (
        sum(map(has_word, boxes)) > max(MOST * len(boxes), LEAST_LABELS)
        and n_torn < MOST_TORN * sum(map(len, lines))
        and not any("\n" in text for text in texts)
        and all(len(box) < 3 or any(map(str.isalpha, text)) for box, text in zip(lines, texts, strict=True))
    )


def has_word(box: Iterable[Segment]) -> bool:
    """Whether a text of a box has a word, as labels do."""
    return any(WORD.search(each.text) for each in box)


def text_of_box(box: Sequence[Segment]) -> str:
    """Return the text of a field: its labels one after the other, each with the values below it."""
    lines, labels = lines_of(box), list[list[Segment]]()
    for cell in cells_over(lines):
        if labels and not (has_word(labels[-1]) and has_word(cell)):
            labels[-1] += cell
        else:
            labels.append(cell)
    has_rows = sum(len(line) > 1 for line in lines) > MOST_HEADS  # as a list
    return text_of(lines if has_rows else [*chain.from_iterable(map(lines_of, labels))])


def with_undrawn(
    are_drawn: Sequence[bool], cells: Sequence[tuple[int, Segment]], places: Sequence[float]
) -> list[bool]:
    """Return where the cells of a row begin, also where only other rows have the line that parts them.

    Its texts tell so that stand side by side, each within a column.
    """
    found = list(are_drawn)
    bounds = [column for column, is_drawn in enumerate(are_drawn) if is_drawn]
    for start, end in pairwise([*bounds, len(found)]):
        inner = [each for column, each in cells if start <= column < end]
        crossed = any(
            each.left < place - TOUCH and each.right > place + TOUCH
            for each in inner
            for place in places[start + 1 : end]
        )
        if end - start > 1 and not crossed and any(len(line) > 1 for line in lines_of(inner)):
            found[start:end] = [True] * (end - start)
    return found


def parts_of_row(
    cells: Sequence[Sequence[Line]], widths: Sequence[float], is_only: bool
) -> Iterator[list[Sequence[Line]]]:
    """Yield the rows between two ruled lines: several, where most cells have lines at the same heights.

    One of the columns has numbers there, or short lines: other cells may be sentences on as many lines. But
    not if ``is_only``: of the only row below heads, whose cells have all as many lines. A cell of one line
    that stands between theirs belongs to all of them.
    """
    several = [each for each in cells if len(each) > 1]
    reach = max([TOUCH, *(OFF_LEVEL * (each.top - each.bottom) for line in chain(*cells) for each in line)])
    heights = [[line[0].middle for line in each] for each in several]
    starts = [
        y
        for y in sorted({*chain(*heights)}, reverse=True)
        if sum(any(abs(each - y) < reach for each in column) for column in heights) > MOST * len(several)
    ]
    starts = [y for n, y in enumerate(starts) if not n or starts[n - 1] - y > reach]
    numbers = [n for n, each in enumerate(several) if all(NUMBER.match(line[0].text) for line in each)]
    most = max((heights[n] for n in numbers), key=len, default=starts)
    if all(any(abs(y - each) < reach for each in most) for y in chain(*heights)):
        starts = most  # all other lines are level with those of a column of numbers
    are_values = is_only or any(
        all(is_value(line, width, len(starts)) for line in each if line[0].middle > starts[-1] - reach)
        for each, width in zip(cells, widths, strict=True)
        if starts and len(each) > 1
    )
    if len(several) < 2 or len(starts) < 2 or not are_values or starts[0] < max(map(max, heights)) - reach:
        yield list(cells)
        return
    for top, bottom in pairwise([*starts, -math.inf]):
        part: list[Sequence[Line]] = [
            [line for line in each if bottom + reach < line[0].middle <= top + reach] for each in cells
        ]
        for place, each in enumerate(cells):
            if len(each) == 1 and not any(abs(each[0][0].middle - height) < reach for height in starts):
                part[place] = list(each)
        yield part


def is_value(line: Line, width: float, n_lines: int) -> bool:
    """Whether a line of a cell is a value by itself: a number, or of three lines and more a short one."""
    is_short = n_lines > 2 and line[-1].right - line[0].left < SHORT * width
    return bool(NUMBER.match(line[0].text)) or is_short


def is_ruled(rules: Sequence[Rule], place: float, start: float, end: float) -> bool:
    """Whether a line at a place goes along the side of a cell."""
    middle = (start + end) / 2
    return any(each == place and first < middle < last for each, first, last in rules)


def text_of(lines: Sequence[Line]) -> str:
    """Return the text of a cell."""
    return whole_of(chain(*lines)).text if lines else ""
