"""What became of a table in reading: rows and their twins, rows of heads, or lines without columns."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Sequence

from ...documents.document import Document
from ...documents.sentences import CELL_GAP, lines_around
from ...retrieval.evidence import has_digit, is_above_numbers, is_row_of_heads
from .location import Location
from .wordings import differing

GAP = re.compile(r"\t+| {2,}")  # between the cells of a line
SENTENCE_END = re.compile(r"[.!?:;。！？]\W*$")
MOST_CELL_WORDS, FEWEST_CELLS = 3, 6  # of a line that is one cell, and cells below one another
FEWEST_LINES = 3  # of a table
IN_HEADS = 0.8  # of the words of a passage, for it to be the names of columns
SCATTERED = 1000  # characters between which the cells of one row may be scattered
MOST_ROW_WORDS = 16  # of a row that is looked for cell by cell
MOST_DIFFERENT, FEWEST_SHARED = 2, 3  # words of each, in which twins may differ, and that they share


def flattened(document: Document, place: Location) -> str:
    """Return in which way the table around a passage was read without its columns; empty where it was not."""
    if document.row_at(place.start) is not None:
        return ""
    text = document.text
    start, end = text.rfind("\n\n", 0, place.start) + 1, text.find("\n\n", place.end)
    lines = text[start : None if end < 0 else end].split("\n")  # of the paragraph around the passage
    first = text.count("\n", start, place.start)
    n_lines = text.count("\n", place.start, place.end) + 1
    own = [line for line in lines[first : first + n_lines] if line.strip()]
    if any(CELL_GAP in line or SENTENCE_END.search(line) for line in own) or not own:
        return ""
    kinds: dict[str, Callable[[str], int]] = {
        "its columns are only blanks": lambda line: len(GAP.split(line.strip())),
        "its cells stand in a line without columns": n_cells_of_numbers,
    }
    for words, count in kinds.items():
        n_cells = max(map(count, own))
        alike = [line for line in lines if abs(count(line) - n_cells) <= 1 and not SENTENCE_END.search(line)]
        if n_cells >= FEWEST_LINES and len(alike) >= FEWEST_LINES and count(own[0]) > 1:
            return words
    cells = run_of_cells(lines, first)
    if len(cells) >= FEWEST_CELLS and sum(n_numbers(cell) > 0 for cell in cells) > 1:
        return "each of its cells is a line"
    return ""


def n_cells_of_numbers(line: str) -> int:
    """Return the cells of a line by its numbers, with one for its name; 1 for a line of words mostly."""
    n = n_numbers(line)
    return n + 1 if 3 * n >= len(line.split()) else 1


def n_numbers(line: str) -> int:
    """Return how many words of a line begin with a digit."""
    return sum(word[:1].isdigit() for word in line.split())


def run_of_cells(lines: Sequence[str], at: int) -> list[str]:
    """Return the lines around one that hold a few words each and end no sentence."""

    def is_cell(line: str) -> bool:
        return 0 < len(line.split()) <= MOST_CELL_WORDS and not SENTENCE_END.search(line)

    first, last = at, at
    while first > 0 and is_cell(lines[first - 1]):
        first -= 1
    while last < len(lines) and is_cell(lines[last]):
        last += 1
    return list(lines[first:last])


def scattered(passage: str, documents: Sequence[Document]) -> Location | None:
    """Find a row whose cells a document holds near one another in another order; None where none does."""
    wanted = {word.lower() for word in re.findall(r"\w+", passage)}
    if not 1 < len(wanted) <= MOST_ROW_WORDS or not any(word[0].isdigit() for word in wanted):
        return None
    for document in documents:
        places = [
            (match.start(), match.end(), word)
            for match in re.finditer(r"\w+", document.text.lower())
            if (word := match.group()) in wanted
        ]
        if (span := first_window(places, wanted)) is not None:
            place = Location(document.name, *span, "approximate", 0.0)
            return place if flattened(document, place) else None
    return None


def first_window(places: Sequence[tuple[int, int, str]], wanted: Collection[str]) -> tuple[int, int] | None:
    """Return the first start and end, at most `SCATTERED` apart, between which all words stand, in order."""
    counts: Counter[str] = Counter()
    last = 0
    for number, (start, _, own) in enumerate(places):
        while last < len(places) and len(counts) < len(wanted) and places[last][1] <= start + SCATTERED:
            counts[places[last][2]] += 1
            last += 1
        if len(counts) == len(wanted):
            return start, places[last - 1][1]
        if last == number:  # a word longer than the window
            last += 1
            continue
        counts[own] -= 1
        if not counts[own]:
            del counts[own]
    return None


def cells_of(row: str) -> list[tuple[str, str]]:
    """Return the names of columns and the cells of a row as it is read from a table's file."""
    lines = (line.partition(": ") for line in row.split("\n") if ": " in line)
    return [(name, cell) for name, _, cell in lines]


def rows_of(document: Document) -> list[str]:
    """Return the texts of all rows of a document."""
    spans = (document.row_at(section.start) for section in document.sections if section.is_row)
    return [document.text[slice(*span)] for span in spans if span is not None]


def is_head(row: str, others: Sequence[str]) -> bool:
    """Whether a row reads as names of columns: its own names, or no digit where most rows have one."""
    cells = cells_of(row)
    if 2 * sum(name.lower() == cell.lower() for name, cell in cells) >= max(1, len(cells)):
        return True
    if has_digit(" ".join(cell for _, cell in cells)) or 2 * sum(map(has_digit, others)) <= len(others):
        return False
    numeric: dict[str, list[bool]] = {}
    for other in others:
        for name, cell in cells_of(other):
            numeric.setdefault(name, []).append(has_digit(cell))
    n_odd = sum(2 * sum(numeric[name]) > len(numeric[name]) for name, _ in cells if name in numeric)
    return n_odd >= min(2, len(cells)) or any(name.lower() in cell.lower() for name, cell in cells)


def took_head(document: Document, start: int, end: int) -> bool:
    """Whether a span of a document stands in names of columns: of a table in a text, or of a row."""
    text = document.text
    if (row := document.row_at(start)) is not None:
        line_end = text.find(": ", start, text.find("\n", start) if "\n" in text[start:] else None)
        before = text[text.rfind("\n", 0, start) + 1 : start]
        return (line_end >= end and ": " not in before) or is_head(text[slice(*row)], rows_of(document))
    first, last = lines_around(text, start, end)
    return is_row_of_heads(text, last) or is_above_numbers(text, first, last)


def heads_place(passage: str, documents: Sequence[Document]) -> Location | None:
    """Return the first row of a table that took the words of a passage for the names of its columns."""
    wanted = {word.lower() for word in re.findall(r"\w+", passage)}
    for document in documents:
        first = next((document.row_at(each.start) for each in document.sections if each.is_row), None)
        if first is None:
            continue
        cells = cells_of(document.text[slice(*first)])
        names, values = (
            {word.lower() for each in own for word in re.findall(r"\w+", each)}
            for own in ([name for name, _ in cells], [cell for _, cell in cells])
        )
        headers = wanted & names
        if len(headers) >= IN_HEADS * len(wanted) and len(headers) > len(wanted & values):
            return Location(document.name, *first, "approximate", len(headers) / len(wanted))
    return None


def is_twin(one: str, other: str, answers: Sequence[str]) -> bool:
    """Whether two rows (or sentences) differ in a word or two, numbers and ``answers`` of the first aside."""
    cells = cells_of(one), cells_of(other)
    are_rows = bool(cells[0]) and [name for name, _ in cells[0]] == [name for name, _ in cells[1]]
    if are_rows:
        one, other = ("\n".join(cell for _, cell in own) for own in cells)
    first, second, n_shared = differing(one, other, answers)
    n_more = max((len(answer.split()) for answer in answers), default=0)  # the other's own answer
    is_close = len(first) <= MOST_DIFFERENT and len(second) <= MOST_DIFFERENT + n_more
    fewest = 1 if are_rows else max(FEWEST_SHARED, len(second) + 1)
    return is_close and n_shared >= max(fewest, len(first) + (not are_rows))
