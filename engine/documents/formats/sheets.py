"""Spreadsheets: their rows with the names of their columns, sheet by sheet."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise

from ..document import Section
from .outline import one_line
from .plain import unified

NUMBER = re.compile(r"\W{0,3}\d[\d.,:/ '-]*\W{0,3}")
MOST_ABOVE = 20  # rows that are looked at for the names of columns
MAX_ROWS = 100_000  # of a table in a text file: each is a section
ROW_GAP = "\n\n"
MAX_MERGED = 200_000  # places that merged cells fill

Row = tuple[int, list[str]]  # its number from 1, and its cells


@dataclass
class Sheet:
    """A sheet: its rows that are not empty, and the rows in which cells are merged across columns."""

    name: str
    rows: list[Row]
    merged_rows: set[int] = field(default_factory=set)


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
    """Yield the tables of a sheet: one begins with a row of names below an empty row."""
    start = 0
    for place in range(1, len(sheet.rows) - 1):
        (above, _), (number, cells), (_, below) = sheet.rows[place - 1 : place + 2]
        is_head = number > above + 1 and is_of_texts(cells) and not is_of_texts(below)
        if is_head and len(set(filter(None, cells))) > 1 and names_of(Sheet("", sheet.rows[start:place]))[1]:
            yield Sheet(sheet.name, sheet.rows[start:place], sheet.merged_rows)
            start = place
    yield Sheet(sheet.name, sheet.rows[start:], sheet.merged_rows)


def row_texts(sheet: Sheet) -> Iterator[tuple[int, str]]:
    """Yield number and text of each row: ``column: value`` below the names of columns, cells else."""
    place, names = names_of(sheet)
    for index, (number, cells) in enumerate(sheet.rows):
        if index < place:
            if not names or index < place - n_rows_of_names(sheet, place):
                yield number, " | ".join(dict.fromkeys(filter(None, cells)))
            continue
        named = [
            f"{names[column]}: {cell}" if column < len(names) and names[column] else cell
            for column, cell in enumerate(cells)
            if cell
        ]
        yield number, "\n".join(named) if names else " | ".join(filter(None, cells))


def names_of(sheet: Sheet) -> tuple[int, list[str]]:
    """Return the place of the first row below the names of columns, and the names; none without such a row.

    They stand in the first row of several texts, without numbers but years, below lines of a title; where
    cells of it are merged, the names of the next row are added: "Price, Rent".
    """
    rows = sheet.rows
    most = max((sum(map(bool, cells)) for _, cells in rows[: 2 * MOST_ABOVE]), default=0)
    for place, (number, cells) in enumerate(rows[:MOST_ABOVE]):
        filled = [cell for cell in cells if cell]
        if len(set(filled)) < 2 or 2 * len(filled) < most:
            continue
        is_pair = most == 2 and any(map(str.isdigit, "".join(filled)))  # "Contact | Anna 5"
        numbers = [cell for cell in filled if NUMBER.fullmatch(cell)]
        if is_pair or (numbers and not are_years(numbers)) or place + 1 >= len(rows):
            return 0, []
        names, place = cells, place + 1
        while number in sheet.merged_rows and place + 1 < len(rows) and is_of_texts(rows[place][1]):
            number, below = rows[place]
            width = max(len(names), len(below))
            pairs = zip(padded(names, width), padded(below, width), strict=True)
            names = [", ".join(dict.fromkeys(filter(None, pair))) for pair in pairs]
            place += 1
        return place, [one_line(name) for name in names]
    return 0, []


def n_rows_of_names(sheet: Sheet, place: int) -> int:
    """Return how many rows before ``place`` hold the names of columns."""
    n = 1
    while place - n > 0 and sheet.rows[place - n - 1][0] in sheet.merged_rows:
        if len(set(filter(None, sheet.rows[place - n - 1][1]))) < 2:
            break
        n += 1
    return n


def is_of_texts(cells: Iterable[str]) -> bool:
    """Whether the cells that are not empty hold no numbers."""
    filled = [cell for cell in cells if cell]
    return bool(filled) and not any(NUMBER.fullmatch(cell) for cell in filled)


def are_years(cells: Sequence[str]) -> bool:
    """Whether the cells are years that follow one another, the names of columns."""
    years = [int(cell) for cell in cells if re.fullmatch(r"(?:19|20)\d\d", cell)]
    return len(years) == len(cells) > 1 and {abs(a - b) for a, b in pairwise(years)} == {1}


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
