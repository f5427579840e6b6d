"""PDF files: their text, page by page (PDFium, which reads as a browser does).

pypdf, pdfplumber and PDFium were tried on the same files. Only PDFium tells which letters have no character,
reads turned text and glyphs by their names, and opens all encrypted files by itself. A page of a manual took
8 ms with columns and tables; 11 ms with pypdf and 46 ms with pdfplumber without them.
"""

import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from unicodedata import combining

from ...errors import DocumentError, GlassboxError
from ...wording import counted, printable, reason_of
from .. import recognition
from ..document import Document, Section
from .from_right import TORN
from .metadata import date_of, tags_of
from .outline import one_line
from .pdf_layout import gap_between
from .pdf_lines import CELL_BREAK, CELL_GAP
from .pdf_page import SMALL, Page, read_page, recognise
from .plain import kind_of, unified
from .running_lines import PAGE_NUMBER, with_whole_sentences, without_number, without_running_lines

MAX_SECONDS = 60.0  # PDFium's own limits hold for one page
RECOGNITION_SECONDS = 900.0  # pages that are pictures are recognised
MAX_CHARACTERS = 100_000_000
MAX_TAGS = 5_000_000  # children looked at: a long element lists all of its own again for every page
MAX_ATTACHED = 20  # files that are named
WORD = re.compile(r"[^\W\d_]+")
# The parts of a word on two lines, the mark behind it, and the space at which the second line goes on.
HYPHENATED = re.compile(
    rf"(?<!\w)([^\W\d_]+)-{CELL_GAP}*[\n{CELL_BREAK}]([^\W\d_]++)(?!-[\n{CELL_BREAK}])(\S*)( ?)"
)
LINE_END = re.compile(rf"-{CELL_GAP}*[\n{CELL_BREAK}]")
HEAD = re.compile(rf"[^\W\d_]{{2}}[^{CELL_GAP}]*(?:{CELL_GAP}[^\W\d_]{{2}}[^{CELL_GAP}]*){{2,}}")
NUMBERS = re.compile(rf"(\d[-–])[\n{CELL_BREAK}](\d\S*)( ?)")  # "8–" and "12 h"
# Where a line goes on in scripts without blanks, but for items.
HAN, THAI = r"\u3001\u3005-\u3007\u300c-\u303f\u3041-\u30ff\u3400-\u9fff\uff08\uff09\uff0c", r"\u0e01-\u0eff"
NO_ITEM = r"\n(?![・（\u2460-\u2473]|\d+[.)、．])"
UNSPACED = re.compile(rf"[{HAN}]{NO_ITEM}[{HAN}\w]|\w{NO_ITEM}[{HAN}]|[{THAI}]\n[{THAI}]")
IN_CELL = re.compile(rf"(?<=[{HAN}]){CELL_BREAK}(?=[{HAN}\w])|(?<=\w){CELL_BREAK}(?=[{HAN}])")
SET_IN_FULL, LEAST_WIDTH = 0.75, 0.3  # of the widest line nearby, and of the page
# First parts of compounds that are written with a hyphen, and words that follow one ("pre- and post-war").
PREFIX = re.compile(
    "(?:anti|co|cross|ex|half|high|inter|long|low|mid|multi|non|post|pre|self|semi|short|sub|super|two|under"
    "|well)-|re-[aeiou]"  # "re-use", but "re-moved"
)
LEAST_GAPS = 4  # between the cells of a line that is a row by itself
LEAST_HYPHENS, HYPHENS = 5, 0.02  # at ends of lines where a file parts words, and the share of its lines
JOINING = ("and", "or", "to", "und", "oder", "bis")
PICTURES = " is a picture| are pictures"  # of one page, and of several
DATE = re.compile(r"D?:?(\d{4})-?(\d\d)?-?(\d\d)?")
PASSWORD, SECURITY = 4, 5  # errors of PDFium


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
    title, day, tags, read, attached = read_pages(name, content)
    kept = with_whole_sentences(without_running_lines([page.text for page in read]))
    whole_pages = zip(without_hyphenation(kept), read, strict=True)
    pages = [finished(without_breaks(text), page.n_unmapped > 0) for text, page in whole_pages]
    if not any(pages):
        if any(page.n_unmapped for page in read):
            raise DocumentError(f"{name} has fonts without a map to characters: {recognition.way_out()}")
        are = "is a picture" if len(pages) == 1 else "are pictures"
        raise DocumentError(
            f"{name} has no text on its {counted(len(pages), 'page')}, which {are} (a scan) or blank: "
            f"{recognition.way_out()}"
        )
    whole, sections = "", []
    for number, text in enumerate(pages, 1):
        if text:
            whole += gap_between(whole, text)
            sections.append(Section(len(whole), page=number))
            whole += text
    notes = (*notes_of(read), *notes_of_lines(read, kept), *attached)
    return Document(name, whole, title, tuple(sections), day, tags, notes)


def notes_of(pages: Sequence[Page]) -> tuple[str, ...]:
    """Return what was left out of pages, and where."""
    scans = [number for number, page in enumerate(pages, 1) if page.is_scan]
    bare = [number for number in scans if not pages[number - 1].text]
    headed = [number for number in scans if pages[number - 1].text]
    pictures = [n for n, page in enumerate(pages, 1) if page.share_of_pictures > SMALL and n not in scans]
    failed = [number for number, page in enumerate(pages, 1) if page.recognition == "failed"]
    drawn = [n for n, p in enumerate(pages, 1) if p.n_drawn and not p.text and n not in (*scans, *failed)]
    guessed = [number for number, page in enumerate(pages, 1) if page.n_guessed]
    unmapped = [number for number, page in enumerate(pages, 1) if page.n_unmapped]
    as_stored = [number for number, page in enumerate(pages, 1) if not page.is_laid_out]
    torn = [n for n, page in enumerate(pages, 1) if not page.text.isascii() and TORN.search(page.text)]
    recognised = [number for number, page in enumerate(pages, 1) if page.recognition == "done"]
    in_vain = [number for number in scans if pages[number - 1].recognition == "tried"]
    seen = (*in_vain, *failed)
    bare, headed = ([number for number in numbers if number not in seen] for numbers in (bare, headed))
    way_out = recognition.way_out()
    n_fields = sum(page.n_fields for page in pages)
    notes = [
        bare and f"{numbered('page', bare, PICTURES)} without text: {way_out}",
        headed and f"{numbered('page', headed, PICTURES)} with a few words of text: {way_out}",
        in_vain and f"{numbered('page', in_vain, PICTURES)} in which no text was recognised (OCR)",
        failed and f"{numbered('page', failed, PICTURES)} whose recognition (OCR) failed or took too long",
        recognised and f"{numbered('page', recognised, PICTURES)} whose text was recognised (OCR)",
        drawn and f"{numbered('page', drawn)} drawn and without text",
        unmapped
        and f"text on {numbered('page', unmapped, '')}, in a font without a map to characters, left out",
        guessed
        and f"a font on {numbered('page', guessed, '')} has no map to characters: its text is a guess",
        as_stored
        and f"{numbered('page', as_stored)} read as stored: columns and cells of tables may be mixed",
        torn
        and f"vowel signs or upright lines on {numbered('page', torn, '')} may be read in the wrong order",
        pictures and f"pictures on {numbered('page', pictures, '')} were not read",
        n_fields and f"{n_fields} form field{'s' * (n_fields > 1)} {'were' if n_fields > 1 else 'was'} read",
    ]
    for kind in ("comment", "stamp", "signature", "attached file"):
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


def finished(text: str, lacks_rows: bool = False) -> str:
    """Return the text of a page with `` | `` between cells, and blanks in lines that are no head of rows."""
    lines = text.replace(CELL_BREAK, " ").split("\n")
    shown = []
    for number, line in enumerate(lines):
        if CELL_GAP in line:
            near = [*lines[max(number - 1, 0) : number], *lines[number + 1 : number + 2]]
            is_table = any(CELL_GAP in other for other in near) or (
                lacks_rows and HEAD.fullmatch(line) is not None
            )
            below = lines[number + 1 : number + 3]  # a head, and rows under the name of a group
            is_table |= len(below) == 2 and min(line.count(CELL_GAP), below[1].count(CELL_GAP)) > 1
            first, *rest = line.rstrip(CELL_GAP).split(CELL_GAP)
            are_values = len(rest) > 1 and all(any(map(str.isdigit, cell)) for cell in rest)
            is_table |= are_values or len(rest) > LEAST_GAPS
            is_value = any(
                other.strip(CELL_GAP).count(CELL_GAP) == len(rest) == 1
                and not other.split(CELL_GAP)[0].endswith(":")
                for other in near
            )
            are_labels = (len(rest) < 3 and not is_value) or sum(
                cell.endswith(":") for cell in (first, *rest)
            ) > 1
            for cell in rest:
                if (not cell and first.endswith(":")) or (cell and first.endswith(f"☒ {cell}")):
                    continue  # the value of a form stands farther to the right, or the name of a box twice
                is_label = first.endswith(("☐", "☒")) or (first.endswith(":") and are_labels)
                first += (" " if is_label or not is_table else " | ") + cell
            line = first if is_table else one_line(first)
        shown.append(line)
    return "\n".join(shown)


def without_breaks(text: str) -> str:
    """Return the text of a page with the lines of a paragraph joined in scripts that have no blanks."""
    text = text if text.isascii() else IN_CELL.sub("", text)
    if text.isascii() or not UNSPACED.search(text):
        return text
    lines, joined = text.split("\n"), ""
    widths = [sum(1 + (sign > "\u2e7f") - (combining(sign) > 0) for sign in line) for line in lines]
    widths = [n * (CELL_GAP not in line) for n, line in zip(widths, lines, strict=True)]
    for n, line in enumerate(lines):
        least = max(SET_IN_FULL * max(widths[max(n - 2, 0) : n + 1]), LEAST_WIDTH * max(widths))
        goes_on = widths[n] and widths[n - 1] > least and UNSPACED.match(f"{joined[-1:]}\n{line}")
        joined += line if goes_on or not n else f"\n{line}"
    return joined


def without_hyphenation(pages: list[str]) -> list[str]:
    """Join the words that two lines share with a hyphen ("contain-" and "ing"), on the first line.

    The hyphen goes where the whole word occurs elsewhere, or, before a lower-case letter, where the first
    part occurs nowhere else and is no usual prefix or acronym: "well-known", "Navier-Stokes" keep theirs.
    Where many lines end so, it also goes where the second part occurs nowhere else.
    """
    pages = [NUMBERS.sub(lambda match: match[1] + match[2] + "\n" * len(match[3]), page) for page in pages]
    found = [match for page in pages if LINE_END.search(page) for match in HYPHENATED.finditer(page)]
    if not found:
        return pages
    words = Counter(word for page in pages for word in WORD.findall(page.casefold()))
    firsts, seconds = (Counter(match[part].casefold() for match in found) for part in (1, 2))
    is_usual = len(found) > max(LEAST_HYPHENS, HYPHENS * sum(page.count("\n") for page in pages))

    def joined(match: re.Match[str]) -> str:
        first, second = match[1].casefold(), match[2].casefold()
        is_chain = match[3][:1] == "-" or match.string[: match.start()][-1:] == "-"  # "five-year-olds"
        is_prefix = is_chain or PREFIX.match(f"{first}-{match[2]}")
        is_part = words[first] == firsts[first] and (is_usual or not is_prefix)
        is_part |= is_usual and not is_chain and words[second] == seconds[second]
        is_compound = match[2][0].isupper() or match[1].isupper() or match[3][:1] == "-"
        is_one_word = words[first + second] or (not is_compound and is_part)
        if match[2] in JOINING:
            return match[0]
        line_end = "\n" if match[4] and "\n" in match[0] else match[4]
        return match[1] + "-" * (not is_one_word) + match[2] + match[3] + line_end

    read = [HYPHENATED.sub(joined, page) for page in pages]
    return read if read == pages else without_hyphenation(read)  # a word may be on three lines


def read_pages(name: str, content: bytes) -> tuple[str, str, tuple[str, ...], list[Page], list[str]]:
    """Return the title, the date, the tags, every page, and notes of attached files."""
    import pypdfium2

    deadline = time.process_time() + MAX_SECONDS
    recognition_end = time.monotonic() + RECOGNITION_SECONDS
    pages: list[Page] = []
    n_characters = n_tags = 0
    try:
        file = pypdfium2.PdfDocument(content)
        file.init_forms()
        about = file.get_metadata_dict()
        attached = [
            f"attached file {printable(unified(file.get_attachment(n).get_name()))[:100]} left out"
            for n in range(min(file.count_attachments(), MAX_ATTACHED))
        ]
        changed = DATE.match(about.get("ModDate") or about.get("CreationDate") or "")
        day = date_of("-".join(part or "01" for part in changed.groups())) if changed else ""
        for number in range(len(file)):
            if time.process_time() > deadline:
                raise DocumentError(
                    f"{name} takes over {MAX_SECONDS:.0f} s, after {len(pages)} pages: split it"
                )
            page = file[number]
            form = file.formenv.raw if file.formenv else None
            try:
                pages.append(read_page(page, form, may_have_tags=n_tags < MAX_TAGS))
            except (ArithmeticError, LookupError, TypeError, ValueError):  # of places no page should have
                pages.append(Page(unified(page.get_textpage().get_text_range()).strip(), is_laid_out=False))
            n_tags += pages[-1].n_tags
            is_time = pages[-1].may_be_recognised and time.monotonic() < recognition_end
            if is_time and recognition.begin(number + 1, len(file)):
                recognise(page, pages[-1])
            page.close()
            n_characters += len(pages[-1].text)
            if n_characters > MAX_CHARACTERS:
                raise DocumentError(f"{name} has over {MAX_CHARACTERS} characters of text: split it")
    except GlassboxError:
        raise
    except Exception as error:  # of any kind: the values in a damaged file
        if getattr(error, "err_code", 0) in (PASSWORD, SECURITY):
            raise DocumentError(f"{name} is encrypted: save a copy without a password") from error
        where = f"after page {len(pages)}" if pages else "from its start"
        raise DocumentError(
            f"{name} is damaged {where} ({reason_of(error)}): export it as PDF again"
        ) from error
    title, tags = (unified(about.get(key, "")) for key in ("Title", "Keywords"))
    return one_line(title), day, tags_of(tags), pages, attached
