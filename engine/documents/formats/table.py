"""CSV and TSV files: one document; each row is a section."""

import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import StringIO
from itertools import chain, islice, takewhile, zip_longest
from types import MappingProxyType
from typing import Any

from ...errors import DocumentError
from ...wording import counted, reason_of
from ..document import Document, Failure, Section
from .outline import one_line
from .plain import check_characters, decode
from .sheets import MAX_ROWS, Row, RowsText, is_long, names_below, tables_of

DELIMITERS = "\t;|,"  # of those that part the rows equally well the first: commas stand within cells, too
NO_DELIMITER = "\x1f"  # of a file with one column
SAMPLE_ROWS, SAMPLE_CHARACTERS = 500, 200_000
LEAST_ALIKE = 0.5  # rows of the sample with as many cells as most
SEPARATOR_LINE = re.compile(r'"?sep=(.)"?[,;\t ]*(?:\n|$)', re.IGNORECASE)  # of Excel
DIGITS, WORD_NUMBER = re.compile(r"\d+"), re.compile(r"[^\W\d_]\W*0|0\W*[^\W\d_]|0([-./])0\1+0")
NUMBER = re.compile(r"\D{0,3}\d[\d.,' ]*\D{0,3}")
WHOLE, CENTS = re.compile(r"-?\d{1,9}"), re.compile(r"\d{2}")


def read_csv(name: str, content: bytes, column: str | None = None) -> Iterator[Document | Failure]:
    """Yield a document with a section for each row below the header, and failures of rows.

    Rows are counted as in a spreadsheet: the header is row 1, and the heading of the first below is "row 2",
    and the row's cell ``title`` if it has one. The text of a row has a line ``column: value`` for every cell
    that is not blank, or only the cell of ``column`` if given; rows without text are skipped. Lines above the
    header stand first, and are the title. Cells beyond the header are numbered if most rows have some; else
    the row is a failure. A table below a blank line has a header of its own.
    """
    text = decode(name, content)
    separator = SEPARATOR_LINE.match(text)
    text = text[separator.end() :] if separator else text
    delimiter = separator[1] if separator else delimiter_of(text)
    notes: list[str] = []
    joined, file_title = RowsText(), ""
    rows: list[Row] = []
    for table in tables_of(numbered_rows(name, text, delimiter, quoting_of(text, delimiter))):
        rows += table.head
        if table.is_title:
            continue
        rows += islice(table.rest, SAMPLE_ROWS)
        above, header, body = parts_of_table(name, rows, table.rest, delimiter, notes)
        rows = []
        gap = ", " if delimiter == "," else " "
        lines = [(number, gap.join(filter(None, row))) for number, row in above]
        if not joined.sections:
            file_title = one_line(" ".join(line for _, line in lines))
            if above:
                notes.insert(0, f"{counted(len(above), 'line')} above the header read as the title")
            if column is not None and column not in header:
                raise DocumentError(f"{name} has no column {column}: choose one of {', '.join(header)[:300]}")
        for number, line in lines if column is None else ():
            joined.add(Section(0, (f"row {number}",), is_row=True), line)
        titles = [i for i, title in enumerate(header) if title.lower() == "title"]
        empty = list(range(len(header)))  # columns, so far
        for number, row in body:
            empty = [place for place in empty if not "".join(row[place : place + 1]).strip()]
            if width(row) > len(header) and delimiter == ",":
                row_name = f"{name}#{number}"
                reason = f"has {width(row)} cells where the header has {len(header)}: quote cells with commas"
                yield Failure(row_name, f"{row_name} {reason}")
            elif text := row_text(header, row, column):
                title = one_line(row[titles[0]]) if titles and titles[0] < len(row) else ""
                headings = (f"row {number}", title) if title else (f"row {number}",)
                joined.add(Section(0, headings, is_row=True), text)
                check_characters(name, len(joined), len(content))
            if len(joined.sections) > MAX_ROWS:
                raise DocumentError(f"{name} has more than {MAX_ROWS:,} rows: split it")
        names = [header[place] for place in empty if header[place] != f"column {place + 1}"]
        if names and column is None:
            notes.append(f"{counted(len(names), 'column')} without values: {', '.join(names)[:300]}")
    if sections := tuple(joined.sections):
        yield Document(name, str(joined), file_title, sections, notes=tuple(dict.fromkeys(notes)))


def parts_of_table(
    name: str, rows: Sequence[Row], rest: Iterable[Row], delimiter: str, notes: list[str]
) -> tuple[Sequence[Row], list[str], Iterable[Row]]:
    """Return the lines above the header, the names of columns, and the rows; add notes of what was judged.

    ``rest`` is the rows below the first.
    """
    sample = rows[:SAMPLE_ROWS]
    place = header_place(sample)
    if place + 2 < len(sample) and sample[0][1] == [*map(str, range(width(sample[0][1])))]:
        below = header_place(sample[1:]) + 1
        names = [*filter(None, sample[below][1])]
        if 2 * len(names) > width(sample[0][1]) and not any(map(NUMBER.fullmatch, names)):
            notes.append("the first row, which numbers the columns, left out")
            sample, rows, place = sample[1:], rows[1:], below - 1
    above, body = rows[:place], rows[place + 1 :]
    if is_numbered(sample[place:]):
        body = rows[place:]
        header = [""] * usual_width(sample[place:])
        notes.append("the columns have no names: the first row is data, too")
    elif not body:
        raise DocumentError(f"{name} has a header and no rows: there is no text to search")
    else:
        header = list(rows[place][1])
    header, n_more = names_below(header, body)
    body = body[n_more:]
    few = body[:SAMPLE_ROWS]
    decimals = decimals_place(few, len(header)) if delimiter == "," else None
    if decimals is not None:
        notes.append(f"commas between two columns read as decimal commas of {header[decimals]}")
        halves = slice(decimals, decimals + 2)
        whole = chain(body, rest)
        joined = ((n, [*row[:decimals], ",".join(row[halves]), *row[decimals + 2 :]]) for n, row in whole)
        return above, header, joined
    if 2 * sum(width(row) > len(header) for _, row in few) > len(few):
        n_unnamed = max(usual_width(few) - len(header), 1)
        notes.append(f"{counted(n_unnamed, 'column')} without a name in the header")
        header += [""] * n_unnamed
    return above, [one_line(title) or f"column {i}" for i, title in enumerate(header, 1)], chain(body, rest)


def delimiter_of(text: str) -> str:
    """Return the delimiter by which most rows have as many cells as the others."""
    shares = {mark: share_alike(text[:SAMPLE_CHARACTERS], mark) for mark in DELIMITERS}
    best = max(DELIMITERS, key=lambda mark: shares[mark])
    return best if shares[best] >= LEAST_ALIKE else NO_DELIMITER


def share_alike(text: str, delimiter: str) -> float:
    """Return the share of rows with the most frequent number of cells, or with that of a row next to them.

    It is 0 where that is one cell.
    """
    widths: list[int] = []
    try:
        for row in islice(
            csv.reader(StringIO(text), delimiter=delimiter, skipinitialspace=True), SAMPLE_ROWS
        ):
            widths += [len(row)] if row else []
    except csv.Error:
        pass  # of a long cell: the rows before it tell
    if not widths:
        return 0.0
    n_cells, n_rows = max(Counter(widths).items(), key=lambda item: (item[1], item[0]))
    n_beside = sum(
        each > 1 and each in (before, after)
        for before, each, after in zip([0, *widths], widths, [*widths[1:], 0], strict=False)
    )
    return max(n_rows if n_cells > 1 else 0, n_beside) / len(widths)


def quoting_of(text: str, delimiter: str) -> Mapping[str, Any]:
    """Return how the first rows are quoted: with doubled quotes, backslashes, or in TSV not at all."""
    sample = text[:SAMPLE_CHARACTERS]
    mark = re.escape(delimiter)
    if re.search(rf"^(?:[^\n\"]*{mark})?'[^'\n]*{mark}[^'\n]*'(?:{mark}|$)", sample, re.MULTILINE):
        return {"quotechar": "'"}
    ways: list[Mapping[str, Any]] = [{}]
    if '\\"' in sample:
        ways.append({"escapechar": "\\", "doublequote": False})
    if delimiter == "\t":
        ways.append({"quoting": csv.QUOTE_NONE})
    for way in ways:
        try:
            for _ in csv.reader(
                StringIO(sample), delimiter=delimiter, strict=True, skipinitialspace=True, **way
            ):
                pass
        except csv.Error as error:
            if len(text) > len(sample) and "end of data" in str(error):
                return way  # a quote that the sample cuts
        else:
            return way
    return {}


def decimals_place(body: Sequence[Row], n_columns: int) -> int | None:
    """Return the column whose decimal commas part all rows: ``Lamp,12,50``; None if there is none."""
    rows = [row for _, row in body if width(row) > 1]
    if not rows or any(width(row) != n_columns + 1 for row in rows):
        return None
    for place in range(1, n_columns):  # the first may be a number of the row, without a name
        if all(
            WHOLE.fullmatch(row[place].strip()) and CENTS.fullmatch(row[place + 1].strip()) for row in rows
        ):
            return place
    return None


def header_place(sample: Sequence[Row]) -> int:
    """Return the place of the header among the first rows: below the lines of a title.

    These are parted from it by a blank line, or have at most half as many cells as the rows below it. A
    single name above two columns, one of numbers, may be the header itself.
    """
    most = usual_width(sample)
    widths = [width(row) for _, row in sample]
    n_narrow = len(list(takewhile(lambda each: 2 * each <= most, widths)))
    n_above = len(list(takewhile(lambda each: each < most, widths)))
    place = n_narrow if n_narrow < len(sample) else 0
    for i in range(1, min(n_above + 1, len(sample))):
        if sample[i][0] > sample[i - 1][0] + 1:
            place = max(place, i)
    is_data = place > 0 and any(NUMBER.fullmatch(cell.strip()) for cell in sample[place][1])
    return 0 if most == 2 and is_data else place


def is_numbered(rows: Sequence[Row]) -> bool:
    """Whether the first row is data: one cell is a number, as in all rows below, and not a year.

    Several numbers may be names of columns, as sizes are, but for one in the first cell. A cell is data, too,
    if all below are the same but for a number: ``table 4``, ``table 7``; or if it is a long text.
    """
    if is_long(rows[0][1]):
        return True
    first = [cell.strip() for cell in rows[0][1]]
    columns = zip_longest(*(row for _, row in rows), fillvalue="")
    alike = ({DIGITS.sub("0", cell.strip().lower()) for cell in column} for column in columns)
    if len(rows) > 2 and any(len(own) == 1 and WORD_NUMBER.search(min(own)) for own in alike):
        return True
    places = [place for place, cell in enumerate(first) if WHOLE.fullmatch(cell)]
    if (
        len(rows) < 2
        or not places
        or (places[0] and len(places) > 1)
        or 1900 <= int(first[places[0]]) <= 2100
    ):
        return False
    return all(len(row) > places[0] and WHOLE.fullmatch(row[places[0]].strip()) for _, row in rows)


def width(row: Sequence[str]) -> int:
    """Return the number of cells up to the last that is not blank."""
    return max((i for i, cell in enumerate(row, 1) if cell.strip()), default=0)


def usual_width(rows: Sequence[Row]) -> int:
    """Return the width of the rows that have most cells in all."""
    widths = Counter(width(row) for _, row in rows)
    return max(widths, key=lambda each: (widths[each] * each, each), default=0)


def numbered_rows(
    name: str, text: str, delimiter: str, quoting: Mapping[str, Any] = MappingProxyType({})
) -> Iterator[Row]:
    """Yield the rows that are not blank, the header included, with their numbers from 1."""
    number, line = 0, 1
    try:
        # Strict: otherwise an unclosed quote would put the rest of the file into one cell.
        reader = csv.reader(
            StringIO(text), delimiter=delimiter, strict=True, skipinitialspace=True, **quoting
        )
        for number, row in enumerate(reader, 1):
            if any(map(str.strip, row)):
                yield number, row
            line = reader.line_num + 1
    except csv.Error as error:
        raise DocumentError(
            f"{name} cannot be read from line {line} on, in row {number + 1} ({reason_of(error)}): "
            "fix the quotes there, or give a long text a file of its own"
        ) from error


def row_text(header: list[str], row: list[str], column: str | None) -> str:
    """Return the text of a row: the cell of one column, or all cells with their names."""
    beyond = (f"column {place}" for place in range(len(header) + 1, len(row) + 1))
    cells = [(title, cell.strip()) for title, cell in zip([*header, *beyond], row, strict=False)]
    if column is not None:
        return dict(reversed(cells)).get(column, "")  # the first of columns with the same name
    return "\n".join(f"{title}: {cell}" for title, cell in cells if cell)
