"""Files of LibreOffice (.odt, .ods, .odp): text, sheets and slides, from their content.xml."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from ...errors import DocumentError
from ...wording import counted
from ..document import Document, Section
from .archive import open_archive, read_member
from .metadata import date_of, tags_of
from .office import MAX_TAGS, MOST_UNPACKED, Children, Growing, nearest, notes_on
from .outline import Block, check_number, join_blocks, join_slides, one_line
from .plain import as_document_error, unified
from .running_lines import PAGE_NUMBER
from .scripts import scripted
from .sheets import Row, Sheet, filled_rows, sheets_text
from .word_numbers import formatted

NAMESPACE = "urn:oasis:names:tc:opendocument:xmlns:"
TEXT, TABLE, DRAW, OFFICE, STYLE = (
    f"{{{NAMESPACE}{name}:1.0}}" for name in ("text", "table", "drawing", "office", "style")
)
FORM = f"{{{NAMESPACE}form:1.0}}"
PRESENTATION = f"{{{NAMESPACE}presentation:1.0}}"
FEET = ("footer", "date-time")  # of slides, stated before these
MATH, XLINK = "{http://www.w3.org/1998/Math/MathML}", "{http://www.w3.org/1999/xlink}href"
KINDS = "frame custom-shape rect ellipse circle line connector path polygon polyline caption"
SHAPES = tuple(f"{DRAW}{kind}" for kind in KINDS.split())
FIELD, FIELDS = f"{DRAW}control", f"{OFFICE}forms"
STATES = ("current-state", "current-selected", "state", "selected")  # of boxes, each before its default
BLOCKS = (f"{TEXT}h", f"{TEXT}p", f"{TEXT}list", f"{TABLE}table", *SHAPES)
CONTENTS = tuple(f"{OFFICE}{kind}" for kind in ("spreadsheet", "presentation", "text"))
FORMS = {"1": "decimal", "a": "lowerLetter", "A": "upperLetter", "i": "lowerRoman", "I": "upperRoman"}
UNSEEN = (f"{TEXT}tracked-changes", f"{OFFICE}annotation", f"{TEXT}hidden-paragraph", f"{TEXT}hidden-text")
SHEET = (FIELDS, *(f"{TABLE}{name}" for name in ("shapes", "table-column", "table-row")))
SLIDES = (f"{DRAW}page", *(f"{PRESENTATION}{kind}-decl" for kind in FEET))
PARTS = (*BLOCKS[:3], *BLOCKS[4:], *UNSEEN, *SHEET, *SLIDES)
UNSEEN_ROWS = ("collapse", "filter")  # and columns
VALUES = ("string-value", "date-value", "time-value", "boolean-value", "value")  # of cells without a text
MAX_REPEATED = 1000  # cells or rows; more are empty ones up to the edge of the sheet
MAX_ROWS = 1_000_000


@dataclass
class Reading:
    """What is known of a file while it is read, and what was left out."""

    styles: dict[str, Any]  # of paragraphs and letters, by name
    lists: dict[str, Any]
    equations: dict[str, str]  # by the path of their objects
    seen: Counter[str] = field(default_factory=Counter)
    fields: dict[str, str] = field(default_factory=dict)  # what those of forms show, by id
    boxes: list[str] = field(default_factory=list)  # over the cells of sheets
    around: dict[str | None, Any] = field(default_factory=dict)  # masters and feet of slides, by name
    counts: dict[tuple[str, int], int] = field(default_factory=dict)  # of items, by style and depth
    waiting: list[tuple[str, Any]] = field(default_factory=list)  # footnotes and text boxes of a paragraph


def read_opendocument(name: str, content: bytes) -> Document:
    """Make a document from a text, a workbook or a presentation."""
    from lxml import etree

    parser = etree.XMLParser(resolve_entities=False, no_network=True)
    with open_archive(name, content, MOST_UNPACKED) as archive:
        infos = {info.filename: info for info in archive.infolist()}
        ending = name.rpartition(".")[2]
        with as_document_error(f"{name} is no OpenDocument file, or damaged", f"save it again as .{ending}"):
            manifest = read_member(archive, infos["META-INF/manifest.xml"])
            if b"encryption-data" in manifest:
                raise DocumentError(f"{name} is encrypted: save a copy without a password")
            others = (infos.get(path) for path in ("styles.xml", "meta.xml"))
            parts = [read_member(archive, info) if info else b"<none/>" for info in others]
            check_number(name, sum(part.count(b"<") for part in parts), MAX_TAGS, "tags")
            styles, about = (etree.fromstring(part, parser) for part in parts)
            equations = {
                path.removesuffix("/content.xml"): equation_of(
                    etree.fromstring(read_member(archive, info), parser)
                )
                for path, info in infos.items()
                if path.endswith("/content.xml") and info.file_size < 1_000_000
            }
            main = Growing(name, content, "content.xml", f"{OFFICE}body", PARTS)
            return opened(main, name, styles, about, equations)


def opened(main: Growing, name: str, stated: Any, about: Any, equations: dict[str, str]) -> Document:
    """Return the document of a file's main part and the others: styles, and what it states of itself."""
    roots = main.body.getparent(), stated
    styles = {each.get(f"{STYLE}name"): each for root in roots for each in root.iter(f"{STYLE}style")}
    lists = {each.get(f"{STYLE}name"): each for root in roots for each in root.iter(f"{TEXT}list-style")}
    reading = Reading(styles, lists, equations)
    notes: list[str] = []
    content = next(each for each in main.children(main.body) if each.tag in CONTENTS)
    if content.tag == CONTENTS[0]:
        tables = (each for each in main.children(content) if each.tag == f"{TABLE}table")
        shown = (each for each in tables if is_shown(each, reading))
        text, sections = sheets_text(sheet_of(each, reading, main.children) for each in shown)
        text = "\n\n".join(filter(None, (text, *reading.boxes)))
        if hidden := reading.seen["hidden sheet"]:
            notes.append(f"{counted(hidden, 'hidden sheet')} left out")
    elif content.tag == CONTENTS[1]:
        reading.around = {each.get(f"{STYLE}name"): each for each in stated.iter(f"{STYLE}master-page")}
        slides = (each for each in main.children(content) if each.tag in SLIDES)
        text, sections = slides_text(slides, reading)
    else:
        heads, feet = (margin_blocks(stated, kind, reading) for kind in ("header", "footer"))
        text, sections = join_blocks(chain(heads, blocks_of(content, reading, main.children), feet))
    notes += notes_on(reading.seen)
    if not text.strip():
        raise DocumentError("; ".join((f"{name} is empty: there is no text to search", *notes)))
    names = [(each.tag.rpartition("}")[2], each.text or "") for each in about.iter("{*}*")]
    texts, keywords = dict(names), [text for name, text in names if name == "keyword"]
    day = date_of(texts.get("date", "")[:10] or texts.get("creation-date", "")[:10])
    title = one_line(unified(texts.get("title", "")))
    return Document(name, text, title, sections, day, tags_of(keywords), tuple(notes))


def equation_of(root: Any) -> str:
    """Return an equation as it was typed, which stands next to its MathML; empty for other objects."""
    if not root.tag.startswith(MATH):
        return ""
    typed = root.find(f".//{MATH}annotation")
    return " ".join(((typed.text if typed is not None else "") or "".join(root.itertext())).split())


def properties(element: Any, kind: str, of: str, reading: Reading) -> Any:
    """Return the properties of an element's style, by their names."""
    style = reading.styles.get(element.get(f"{of}style-name"))
    found = style.find(f"{STYLE}{kind}-properties") if style is not None else None
    return {} if found is None else found


def is_shown(table: Any, reading: Reading) -> bool:
    """Whether a sheet is shown; one that is not is counted."""
    is_hidden = properties(table, "table", TABLE, reading).get(f"{TABLE}display") == "false"
    reading.seen["hidden sheet"] += is_hidden
    return not is_hidden


def sheet_of(table: Any, reading: Reading, children: Children = iter) -> Sheet:
    """Return a sheet, whose rows are read later, with the texts of its cells as they are shown."""
    merged: list[tuple[int, int, int, int]] = []

    def rows() -> Iterator[Row]:
        number, n_columns = 1, 0
        hidden, left_out = set[int](), set[int]()  # columns
        for row in nearest(table, *SHEET, children=children):
            if row.tag in SHEET[:2]:
                reading.boxes += (block.text for block in blocks_of([row], reading))
                continue
            if row.tag == f"{TABLE}table-column":
                first, repeated = n_columns, int(row.get(f"{TABLE}number-columns-repeated", "1"))
                n_columns += min(repeated, MAX_REPEATED)
                hidden |= set(range(first, n_columns) if row.get(f"{TABLE}visibility") in UNSEEN_ROWS else ())
                continue
            times = int(row.get(f"{TABLE}number-rows-repeated", "1"))
            cells: list[str] = []
            for cell in row:
                repeated = int(cell.get(f"{TABLE}number-columns-repeated", "1"))
                text = "\n".join(filter(None, (block.text for block in blocks_of(cell, reading))))
                text = text or next(filter(None, (cell.get(f"{OFFICE}{value}") for value in VALUES)), "")
                across = int(cell.get(f"{TABLE}number-columns-spanned", "1"))
                down = int(cell.get(f"{TABLE}number-rows-spanned", "1"))
                if across * down > 1:
                    merged.append((number, number + down - 1, len(cells), len(cells) + across - 1))
                cells += [text] * min(repeated, MAX_REPEATED)
            if row.get(f"{TABLE}visibility") in UNSEEN_ROWS:
                reading.seen["hidden row"] += min(times, MAX_ROWS)
            elif any(cells):
                left_out.update(n for n in hidden if n < len(cells) and cells[n])
                cells = ["" if n in hidden else cell for n, cell in enumerate(cells)]
                yield from ((number + each, cells) for each in range(min(times, MAX_REPEATED)))
            number += min(times, MAX_ROWS)
        reading.seen["hidden column"] += len(left_out)

    return Sheet(one_line(table.get(f"{TABLE}name", "")), rows(), merged)


def slides_text(slides: Iterable[Any], reading: Reading) -> tuple[str, tuple[Section, ...]]:
    """Return the text of all slides, and a section for each, under its title."""
    found: list[tuple[int, str, str]] = []
    number = 0
    for slide in slides:
        if slide.tag in SLIDES[1:]:
            reading.around[slide.get(f"{PRESENTATION}name")] = slide.text or ""
            continue
        number += 1
        about = properties(slide, "drawing-page", DRAW, reading)
        if about.get(f"{PRESENTATION}visibility") == "hidden":
            reading.seen["hidden slide"] += 1
            continue
        frames = [each for each in slide if each.tag in (*BLOCKS, FIELD, FIELDS, f"{DRAW}g")]
        frames.sort(key=lambda each: each.get(f"{PRESENTATION}class") != "title")
        texts = ["\n".join(block.text for block in blocks_of([each], reading)) for each in frames]
        head = one_line(texts[0]) if frames and frames[0].get(f"{PRESENTATION}class") == "title" else ""
        if about.get(f"{PRESENTATION}background-objects-visible") != "false":  # said once
            master = reading.around.pop(slide.get(f"{DRAW}master-page-name"), ())
            own = [each for each in master if f"{PRESENTATION}class" not in each.attrib]
            own = [each for each in own if each.tag != f"{PRESENTATION}notes"]
            texts += [block.text for block in blocks_of(own, reading)]
        feet = (kind for kind in FEET if about.get(f"{PRESENTATION}display-{kind}") == "true")
        texts += [reading.around.pop(slide.get(f"{PRESENTATION}use-{kind}-name"), "") for kind in feet]
        notes = slide.find(f"{PRESENTATION}notes")
        spoken = "\n".join(block.text for block in blocks_of(notes, reading)) if notes is not None else ""
        found.append((number, head, "\n\n".join(filter(None, (*texts, spoken and f"Notes: {spoken}")))))
    return join_slides(found)


def margin_blocks(stated: Any, kind: str, reading: Reading) -> Iterator[Block]:
    """Yield the heads (or feet) of pages, each once and without page numbers."""
    shown = (each for each in stated.iter(f"{STYLE}{kind}") if each.get(f"{STYLE}display") != "false")
    texts = dict.fromkeys(block.text for each in shown for block in blocks_of(each, reading))
    yield from (Block(text) for text in texts if not PAGE_NUMBER.fullmatch(one_line(text)))


def blocks_of(element: Any, reading: Reading, children: Children = iter) -> Iterator[Block]:
    """Yield headings, paragraphs, items of lists and rows of tables below an element."""
    for each in nearest(element, *BLOCKS, *UNSEEN, FIELD, FIELDS, f"{TEXT}section", children=children):
        match each.tag:
            case tag if tag == f"{TEXT}section":
                if each.get(f"{TEXT}display", "true") == "true":
                    yield from blocks_of(each, reading, children)
                else:
                    reading.seen["hidden"] += 1
            case tag if tag in UNSEEN:
                reading.seen["comment"] += tag == f"{OFFICE}annotation"
                reading.seen["hidden"] += tag in UNSEEN[2:]
            case tag if tag == FIELDS:
                for one in each.iter(f"{FORM}*"):
                    shown = unified(field_text(one, one.tag.removeprefix(FORM)))
                    reading.fields[one.get(f"{FORM}id", "")] = shown
            case tag if tag == FIELD:
                if text := reading.fields.get(each.get(f"{DRAW}control", ""), ""):
                    yield Block(text)
            case tag if tag in BLOCKS[:2]:
                text = paragraph_text(each, reading)
                level = int(each.get(f"{TEXT}outline-level", "1")) if tag == BLOCKS[0] else 0
                if text.strip():
                    yield Block(text, level)
                yield from waiting_blocks(reading)
            case tag if tag == BLOCKS[2]:
                yield from list_blocks(each, reading, each.get(f"{TEXT}style-name", ""), 1, False)
            case tag if tag == BLOCKS[3]:
                sheet = sheet_of(each, reading, children)
                for place, (number, cells) in enumerate(filled_rows(sheet)):
                    is_head = number in sheet.wide and len({*cells}) == 1  # over the whole table
                    text = " | ".join(map(one_line, cells[: 1 if is_head else None]))
                    yield Block(text, 0, "\n" if place else "\n\n")
                yield from waiting_blocks(reading)
            case _:
                yield from frame_blocks(each, reading)


def frame_blocks(frame: Any, reading: Reading) -> Iterator[Block]:
    """Yield the blocks of a text box or shape; pictures and charts are counted."""
    blocks = list(blocks_of(frame, reading))
    yield from (Block(block.text, 0, block.gap) for block in blocks)
    if equation := equation_in(frame, reading):
        yield Block(equation)
    elif not blocks:
        kinds = ((f"{DRAW}object", "chart"), (f"{DRAW}image", "picture"))
        reading.seen.update([kind for tag, kind in kinds if frame.find(tag) is not None][:1])


def equation_in(frame: Any, reading: Reading) -> str:
    """Return the equation that a frame shows, from a file of its own."""
    linked = frame.find(f"{DRAW}object")
    return "" if linked is None else reading.equations.get(linked.get(XLINK, "").removeprefix("./"), "")


def field_text(field: Any, kind: str) -> str:
    """Return what a field shows: a box and its label, the options to see, a label, or what is typed."""
    label = field.get(f"{FORM}label", "")
    if kind in ("checkbox", "radio", "option"):
        state = next(filter(None, (field.get(f"{FORM}{name}") for name in STATES)), "")
        return f"{'☒' if state in ('true', 'checked') else '☐'} {label}"
    options = [field_text(each, "option") for each in field.iterfind(f"{FORM}option")]
    if field.get(f"{FORM}dropdown") == "true":
        options = [option[2:] for option in options if option[0] == "☒"]
    typed = ("".join(each.itertext()) for each in field.iter(f"{TEXT}p"))
    texts = (label, field.get(f"{FORM}current-value"), field.get(f"{FORM}value"), ", ".join(options), *typed)
    return "" if kind in ("hidden", "password") else next(filter(None, texts), "")


def waiting_blocks(reading: Reading) -> Iterator[Block]:
    """Yield the text boxes and notes of the last paragraph, each apart from it."""
    waiting, reading.waiting = reading.waiting, []
    for mark, element in waiting:
        for block in frame_blocks(element, reading) if not mark else blocks_of(element, reading):
            yield Block(f"{mark} {block.text}" if mark else block.text, 0, block.gap)
            mark = ""


def list_blocks(items: Any, reading: Reading, style: str, depth: int, goes_on: bool) -> Iterator[Block]:
    """Yield the items of a list with their numbers or bullets; it may go on with those of one before."""
    goes_on |= items.get(f"{TEXT}continue-numbering") == "true" or f"{TEXT}continue-list" in items.attrib
    number = reading.counts.get((style, depth), 0) if goes_on else 0
    for item in items:
        if item.tag not in (f"{TEXT}list-item", f"{TEXT}list-header"):
            continue
        is_own = item.tag.endswith("item") and [each.tag for each in item[:1]] != [f"{TEXT}list"]
        number = int(item.get(f"{TEXT}start-value", str(number + is_own)))
        reading.counts[style, depth] = number
        mark = list_mark(reading.lists.get(style), depth, number) if is_own else ""
        for child in item:
            if child.tag == f"{TEXT}list":
                name = child.get(f"{TEXT}style-name", style)
                yield from list_blocks(child, reading, name, depth + 1, goes_on and not is_own)
            else:
                for block in blocks_of([child], reading):
                    yield Block(f"{mark} {block.text}" if mark else block.text, block.level, block.gap)
                    mark = ""


def list_mark(style: Any, depth: int, number: int) -> str:
    """Return the number of an item as its list writes it, or a bullet."""
    for level in style if style is not None else ():
        if level.get(f"{TEXT}level") == str(depth) and level.tag == f"{TEXT}list-level-style-number":
            written = formatted(number, FORMS.get(level.get(f"{STYLE}num-format", "1"), "none"))
            before, after = (level.get(f"{STYLE}num-{side}", "") for side in ("prefix", "suffix"))
            return f"{before}{written}{after}" if written else ""
    return "•"


def paragraph_text(paragraph: Any, reading: Reading) -> str:
    """Return the text of a paragraph; what is hidden is left out."""
    return unified("".join(pieces(paragraph, reading)))


def pieces(element: Any, reading: Reading, before: str = "") -> Iterator[str]:
    """Yield the pieces of text behind ``before``, and keep notes and text boxes for after the paragraph."""
    about = properties(element, "text", TEXT, reading)
    if about.get(f"{TEXT}display") == "none":
        reading.seen["hidden"] += 1
        return
    shift = about.get(f"{STYLE}text-position", "0")
    place = "subscript" if shift.startswith(("sub", "-")) else "superscript" if shift[0] != "0" else ""
    is_struck = about.get(f"{STYLE}text-line-through-style", "none") != "none"
    yield (text := scripted(" ".join((element.text or "").split("\n")), before, place, is_struck))
    for child in element:
        before, text = (before + text)[-20:], ""
        match child.tag:
            case tag if tag == f"{TEXT}s":
                text = " " * min(int(child.get(f"{TEXT}c", "1")), 100)
            case tag if tag == f"{TEXT}tab":
                text = "\t"
            case tag if tag == f"{TEXT}line-break":
                text = "\n"
            case tag if tag == f"{TEXT}note":
                text = f"[^{one_line(child.findtext(f'{TEXT}note-citation') or '*')}]"
                reading.waiting.append((text, child.find(f"{TEXT}note-body")))
            case tag if tag in SHAPES:
                if not (text := equation_in(child, reading)):
                    reading.waiting.append(("", child))
            case tag if tag == FIELD:
                text = f" {reading.fields.get(child.get(f'{DRAW}control', ''), '')} "
            case tag if tag in UNSEEN:
                reading.seen["comment"] += tag == f"{OFFICE}annotation"
                reading.seen["hidden"] += tag in UNSEEN[2:]
            case tag if isinstance(tag, str) and child.text != "<number>":  # of a slide, which Impress counts
                text = "".join(pieces(child, reading, before))
        text += " ".join((child.tail or "").split("\n"))
        yield text
