"""Text of a tagged PDF's page: paragraphs and the cells of tables as the structure tree of the file has them.

ISO 32000-1, 14.7 and 14.8: pieces of a page's content have numbers (marked content), which stand in a tree of
elements. What has none (heads and feet, values of form fields) is read at its place.
"""

import ctypes
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import chain, islice, pairwise, repeat
from typing import Any

from .from_right import around
from .pdf_grids import Rules, with_grids
from .pdf_layout import gap_between, page_text
from .pdf_letters import Box, by_address, string_of
from .pdf_lines import CELL_GAP, Segment, boxes_of, lines_of, whole_of
from .pdf_tables import cells_of

MAX_CONTENTS = 50_000  # of the tree of a page
MAX_UNITS = 2000  # of a page, which are compared
MAX_COLUMNS, MAX_PLACES = 100, 50_000  # of a table, or rows of a cell, and places of cells in a table
LONGEST_CELL = 300  # characters: a longer one is of a page that a table lays out
MOST_LOOSE = 0.2  # texts between the first and the last tagged one, for each of these
OVERLAP = 0.5  # times the height of letters, of lines one below the other
# Elements that are one paragraph, whatever stands between their parts, as a footnote may; and other blocks.
NOTE, PARAGRAPH = re.compile("(FE)?Note"), re.compile("P|H[1-6]?|Title|LI|Caption|TOCI|(FE)?Note")
GROUP = re.compile("T[DH]|Document|Part|Art|Sect|Div|BlockQuote|L|TOC|Index|Aside|Table|T(Head|Body|Foot)")


@dataclass(eq=False)
class Table:
    """A table of a page while its rows are found."""

    n_rows: int = 0
    taken: set[tuple[int, int]] = field(default_factory=set)  # rows and columns
    holds_tables: bool = False


@dataclass(frozen=True)
class Cell:
    """The place of a cell in its table."""

    table: Table
    rows: range
    columns: range


@dataclass(eq=False)
class Block:
    """A paragraph, or what stands between paragraphs in an element of others, and the cell that holds it."""

    kind: str
    cell: Cell | None


@dataclass(frozen=True)
class Tags:
    """What tells the place of a character in the tree, and its block; and the size of the tree."""

    find: Callable[[int], tuple[int, Block] | None]
    n_children: int  # of the elements of the page, on whatever pages they are

    def block_of(self, place: int) -> Block | None:
        """Return the block of a character."""
        found = self.find(place)
        return found and found[1]


Unit = dict[Cell | None, list[Segment]]  # a paragraph, or the cells of a table


def tags_of(page: Any, text: Any) -> Tags | None:
    """Return the tags of a page's characters; None without a structure tree."""
    import pypdfium2.raw as pdfium

    if not (tree := pdfium.FPDF_StructTree_GetForPage(page)):
        return None
    n_roots = pdfium.FPDF_StructTree_CountChildren(tree)
    roots = (pdfium.FPDF_StructTree_GetChildAtIndex(tree, n) for n in range(n_roots))
    addresses = filter(None, (ctypes.cast(root, ctypes.c_void_p).value for root in roots))
    seen: dict[int, int] = {}
    contents = chain.from_iterable(contents_of(each, Block("", None), None, seen) for each in addresses)
    found: dict[int, tuple[int, Block]] = {}
    parts: dict[Block, Block] = {}  # the last part of each element of others
    last: Block | None = None
    for place, (number, block) in enumerate(islice(contents, MAX_CONTENTS)):
        if block is not last and not PARAGRAPH.fullmatch(block.kind):
            parts[block] = replace(block)
        found[number] = place, parts.get(block, block)
        last = block
    pdfium.FPDF_StructTree_Close(tree)
    characters = text.raw

    @cache
    def find(place: int) -> tuple[int, Block] | None:
        thing = pdfium.FPDFText_GetTextObject(characters, place) if place >= 0 else None
        return found.get(pdfium.FPDFPageObj_GetMarkedContentID(thing)) if thing else None

    return Tags(find, sum(seen.values())) if found else None


def contents_of(
    address: int, block: Block, table: Table | None, seen: dict[int, int]
) -> Iterator[tuple[int, Block]]:
    """Yield the numbers of the content in an element, in its order, and the block of each.

    The elements that are looked at, and their numbers of children, are added to ``seen``.
    """
    import pypdfium2.raw as pdfium

    element = ctypes.cast(address, pdfium.FPDF_STRUCTELEMENT)
    kind = string_of(pdfium.FPDF_StructElement_GetType, element)
    if kind == "Table":
        if block.cell:
            block.cell.table.holds_tables = True
        table = Table()
    if kind == "TR" and table:
        table.n_rows += 1
    if PARAGRAPH.fullmatch(kind) or GROUP.fullmatch(kind):
        block = Block(block.kind if NOTE.fullmatch(block.kind) else kind, block.cell)
    seen[address] = pdfium.FPDF_StructElement_CountChildren(element)
    types = ctypes.c_void_p, ctypes.c_int
    child_at = by_address("FPDF_StructElement_GetChildAtIndex", *types, returns=ctypes.c_void_p)
    number_at = by_address("FPDF_StructElement_GetChildMarkedContentID", *types)
    places = range(seen[address])
    column = 0
    children, numbers = (map(each, repeat(address), places) for each in (child_at, number_at))
    for child, number in zip(children, numbers, strict=True):
        inner = block
        is_cell = kind == "TR" and column <= MAX_COLUMNS and (child or number < 0)  # also one without content
        if is_cell and table:
            cell = cell_of(child, table, column)
            inner, column = Block(block.kind, cell), cell.columns.stop
        if child and child not in seen:
            yield from contents_of(child, inner, table, seen)
        elif number >= 0:
            yield number, block


def cell_of(address: int | None, table: Table, column: int) -> Cell:
    """Return the next cell of the last row of a table, in the first columns that no cell above takes."""
    row = table.n_rows - 1
    while (row, column) in table.taken:
        column += 1
    spans = map(partial(span_of, address), (b"RowSpan", b"ColSpan"))
    n_rows, n_columns = spans if address and len(table.taken) < MAX_PLACES else (1, 1)
    cell = Cell(table, range(row, row + n_rows), range(column, column + n_columns))
    table.taken |= {(each, place) for each in cell.rows for place in cell.columns}
    return cell


def span_of(address: int | None, name: bytes) -> int:
    """Return how many rows or columns a cell takes."""
    import pypdfium2.raw as pdfium

    span = ctypes.c_float(1)
    element = ctypes.cast(address or 0, pdfium.FPDF_STRUCTELEMENT)
    for n in range(pdfium.FPDF_StructElement_GetAttributeCount(element)):
        attribute = pdfium.FPDF_StructElement_GetAttributeAtIndex(element, n)
        if value := pdfium.FPDF_StructElement_Attr_GetValue(attribute, name):
            pdfium.FPDF_StructElement_Attr_GetNumberValue(value, span)
    return int(min(max(span.value, 1), MAX_COLUMNS))


def tagged_text(segments: Sequence[Segment], tags: Tags, rules: Rules) -> str | None:
    """Return the text of a page in the order of its tags; None where these leave much of it out.

    What stands below something in its columns is read behind it; footnotes follow all other text.
    """
    places = {id(each): found for each in segments if (found := tags.find(each.place))}
    tagged = [each for each in segments if id(each) in places]
    tagged.sort(key=lambda each: (places[id(each)][0], each.place))
    blocks: dict[Block, list[Segment]] = defaultdict(list)
    for each in tagged:
        blocks[places[id(each)][1]].append(each)
    if not tagged:
        return None
    _, bottom, _, top = around(boxes_of(tagged))
    loose = [each for each in segments if id(each) not in places]
    inner = [each for each in loose if bottom <= each.middle <= top]
    if sum(each.place >= 0 for each in inner) > MOST_LOOSE * len(tagged):
        return None
    for each in inner:
        blocks[nearest(each, blocks)].append(each)
    units, notes, tables = list[Unit](), list[Unit](), dict[Table, Unit]()
    for block, own in blocks.items():
        if block.cell is None or block.cell.table.holds_tables:
            parts = downwards(own) if PARAGRAPH.fullmatch(block.kind) else [own]
            (notes if NOTE.fullmatch(block.kind) else units).extend({None: part} for part in parts)
            continue
        if block.cell.table not in tables:
            units.append(tables.setdefault(block.cell.table, {}))
        tables[block.cell.table].setdefault(block.cell, []).extend(own)
    if len(units) + len(notes) > MAX_UNITS:
        return None
    runs = chain(*(with_numbers(runs_of(in_order(chain(*map(parts_of, each))))) for each in (units, notes)))
    head, foot = (
        [each for each in loose if each.middle > top],
        [each for each in loose if each.middle < bottom],
    )
    whole = ""
    texts = (page_text(head, ()), *(text_of(run, rules) for run in runs), page_text(foot, ()))
    for text in filter(None, texts):
        whole += gap_between(whole, text) + text
    return whole


def downwards(block: Sequence[Segment]) -> Iterator[list[Segment]]:
    """Yield the parts of a block that run downwards, as one in each column of a page."""
    starts = [n for n, (above, each) in enumerate(pairwise(block), 1) if each.bottom > above.top]
    yield from (list(block[start:end]) for start, end in pairwise([0, *starts, len(block)]))


def nearest(segment: Segment, blocks: Mapping[Block, Sequence[Segment]]) -> Block:
    """Return the block of the text that stands nearest to a segment, on its line if some does."""

    def distance(other: Segment) -> tuple[float, float]:
        above = max(other.bottom - segment.middle, segment.middle - other.top, 0.0)
        return above, max(other.left - segment.right, segment.left - other.right)

    return min(blocks, key=lambda block: min(map(distance, blocks[block])))


def parts_of(unit: Unit) -> Iterator[Unit]:
    """Yield a paragraph, or a table, or, of a table that lays out a page, each of its cells."""
    if None in unit:
        yield unit
        return
    rows, columns = {cell.rows for cell in unit if cell}, {cell.columns for cell in unit if cell}
    are_long = any(sum(len(each.text) for each in cell) > LONGEST_CELL for cell in unit.values())
    is_row = len(rows) < 2 and any(len(lines_of(cell)) > 1 for cell in unit.values())
    places = Counter((row, column) for cell in unit if cell for row in cell.rows for column in cell.columns)
    is_wrong = max(places.values()) > 1 or any(each.stop > MAX_COLUMNS for each in columns)
    if not (len(columns) < 2 or are_long or is_row or is_wrong):
        yield unit
        return
    for cell in unit.values():
        for part in downwards(cell):
            yield {None: part}


def box_of(unit: Unit) -> Box:
    """Return the box around the middles of a unit's lines."""
    return around((each.left, each.middle, each.right, each.middle) for each in chain(*unit.values()))


def in_order(units: Iterable[Unit]) -> list[tuple[Box, Unit]]:
    """Return units and their boxes, each before the first that stands below it in the same columns."""
    placed: list[tuple[Box, Unit]] = []
    lowest = math.inf
    for unit in units:
        box = left, bottom, right, _ = box_of(unit)
        are_below = (top < bottom and west < right and left < east for (west, _, east, top), _ in placed)
        n = next((n for n, is_below in enumerate(are_below) if is_below), None) if lowest < bottom else None
        placed.insert(len(placed) if n is None else n, (box, unit))
        lowest = min(lowest, box[3])
    return placed


def runs_of(units: Iterable[tuple[Box, Unit]]) -> Iterator[Unit]:
    """Yield units, as one those paragraphs that stand one below the other or side by side on one line."""
    run: list[Segment] = []
    around_run = before = (math.inf, math.inf, -math.inf, math.inf)  # boxes of the run, and of its last part
    for box, unit in units:
        left, bottom, right, top = box
        first = next(iter(unit.values()))[0]
        is_level = max(before[3], top) - min(before[1], bottom) < OVERLAP * (first.top - first.bottom)
        is_below = top < around_run[1] and left < around_run[2] and around_run[0] < right
        if run and not (None in unit and (is_level or is_below)):
            yield {None: run}
            run = []
        if None in unit:
            around_run, before = around((around_run, box)) if run else box, box
            run = [*run, *unit[None]]
        else:
            yield unit
    if run:
        yield {None: run}


def with_numbers(runs: Iterable[Unit]) -> Iterator[Unit]:
    """Yield runs, as one those of lines and of numbers beside them, as in a table of contents."""
    last: Unit = {None: []}
    for run in runs:
        before, own = last.get(None, []), run.get(None, [])
        are_numbers = 2 * sum(each.text.isdecimal() for each in own) > max(len(own), 2)
        if before and are_numbers and len(lines_of([*before, *own])) == len(lines_of(before)):
            last = {None: [*before, *own]}
        else:
            yield last
            last = run
    yield last


def text_of(unit: Unit, rules: Rules) -> str:
    """Return the text of paragraphs, or of a table row by row, merged cells in all their places."""
    if None in unit:
        run = [replace(each, place=n) for n, each in enumerate(unit[None])]
        return page_text(with_grids(run, rules), rules.horizontal)
    rows = [*rows_of(unit)]
    ruled = with_grids([*chain(*unit.values())], rules)
    n_lines = sum(2 * len({*map(id, filter(None, row))}) <= len(row) for row in rows)  # taken for rows
    if len(ruled) == 1 and 0 < len(rows) - 1 - ruled[0].text.count("\n") <= n_lines:
        return ruled[0].text
    return "\n".join(CELL_GAP.join(each.text if each else "" for each in row) for row in rows)


def rows_of(unit: Unit) -> Iterator[Sequence[Segment | None]]:
    """Yield the rows of a table with a text for every column, merged cells in all their places.

    Browsers leave cells without text out of the tree: where a row has fewer, its cells' places tell.
    """
    rows: dict[int, dict[int, Segment]] = defaultdict(dict)
    n_columns = max(cell.columns.stop for cell in unit if cell)
    for cell, segments in unit.items():
        if cell:
            whole = whole_of(chain(*lines_of(segments)))
            for number in range(cell.rows.start, min(cell.rows.stop, cell.table.n_rows)):
                rows[number] |= dict.fromkeys(cell.columns, whole)
    full = [row for row in rows.values() if len({*map(id, row.values())}) == n_columns]
    columns = [
        (min(row[n].left for row in full), max(row[n].right for row in full))
        for n in range(n_columns if full else 0)
    ]
    for row in rows.values():
        cells = [*{id(cell): cell for cell in row.values()}.values()]
        if len(row) == n_columns:
            yield cells if len(cells) == 1 else [row[n] for n in range(n_columns)]
        else:
            yield cells_of(cells, columns) if full else [row.get(n) for n in range(n_columns)]
