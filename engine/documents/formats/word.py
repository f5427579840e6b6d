"""Word files (.docx): paragraphs, headings and tables, in their order (python-docx)."""

from collections import deque
from collections.abc import Iterator
from io import BytesIO
from typing import Any
from zipfile import ZipFile

from engine.documents.document import Document
from engine.documents.formats.archive import open_archive, read_member
from engine.documents.formats.metadata import date_of, tags_of
from engine.documents.formats.outline import Block, bounded, join_blocks, one_line
from engine.documents.formats.plain import unified
from engine.errors import DocumentError
from engine.wording import reason_of

WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
PARAGRAPH, TABLE = f"{WORD}p", f"{WORD}tbl"
MARKS = {f"{WORD}tab": "\t", f"{WORD}br": "\n", f"{WORD}cr": "\n", f"{WORD}noBreakHyphen": "-"}
# A book of 1000 pages has some 30,000 paragraphs and a million tags; python-docx takes seconds for them.
MAX_PARAGRAPHS, MAX_TAGS, MAX_STYLES = 300_000, 3_000_000, 10_000
# Deleted text, and copies of text boxes for old versions of Word.
UNSEEN = (
    f"{WORD}del",
    f"{WORD}moveFrom",
    "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback",
)


def read_docx(name: str, content: bytes) -> Document:
    """Make a document from a Word file's body; headings have the styles ``Heading 1`` to ``Heading 9``.

    A table row is a line of cells separated by `` | ``. Tracked insertions are read, tracked deletions not.
    Headers, footers, notes and comments are left out; Word stores no page numbers.
    """
    import docx
    from lxml import etree

    plain = repacked(name, content)
    try:
        document = docx.Document(plain)
        styles = bounded(name, document.styles, MAX_STYLES, "styles")
        levels = {}
        for style in styles:  # python-docx gives built-in styles English names
            kind, _, number = (style.name or "").partition(" ")
            levels[style.style_id] = int(number) if kind == "Heading" and number in list("123456789") else 0
        body = document.element.body
        etree.strip_elements(body, *UNSEEN, with_tail=False)
        paragraphs = bounded(name, body.iter(PARAGRAPH), MAX_PARAGRAPHS, "paragraphs")
        deque(paragraphs, maxlen=0)  # before any is read
        text, sections = join_blocks(body_blocks(body, levels))
        about = document.core_properties
        title, day, tags = about.title, date_of(about.modified or about.created), tags_of(about.keywords)
    except DocumentError:
        raise
    except Exception as error:  # of any kind: python-docx does not check the parts of a file
        raise DocumentError(
            f"{name} is no Word file, or damaged ({reason_of(error)}): save it again as .docx"
        ) from error
    if not text.strip():
        raise DocumentError(f"{name} is empty: there is no text to search")
    return Document(name, text, one_line(unified(title)), sections, day, tags)


def repacked(name: str, content: bytes) -> BytesIO:
    """Return the archive with its members unpacked within limits, which python-docx does not check."""
    plain, n_tags = BytesIO(), 0
    with open_archive(name, content) as archive, ZipFile(plain, "w") as copy:
        for info in {info.filename: info for info in archive.infolist()}.values():  # the last of equal names
            if not info.filename.endswith("/"):
                try:
                    member = read_member(archive, info)
                except DocumentError as error:
                    raise DocumentError(f"{name}/{error}") from error
                copy.writestr(info.filename, member)
                n_tags += member.count(b"<")
                if n_tags > MAX_TAGS:
                    raise DocumentError(f"{name} has over {MAX_TAGS} tags, the most that are read: split it")
    return plain


def body_blocks(body: Any, levels: dict[str, int]) -> Iterator[Block]:
    """Yield the paragraphs and table rows below an element, including those in content controls."""
    for element in nearest(body, PARAGRAPH, TABLE):
        if element.tag == TABLE:
            yield from table_rows(element)
        elif (text := paragraph_text(element)).strip():
            yield Block(text, levels.get(element.style or "", 0))


def table_rows(table: Any) -> Iterator[Block]:
    """Yield the rows of a table; a nested table is part of its cell."""
    gap = "\n\n"
    for row in nearest(table, f"{WORD}tr"):
        cells = [
            " ".join(map(paragraph_text, nearest(cell, PARAGRAPH))) for cell in nearest(row, f"{WORD}tc")
        ]
        if any(cell.strip() for cell in cells):
            yield Block(" | ".join(map(one_line, cells)), 0, gap)
            gap = "\n"


def nearest(element: Any, *tags: str) -> Iterator[Any]:
    """Yield the outermost elements with these tags below an element.

    The recursion is limited since libxml2 refuses files nested deeper than 256.
    """
    for child in element:
        if child.tag in tags:
            yield child
        else:
            yield from nearest(child, *tags)


def paragraph_text(paragraph: Any) -> str:
    """Return the text of a paragraph, including links, insertions and text boxes."""
    pieces = (
        MARKS.get(element.tag) or element.text or ""
        for element in paragraph.iter(f"{WORD}t", *MARKS)
        if element.getparent().tag == f"{WORD}r"  # tab stops of a style have the same tag as tabs
    )
    return unified("".join(pieces))
