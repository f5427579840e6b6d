"""CSV files: one document per row."""

import csv
from collections.abc import Iterator
from io import StringIO

from engine.documents.document import Document, Failure
from engine.documents.formats.plain import decode
from engine.errors import DocumentError
from engine.wording import reason_of

DELIMITERS = ",;\t|"  # the one with most columns in the header is used; of equals the first


def read_csv(name: str, content: bytes, column: str | None = None) -> Iterator[Document | Failure]:
    """Yield a document for each row below the header.

    A document is named after its row, counted as in a spreadsheet: the header is row 1, and ``a.csv#2`` the
    first below. Its text has a line ``column: value`` for every cell that is not blank, or only the cell of
    ``column`` if given; rows without text are skipped. The column ``title`` is the title.
    """
    rows = numbered_rows(name, decode(name, content))
    number, header = next(rows)
    header = [title.strip() or f"column {i}" for i, title in enumerate(header, 1)]
    if column is not None and column not in header:
        raise DocumentError(f"{name} has no column {column}: choose one of {', '.join(header)[:300]}")
    titles = [i for i, title in enumerate(header) if title.lower() == "title"]
    for number, row in rows:
        row_name = f"{name}#{number}"
        if len(row) > len(header):
            reason = (
                f"{row_name} has {len(row)} cells where the header has {len(header)}: quote cells with commas"
            )
            yield Failure(row_name, reason)
        elif text := row_text(header, row, column):
            title = row[titles[0]].strip() if titles and titles[0] < len(row) else ""
            yield Document(row_name, text, title)
    if number == 1:
        raise DocumentError(f"{name} has a header and no rows: there is no text to search")


def numbered_rows(name: str, text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows that are not blank, the header included, with their numbers from 1."""
    number, line = 0, 1
    try:
        first_line = text.partition("\n")[0][: csv.field_size_limit()]
        delimiter = max(DELIMITERS, key=lambda mark: len(next(csv.reader([first_line], delimiter=mark), [])))
        # Strict: otherwise an unclosed quote would put the rest of the file into one cell.
        reader = csv.reader(StringIO(text), delimiter=delimiter, strict=True)
        for number, row in enumerate(reader, 1):
            if row:
                yield number, row
            line = reader.line_num + 1
    except csv.Error as error:
        raise DocumentError(
            f"{name} cannot be read from line {line} on, in row {number + 1} ({reason_of(error)}): "
            "fix the quotes there, or give a long text a file of its own"
        ) from error


def row_text(header: list[str], row: list[str], column: str | None) -> str:
    """Return the text of a row: the cell of one column, or all cells with their names."""
    cells = [(title, cell.strip()) for title, cell in zip(header, row, strict=False)]
    if column is not None:
        return dict(reversed(cells)).get(column, "")  # the first of columns with the same name
    return "\n".join(f"{title}: {cell}" for title, cell in cells if cell)
