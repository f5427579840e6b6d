"""PDF files: their text, page by page (pypdf)."""

import logging
import re
import time
from collections import Counter
from collections.abc import Sequence
from io import BytesIO
from typing import Any

from engine.documents.document import Document, Section
from engine.documents.formats.metadata import date_of, tags_of
from engine.documents.formats.outline import one_line
from engine.documents.formats.plain import kind_of, unified
from engine.documents.formats.running_lines import without_running_lines
from engine.errors import DocumentError
from engine.wording import reason_of

# A hostile file can keep pypdf busy for hours: its own limits hold for one page.
MAX_SECONDS = 60.0
MAX_CHARACTERS = 100_000_000
GAP, LINE_GAP = "\n\n", "\n"  # between pages, and where a sentence goes on from one to the next
SOFT_HYPHEN = "\u00ad"
WORD = re.compile(r"[^\W\d_]+")
# The parts of a word on two lines, the mark behind it, and the space at which the second line goes on.
HYPHENATED = re.compile(r"(?<![\w-])([^\W\d_]+)-\n([^\W\d_]++)(?!-)(\S*)( ?)")
# First parts of compounds that are written with a hyphen, and words that follow one ("pre- and post-war").
PREFIX = re.compile(
    "anti|co|cross|ex|half|high|inter|long|low|mid|multi|non|post|pre|pro|re|self|semi|short|sub|super|two"
    "|under|well"
)
JOINING = ("and", "or", "to", "und", "oder", "bis")


def read_pdf(name: str, content: bytes) -> Document:
    """Make a document from a PDF's text, with a section per page that has text.

    Page numbers, and heads and feet that come again (`without_running_lines`), are left out.
    """
    if b"%PDF-" not in content[:1024]:  # as PDF readers do
        kind = kind_of(content) or "something else"
        raise DocumentError(
            f"{name} is no PDF but {kind}: give it the ending of its kind, or export it as PDF"
        )
    title, day, tags, read = read_pages(name, content)
    pages = without_hyphenation(without_running_lines(read))
    if not any(pages):
        raise DocumentError(
            f"{name} has no text on its {len(pages)} pages, which are pictures (a scan): "
            "have its text recognised (OCR) first"
        )
    whole, sections = "", []
    for number, text in enumerate(pages, 1):
        if text:
            whole += gap_between(whole, text)
            sections.append(Section(len(whole), page=number))
            whole += text
    return Document(name, whole, title, tuple(sections), day, tags)


def gap_between(before: str, page: str) -> str:
    """Return what stands between the text so far and a page: one line break where a sentence goes on."""
    if not before:
        return ""
    goes_on = before[-1] not in ".!?…:;" and page[0].islower()
    return LINE_GAP if goes_on else GAP


def metadata_of(metadata: Any) -> tuple[str, str, tuple[str, ...]]:
    """Return the title, the day of the last change and the keywords in a PDF's metadata."""
    if metadata is None:
        return "", "", ()
    try:
        day = date_of(metadata.modification_date or metadata.creation_date)
    except ValueError:  # no date
        day = ""
    title, keywords = (unified(str(value or "")) for value in (metadata.title, metadata.get("/Keywords")))
    return one_line(title), day, tags_of(keywords)


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
        line_end = "\n" if match[4] else ""
        return match[1] + match[2] + match[3] + line_end if is_one_word else match[0]

    return [HYPHENATED.sub(joined, page) for page in pages]


def read_pages(name: str, content: bytes) -> tuple[str, str, tuple[str, ...], list[str]]:
    """Return the title, the date, the tags, and the stripped text of every page."""
    from pypdf import PdfReader
    from pypdf.errors import DependencyError, FileNotDecryptedError

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # its warnings are not errors
    deadline = time.monotonic() + MAX_SECONDS
    pages: list[str] = []
    n_characters = 0
    try:
        reader = PdfReader(BytesIO(content))
        for page in reader.pages:
            if time.monotonic() > deadline:
                raise DocumentError(
                    f"{name} takes over {MAX_SECONDS:.0f} s, after {len(pages)} pages: split it"
                )
            text = page.extract_text().replace(f"{SOFT_HYPHEN}\n", "")  # a word that two lines share
            pages.append(unified(text).strip())
            n_characters += len(text)
            if n_characters > MAX_CHARACTERS:
                raise DocumentError(f"{name} has over {MAX_CHARACTERS} characters of text: split it")
        title, day, tags = metadata_of(reader.metadata)
        return title, day, tags, pages
    except DocumentError:
        raise
    except FileNotDecryptedError as error:
        raise DocumentError(f"{name} is encrypted: save a copy without a password") from error
    except DependencyError as error:  # AES and Brotli need other packages
        raise DocumentError(
            f"{name} is encrypted or packed in a way that is not read ({reason_of(error)}): "
            "save a copy without a password"
        ) from error
    except Exception as error:  # of any kind, according to pypdf's documentation of damaged files
        where = f"after page {len(pages)}" if pages else "from its start"
        raise DocumentError(
            f"{name} is damaged {where} ({reason_of(error)}): export it as PDF again"
        ) from error
