"""Tables of a PDF's page that no lines part: their rows, columns and names of columns."""

import math
import re
from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import chain, pairwise
from statistics import fmean, median

from .from_right import is_mostly_from_right
from .pdf_lines import (
    ALIGNED,
    APART,
    CELL_GAP,
    COUNTED,
    FAR,
    GAP,
    LEAST_BREAK,
    NEAR_ROWS,
    NUMBER,
    PARAGRAPH,
    ROW_GAP,
    SHORT,
    TALL,
    Line,
    Segment,
    are_aligned,
    has_lines,
    joined,
    parted_at,
    whole_of,
)

WIDEST_BLANK = 2.0  # times the height of letters, of a line that is set in full
TIGHT = 1.35  # times the height of the letters: distance of the lines of one cell
NEAR_HEADS = 3  # lines of a table that may be heads
NEAR_LINES = 20  # lines of a table that a line between others is compared with
NOTE_SIZE, NOTE_MARK = 0.97, re.compile(r"\^?\d{1,3}|[*†‡]")  # times the letters above, those of a note
MAX_HEAD = 4  # lines of the names of columns
AMOUNT = re.compile(r"\d+[\d.,%)–-]")  # of a sentence
ITEM = re.compile(r"\d{1,2}[a-z]?|[A-Za-z]")  # the number of one


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
    farthest = max(a[0].middle - b[0].middle for a, b in pairwise(rows))
    gap = rows[-1][0].middle - body[0][0].middle
    are_named = all(
        any(each.left < right and left < each.right for each in heads) for left, right in columns[1:]
    )
    is_below = farthest < TIGHT * height and ROW_GAP * farthest < gap < FAR * height
    return are_names and are_numbers and is_below and are_named


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
