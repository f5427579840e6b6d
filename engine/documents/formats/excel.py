"""Excel files (.xlsx): the values that a reader sees, row by row (openpyxl)."""

import re
import warnings
from collections import Counter
from collections.abc import Iterator
from html import unescape
from typing import Any

from ...errors import DocumentError
from ...wording import counted
from ..document import Document
from .number_formats import shown
from .office import DRAWING, MOST_TAGS, blocks_of, repacked, stated
from .outline import one_line
from .plain import as_document_error, unified
from .running_lines import PAGE_NUMBER
from .scripts import scripted
from .sheets import Row, Sheet, sheets_text

LONGEST_HEAD = 10_000  # bytes of a sheet before its rows
EMPTY_CELL = re.compile(rb"<(?:x:)?c\b[^>]*\br=[^>]*/>")  # a million of them take long
MERGED = re.compile(rb'<(?:x:)?mergeCell\b[^>]*\bref="([A-Z]+\d+:[A-Z]+\d+)"')
HIDDEN_ROW = re.compile(rb'<(?:x:)?row\b(?=[^>]*\bhidden="(?:1|true)")[^>]*\br="(\d+)"')
HIDDEN_COLUMNS = re.compile(rb'<(?:x:)?col\b(?=[^>]*\bhidden="(?:1|true)")[^>]*>')
UNCOMPUTED = re.compile(rb"<f\b[^>]*(?:/>|>[^<]*</f>)(?:<v\s*/>|<v></v>)?</c>")
PART = rb"(?s)(<r><rPr>(?:(?!</r>).)*<%s/>(?:(?!</r>).)*<t[^>]*>)"
RAISED_PART = re.compile(PART % rb'vertAlign val="superscript"' + rb"(?=[-+\xe2\x88\x92]*\d{1,3}</t>)")
STRUCK_PART = re.compile(PART % b'strike(?: val="(?:1|true)")?' + b"([^<]+)(</t>)")
UNREAD = re.compile(  # of style sheets: newer alternatives, and styles without a name
    rb"(?s)<mc:Choice\b.*?</mc:Choice>|</?mc:(?:AlternateContent|Fallback)\b[^>]*>"
    rb"|<(?:x:)?cellStyle\b(?![^>]*\bname=)[^>]*/>"
)
MARGIN = re.compile(rb"<(?:x:)?(?:odd|even|first)(?:Header|Footer)>([^<]+)<")
CODE, WRITTEN = re.compile(r'&(?:"[^"]*"|K[0-9A-Fa-f]{6}|\d+|[A-Z&])'), {"&P": "1", "&N": "1", "&&": "&"}
LEFT_OUT = {"xl/charts/chart": "chart", "xl/media/": "picture", "xl/embeddings/": "embedded document"}


def read_xlsx(name: str, content: bytes) -> Document:
    """Make a document of a workbook's shown sheets, rows and columns, with the saved values of formulas."""
    import openpyxl

    seen: Counter[str] = Counter()

    def usual(path: str, block: bytes) -> bytes:
        seen["comment"] += path.startswith("xl/comments") and block.count(b"comment ref=")
        if b"<rPr>" in block:
            block = STRUCK_PART.sub(rb"\1~~\2~~\3", RAISED_PART.sub(rb"\1^", block))
        if b"<dimension" not in block[:LONGEST_HEAD]:  # else it is searched for
            block = block.replace(b"<sheetData>", b'<dimension ref="A1"/><sheetData>', 1)
        return EMPTY_CELL.sub(b"", UNREAD.sub(b"", block) if path.endswith("/styles.xml") else block)

    notes: list[str] = []
    errors = as_document_error(f"{name} is no Excel file, or damaged", "save it again as .xlsx")
    with repacked(name, content, usual, MOST_TAGS) as plain, errors, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of styles and extensions
        book = openpyxl.load_workbook(plain, read_only=True, data_only=True)
        visible = (each for each in book.worksheets if each.sheet_state == "visible")
        boxes: list[str] = []
        text, sections = sheets_text(sheet_of(each, notes, boxes) for each in visible)
        hidden = [each.title for each in book.worksheets if each.sheet_state != "visible"]
        boxes += text_boxes(book._archive)
        names = book._archive.namelist()
        seen.update({kind: sum(each.startswith(start) for each in names) for start, kind in LEFT_OUT.items()})
        title, day, tags = stated(plain, book.properties)
    text = "\n\n".join([*filter(None, (text,)), *boxes])
    if hidden:
        notes.append(f"{counted(len(hidden), 'hidden sheet')} left out: {', '.join(hidden)[:100]}")
    notes += [f"{counted(n, kind)} left out" for kind, n in seen.items() if n]
    if not text:
        reason = f"{name} has no text in its sheets: there is nothing to search"
        raise DocumentError("; ".join((reason, *notes)))
    return Document(name, text, title, sections, day, tags, tuple(notes))


def sheet_of(sheet: Any, notes: list[str], boxes: list[str]) -> Sheet:
    """Return a sheet, whose rows are read later; add notes, then and now, and heads and feet to ``boxes``."""
    from openpyxl.utils import range_boundaries

    merged = []
    rows, columns, n_uncomputed = set[int](), set[int](), 0
    for xml in blocks_of(sheet.parent._archive.open(sheet._worksheet_path)):
        for reference in MERGED.findall(xml):
            left, first, right, last = range_boundaries(reference.decode())
            merged.append((first, last, left - 1, right - 1))
        rows |= {int(number) for number in HIDDEN_ROW.findall(xml)}
        for column in HIDDEN_COLUMNS.findall(xml):
            begin, end = (re.search(rb'\b%s="(\d+)"' % each, column) for each in (b"min", b"max"))
            if begin and end:
                columns |= set(range(int(begin[1]) - 1, min(int(end[1]), 16_384)))
        n_uncomputed += len(UNCOMPUTED.findall(xml))
        for part in re.split("&[LCR]", unescape(" &L".join(map(bytes.decode, MARGIN.findall(xml))))):
            line = one_line(CODE.sub(lambda code: WRITTEN.get(code[0], " "), part))
            boxes += [line] if line not in ("", *boxes) and not PAGE_NUMBER.fullmatch(line) else []
    sheet.reset_dimensions()
    if rows:
        notes.append(f"{counted(len(rows), 'hidden row')} of {sheet.title} left out")
    if n_uncomputed:
        formulas = f"{counted(n_uncomputed, 'formula')} of {sheet.title}"
        notes.append(f"{formulas} without a saved value: open and save the file again")
    return Sheet(one_line(sheet.title), shown_rows(sheet, rows, columns, notes), merged)


def shown_rows(sheet: Any, rows: set[int], columns: set[int], notes: list[str]) -> Iterator[Row]:
    """Yield the rows that are not hidden, without the cells of hidden columns; ``~~`` strikes values out."""
    has_struck = any(font.strike for font in sheet.parent._fonts)
    left_out: set[int] = set()
    for number, cells in enumerate(sheet.iter_rows(), 1):
        if number not in rows:
            left_out.update(n for n in columns if n < len(cells) and cells[n].value is not None)
            texts = [""] * len(cells)
            for n, cell in enumerate(cells):
                if cell.value is not None and n not in columns:
                    is_struck = has_struck and cell.font.strike
                    texts[n] = scripted(shown(cell.value, cell.number_format), "", "", is_struck)
            yield number, texts
    if left_out:
        notes.append(f"{counted(len(left_out), 'hidden column')} of {sheet.title} left out")


def text_boxes(archive: Any) -> list[str]:
    """Return the texts of boxes, shapes and diagrams that lie on the sheets."""
    from lxml import etree

    boxes = []
    for path in archive.namelist():
        if path.startswith(("xl/drawings/drawing", "xl/diagrams/data")):
            root = etree.fromstring(archive.read(path), etree.XMLParser(resolve_entities=False))
            for paragraph in root.iter(f"{DRAWING}p"):
                text = "".join(each.text or "" for each in paragraph.iter(f"{DRAWING}t"))
                boxes += [unified(text)] if text.strip() else []
    return boxes
