"""A page of a PDF: its text with values of forms and typed notes, and what of it could not be read."""

import ctypes
import math
import re
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from .. import recognition
from .outline import one_line
from .pdf_grids import Rules, with_grids
from .pdf_layout import page_text
from .pdf_letters import SHADOW, TILTED, Box, looks_like_words, segments_of, string_of, turned, turned_rules
from .pdf_lines import Rule, Segment, without_leaders, without_line_numbers
from .pdf_tags import tagged_text, tags_of
from .plain import unified

RECOGNITION_SCALE, MAX_PIXELS = 2.5, 5_000_000  # pixels a point, and of a page
MAX_OBJECTS = 20_000  # of a page that are looked at for pictures and lines
BOX_PARTS, MAX_PARTS = 5, 2000  # of a rectangle, and of a path that may be the lines of a table
THIN, LEAST_RULE = 3, 5  # points: the width of a line, and its length
THICK, DARK = 5, 40  # points: the width of a black line between two points; of 255
MAX_FILLED = 8  # boxes before another that may enclose it
LARGEST_BOX = 0.6  # of the page: more is its frame or background
MAX_ANNOTATIONS = 2000  # of a page
LARGE, SMALL = 0.4, 0.05  # shares of a page: of a scan, and of pictures that are not worth a note
FEW_CHARACTERS = 200  # characters, a typed head on a scan
FIELD_HEIGHT = 12  # of letters in a field
REVERSED = re.compile(
    "昀[昀椀氀樀琀]+"
)  # ligatures whose letters Ghostscript writes with their bytes reversed
DEGREES = re.compile(r"[◦∘](?:(?<=\d.)|(?<=\d\s.)(?= ?[CF]\b)|(?<=\(.)(?=[CF]\b))")  # as TeX writes them
FF = re.compile(r"(?<=[a-z])↵(?=[a-z])")  # the code of the ligature in fonts of TeX, as macOS writes it
HIDDEN = 2 | 32  # flags of annotations
UNREAD_ANNOTATIONS = {1: "comment", 8: "comment", 9: "comment", 10: "comment", 11: "comment", 13: "stamp",
                      17: "attached file"}  # fmt: skip


Color = tuple[int, int, int, int]
WHITE = 255, 255, 255, 255


@dataclass
class Page:
    """A page: its text, and what of it could not be read."""

    text: str
    share_of_pictures: float = 0.0
    n_unmapped: int = 0
    n_guessed: int = 0
    n_fields: int = 0
    n_drawn: int = 0
    n_tags: int = 0
    is_laid_out: bool = True  # put in reading order, by columns and tables
    recognition: str = ""  # "failed", "tried" or "done", of a picture of text
    annotations: Counter[str] = field(default_factory=Counter)

    @property
    def is_scan(self) -> bool:
        """Whether the page is a picture, with a few words at most."""
        return self.share_of_pictures > LARGE and len(self.text) < FEW_CHARACTERS

    @property
    def may_be_recognised(self) -> bool:
        """Whether most of the page is no text, but a picture, a drawing, or letters without characters."""
        is_drawn = not self.text and (self.n_drawn > 0 or self.share_of_pictures > SMALL)
        return self.is_scan or is_drawn or (self.n_unmapped > 0 and len(self.text) < FEW_CHARACTERS)


def read_page(page: Any, form: Any, may_have_tags: bool = True) -> Page:
    """Return a page: its text with values of forms and typed notes, and what could not be read."""
    found = Page("")
    groups: dict[int, list[Segment]] = defaultdict(list)  # by the direction of their lines, in quarter turns
    rules = look_at_objects(page, found)
    text = page.get_textpage()
    tags = tags_of(page, text) if may_have_tags else None
    found.n_tags = tags.n_children if tags else 0
    found_segments = segments_of(text, rules, tags.block_of if tags else None)
    drawn: dict[str, list[Segment]] = defaultdict(list)
    segments, edges = [], [turned(page.get_bbox(), turns) for turns in range(TILTED + 1)]
    for turns, segment, font in found_segments:
        is_again = segment.text in drawn and any(is_over(segment, other) for other in drawn[segment.text])
        if not is_again and is_within(segment, edges[turns]):
            drawn[segment.text].append(segment)
            segments.append((turns, segment, font))
    unmapped: dict[str, list[str]] = defaultdict(list)  # the texts in each font without a map
    for _, segment, font in segments:
        if font:
            unmapped[font].append(segment.text)
    guessed = {font for font, texts in unmapped.items() if looks_like_words(" ".join(texts))}
    found.n_guessed, found.n_unmapped = len(guessed), len(unmapped) - len(guessed)
    for turns, segment, font in segments:
        if not font or font in guessed:
            groups[turns].append(segment)
    groups[0] += list(annotations_of(page, form, found, groups[0]))
    tagged = tagged_text(groups[0], tags, rules) if tags else None
    texts = [tagged] if tagged else []
    for turns, parts in sorted(groups.items()):
        if turns == TILTED:
            texts.append(" ".join(segment.text for segment in parts))
        elif turns or not tagged:
            own = turned_rules(rules, turns)
            texts.append(
                page_text(with_grids(without_line_numbers(without_leaders(parts)), own), own.horizontal)
            )
    text.close()
    found.text = DEGREES.sub("°", unified("\n\n".join(texts)).strip())
    found.text = FF.sub("ff", found.text)
    found.text = REVERSED.sub(lambda match: match[0].encode("utf-16-le").decode("utf-16-be"), found.text)
    return found


def is_over(segment: Segment, other: Segment) -> bool:
    """Whether a text is drawn over the same one, for a shadow or bold letters."""
    reach = SHADOW * (segment.top - segment.bottom)
    return abs(segment.left - other.left) < reach and abs(segment.bottom - other.bottom) < reach


def is_within(segment: Segment, box: Box) -> bool:
    """Whether a part of a segment is on the page, as nothing of what is cut off is."""
    left, bottom, right, top = box
    return left < segment.right and segment.left < right and bottom < segment.top and segment.bottom < top


def recognise(page: Any, found: Page) -> None:
    """Add the text that is recognised in the picture of a page to the text that is typed there."""
    width, height = page.get_size()
    scale = min(RECOGNITION_SCALE, math.sqrt(MAX_PIXELS / max(width * height, 1.0)))
    picture = page.render(scale=scale).to_numpy()[:, :, :3]
    n_rows, n_columns, _ = picture.shape
    placed = recognition.recognised(picture.tobytes(), n_columns, n_rows)
    segments = [
        Segment(text, left / scale, height - bottom / scale, right / scale, height - top / scale)
        for text, (left, top, right, bottom) in placed or ()
        if text.strip() and one_line(text) not in one_line(found.text)  # which the picture shows, too
    ]
    found.recognition = "failed" if placed is None else "done" if segments else "tried"
    if segments:
        read = unified(page_text(segments, ())).strip()
        found.text = "\n\n".join(filter(None, (found.text, read)))
        found.n_unmapped, found.share_of_pictures = 0, 0.0  # nothing of it is left out


def annotations_of(page: Any, form: Any, found: Page, printed: Sequence[Segment]) -> Iterator[Segment]:
    """Yield the values of form fields, and typed notes, at their places: on the line of what they follow."""
    import pypdfium2.raw as pdfium

    box = pdfium.FS_RECTF()
    for number in range(min(pdfium.FPDFPage_GetAnnotCount(page), MAX_ANNOTATIONS)):
        annotation = pdfium.FPDFPage_GetAnnot(page, number)
        is_shown = not pdfium.FPDFAnnot_GetFlags(annotation) & HIDDEN
        kind, text = pdfium.FPDFAnnot_GetSubtype(annotation) * is_shown, ""
        if kind == pdfium.FPDF_ANNOT_WIDGET and form:
            text = field_value(annotation, form)
            found.n_fields += bool(text)
            found.annotations["signature"] += pdfium.FPDFAnnot_GetFormFieldType(form, annotation) == 7
        elif kind == pdfium.FPDF_ANNOT_FREETEXT:
            text = string_of(pdfium.FPDFAnnot_GetStringValue, annotation, b"Contents")
        elif kind in UNREAD_ANNOTATIONS:
            is_seen = kind > 11 or string_of(pdfium.FPDFAnnot_GetStringValue, annotation, b"Contents")
            found.annotations[UNREAD_ANNOTATIONS[kind]] += bool(is_seen)
        pdfium.FPDFAnnot_GetRect(annotation, box)
        pdfium.FPDFPage_CloseAnnot(annotation)
        lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n") if text.strip() else []
        height = (box.top - box.bottom) / max(len(lines), 1)
        before = [
            each for each in printed if box.bottom < each.middle < box.top and each.right < box.left + 1
        ]
        for place, line in enumerate(lines):
            middle, half = box.top - (place + 0.5) * height, min(height, FIELD_HEIGHT) / 2
            if before and len(lines) == 1:
                middle = max(before, key=lambda each: each.right).middle
            if line.strip():
                yield Segment(line.strip(), box.left, middle - half, box.right, middle + half)


def field_value(annotation: Any, form: Any) -> str:
    """Return the value of a form's field: its text, or the mark of its box with what the box stands for."""
    import pypdfium2.raw as pdfium

    kind = pdfium.FPDFAnnot_GetFormFieldType(form, annotation)
    if kind in (pdfium.FPDF_FORMFIELD_CHECKBOX, pdfium.FPDF_FORMFIELD_RADIOBUTTON):
        if not pdfium.FPDFAnnot_IsChecked(form, annotation):
            return "☐"
        stands_for = string_of(pdfium.FPDFAnnot_GetFormFieldExportValue, form, annotation)
        return f"☒ {stands_for}".strip() if stands_for.lower() not in ("on", "1", "0") else "☒"
    if kind == pdfium.FPDF_FORMFIELD_PUSHBUTTON:
        return ""
    return string_of(pdfium.FPDFAnnot_GetFormFieldValue, form, annotation)


def look_at_objects(page: Any, found: Page) -> Rules:
    """Return the straight lines of a page, and note the share of pictures and the number of drawings."""
    import pypdfium2.raw as pdfium

    across, down = list[Rule](), list[Rule]()
    area = max(page.get_width() * page.get_height(), 1.0)
    edges = [ctypes.c_float() for _ in range(4)]
    filled = deque[tuple[Box, Color]](maxlen=MAX_FILLED)
    for number in range(min(pdfium.FPDFPage_CountObjects(page), MAX_OBJECTS)):
        thing = pdfium.FPDFPage_GetObject(page, number)
        kind = pdfium.FPDFPageObj_GetType(thing)
        if kind == pdfium.FPDF_PAGEOBJ_TEXT or not pdfium.FPDFPageObj_GetBounds(thing, *edges):
            continue
        left, bottom, right, top = (edge.value for edge in edges)
        if kind == pdfium.FPDF_PAGEOBJ_IMAGE:
            found.share_of_pictures += (right - left) * (top - bottom) / area
        elif kind == pdfium.FPDF_PAGEOBJ_FORM:
            found.n_drawn += 1
        elif kind == pdfium.FPDF_PAGEOBJ_PATH:
            found.n_drawn += 1
            n_parts = pdfium.FPDFPath_CountSegments(thing)
            if (right - left) * (top - bottom) > LARGEST_BOX * area or n_parts > MAX_PARTS:
                continue
            color = fill_of(thing)
            if color:
                box = left, bottom, right, top
                if color == next((each for outer, each in reversed(filled) if encloses(outer, box)), WHITE):
                    continue  # nobody sees it, as what Word sets behind the lines of a cell
                filled.append((box, color))
            sides = [(left, bottom, right, top)] if n_parts <= BOX_PARTS else parts_of_path(thing, n_parts)
            thin = THICK if n_parts == 2 and is_dark(thing) else THIN
            for west, south, east, north in sides:
                if north - south < min(thin, east - west) and east - west > THIN:  # also of a fraction
                    across.append(((south + north) / 2, west, east))
                elif east - west < min(thin, north - south) and north - south > LEAST_RULE:
                    down.append(((west + east) / 2, south, north))
                elif min(east - west, north - south) > LEAST_RULE:
                    across += [(south, west, east), (north, west, east)]
                    down += [(west, south, north), (east, south, north)]
    return Rules(across, down)


def fill_of(path: Any) -> Color | None:
    """Return red, green, blue and opacity of what a path is filled with, None if it has an outline."""
    import pypdfium2.raw as pdfium

    mode, has_stroke = ctypes.c_int(), ctypes.c_int()
    pdfium.FPDFPath_GetDrawMode(path, mode, has_stroke)
    color = [ctypes.c_uint() for _ in range(4)]
    if has_stroke.value or not mode.value or not pdfium.FPDFPageObj_GetFillColor(path, *color):
        return None
    red, green, blue, opacity = (each.value for each in color)
    return red, green, blue, opacity


def is_dark(path: Any) -> bool:
    """Whether a line is black, or nearly so, as no gap between colored boxes is."""
    import pypdfium2.raw as pdfium

    color = [ctypes.c_uint() for _ in range(4)]
    return bool(pdfium.FPDFPageObj_GetStrokeColor(path, *color)) and all(c.value < DARK for c in color[:3])


def encloses(outer: Box, box: Box) -> bool:
    """Whether a box lies in another, but for rounding."""
    return outer[0] < box[0] + 1 and outer[1] < box[1] + 1 and outer[2] > box[2] - 1 and outer[3] > box[3] - 1


def parts_of_path(path: Any, n_parts: int) -> Iterator[Box]:
    """Yield the boxes around the straight lines of a path, as of a table that is drawn at once."""
    import pypdfium2.raw as pdfium

    m = pdfium.FS_MATRIX()
    pdfium.FPDFPageObj_GetMatrix(path, m)
    x, y, last = ctypes.c_float(), ctypes.c_float(), (0.0, 0.0)
    for number in range(n_parts):
        part = pdfium.FPDFPath_GetPathSegment(path, number)
        pdfium.FPDFPathSegment_GetPoint(part, x, y)
        point = m.a * x.value + m.c * y.value + m.e, m.b * x.value + m.d * y.value + m.f
        if pdfium.FPDFPathSegment_GetType(part) == pdfium.FPDF_SEGMENT_LINETO:
            yield (*map(min, last, point), *map(max, last, point))
        last = point
