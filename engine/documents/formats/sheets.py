"""Spreadsheets: their rows with the names of their columns, sheet by sheet."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, pairwise, zip_longest

from ..document import Section
from .outline import one_line
from .plain import unified

NUMBER = re.compile(r"\W{0,3}\d[\d.,:/ '-]*\W{0,3}")
MOST_ABOVE = 20  # rows that are looked at for the names of columns
MAX_ROWS = 300_000  # of a table in a text file: each is a section
ROW_GAP = "\n\n"
MAX_MERGED = 200_000  # places that merged cells fill

Row = tuple[int, list[str]]  # its number from 1, and its cells


@dataclass
class Sheet:
    """A sheet: its rows that are not empty, and the rows in which cells are merged across columns."""

    name: str
    rows: list[Row]
    merged_rows: set[int] = field(default_factory=set)
    is_title: bool = False  # lines above a wider table


def sheets_text(sheets: Sequence[Sheet]) -> tuple[str, tuple[Section, ...]]:
    """Return the text of all sheets, and a section for every row: its headings are sheet and number."""
    return joined_rows(
        (Section(0, (sheet.name, f"row {number}") if number else (sheet.name,), is_row=number > 0), text)
        for sheet in sheets
        for number, text in ((0, sheet.name), *chain.from_iterable(map(row_texts, tables_of(sheet))))
    )


def joined_rows(rows: Iterable[tuple[Section, str]]) -> tuple[str, tuple[Section, ...]]:
    """Return the text of rows, a blank line between them, and the section of each at its place."""
    sections, texts, position = [], [], 0
    for section, text in rows:
        sections.append(section._replace(start=position))
        texts.append(text)
        position += len(text) + len(ROW_GAP)
    return ROW_GAP.join(texts), tuple(sections)


def tables_of(sheet: Sheet) -> Iterator[Sheet]:
    """Yield the tables of a sheet: one begins below an empty row, with names of columns below its title."""
    gaps = [n for n, (a, b) in enumerate(pairwise(sheet.rows), 1) if b[0] > a[0] + 1]
    start = 0
    for place, end in pairwise([*gaps, len(sheet.rows)]):
        above, below = (
            replace(sheet, rows=sheet.rows[first : min(last, first + 2 * MOST_ABOVE)])
            for first, last in ((start, place), (place, end))
        )
        if is_another_table(below, above):
            is_title = not has_numbers(above.rows) and width_of(above.rows) < width_of(below.rows)
            yield replace(sheet, rows=sheet.rows[start:place], is_title=is_title)
            start = place
    if sheet.rows:
        yield replace(sheet, rows=sheet.rows[start:])


def is_another_table(block: Sheet, above: Sheet) -> bool:
    """Whether rows below an empty one have names of columns, and those above it, too.

    The row below the names has a number, or a column that has only numbers above has only texts.
    """
    _, place, names = names_of(block)
    if not names or not names_of(above)[2]:
        return False
    body = block.rows[place:]
    before, now = (
        [
            {is_of_texts([cell]) for cell in column if cell.strip()}
            for column in zip_longest(*cells, fillvalue="")
        ]
        for cells in ([row for _, row in above.rows[1:]], [row for _, row in body])
    )
    are_others = len(body) > 1 and ({False}, {True}) in zip(before, now, strict=False)
    return has_numbers(body[:1]) or are_others


def has_numbers(rows: Iterable[Row]) -> bool:
    """Whether a cell of some rows is a number."""
    return not all(is_of_texts(cells) for _, cells in rows)


def width_of(rows: Iterable[Row]) -> int:
    """Return the most cells of a row that are not empty."""
    return max((sum(map(bool, cells)) for _, cells in rows), default=0)


def row_texts(sheet: Sheet) -> Iterator[tuple[int, str]]:
    """Yield number and text of each row: ``column: value`` below the names of columns, cells else."""
    first, place, names = names_of(sheet)
    for index, (number, cells) in enumerate(sheet.rows):
        if index < place:
            if index < first:
                yield number, " | ".join(dict.fromkeys(filter(None, cells)))
            continue
        named = [
            f"{names[column]}: {cell}" if column < len(names) and names[column] else cell
            for column, cell in enumerate(cells)
            if cell
        ]
        yield number, "\n".join(named) if names else " | ".join(filter(None, cells))


def names_of(sheet: Sheet) -> tuple[int, int, list[str]]:
    """Return the places of the first row of names of columns and of that below them, and the names, if any.

    They stand in the first row of several texts, without numbers but years, below lines of a title; where
    cells of it are merged, the names of the next row are added: "Price, Rent".
    """
    rows = sheet.rows
    most = width_of(rows[: 2 * MOST_ABOVE])
    for place, (number, cells) in enumerate(() if sheet.is_title else rows[:MOST_ABOVE]):
        filled = [cell for cell in cells if cell]
        if len(set(filled)) < 2 or 2 * len(filled) < most:
            continue
        is_pair = most == 2 and any(map(str.isdigit, "".join(filled)))  # "Contact | Anna 5"
        numbers = [cell for cell in filled if NUMBER.fullmatch(cell)]
        if is_pair or (numbers and not are_years(numbers)) or place + 1 >= len(rows):
            return 0, 0, []
        names, first, place = cells, place, place + 1
        is_plain = place + 1 < len(rows) and number not in sheet.merged_rows
        if is_plain and (two := names_of_two(names, rows[place][1], rows[place + 1][1])):
            return first, place + 1, [one_line(name) for name in two]
        while number in sheet.merged_rows and place + 1 < len(rows) and is_of_texts(rows[place][1]):
            number, below = rows[place]
            width = max(len(names), len(below))
            pairs = zip(padded(names, width), padded(below, width), strict=True)
            names = [", ".join(dict.fromkeys(filter(None, pair))) for pair in pairs]
            place += 1
        return first, place, [one_line(name) for name in names]
    return 0, 0, []


def names_of_two(names: Sequence[str], below: Sequence[str], values: Sequence[str]) -> list[str]:
    """Return the names of columns in two rows, ``Price, Net``; none where the row below holds values.

    It holds names where it has only texts, above numbers, and fills the gaps of the first row, or is empty
    at its first name, or tells equal names apart.
    """
    if not is_of_texts(below):
        return []
    width = max(len(names), len(below))
    names, below = ([cell.strip() for cell in padded(cells, width)] for cells in (names, below))
    gaps = {place for place, value in enumerate(values[:width]) if value.strip() and not names[place]}
    numbers = {place for place, value in enumerate(values) if not is_of_texts([value]) and value.strip()}
    filled = {place for place, name in enumerate(below) if name}
    is_partly_empty = names[0] and not below[0]
    are_repeated = len(set(filter(None, names))) < sum(map(bool, names))
    if not numbers & filled or not (
        gaps <= filled if gaps else numbers <= filled and (is_partly_empty or are_repeated)
    ):
        return []
    group, found = "", []
    for name, under in zip(names, below, strict=True):
        group = name or group
        found.append(", ".join(filter(None, (group if name or under else "", under))))
    return found


def is_of_texts(cells: Iterable[str]) -> bool:
    """Whether the cells that are not empty hold no numbers."""
    filled = [cell for cell in cells if cell]
    return bool(filled) and not any(NUMBER.fullmatch(cell) for cell in filled)


def are_years(cells: Sequence[str]) -> bool:
    """Whether the cells are years that follow one another, the names of columns."""
    years = [int(cell) for cell in cells if re.fullmatch(r"(?:19|20)\d\d", cell)]
    return len(years) == len(cells) > 1 and {abs(a - b) for a, b in pairwise(years)} <= {0, 1}


def padded(cells: Sequence[str], width: int) -> list[str]:
    """Return cells with empty ones added."""
    return [*cells, *[""] * (width - len(cells))]


def filled_rows(
    rows: Iterable[Row], merged: Sequence[tuple[int, int, int, int]]
) -> tuple[list[Row], set[int]]:
    """Return the rows that are not empty, with the text of merged cells in all their places.

    ``merged`` has the first and last row, and the first and last column, of each, columns from 0. The second
    value is the numbers of rows with cells that are merged across columns.
    """
    starts = {(first, left): (last, right) for first, last, left, right in merged}
    wide = {first for first, _, left, right in merged if right > left}
    fills: dict[int, dict[int, str]] = {}
    n_filled = 0
    found = []
    for number, values in rows:
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
            found.append((number, cells))
    return found, wide
