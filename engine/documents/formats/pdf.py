"""PDF files: their text, page by page (PDFium, which reads as a browser does).

pypdf, pdfplumber and PDFium were tried on the same files. PDFium alone tells which letters have no character,
reads turned text and glyphs by their names, and opens all encrypted files by itself. A page of a manual took
8 ms with columns and tables; 11 ms with pypdf and 46 ms with pdfplumber without them.
"""

import ctypes
import math
import re
import time
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from engine.documents import recognition
from engine.documents.document import Document, Section
from engine.documents.formats.metadata import date_of, tags_of
from engine.documents.formats.outline import one_line
from engine.documents.formats.pdf_grids import Rule, Rules, with_grids
from engine.documents.formats.pdf_layout import CELL_BREAK, CELL_GAP, Segment, page_text
from engine.documents.formats.plain import kind_of, unified
from engine.documents.formats.running_lines import PAGE_NUMBER, without_number, without_running_lines
from engine.errors import DocumentError
from engine.wording import reason_of

MAX_SECONDS = 60.0  # PDFium's own limits hold for one page
RECOGNITION_SECONDS = 45.0  # pages that are pictures are recognised
RECOGNITION_SCALE, MAX_PIXELS = 2.5, 5_000_000  # pixels a point, and of a page
MAX_CHARACTERS = 100_000_000
GAP, LINE_GAP = "\n\n", "\n"  # between pages, and where a sentence goes on from one to the next
WORD = re.compile(r"[^\W\d_]+")
# The parts of a word on two lines, the mark behind it, and the space at which the second line goes on.
HYPHENATED = re.compile(rf"(?<![\w-])([^\W\d_]+)-[\n{CELL_BREAK}]([^\W\d_]++)(?!-)(\S*)( ?)")
# First parts of compounds that are written with a hyphen, and words that follow one ("pre- and post-war").
PREFIX = re.compile(
    "anti|co|cross|ex|half|high|inter|long|low|mid|multi|non|post|pre|pro|re|self|semi|short|sub|super|two"
    "|under|well"
)
JOINING = ("and", "or", "to", "und", "oder", "bis")


MAX_OBJECTS = 20_000  # of a page that are looked at for pictures and lines
BOX_PARTS, MAX_PARTS = 5, 2000  # of a rectangle, and of a path that may be the lines of a table
THIN, LEAST_RULE = 3, 5  # points: the width of a line, and its length
LARGEST_BOX = 0.6  # of the page: more is its frame or background
MAX_ANNOTATIONS = 2000  # of a page
LARGE, SMALL = 0.4, 0.05  # shares of a page: of a scan, and of pictures that are not worth a note
PICTURES = " is a picture| are pictures"  # of one page, and of several
FEW = 200  # characters, a typed head on a scan
SHARED = 0.3  # of the height of two letters in one line
FIELD_HEIGHT = 12  # of letters in a field
NO_GAP, NO_LEVEL_GAP = 0.08, 0.045  # times the height of letters, of different sizes and of one
RAISED = 1.75  # times the height of a power at most
CELL, BLANK = 0.9, 0.35  # times the height of letters: a gap between two cells, and one between words
LEAST_LETTERS, LETTERS, VOWELS = 5, 0.6, 0.22  # of a text, and the shares of both in words
UNMAPPED = 0.3  # of the letters of a segment have no character
DATE = re.compile(r"D?:?(\d{4})-?(\d\d)?-?(\d\d)?")
HYPHENS = dict.fromkeys((0x02, 0xAD), "-")  # as PDFium writes hyphens at the ends of lines
UNKNOWN = "\ufffe"  # as it writes them, and glyphs without a character, in a page's whole text
BLANK_AND_WORD, DIGITS = re.compile(r"([\s\0]*)([^\s\0]+)"), re.compile(r"[\d+−-]+")
FROM_RIGHT = re.compile(r"[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefe]")
ACCENTS = {  # and the characters that combine with a letter
    "`": "\u0300", "´": "\u0301", "ˆ": "\u0302", "˜": "\u0303", "¯": "\u0304", "˘": "\u0306", "˙": "\u0307",
    "¨": "\u0308", "˚": "\u030a", "˝": "\u030b", "ˇ": "\u030c", "¸": "\u0327", "˛": "\u0328",
}  # fmt: skip
ALEF, LAM = "\u0622\u0623\u0625\u0627", "\u0644"
APART = re.compile(f"[{''.join(ACCENTS)}]|{FROM_RIGHT.pattern}")  # letters that are read one by one
LEVEL, WIDEST = 0.1, 1.5  # times the height of letters: differences of it, and their width, in a word
PASSWORD, SECURITY = 4, 5  # errors of PDFium
HIDDEN = 2 | 32  # flags of annotations
UNREAD_ANNOTATIONS = {1: "comment", 8: "comment", 9: "comment", 10: "comment", 11: "comment", 13: "stamp"}

Box = tuple[float, float, float, float]  # left, bottom, right and top


@dataclass
class Page:
    """A page: its text, and what of it could not be read."""

    text: str
    share_of_pictures: float = 0.0
    n_unmapped: int = 0
    n_guessed: int = 0
    n_fields: int = 0
    n_drawn: int = 0
    recognition: str = ""  # "tried" or "done", of a picture of text
    annotations: Counter[str] = field(default_factory=Counter)

    @property
    def is_scan(self) -> bool:
        """Whether the page is a picture, with a few words at most."""
        return self.share_of_pictures > LARGE and len(self.text) < FEW

    @property
    def may_be_recognised(self) -> bool:
        """Whether most of the page is no text, but a picture, a drawing, or letters without characters."""
        is_drawn = not self.text and (self.n_drawn > 0 or self.share_of_pictures > SMALL)
        return self.is_scan or is_drawn or (self.n_unmapped > 0 and len(self.text) < FEW)


def read_pdf(name: str, content: bytes) -> Document:
    """Make a document from a PDF's text, with a section per page that has text.

    Page numbers, and heads and feet that come again (`without_running_lines`), are left out; values of forms
    and typed notes stand at their places. Pages that are pictures are named in the notes.
    """
    if b"%PDF-" not in content[:1024]:  # as PDF readers do
        kind = kind_of(content) or "something else"
        raise DocumentError(
            f"{name} is no PDF but {kind}: give it the ending of its kind, or export it as PDF"
        )
    title, day, tags, read = read_pages(name, content)
    kept = without_running_lines([page.text for page in read])
    pages = [finished(page) for page in without_hyphenation(kept)]
    if not any(pages):
        if any(page.n_unmapped for page in read):
            raise DocumentError(f"{name} has fonts without a map to characters: {recognition.way_out()}")
        raise DocumentError(
            f"{name} has no text on its {len(pages)} pages, which are pictures (a scan) or "
            f"blank: {recognition.way_out()}"
        )
    whole, sections = "", []
    for number, text in enumerate(pages, 1):
        if text:
            whole += gap_between(whole, text)
            sections.append(Section(len(whole), page=number))
            whole += text
    return Document(
        name, whole, title, tuple(sections), day, tags, (*notes_of(read), *notes_of_lines(read, kept))
    )


def notes_of(pages: Sequence[Page]) -> tuple[str, ...]:
    """Return what was left out of pages, and where."""
    scans = [number for number, page in enumerate(pages, 1) if page.is_scan]
    bare = [number for number in scans if not pages[number - 1].text]
    headed = [number for number in scans if pages[number - 1].text]
    pictures = [n for n, page in enumerate(pages, 1) if page.share_of_pictures > SMALL and n not in scans]
    drawn = [n for n, page in enumerate(pages, 1) if page.n_drawn and not page.text and n not in scans]
    guessed = [number for number, page in enumerate(pages, 1) if page.n_guessed]
    unmapped = [number for number, page in enumerate(pages, 1) if page.n_unmapped]
    recognised = [number for number, page in enumerate(pages, 1) if page.recognition == "done"]
    in_vain = [number for number in scans if pages[number - 1].recognition == "tried"]
    bare, headed = ([number for number in numbers if number not in in_vain] for numbers in (bare, headed))
    way_out = recognition.way_out()
    n_fields = sum(page.n_fields for page in pages)
    notes = [
        bare and f"{numbered('page', bare, PICTURES)} without text: {way_out}",
        headed and f"{numbered('page', headed, PICTURES)} with a few words of text: {way_out}",
        in_vain and f"{numbered('page', in_vain, PICTURES)} in which no text was recognised (OCR)",
        recognised and f"{numbered('page', recognised, PICTURES)} whose text was recognised (OCR)",
        drawn and f"{numbered('page', drawn)} drawn and without text",
        unmapped
        and f"text on {numbered('page', unmapped, '')} is in a font without a map to characters, and "
        "left out",
        guessed
        and f"a font on {numbered('page', guessed, '')} has no map to characters: its text is a guess",
        pictures and f"pictures on {numbered('page', pictures, '')} were not read",
        n_fields and f"{n_fields} form field{'s' * (n_fields > 1)} {'were' if n_fields > 1 else 'was'} read",
    ]
    for kind in ("comment", "stamp", "signature"):
        found = [number for number, page in enumerate(pages, 1) if page.annotations[kind]]
        n = sum(page.annotations[kind] for page in pages)
        notes.append(n and f"{n} {kind}{'s' * (n > 1)} on {numbered('page', found, '')} left out")
    return tuple(note for note in notes if note)


def notes_of_lines(read: Sequence[Page], kept: Sequence[str]) -> Iterator[str]:
    """Yield a note of the heads and feet that are left out of all pages but one."""
    gone = (set(page.text.split("\n")) - set(text.split("\n")) for page, text in zip(read, kept, strict=True))
    lines = {
        one_line(without_number(line)) for lines in gone for line in lines if any(map(str.isalpha, line))
    }
    heads = sorted(line for line in lines if line and not PAGE_NUMBER.fullmatch(line))
    if heads:
        shown = ", ".join(f"“{line[:60]}”" for line in heads[:3])
        yield f"heads and feet that come again were read once: {shown}{' …' if len(heads) > 3 else ''}"


def numbered(what: str, numbers: Sequence[int], verb: str = " is| are") -> str:
    """Return numbers with their ranges and a verb: ``"pages 2 to 4 and 7 are"``."""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    shown = [str(a) if a == b else f"{a} to {b}" if b > a + 1 else f"{a}, {b}" for a, b in ranges[:20]]
    shown += ["more"] * (len(ranges) > len(shown))
    listed = ", ".join(shown[:-1]) + (" and " if shown[:-1] else "") + shown[-1]
    one, _, several = verb.partition("|")
    return f"{what}{'s' * (len(numbers) > 1)} {listed}{several if len(numbers) > 1 else one}"


def finished(text: str) -> str:
    """Return the text of a page with `` | `` between the cells of tables, and blanks in single lines."""
    lines = text.replace(CELL_BREAK, " ").split("\n")
    shown = []
    for number, line in enumerate(lines):
        if CELL_GAP in line:
            is_table = any(
                CELL_GAP in other for other in lines[max(number - 1, 0) : number + 2] if other is not line
            )
            first, *rest = line.rstrip(CELL_GAP).split(CELL_GAP)
            for cell in rest:
                if (not cell and first.endswith(":")) or (cell and first.endswith(f"☒ {cell}")):
                    continue  # the value of a form stands farther to the right, or the name of a box twice
                first += (" " if first.endswith((":", "☐", "☒")) or not is_table else " | ") + cell
            line = first if is_table else one_line(first)
        shown.append(line)
    return "\n".join(shown)


def gap_between(before: str, page: str) -> str:
    """Return what stands between the text so far and a page: one line break where a sentence goes on."""
    if not before:
        return ""
    goes_on = before[-1] not in ".!?…:;" and page[0].islower()
    return LINE_GAP if goes_on else GAP


def metadata_of(about: dict[str, str]) -> tuple[str, str, tuple[str, ...]]:
    """Return the title, the day of the last change and the keywords in a PDF's metadata."""
    found = DATE.match(about.get("ModDate") or about.get("CreationDate") or "")
    day = date_of("-".join(part or "01" for part in found.groups())) if found else ""
    return one_line(unified(about.get("Title", ""))), day, tags_of(unified(about.get("Keywords", "")))


def without_hyphenation(pages: Sequence[str]) -> list[str]:
    """Join the words that two lines share with a hyphen ("contain-" and "ing"), on the first line.

    The hyphen goes where the whole word occurs elsewhere, or, before a lower-case letter, where the first
    part occurs nowhere else and is no usual prefix or acronym: "well-known", "Navier-Stokes" keep theirs.
    """
    words = Counter(word.casefold() for page in pages for word in WORD.findall(page))
    first_parts = Counter(match[1].casefold() for page in pages for match in HYPHENATED.finditer(page))

    def joined(match: re.Match[str]) -> str:
        first, whole = match[1].casefold(), (match[1] + match[2]).casefold()
        is_compound = match[2][0].isupper() or match[1].isupper() or PREFIX.fullmatch(first)
        is_one_word = words[whole] or (not is_compound and words[first] == first_parts[first])
        if match[2] in JOINING:
            return match[0]
        line_end = "\n" if match[4] and "\n" in match[0] else match[4]
        return match[1] + match[2] + match[3] + line_end if is_one_word else match[0]

    return [HYPHENATED.sub(joined, page) for page in pages]


def read_pages(name: str, content: bytes) -> tuple[str, str, tuple[str, ...], list[Page]]:
    """Return the title, the date, the tags, and every page."""
    import pypdfium2

    deadline = time.process_time() + MAX_SECONDS
    recognition_end = time.monotonic() + RECOGNITION_SECONDS
    pages: list[Page] = []
    n_characters = 0
    try:
        file = pypdfium2.PdfDocument(content)
        file.init_forms()
        about = metadata_of(file.get_metadata_dict())
        for number in range(len(file)):
            if time.process_time() > deadline:
                raise DocumentError(
                    f"{name} takes over {MAX_SECONDS:.0f} s, after {len(pages)} pages: split it"
                )
            page = file[number]
            pages.append(read_page(page, file.formenv.raw if file.formenv else None))
            is_time = pages[-1].may_be_recognised and time.monotonic() < recognition_end
            if is_time and recognition.is_installed():
                recognise(page, pages[-1])
            page.close()
            n_characters += len(pages[-1].text)
            if n_characters > MAX_CHARACTERS:
                raise DocumentError(f"{name} has over {MAX_CHARACTERS} characters of text: split it")
    except DocumentError:
        raise
    except pypdfium2.PdfiumError as error:
        if error.err_code in (PASSWORD, SECURITY):
            raise DocumentError(f"{name} is encrypted: save a copy without a password") from error
        raise damaged(name, pages, error) from error
    except Exception as error:  # of any kind: the values in a damaged file
        raise damaged(name, pages, error) from error
    return *about, pages


def damaged(name: str, pages: Sequence[Page], error: Exception) -> DocumentError:
    """Return the error of a damaged file."""
    where = f"after page {len(pages)}" if pages else "from its start"
    return DocumentError(f"{name} is damaged {where} ({reason_of(error)}): export it as PDF again")


def read_page(page: Any, form: Any) -> Page:
    """Return a page: its text with values of forms and typed notes, and what could not be read."""
    found = Page("")
    groups: dict[int, list[Segment]] = defaultdict(list)  # by the direction of their lines, in quarter turns
    rules = look_at_objects(page, found)
    text = page.get_textpage()
    segments = list(segments_of(text, rules.vertical))
    text.close()
    unmapped: dict[str, list[str]] = defaultdict(list)  # the texts in each font without a map
    for _, segment, font in segments:
        if font:
            unmapped[font].append(segment.text)
    guessed = {font for font, texts in unmapped.items() if looks_like_words(" ".join(texts))}
    found.n_guessed, found.n_unmapped = len(guessed), len(unmapped) - len(guessed)
    for turns, segment, font in segments:
        if not font or font in guessed:
            groups[turns].append(segment)
    groups[0] += annotations_of(page, form, found)
    groups[0] = with_grids(groups[0], rules)
    texts = [
        page_text(segments, rules.horizontal if turns == 0 else ())
        for turns, segments in groups.items()
        if segments
    ]
    found.text = unified("\n\n".join(texts)).strip()
    return found


def recognise(page: Any, found: Page) -> None:
    """Add the text that is recognised in the picture of a page to the text that is typed there."""
    width, height = page.get_size()
    scale = min(RECOGNITION_SCALE, math.sqrt(MAX_PIXELS / max(width * height, 1.0)))
    picture = page.render(scale=scale).to_numpy()[:, :, :3]
    n_rows, n_columns, _ = picture.shape
    segments = [
        Segment(text, left / scale, height - bottom / scale, right / scale, height - top / scale)
        for text, (left, top, right, bottom) in recognition.recognised(picture.tobytes(), n_columns, n_rows)
        if text.strip() and one_line(text) not in one_line(found.text)  # which the picture shows, too
    ]
    found.recognition = "done" if segments else "tried"
    if segments:
        read = unified(page_text(segments, ())).strip()
        found.text = "\n\n".join(filter(None, (found.text, read)))
        found.n_unmapped, found.share_of_pictures = 0, 0.0  # nothing of it is left out


def segments_of(text: Any, rules: Sequence[Rule]) -> Iterator[tuple[int, Segment, str]]:
    """Yield the direction and the segments of a page's characters, and the font of those that have no map.

    Vertical lines, as ``rules`` between columns, part segments.
    """
    import pypdfium2.raw as pdfium

    characters = text.raw
    letters: list[str] = []
    n_unmapped, turns, font = 0, 0, ""
    left = bottom = right = top = 0.0
    before, was_raised = (0.0, 0.0, 0.0, 0.0), False  # the box of the last letter that stands on its line

    def segment() -> tuple[int, Segment, str] | None:
        nonlocal n_unmapped
        written = "".join(letters).translate(HYPHENS)
        is_unmapped = n_unmapped > UNMAPPED * len(written)
        letters.clear()
        n_unmapped = 0
        if not written.strip():
            return None
        return turns, Segment(written, left, bottom, right, top), font if is_unmapped else ""

    for found in BLANK_AND_WORD.finditer(all_characters(text)):
        blank, first = found[1], found.start(2)
        is_new_line = "\n" in blank  # also before and behind a power, or a number below the line
        # Direction and font seldom change within a word.
        angle = pdfium.FPDFText_GetCharAngle(characters, first)
        now = round(angle / (math.pi / 2)) % 4 if angle > 0 else 0
        is_unknown = pdfium.FPDFText_HasUnicodeMapError(characters, first) == 1
        for written, edges in parts_of_word(characters, first, found[2], now):
            height = max(edges[3] - edges[1], 1.0)
            if letters:
                gap = max(edges[0] - right, left - edges[2])
                least_gap = NO_LEVEL_GAP if are_level(edges, before) else NO_GAP
                is_close = blank and gap < least_gap * height and not FROM_RIGHT.search(letters[-1])
                if is_close and pdfium.FPDFText_IsGenerated(characters, first - 1) == 1:
                    blank = ""  # before a letter of another size, or within a word of slanted letters
                shared = min(edges[3], before[3]) - max(edges[1], before[1])
                is_off = shared < SHARED * min(height, before[3] - before[1])
                is_apart = gap > CELL * height
                if is_new_line:
                    small, large = sorted((height, before[3] - before[1]))
                    is_apart = not -small <= gap <= BLANK * small or large > RAISED * small
                is_apart = is_apart or (bool(rules) and is_parted(rules, right, edges))
                if (now != turns or is_off or is_apart) and (whole := segment()):
                    yield whole
            if not letters:
                turns, (left, bottom, right, top), blank = now, edges, ""
                was_raised = False
            elif is_raised(edges, before) and (written.isdigit() or written in "+-−") and not blank:
                letters.append("^" * (not was_raised))
                was_raised = True
            else:
                was_raised = False
            letters.append(" " + written if blank else written)
            before = before if was_raised else edges
            if is_unknown:
                n_unmapped += len(written)
                font = font_of(characters, first)
            left, bottom = min(left, edges[0]), min(bottom, edges[1])
            right, top = max(right, edges[2]), max(top, edges[3])
            blank, is_new_line = "", False
    if letters and (whole := segment()):
        yield whole


def is_parted(rules: Sequence[Rule], right: float, box: Box) -> bool:
    """Whether a vertical line stands between the end of a text and the next letter."""
    middle = (box[1] + box[3]) / 2
    return any(right - 1 < x < box[0] + 1 and bottom < middle < top for x, bottom, top in rules)


def font_of(characters: Any, place: int) -> str:
    """Return the name of a character's font."""
    import pypdfium2.raw as pdfium

    buffer = ctypes.create_string_buffer(200)
    pdfium.FPDFText_GetFontInfo(characters, place, buffer, len(buffer), ctypes.c_int())
    return buffer.value.decode("utf-8", "replace") or "?"


def all_characters(text: Any) -> str:
    """Return the characters of a page at the places by which PDFium counts them."""
    n_characters = text.count_chars()
    written: str = text.get_text_range(0, n_characters) if n_characters else ""
    if len(written) != n_characters:  # it leaves out codes without a character
        written = UNKNOWN * n_characters
    return re.sub(UNKNOWN, lambda found: character_at(text.raw, found.start()), written)


def character_at(characters: Any, place: int) -> str:
    """Return a character; U+FFFD where a glyph has none."""
    import pypdfium2.raw as pdfium

    code = pdfium.FPDFText_GetUnicode(characters, place)
    if code or pdfium.FPDFText_IsGenerated(characters, place) == 1:
        return chr(code)
    edges = [ctypes.c_double() for _ in range(4)]
    pdfium.FPDFText_GetCharBox(characters, place, *edges)
    left, right, bottom, top = (edge.value for edge in edges)
    return "\ufffd" if right > left and top > bottom else " "


def parts_of_word(characters: Any, first: int, word: str, turns: int) -> Iterator[tuple[str, Box]]:
    """Yield a word with the box around it, or each letter of it where some are raised, as powers are."""
    import pypdfium2.raw as pdfium

    box = pdfium.FS_RECTF()

    def box_of(place: int) -> Box:
        pdfium.FPDFText_GetLooseCharBox(characters, first + place, box)
        return turned((box.left, box.bottom, box.right, box.top), turns)

    places = {0, len(word) - 1, *(found.end() - 1 for found in DIGITS.finditer(word))}
    first_edges, *others = edges = [box_of(place) for place in sorted(places)]
    lefts, bottoms, rights, tops = zip(*edges, strict=True)
    left, right = min(lefts), max(rights)
    is_narrow = right - left < WIDEST * len(word) * (first_edges[3] - first_edges[1])
    is_whole = is_narrow and not APART.search(word)
    if is_whole and all(are_level(first_edges, each) for each in others):
        yield word, (left, min(bottoms), right, max(tops))
    else:
        letters = [(letter, box_of(place)) for place, letter in enumerate(word)]
        for place, ((one, around), (other, same)) in enumerate(pairwise(letters)):
            if around == same and one in ALEF and other == LAM:  # one glyph, whose letters PDFium turns round
                letters[place : place + 2] = [(other, same), (one, around)]
        yield from with_accents(letters)


def with_accents(letters: Iterable[tuple[str, Box]]) -> Iterator[tuple[str, Box]]:
    """Yield letters, those over or under which TeX has set an accent as one character: ``ü`` for ``¨u``."""
    last: tuple[str, Box] | None = None
    for letter, box in letters:
        if last is not None:
            accent, base = (last[0], letter) if last[0] in ACCENTS else (letter, last[0])
            middle = (box[0] + box[2]) / 2 if accent == letter else (last[1][0] + last[1][2]) / 2
            around = last[1] if accent == letter else box
            whole = unicodedata.normalize("NFC", base + ACCENTS.get(accent, "\0"))
            if len(whole) == 1 and around[0] < middle < around[2]:
                last = whole, around
                continue
            yield last
        last = letter, box
    if last is not None:
        yield last


def are_level(box: Box, other: Box) -> bool:
    """Whether two letters are of the same size and stand on the same line."""
    return abs(box[1] - other[1]) + abs(box[3] - other[3]) < LEVEL * (box[3] - box[1])


def is_raised(box: Box, before: Box) -> bool:
    """Whether a letter is smaller than the one before and stands above its line, as powers do."""
    height = before[3] - before[1]
    return box[3] - box[1] < 0.85 * height and box[1] - before[1] > 0.2 * height


def looks_like_words(text: str) -> bool:
    """Whether the codes of letters without a map are letters of Latin words, as they are in old files."""
    letters = [sign for sign in text.lower() if "a" <= sign <= "z"]
    n_others = sum(not sign.isspace() and not sign.isdigit() for sign in text)
    is_plain = len(letters) > LEAST_LETTERS and len(letters) > LETTERS * n_others
    return is_plain and sum(sign in "aeiouy" for sign in letters) > VOWELS * len(letters)


def turned(box: Box, turns: int) -> Box:
    """Return a box as it stands when its text runs from left to right."""
    left, bottom, right, top = box
    match turns:
        case 1:  # lines run downwards
            return -top, left, -bottom, right
        case 2:
            return -right, -top, -left, -bottom
        case 3:
            return bottom, -right, top, -left
    return box


def annotations_of(page: Any, form: Any, found: Page) -> Iterator[Segment]:
    """Yield the values of form fields, and typed notes, at their places."""
    import pypdfium2.raw as pdfium

    box = pdfium.FS_RECTF()
    for number in range(min(pdfium.FPDFPage_GetAnnotCount(page), MAX_ANNOTATIONS)):
        annotation = pdfium.FPDFPage_GetAnnot(page, number)
        kind = pdfium.FPDFAnnot_GetSubtype(annotation)
        text = ""
        if pdfium.FPDFAnnot_GetFlags(annotation) & HIDDEN:
            kind = 0
        if kind == pdfium.FPDF_ANNOT_WIDGET and form:
            text = field_value(annotation, form)
            found.n_fields += bool(text)
            found.annotations["signature"] += pdfium.FPDFAnnot_GetFormFieldType(form, annotation) == 7
        elif kind == pdfium.FPDF_ANNOT_FREETEXT:
            text = string_of(pdfium.FPDFAnnot_GetStringValue, annotation, b"Contents")
        elif kind in UNREAD_ANNOTATIONS:
            is_seen = kind == 13 or string_of(pdfium.FPDFAnnot_GetStringValue, annotation, b"Contents")
            found.annotations[UNREAD_ANNOTATIONS[kind]] += bool(is_seen)
        pdfium.FPDFAnnot_GetRect(annotation, box)
        pdfium.FPDFPage_CloseAnnot(annotation)
        lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n") if text.strip() else []
        height = (box.top - box.bottom) / max(len(lines), 1)
        for place, line in enumerate(lines):
            middle, half = box.top - (place + 0.5) * height, min(height, FIELD_HEIGHT) / 2
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


def string_of(call: Any, *arguments: Any) -> str:
    """Return the text that a function of PDFium writes into a buffer, which it asks for first."""
    import pypdfium2.raw as pdfium

    n_bytes = call(*arguments, None, 0)
    buffer = ctypes.create_string_buffer(max(n_bytes, 2))
    call(*arguments, ctypes.cast(buffer, ctypes.POINTER(pdfium.FPDF_WCHAR)), n_bytes)
    return buffer.raw[: max(n_bytes - 2, 0)].decode("utf-16-le", "replace")


def look_at_objects(page: Any, found: Page) -> Rules:
    """Return the straight lines of a page, and note the share of pictures and the number of drawings."""
    import pypdfium2.raw as pdfium

    across: list[Rule] = []
    down: list[Rule] = []
    area = max(page.get_width() * page.get_height(), 1.0)
    edges = [ctypes.c_float() for _ in range(4)]
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
            sides = [(left, bottom, right, top)] if n_parts <= BOX_PARTS else parts_of_path(thing, n_parts)
            for west, south, east, north in sides:
                if north - south < THIN <= LEAST_RULE < east - west:
                    across.append(((south + north) / 2, west, east))
                elif east - west < THIN <= LEAST_RULE < north - south:
                    down.append(((west + east) / 2, south, north))
                elif min(east - west, north - south) > LEAST_RULE:
                    across += [(south, west, east), (north, west, east)]
                    down += [(west, south, north), (east, south, north)]
    return Rules(across, down)


def parts_of_path(path: Any, n_parts: int) -> Iterator[Box]:
    """Yield the boxes around the straight lines of a path, as of a table that is drawn at once."""
    import pypdfium2.raw as pdfium

    matrix = pdfium.FS_MATRIX()
    pdfium.FPDFPageObj_GetMatrix(path, matrix)
    x, y = ctypes.c_float(), ctypes.c_float()
    last = 0.0, 0.0
    for number in range(n_parts):
        part = pdfium.FPDFPath_GetPathSegment(path, number)
        pdfium.FPDFPathSegment_GetPoint(part, x, y)
        point = (
            matrix.a * x.value + matrix.c * y.value + matrix.e,
            matrix.b * x.value + matrix.d * y.value + matrix.f,
        )
        if pdfium.FPDFPathSegment_GetType(part) == pdfium.FPDF_SEGMENT_LINETO:
            yield (*map(min, last, point), *map(max, last, point))
        last = point
