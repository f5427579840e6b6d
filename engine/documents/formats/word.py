"""Word files (.docx): all that a reader sees, in its order (python-docx opens them).

mammoth, tried on the same files, leaves out equations and the results of fields, reads hidden text, and knows
neither outline levels nor the numbers of clauses.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ...errors import DocumentError
from ..document import Document
from .equations import EQUATION, linear_text
from .office import DRAWING, FALLBACK, OFFICE, Children, Growing, nearest, notes_on, repacked, stated
from .outline import Block, bounded, check_number, join_blocks, one_line
from .plain import as_document_error, unified
from .running_lines import PAGE_NUMBER
from .scripts import scripted
from .symbols import PRIVATE, symbol
from .word_numbers import WORD, Numbering, Place, attribute, place_of

RELATION = f"{{{OFFICE}/officeDocument/2006/relationships}}id"
PARAGRAPH, TABLE, ROW, CELL, RUN = (f"{WORD}{name}" for name in ("p", "tbl", "tr", "tc", "r"))
PARTS = (PARAGRAPH, ROW, f"{WORD}sectPr", f"{WORD}altChunk")  # of the text, each of which is read at once
BODY, LONGEST_HEAD = re.compile(rb"<(\w+:|)body[\s>]"), 20_000  # bytes before it
PARAGRAPHS = re.compile(rb"<(?:\w+:)?p[\s>/]")
TEXT_BOX, PROPERTIES, RUN_PROPERTIES = f"{WORD}txbxContent", f"{WORD}pPr", f"{WORD}rPr"
MARKS = dict(
    zip((f"{WORD}{tag}" for tag in ("tab", "ptab", "br", "cr", "noBreakHyphen")), "\t\t\n\n-", strict=True)
)
MOVED = {"-": "subscript", **dict.fromkeys("123456789", "superscript")}  # by the sign of a distance
NOTES = {f"{WORD}footnoteReference": "footnotes", f"{WORD}endnoteReference": "endnotes"}
PICTURES = {f"{WORD}drawing", f"{WORD}pict", f"{WORD}object"}
# A book of 1000 pages has some 30,000 paragraphs, tables of 20 MB some 700,000 cells.
MAX_PARAGRAPHS, MAX_STYLES = 1_000_000, 10_000
# Deleted text, and copies of text boxes for old versions of Word.
UNSEEN = (f"{WORD}del", f"{WORD}moveFrom", FALLBACK)
# Templates, and files with macros, differ in this name.
DOCUMENT_TYPE = b"application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
OTHER_TYPES = re.compile(
    rb"application/vnd\.(?:ms-word\.(?:document|template)\.macroEnabled(?:Template)?\.main"
    rb"|openxmlformats-officedocument\.wordprocessingml\.template\.main)\+xml"
)


@dataclass(frozen=True)
class Style:
    """A style with what it has of those it is based on."""

    name: str = ""
    level: int = 0  # of a heading, from 1
    place: Place | None = None  # in a list
    is_hidden: bool = False
    script: str = ""  # "superscript" or "subscript"


@dataclass
class Reading:
    """What is known of a file while it is read, and what was left out or read in another place."""

    styles: dict[str, Style]
    numbering: Numbering
    notes: dict[str, dict[str, Any]]  # footnotes and endnotes by their ids
    usual_style: str  # of paragraphs that state none, by its id
    seen: Counter[str] = field(default_factory=Counter)  # left out, by kind
    waiting: list[tuple[str, Any]] = field(default_factory=list)  # footnotes, and text boxes, of a paragraph
    endnotes: list[tuple[str, Any]] = field(default_factory=list)
    marks: dict[str, int] = field(default_factory=Counter)  # the last number of each kind of note
    pages: list[Any] = field(default_factory=list)  # the properties of sections, with heads and feet
    title: str = ""  # the first paragraph in the style of titles
    n_tables: int = 0  # around the present paragraph: footnotes stand below the outermost


def read_docx(name: str, content: bytes) -> Document:
    """Make a document from a Word file; headings are paragraphs with an outline level.

    A table row is a line of cells separated by `` | ``. Footnotes and text boxes stand below their paragraph,
    endnotes at the end, equations as `linear_text` writes them. Tracked insertions are read, tracked
    deletions and hidden text not. Word stores no page numbers.
    """
    import docx

    bodies: Counter[str] = Counter()  # paragraphs of texts

    def usual(path: str, block: bytes) -> bytes:
        """Leave out the text, which is read by itself: a tree of it would take all memory."""
        start = None if path in bodies else BODY.search(block, 0, LONGEST_HEAD)
        if start or path in bodies:
            bodies[path] += len(PARAGRAPHS.findall(block))
            return block[: start.start()] + b"<%bbody/></%bdocument>" % (2 * (start[1],)) if start else b""
        return OTHER_TYPES.sub(DOCUMENT_TYPE, block) if path == "[Content_Types].xml" else block

    with as_document_error(f"{name} is no Word file, or damaged", "save it again as .docx"):
        document = docx.Document(plain := repacked(name, content, usual))
        path = document.part.partname[1:]
        check_number(name, bodies[path], MAX_PARAGRAPHS, "paragraphs")
        styles = styles_of(bounded(name, document.styles.element.iter(f"{WORD}style"), MAX_STYLES, "styles"))
        parts = {
            kind: related(document.part, kind) for kind in ("numbering", "footnotes", "endnotes", "comments")
        }
        places = {key: style.place for key, style in styles.items() if style.place}
        notes = {kind: notes_of(parts[kind]) for kind in ("footnotes", "endnotes")}
        default = document.styles.element.xpath(
            'string(w:style[@w:default="1"][@w:type="paragraph"]/@w:styleId)'
        )
        reading = Reading(styles, Numbering(parts["numbering"], places), notes, default)
        for element in (*notes["footnotes"].values(), *notes["endnotes"].values()):
            accept_changes(element)
        grown = Growing(name, content, path, f"{WORD}document", PARTS)
        main = list(body_blocks(grown.body, reading, partial(seen_children, grown, reading)))
        ends = [block for number, note in reading.endnotes for block in note_blocks(number, note, reading)]
        title, day, tags = stated(plain, document.core_properties)
        title = title or one_line(unified(reading.title))
        heads, feet = (list(margin_blocks(document.part, kind, reading)) for kind in ("header", "footer"))
        text, sections = join_blocks([*heads, *main, *ends, *feet])
        reading.seen["comment"] = 0 if parts["comments"] is None else len(parts["comments"])
    told = notes_on(reading.seen)
    if not text.strip():
        raise DocumentError("; ".join((f"{name} is empty: there is no text to search", *told)))
    return Document(name, text, title, sections, day, tags, told)


def related(part: Any, kind: str) -> Any:
    """Return the root of the part of a kind that belongs to a part, None if there is none."""
    from docx.oxml import parse_xml

    for relation in part.rels.values():
        if relation.reltype.endswith(f"/{kind}") and not relation.is_external:
            return parse_xml(relation.target_part.blob)
    return None


def styles_of(elements: Iterable[Any]) -> dict[str, Style]:
    """Return all styles by their ids, each with what it inherits."""
    by_id = {element.get(f"{WORD}styleId"): element for element in elements}
    found: dict[str, Style] = {}
    for key in by_id:
        chain: list[str] = []  # from the style to the one that all are based on
        while key in by_id and key not in chain and key not in found:
            chain.append(key)
            key = attribute(by_id[key], "basedOn")
        style = found.get(key, Style())
        for each in reversed(chain):
            found[each] = style = style_of(by_id[each], style)
    return found


def style_of(element: Any, base: Style) -> Style:
    """Return a style, which has what it does not state itself from the one it is based on."""
    name = attribute(element, "name").lower()
    kind, _, number = name.partition(" ")
    level = level_in(element.find(PROPERTIES), base.level)
    if kind == "heading" and number in list("123456789") and not attribute(element, "pPr/outlineLvl"):
        level = int(number)
    place = place_of(element.find(PROPERTIES))
    if place and base.place and not place.number_id:  # only the level
        place = Place(base.place.number_id, place.level)
    is_hidden = is_on(element.find(RUN_PROPERTIES), "vanish", base.is_hidden)
    script = attribute(element, "rPr/vertAlign") or base.script
    return Style(name, level, place or base.place, is_hidden, script)


def level_in(properties: Any, base: int) -> int:
    """Return the level of a heading, from 1, that properties state; 0 for body text."""
    stated = attribute(properties, "outlineLvl")
    if not stated.isdecimal():
        return base
    return int(stated) + 1 if int(stated) < 9 else 0


def is_on(properties: Any, name: str, default: bool = False) -> bool:
    """Return whether a property is switched on, as it is where no value is given."""
    found = properties.find(f"{WORD}{name}") if properties is not None else None
    return default if found is None else found.get(f"{WORD}val", "true") in ("1", "true", "on")


def notes_of(part: Any) -> dict[str, Any]:
    """Return footnotes or endnotes by their ids, without the lines that separate them from the text."""
    notes = [] if part is None else part
    return {note.get(f"{WORD}id"): note for note in notes if note.get(f"{WORD}type", "normal") == "normal"}


def accept_changes(element: Any) -> None:
    """Take out tracked deletions; a paragraph whose end is deleted is joined with the next."""
    from lxml import etree

    for mark in [
        *element.iterfind(f".//{WORD}trPr/{WORD}del"),
        *element.iterfind(f".//{WORD}tcPr/{WORD}cellDel"),
    ]:
        gone = mark.getparent().getparent()
        if gone.getparent() is not None:
            gone.getparent().remove(gone)
    for kind in ("del", "moveFrom"):
        for mark in element.iterfind(f".//{PROPERTIES}/{RUN_PROPERTIES}/{WORD}{kind}"):
            mark.getparent().getparent().getparent().set("joined", "1")
    etree.strip_elements(element, *UNSEEN, with_tail=False)


def seen_children(grown: Growing, reading: Reading, element: Any) -> Iterator[Any]:
    """Yield the children of an element of the text that are seen; keep what states heads and feet."""
    for child in grown.children(element):
        if child.tag in PARTS:
            accept_changes(child)
            reading.seen["embedded document"] += len(list(child.iter(f"{WORD}altChunk", f"{WORD}subDoc")))
            reading.pages += child.iter(f"{WORD}sectPr")
        if child.tag not in (*UNSEEN, *PARTS[2:]) and child.getparent() is not None:
            yield child


def margin_blocks(part: Any, kind: str, reading: Reading) -> Iterator[Block]:
    """Yield the heads (or feet) of pages, each once and without page numbers."""
    found: dict[str, None] = {}
    stated: dict[str, str] = {}  # by kinds of pages, which the next section has, too
    shown: dict[str, None] = {}
    for section in reading.pages:
        references = section.iterfind(f"{WORD}{kind}Reference")
        stated |= {each.get(f"{WORD}type"): each.get(RELATION) for each in references}
        shown |= {key: None for of, key in stated.items() if of != "first" or is_on(section, "titlePg")}
    for relation in map(part.rels.get, shown):
        if relation is not None and not relation.is_external:
            accept_changes(relation.target_part.element)
            blocks = body_blocks(relation.target_part.element, reading)
            found |= dict.fromkeys(block.text for block in blocks)
    yield from (Block(text) for text in found if not PAGE_NUMBER.fullmatch(one_line(text)))


def body_blocks(body: Any, reading: Reading, children: Children = iter) -> Iterator[Block]:
    """Yield the paragraphs and table rows below an element, including those in content controls."""
    joined = ""
    for element in nearest(body, PARAGRAPH, TABLE, children=children):
        if element.tag == TABLE:
            reading.n_tables += 1
            yield from table_rows(element, reading, children)
            reading.n_tables -= 1
        else:
            text = joined + paragraph_text(element, reading)
            joined = text if element.get("joined") else ""
            if text.strip() and not joined:
                style = reading.styles.get(attribute(element, "pPr/pStyle", reading.usual_style), Style())
                reading.title = reading.title or (text if style.name == "title" else "")
                yield Block(text, level_in(element.find(PROPERTIES), style.level))
        yield from waiting_blocks(reading)
    if joined.strip():
        yield Block(joined)


def waiting_blocks(reading: Reading) -> Iterator[Block]:
    """Yield the text boxes and footnotes met since the last call, each as blocks of its own."""
    boxes = [each for each in reading.waiting if not each[0]]
    notes = [each for each in reading.waiting if each[0]]
    reading.waiting = notes if reading.n_tables else []
    for mark, element in [*boxes, *([] if reading.n_tables else notes)]:
        yield from note_blocks(mark, element, reading)


def note_blocks(mark: str, element: Any, reading: Reading) -> Iterator[Block]:
    """Yield the blocks of a text box, or of a note after its mark; none of them is a heading."""
    for block in body_blocks(element, reading):
        yield Block(f"{mark} {block.text.strip()}" if mark else block.text, 0, block.gap)
        mark = ""


def table_rows(table: Any, reading: Reading, children: Children) -> Iterator[Block]:
    """Yield the rows of a table; nested tables are part of a cell, merged cells stand in all places."""
    gap = "\n\n"
    above: dict[int, str] = {}  # the texts of the columns of the row before
    for row in nearest(table, ROW, children=children):
        cells: dict[int, str] = {}
        n_written = 0
        column = int(attribute(row, "trPr/gridBefore", "0"))
        for cell in nearest(row, CELL):
            about = cell.find(f"{WORD}tcPr")
            merged = about.find(f"{WORD}vMerge") if about is not None else None
            text = " ".join(one_line(block.text) for block in body_blocks(cell, reading))
            text = text.replace(" | ", ", ")  # of a table within the cell
            if merged is not None and merged.get(f"{WORD}val") != "restart":
                text = text or above.get(column, "")
            span = attribute(about, "gridSpan", "1")
            width = min(int(span), 100) if span.isdecimal() else 1
            cells |= dict.fromkeys(range(column, column + width), text)
            column += width
            n_written += 1
        above = cells
        if any(cells.values()):
            shown = list(cells.values())[: None if n_written > 1 else 1]  # a head over the whole table
            yield Block(" | ".join(shown), 0, gap)
            gap = "\n"


def paragraph_text(paragraph: Any, reading: Reading) -> str:
    """Return the text of a paragraph after its number, including links and insertions."""
    properties = paragraph.find(PROPERTIES)
    key = attribute(paragraph, "pPr/pStyle", reading.usual_style)
    style = reading.styles.get(key, Style())
    text = unified("".join(pieces(paragraph, reading, style.is_hidden)))
    own = place_of(properties)
    if own and style.place and not own.number_id:
        own = Place(style.place.number_id, own.level)
    is_empty = not text.strip()  # but counted
    mark = paragraph.find(f"{PROPERTIES}/{RUN_PROPERTIES}")
    if is_empty and (paragraph.get("joined") or is_on(mark, "vanish", style.is_hidden)):
        return text
    number = reading.numbering.next(own or style.place, key)
    if is_empty:
        return number if reading.n_tables and any(map(str.isalnum, number)) else text
    return f"{number} {text.lstrip()}" if number else text


def pieces(element: Any, reading: Reading, hidden: bool = False) -> Iterator[str]:
    """Yield the pieces of text within a paragraph, and keep notes and text boxes for later."""
    before = ""  # the end of the text so far
    for child in element:
        if child.tag == RUN:
            text = "".join(run_pieces(child, reading, hidden))
            about = child.find(RUN_PROPERTIES)
            is_struck = is_on(about, "strike") or is_on(about, "dstrike")
            style = reading.styles.get(attribute(about, "rStyle"), Style())
            place = attribute(about, "vertAlign") or MOVED.get(attribute(about, "position")[:1], style.script)
            text = scripted(text, before, place, is_struck)
        elif child.tag == EQUATION:
            text = " ".join(linear_text(child).split())
            text = f" {text}" if before[-1:].isalnum() and text[:1].isalnum() else text
            reading.seen["equation"] += not text
        elif child.tag in (PROPERTIES, f"{WORD}sdtPr"):
            continue
        else:
            text = "".join(pieces(child, reading, hidden))
        before = (before + text)[-20:]
        yield text


def run_pieces(run: Any, reading: Reading, hidden: bool) -> Iterator[str]:
    """Yield the texts of a run; a hidden one has none."""
    about = run.find(RUN_PROPERTIES)
    style = reading.styles.get(attribute(about, "rStyle"), Style())
    if is_on(about, "vanish", hidden or style.is_hidden):
        reading.seen["hidden"] += any(each.text for each in run.iter(f"{WORD}t"))
        return
    fonts = about.find(f"{WORD}rFonts") if about is not None else None
    font = fonts.get(f"{WORD}ascii", "") if fonts is not None else ""
    for child in run:
        if child.tag == f"{WORD}t":
            yield plain_text(child.text or "", font, reading)
        elif child.tag in MARKS:
            yield MARKS[child.tag]
        elif child.tag == f"{WORD}sym":
            yield symbol_of(int(child.get(f"{WORD}char", "0"), 16), child.get(f"{WORD}font", ""), reading)
        elif child.tag in NOTES:
            yield note_mark(child, NOTES[child.tag], reading)
        elif child.tag == f"{WORD}instrText":
            reading.seen["equation"] += (child.text or "").lstrip().startswith("EQ ")  # of old versions
        elif child.tag == f"{WORD}fldChar":
            yield form_field(child)
        elif child.tag == f"{WORD}ruby":
            parts = (child.iterfind(f"{WORD}{part}//{WORD}t") for part in ("rubyBase", "rt"))
            base, above = ("".join(t.text or "" for t in each) for each in parts)
            yield f"{base}({above})" if above else base
        else:
            collect_boxes(child, reading)


def plain_text(text: str, font: str, reading: Reading) -> str:
    """Return a text, with the signs for characters of fonts of symbols."""
    if font and any(PRIVATE <= ord(sign) < PRIVATE + 256 for sign in text):
        return "".join(
            symbol_of(ord(s), font, reading) if PRIVATE <= ord(s) < PRIVATE + 256 else s for s in text
        )
    return text


def symbol_of(code: int, font: str, reading: Reading) -> str:
    """Return the sign of a code in a font of symbols; one that is not known is counted."""
    sign = symbol(code, font)
    reading.seen["symbol"] += not sign
    return sign


def note_mark(reference: Any, kind: str, reading: Reading) -> str:
    """Return the mark of a footnote or endnote in the text, and keep the note for its place."""
    note = reading.notes[kind].get(reference.get(f"{WORD}id"))
    if note is None:
        return ""
    reading.marks[kind] += 1
    mark = f"[^{'e' * (kind == 'endnotes')}{reading.marks[kind]}]"
    (reading.waiting if kind == "footnotes" else reading.endnotes).append((mark, note))
    return mark


def form_field(character: Any) -> str:
    """Return the state of a box, or the choice of a list, in a form of old versions of Word."""
    box = character.find(f"{WORD}ffData/{WORD}checkBox")
    if box is not None:
        return "☒" if is_on(box, "checked", is_on(box, "default")) else "☐"
    choices = character.find(f"{WORD}ffData/{WORD}ddList")
    entries = [each.get(f"{WORD}val", "") for each in character.iter(f"{WORD}listEntry")]
    chosen = attribute(choices, "result", "0")
    return entries[int(chosen)] if chosen.isdecimal() and int(chosen) < len(entries) else ""


def collect_boxes(element: Any, reading: Reading) -> None:
    """Keep the text boxes in a drawing for after the paragraph; count pictures, charts and diagrams."""
    boxes = [element] if element.tag == TEXT_BOX else list(nearest(element, TEXT_BOX))
    reading.waiting += [("", box) for box in boxes]
    if boxes:
        return
    for data in element.iter(f"{DRAWING}graphicData"):
        kind = data.get("uri", "").rpartition("/")[2]
        reading.seen[kind if kind in ("chart", "diagram") else "picture"] += 1
    if element.tag in PICTURES and element.find(f".//{DRAWING}graphicData") is None:
        is_equation = any("Equation" in each.get("ProgID", "") for each in element.iter())
        reading.seen["equation" if is_equation else "picture"] += 1
