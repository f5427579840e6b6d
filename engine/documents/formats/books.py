"""EPUB books: their chapters in reading order, each read as a page of HTML."""

import posixpath
import re
from typing import Any
from urllib.parse import unquote

from ...errors import DocumentError
from ...wording import counted, printable, some_of
from ..document import Document, Section
from .archive import open_archive, read_member
from .metadata import date_of, tags_of
from .outline import one_line
from .plain import as_document_error, unified
from .webpage import read_html

FONTS = ("http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC")  # only fonts are encrypted
MAX_CHAPTERS = 5000
MAX_STYLE_SHEET = 50_000  # characters of a book's style sheets


def read_epub(name: str, content: bytes) -> Document:
    """Make a document from a book's chapters, with their headings as sections."""
    from lxml import etree

    parser = etree.XMLParser(resolve_entities=False, no_network=True)
    with open_archive(name, content) as archive:
        infos = {info.filename: info for info in archive.infolist()}

        def member(path: str) -> bytes:
            return read_member(archive, infos[path])

        with as_document_error(f"{name} is no EPUB book, or damaged", "download or export it again"):
            if "META-INF/encryption.xml" in infos:
                root = etree.fromstring(member("META-INF/encryption.xml"), parser)
                methods = [each.get("Algorithm") for each in root.iterfind(".//{*}EncryptionMethod")]
                if any(method not in FONTS for method in methods):
                    raise DocumentError(f"{name} is protected against copies (DRM): give a book without")
            container = etree.fromstring(member("META-INF/container.xml"), parser)
            path = container.find(".//{*}rootfile").get("full-path")
            package = etree.fromstring(member(path), parser)
            chapters = chapters_of(package, posixpath.dirname(path))
            lacking = [path for path in chapters if path not in infos]
            sheets = b"".join(member(path) for path in infos if path.endswith(".css"))
            sheets = re.sub(rb"@font-face\s*\{[^}]*\}", b"", sheets)
            style = b"<style>%b</style></head>" % sheets[:MAX_STYLE_SHEET]
            found = []
            n_without = 0
            for path in filter(infos.__contains__, chapters):
                try:
                    found.append(read_html(f"{name}/{path}", member(path).replace(b"</head>", style, 1)))
                except DocumentError:  # it shows no text
                    n_without += 1
    return book(name, package, found, n_without, lacking)


def chapters_of(package: Any, folder: str) -> list[str]:
    """Return the paths of a book's chapters in reading order, without its table of contents."""
    items = {item.get("id"): item for item in package.iterfind(".//{*}manifest/{*}item")}
    order = [items.get(each.get("idref")) for each in package.iterfind(".//{*}spine/{*}itemref")]
    read = [item for item in order if item is not None and "nav" not in item.get("properties", "").split()]
    paths = (posixpath.normpath(posixpath.join(folder, unquote(item.get("href") or ""))) for item in read)
    return list(dict.fromkeys(paths))[:MAX_CHAPTERS]


def book(name: str, package: Any, chapters: list[Document], n_without: int, lacking: list[str]) -> Document:
    """Return the document of all chapters, with what the book states of itself."""
    about = {
        key: [one_line(unified(each.text or "")) for each in package.iterfind(f".//{{*}}metadata/{{*}}{key}")]
        for key in ("title", "date", "subject")
    }
    if not chapters:
        raise DocumentError(f"{name} has no text in its chapters: have its pictures recognised (OCR)")
    text, sections = "", []
    notes: list[str] = []
    for each in chapters:
        text += "\n\n" if text else ""
        start = len(text)
        if each.title and (not each.sections or each.sections[0].start):
            sections.append(Section(start, (each.title,)))
        sections += [Section(start + one.start, one.headings) for one in each.sections]
        text += each.text
        notes += each.notes
    if n_without:
        notes.append(f"{counted(n_without, 'chapter')} without text, as of pictures, left out")
    if lacking:
        notes.append(f"chapters that the file lacks: {printable(some_of(lacking, 3))[:300]}")
    title, day = (next(iter(about[key]), "") for key in ("title", "date"))
    day = date_of(day[:10]) or date_of(f"{day[:4]}-01-01" if len(day) == 4 else "")
    tags = tags_of(about["subject"])
    return Document(name, text, title, tuple(sections), day, tags, tuple(dict.fromkeys(notes)))
