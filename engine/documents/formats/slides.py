"""PowerPoint files (.pptx): slide by slide, with tables and speakers' notes (python-pptx)."""

from collections import ChainMap, Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import chain, pairwise, starmap
from typing import Any

from ...errors import DocumentError
from ..document import Document
from .equations import EQUATION, linear_text
from .number_formats import shown
from .office import DRAWING, FALLBACK, OFFICE, notes_on, repacked, stated
from .outline import join_slides, one_line
from .plain import as_document_error, unified
from .running_lines import PAGE_NUMBER
from .scripts import scripted
from .word_numbers import formatted

SLIDES_TYPE = b"application/vnd.openxmlformats-officedocument.presentationml.presentation.main+xml"
SHOWS = (b"application/vnd.openxmlformats-officedocument.presentationml.slideshow.main+xml",
         b"application/vnd.openxmlformats-officedocument.presentationml.template.main+xml",
         b"application/vnd.ms-powerpoint.presentation.macroEnabled.main+xml")  # fmt: skip
ALTERNATIVES = FALLBACK.replace("Fallback", "AlternateContent")
ROW_HEIGHT = 400_000  # boxes whose tops are nearer stand next to each other (914,400 are an inch)
NUMBER_FORMS = {"arabic": "decimal", "alphaLc": "lowerLetter", "alphaUc": "upperLetter",
                "romanLc": "lowerRoman", "romanUc": "upperRoman"}  # fmt: skip


def read_pptx(name: str, content: bytes) -> Document:
    """Make a document from a presentation: a page for every slide, under the slide's title.

    Boxes are read from top to bottom, tables row by row, notes of the speaker after the slide. Hidden slides
    are left out.
    """
    import pptx

    def usual(path: str, member: bytes) -> bytes:
        for each in SHOWS if path == "[Content_Types].xml" else ():
            member = member.replace(each, SLIDES_TYPE)
        return member

    plain = repacked(name, content, usual)
    seen: Counter[str] = Counter()
    slides = []
    said: set[str] = set()  # by layouts and masters
    with as_document_error(f"{name} is no PowerPoint file, or damaged", "save it again as .pptx"):
        presentation = pptx.Presentation(plain)
        for number, entry in enumerate(presentation.element.get_or_add_sldIdLst(), 1):
            if entry.rId not in presentation.part.rels:  # of a slide that the file has lost
                seen["missing slide"] += 1
                continue
            slide = presentation.part.related_slide(entry.rId)
            seen["comment"] += sum(each.reltype.endswith("/comments") for each in slide.part.rels.values())
            if slide._element.get("show") in ("0", "false"):
                seen["hidden slide"] += 1
                continue
            choose(slide.shapes._spTree)
            box = next((each for each in slide.placeholders if kind_of(each).split("_")[-1] == "TITLE"), None)
            head = "" if box is None else one_line(unified(box.text_frame.text))
            slides.append((number, head, "\n\n".join(filter(None, slide_texts(slide, box, seen, said)))))
        whole, sections = join_slides(slides)
        title, day, tags = stated(plain, presentation.core_properties)
        title = title or next((each.headings[0] for each in sections if each.headings), "")
    if not whole:
        reason = f"{name} has no text on its slides: there is nothing to search"
        raise DocumentError("; ".join((reason, *notes_on(seen))))
    return Document(name, whole, title, sections, day, tags, notes_on(seen))


def kind_of(shape: Any) -> str:
    """Return the kind of a placeholder, empty for other shapes."""
    return shape.placeholder_format.type.name if shape.is_placeholder else ""


def choose(tree: Any) -> None:
    """Put into the places of alternatives, as of boxes with formulas, the first but drawings by hand."""
    for each in list(tree.iter(ALTERNATIVES)):
        for shape in next((choice for choice in each if choice.find("{*}contentPart") is None), ()):
            each.addprevious(shape)


def slide_texts(slide: Any, title: Any, seen: Counter[str], said: set[str]) -> Iterator[str]:
    """Yield the texts of a slide's boxes, the title first, of its layout if not ``said``, and the notes."""
    if title is not None:
        yield frame_text(title.text_frame)
    others = [shape for shape in slide.shapes if title is None or shape.shape_id != title.shape_id]
    yield from shape_texts(others, seen)
    yield from around_texts(slide, said)
    notes = slide.notes_slide.shapes if slide.has_notes_slide else ()
    heads = set(shape_texts((each for each in notes if kind_of(each) in ("HEADER", "FOOTER")), seen))
    own = [each for each in notes if kind_of(each) in ("", "BODY", "HEADER", "FOOTER")]
    texts = [text for text in shape_texts(own, seen) if text not in heads & said]
    said |= heads
    if text := "\n\n".join(text for text in texts if text and not PAGE_NUMBER.fullmatch(text)):
        yield f"Notes: {text}"


def around_texts(slide: Any, said: set[str]) -> Iterator[str]:
    """Yield the texts that a slide's layout and master write on it, but those that are already ``said``."""
    shown, width = slide, slide.part.package.presentation_part.presentation.slide_width
    with suppress(KeyError):  # where the file has lost them
        for name in ("slide_layout", "slide_master"):
            if shown._element.get("showMasterSp") in ("0", "false"):
                return
            shown = getattr(shown, name)
            own = [each for each in shown.shapes if not each.is_placeholder]
            own = [each for each in own if 0 <= (each.left or 0) + (each.width or 0) // 2 <= width]
            texts = dict.fromkeys(text.replace("‹#›", "").strip() for text in shape_texts(own, Counter()))
            yield from (new := [text for text in texts if text not in said])
            said.update(new)


def shape_texts(shapes: Iterable[Any], seen: Counter[str]) -> Iterator[str]:
    """Yield the texts of shapes from top to bottom, those side by side from left to right.

    Where each stands below or to the right of the one before, as two lists with heads, their order stays.
    """
    shapes = list(shapes)
    if not all(starmap(follows, pairwise(shapes))):
        shapes.sort(key=lambda each: ((each.top or 0) // ROW_HEIGHT, each.left or 0))
    for shape in shapes:
        if kind_of(shape) == "SLIDE_NUMBER":
            continue
        if hasattr(shape, "shapes"):  # a group
            yield from shape_texts(shape.shapes, seen)
        elif getattr(shape, "has_table", False):
            yield "\n".join(table_rows(shape.table))
        elif getattr(shape, "has_chart", False):
            yield "\n".join(chart_rows(shape.chart, seen))
        elif shape.has_text_frame:
            yield frame_text(shape.text_frame)
        elif shape._element.tag.endswith("}graphicFrame"):
            yield diagram_text(shape, seen)
        elif shape._element.tag.endswith("}pic"):
            seen["picture"] += 1


def follows(first: Any, second: Any) -> bool:
    """Whether a shape stands below another, or to its right."""
    if None in (first.top, first.left, first.height, first.width, second.top, second.left):
        return False
    below, beside = first.top + first.height // 2, first.left + first.width // 2
    return bool(second.top >= below or second.left >= beside)


def diagram_text(frame: Any, seen: Counter[str]) -> str:
    """Return the texts in the boxes of a diagram (SmartArt), one a line; other objects are counted."""
    from lxml import etree

    parts = frame._element.find(".//{*}relIds")
    if parts is None:
        seen["embedded document" if frame._element.find(".//{*}oleObj") is not None else "diagram"] += 1
        return ""
    data = frame.part.related_part(parts.get(f"{{{OFFICE}/officeDocument/2006/relationships}}dm")).blob
    root = etree.fromstring(data, etree.XMLParser(resolve_entities=False))
    boxes = {each.get("modelId"): each for each in root.iter("{*}pt")}
    for link in sorted(root.iter("{*}cxn"), key=lambda each: int(each.get("srcOrd", "0"))):
        if link.get("type", "parOf") == "parOf":  # else of what only draws
            with suppress(KeyError, ValueError):  # of a box that is lost, or below itself
                boxes[link.get("srcId")].append(boxes[link.get("destId")])
    return "\n".join(filter(None, map(paragraph_text, root.iter(f"{DRAWING}p"))))


def table_rows(table: Any) -> Iterator[str]:
    """Yield the rows of a table; merged cells stand in all their places."""
    texts: dict[tuple[int, int], str] = {}
    n_columns = len(table.columns)
    for number, row in enumerate(table.rows):
        for column, cell in enumerate(row.cells):
            if cell.is_merge_origin:
                text = one_line(frame_text(cell.text_frame))
                places = ((r, c) for r in range(cell.span_height) for c in range(cell.span_width))
                texts |= {(number + r, column + c): text for r, c in places}
            elif not cell.is_spanned:
                texts[number, column] = one_line(frame_text(cell.text_frame))
        cells = [texts.get((number, column), "") for column in range(n_columns)]
        if any(cells):
            is_head = n_columns > 1 and row.cells[0].is_merge_origin and row.cells[0].span_width == n_columns
            yield cells[0] if is_head else " | ".join(cells)


def chart_rows(chart: Any, seen: Counter[str]) -> Iterator[str]:
    """Yield the title of a chart and its values, a row for each category."""
    if chart.has_title and chart.chart_title.has_text_frame:
        yield frame_text(chart.chart_title.text_frame)
    series = chart._chartSpace.findall(".//{*}plotArea/*/{*}ser")
    names = [one_line(" ".join(each.text or "" for each in one.iterfind("{*}tx//{*}v"))) for one in series]
    yield from [" | ".join(["", *names]).strip()] if any(names) else ()
    values = [points(one, "val") or points(one, "yVal") for one in series]
    heads = ChainMap(*(points(one, "cat") or points(one, "xVal") for one in series))
    for place in (places := sorted({*heads, *chain(*values)})):
        yield " | ".join([heads.get(place, ""), *(each.get(place, "") for each in values)])
    seen["chart"] += not places


def points(series: Any, kind: str) -> dict[int, str]:
    """Return the values or categories of a chart's series as they are shown, by their places."""
    from openpyxl.styles.numbers import is_date_format
    from openpyxl.utils.datetime import from_excel

    found: dict[int, str] = {}
    layout = series.findtext(f"{{*}}{kind}//{{*}}formatCode", "General")
    for point in series.iterfind(f"{{*}}{kind}//{{*}}pt"):
        text = one_line(unified(point.findtext("{*}v", "")))
        if point.getparent().tag.endswith("numCache"):
            with suppress(ValueError, OverflowError):
                text = shown((from_excel if is_date_format(layout) else float)(float(text)), layout)
        found.setdefault(int(point.get("idx", "0")), text)  # of several levels, the lowest
    return found


def frame_text(frame: Any) -> str:
    """Return the paragraphs of a box, one a line, with the numbers of their list."""
    counts: Counter[int] = Counter()
    lines = []
    for paragraph in frame._txBody.iter(f"{DRAWING}p"):
        text = paragraph_text(paragraph)
        if not text.strip():
            continue
        about = paragraph.find(f"{DRAWING}pPr")
        level = int(about.get("lvl", "0")) if about is not None else 0
        numbered = about.find(f"{DRAWING}buAutoNum") if about is not None else None
        counts = Counter({each: n for each, n in counts.items() if each < level + (numbered is not None)})
        if numbered is not None:
            counts[level] = counts[level] + 1 if counts[level] else int(numbered.get("startAt", "1"))
            kind = numbered.get("type", "arabicPeriod")
            form = next((form for start, form in NUMBER_FORMS.items() if kind.startswith(start)), "decimal")
            number = formatted(counts[level], form)
            text = f"{number})" + f" {text}" if "Paren" in kind else f"{number}. {text}"
        lines.append(text)
    return "\n".join(lines)


def paragraph_text(paragraph: Any) -> str:
    """Return the text of a paragraph, with equations on the line, powers and indexes."""
    pieces: list[str] = []
    for child in paragraph.iter(f"{DRAWING}r", f"{DRAWING}br", f"{DRAWING}fld", EQUATION):
        if child.tag == f"{DRAWING}br":
            pieces.append("\n")
        elif child.tag == EQUATION:
            pieces.append(linear_text(child))
        elif not any(parent.tag in (FALLBACK, EQUATION) for parent in child.iterancestors()):
            text = child.findtext(f"{DRAWING}t") or ""
            about = child.find(f"{DRAWING}rPr")
            shift = "0" if about is None else about.get("baseline", "0")
            place = "superscript" if shift[:1] in "123456789" else "subscript" if shift[:1] == "-" else ""
            is_struck = about is not None and about.get("strike", "noStrike") != "noStrike"
            pieces.append(scripted(text, "".join(pieces[-3:])[-20:], place, is_struck))
    return unified("".join(pieces)).strip("\n")
