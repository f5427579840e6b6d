"""Spreadsheets: their rows with the names of their columns, sheet by sheet."""

import re
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from io import StringIO
from itertools import chain, groupby, islice, pairwise, zip_longest
from operator import itemgetter

from ..document import Section
from .outline import one_line
from .plain import unified

NUMBER = re.compile(r"\W{0,3}\d[\d.,:/ '-]*\W{0,3}|[$€£¥] ?[-–—]")  # the latter for 0
MOST_ABOVE = 20  # rows that are looked at for the names of columns
HEAD = 2 * MOST_ABOVE  # rows that tell tables apart
MOST_NAMES = 6  # rows, with the first that has values
LONGEST_NAME = 250  # characters of a column's name: questions of a survey may have as many
MAX_ROWS = 300_000  # of a table in a text file: each is a section
ROW_GAP = "\n\n"
MAX_MERGED = 200_000  # places that merged cells fill

Row = tuple[int, list[str]]  # its number from 1, and its cells
Block = tuple[list[Row], Iterator[Row]]


@dataclass(frozen=True)
class Sheet:
    """A sheet: its rows, and its merged cells: first and last row, first and last column, columns from 0.

    These may be added while the rows are read; they are taken for ``wide``: rows with cells merged across.
    """

    name: str
    rows: Iterable[Row]
    merged: list[tuple[int, int, int, int]] = field(default_factory=list)
    wide: set[int] = field(default_factory=set)


@dataclass(frozen=True)
class Table:
    """A table of a sheet: its first rows, of a long one at least `HEAD`, and the rest."""

    head: list[Row]
    rest: Iterator[Row]
    wide: Set[int]  # rows in which cells are merged across columns
    is_title: bool = False  # lines above a wider table


def sheets_text(sheets: Iterable[Sheet]) -> tuple[str, tuple[Section, ...]]:
    """Return the text of all sheets, and a section for every row: its headings are sheet and number."""
    return joined_rows(row for sheet in sheets for row in sheet_rows(sheet))


def sheet_rows(sheet: Sheet) -> Iterator[tuple[Section, str]]:
    """Yield the section and the text of a sheet's name and of each row, one row in memory at a time."""
    tables = tables_of(filled_rows(sheet), sheet.wide)
    for place, (number, text) in enumerate(chain.from_iterable(map(row_texts, tables))):
        if not place:
            yield Section(0, (sheet.name,)), sheet.name
        yield Section(0, (sheet.name, f"row {number}"), is_row=True), text


def joined_rows(rows: Iterable[tuple[Section, str]]) -> tuple[str, tuple[Section, ...]]:
    """Return the text of rows, and the section of each at its place."""
    joined = RowsText()
    for section, text in rows:
        joined.add(section, text)
    return str(joined), tuple(joined.sections)


class RowsText:
    """A text to which rows are added, a blank line between them, and the section of each at its place."""

    def __init__(self) -> None:
        self._whole = StringIO()
        self.sections: list[Section] = []

    def add(self, section: Section, text: str) -> None:
        """Add a row, and its section."""
        self._whole.write(ROW_GAP if self.sections else "")
        self.sections.append(section._replace(start=len(self)))
        self._whole.write(text)

    def __len__(self) -> int:
        """Return the number of characters."""
        return self._whole.tell()

    def __str__(self) -> str:
        """Return the text."""
        return self._whole.getvalue()


def tables_of(rows: Iterable[Row], wide: Set[int] = frozenset()) -> Iterator[Table]:
    """Yield the tables of a sheet: one begins below an empty row, with names of columns below its title."""
    blocks = blocks_of(rows)
    ahead = list(islice(blocks, 1))
    while ahead:
        head, rest = ahead.pop()
        while len(head) < HEAD and not ahead and (block := next(blocks, None)):
            if is_another_table(block[0], head, wide):
                ahead.append(block)
            else:
                head, rest = head + block[0], block[1]
        is_title = bool(ahead) and not has_numbers(head) and width_of(head) < width_of(ahead[0][0])
        yield Table(head, rest_of_table(head, rest, blocks, ahead, wide), wide, is_title)


def blocks_of(rows: Iterable[Row]) -> Iterator[Block]:
    """Yield the first rows, at most `HEAD`, and the rest of each block of rows without an empty one."""
    for _, block in groupby(enumerate(rows), lambda each: each[1][0] - each[0]):
        below = map(itemgetter(1), block)
        yield list(islice(below, HEAD)), below


def rest_of_table(
    head: Sequence[Row], rest: Iterator[Row], blocks: Iterator[Block], ahead: list[Block], wide: Set[int]
) -> Iterator[Row]:
    """Yield the rest of a block and the blocks of the same table; add the first of another to ``ahead``."""
    yield from rest
    while not ahead and (block := next(blocks, None)):
        if is_another_table(block[0], head[:HEAD], wide):
            ahead.append(block)
        else:
            yield from chain(*block)


def is_another_table(block: Sequence[Row], above: Sequence[Row], wide: Set[int]) -> bool:
    """Whether rows below an empty one have names of columns, and those above it, too.

    The row below the names has a number, or a column that has only numbers above has only texts.
    """
    _, place, names = names_of(block, wide)
    if not names or not names_of(above, wide)[2]:
        return False
    body = block[place:]
    before, now = (
        [
            {is_of_texts([cell]) for cell in column if cell.strip()}
            for column in zip_longest(*cells, fillvalue="")
        ]
        for cells in ([row for _, row in above[1:]], [row for _, row in body])
    )
    are_others = len(body) > 1 and ({False}, {True}) in zip(before, now, strict=False)
    return has_numbers(body[:1]) or are_others


def has_numbers(rows: Iterable[Row]) -> bool:
    """Whether a cell of some rows is a number."""
    return not all(is_of_texts(cells) for _, cells in rows)


def width_of(rows: Iterable[Row]) -> int:
    """Return the most cells of a row that are not empty."""
    return max((sum(map(bool, cells)) for _, cells in rows), default=0)


def row_texts(table: Table) -> Iterator[tuple[int, str]]:
    """Yield number and text of each row: ``column: value`` below the names of columns, cells else."""
    first, place, names = (0, 0, []) if table.is_title else names_of(table.head, table.wide)
    used = {name for _, row in table.head[place:] for name, cell in zip(names, row, strict=False) if cell}
    unused = " | ".join(dict.fromkeys(name for name in names if name and name not in used))  # as in forms
    for index, (number, cells) in enumerate(chain(table.head, table.rest)):
        if index < place:
            if index < first:
                yield number, " | ".join(dict.fromkeys(filter(None, cells)))
            elif index == place - 1 and unused:
                yield number, unused
            continue
        filled = [(name, cell) for name, cell in zip_longest(names, cells, fillvalue="") if cell]
        once = {cell for _, cell in filled}
        is_head = number in table.wide and len(filled) > len(once) == 1 and is_of_texts(once)
        named = [f"{name}: {cell}" if name and not is_head else cell for name, cell in filled]
        yield number, ("\n" if names else " | ").join(named[: 1 if is_head else None])


def names_of(rows: Sequence[Row], wide: Set[int]) -> tuple[int, int, list[str]]:
    """Return the places of the first row of names of columns and of that below them, and the names, if any.

    They stand in the first row of several texts, without numbers but years, below lines of a title; where
    cells of it are merged, the names of the next row are added: "Price, Rent".
    """
    most = width_of(rows[:HEAD])
    for place, (number, cells) in enumerate(rows[:MOST_ABOVE]):
        filled = [cell for cell in cells if cell]
        starts = [bool(row[0]) for _, row in rows[place : place + 3]]  # one group may be over all columns but
        is_group = number in wide and starts == [False, False, True]  # the first, which has no name
        is_title = len(set(filled)) < 2 or 2 * len(filled) < most
        if (not is_group and is_title) or is_long(filled) or are_pairs(rows[place:]):
            continue
        is_pair = most == 2 and any(map(str.isdigit, "".join(filled)))  # "Contact | Anna 5"
        numbers = [cell for cell in filled if NUMBER.fullmatch(cell)]
        if is_pair or (numbers and not are_years(numbers)) or place + 1 >= len(rows):
            return 0, 0, []
        names, first, place = cells, place, place + 1
        while number in wide and place + 1 < len(rows) and is_of_texts(rows[place][1]):
            number, below = rows[place]
            if is_long(below):
                break
            width = max(len(names), len(below))
            pairs = zip(padded(names, width), padded(below, width), strict=True)
            names = [", ".join(dict.fromkeys(filter(None, pair))) for pair in pairs]
            place += 1
        names, n_more = names_below(names, rows[place:])
        return first, place + n_more, [one_line(name) for name in names]
    return 0, 0, []


def are_pairs(rows: Sequence[Row]) -> bool:
    """Whether rows, up to an empty one, are names with values in pairs of columns, an empty one between them.

    Tables side by side have several rows, and columns of numbers.
    """
    _, block = next(groupby(enumerate(rows), lambda each: each[1][0] - each[0]))
    columns = [*zip_longest(*(cells for _, (_, cells) in block), fillvalue="")]
    pairs = "".join("x" if any(column) else " " for column in columns).split(" ")
    are_numbers = (column[2:] and all(map(re.compile(r"\d").search, column[1:])) for column in columns)
    return len(pairs) > 1 and {*pairs} == {"xx"} and not any(are_numbers)


def names_below(names: list[str], rows: Sequence[Row]) -> tuple[list[str], int]:
    """Return names of columns with those in rows below them, ``Price, Net``, and the number of these rows.

    They stand above the first row with numbers; lines over a part of the table may be between. Each fills
    gaps, which all together leave none, or is empty at the first name, or tells equal ones apart, or has
    only units of numbers.
    """
    n_texts = next((n for n, (_, cells) in enumerate(rows[:MOST_NAMES]) if not is_of_texts(cells)), 0)
    n_texts *= bool(rows) and rows[n_texts][0] - rows[0][0] == n_texts  # without an empty one
    heads = [cells for _, cells in rows[:n_texts] if any(cells[1:])]
    width = max(map(len, (names, *heads)))
    whole, *heads = ([cell.strip() for cell in padded(cells, width)] for cells in (names, *heads))
    values = padded(rows[n_texts][1], width) if heads else []
    numbers = {n for n, value in enumerate(values) if NUMBER.fullmatch(value.strip())}
    for place, below in enumerate(heads):
        filled, *later = ({n for n, cell in enumerate(row) if cell} for row in heads[place:])
        gaps = {n for n, value in enumerate(values[:width]) if value.strip() and not whole[n]}
        gaps -= {0} if not below[0] else set()  # the names of rows need none
        is_partial = whole[0] and not below[0]
        are_repeated = len(set(filter(None, whole))) < sum(map(bool, whole))
        fits = gaps <= filled.union(*later) if gaps else numbers <= filled and (is_partial or are_repeated)
        has_values = any(map(str.isdigit, "".join(values[n] for n in filled))) if gaps else numbers & filled
        if not any(rows[place][1][1:]) or is_long(below) or not (has_values and (fits or filled <= numbers)):
            return names, 0
        group, joined = "", list[str]()
        for name, under in zip(whole, below, strict=True):
            group = name or group
            joined.append(", ".join(filter(None, (group if name or under else "", under))))
            group = "" if is_partial and not joined[1:] else group  # of the names of rows
        whole = joined
    return whole, len(heads)


def is_of_texts(cells: Iterable[str]) -> bool:
    """Whether the cells that are not empty hold no numbers."""
    filled = [cell for cell in cells if cell]
    return bool(filled) and not any(NUMBER.fullmatch(cell) for cell in filled)


def is_long(cells: Iterable[str]) -> bool:
    """Whether a cell is too long for the name of a column."""
    return max(map(len, cells), default=0) > LONGEST_NAME


def are_years(cells: Sequence[str]) -> bool:
    """Whether the cells are years that follow one another, the names of columns."""
    years = [int(cell) for cell in cells if re.fullmatch(r"(?:19|20)\d\d", cell)]
    return len(years) == len(cells) > 1 and {abs(a - b) for a, b in pairwise(years)} <= {0, 1}


def padded(cells: Sequence[str], width: int) -> list[str]:
    """Return cells with empty ones added."""
    return [*cells, *[""] * (width - len(cells))]


def filled_rows(sheet: Sheet) -> Iterator[Row]:
    """Yield the rows that are not empty, with the text of merged cells in all their places."""
    starts: dict[tuple[int, int], tuple[int, int]] = {}
    fills: dict[int, dict[int, str]] = {}
    n_filled = 0
    for number, values in sheet.rows:
        while sheet.merged:
            first, last, left, right = sheet.merged.pop()
            starts[first, left] = last, right
            sheet.wide.update([first] * (right > left))
        cells = [unified(value).strip() for value in values]
        for column, text in fills.pop(number, {}).items():
            cells = padded(cells, column + 1)
            cells[column] = cells[column] or text
        for column in [column for column, cell in enumerate(cells) if cell and (number, column) in starts]:
            last, right = starts[number, column]
            n_filled += (last - number + 1) * (right - column + 1)
            if n_filled > MAX_MERGED:
                continue
            cells = padded(cells, right + 1)
            for other in range(column, right + 1):
                cells[other] = cells[other] or cells[column]
                for below in range(number + 1, last + 1):
                    fills.setdefault(below, {})[other] = cells[column]
        if any(cells):
            yield number, cells
