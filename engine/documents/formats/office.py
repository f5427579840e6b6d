"""What files of Office have in common: archives of XML, and what of them is not read."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from io import BytesIO
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

from ...errors import DocumentError
from .archive import open_archive, read_member
from .metadata import date_of, tags_of
from .outline import one_line
from .plain import unified

OFFICE = "http://schemas.openxmlformats.org"
DRAWING = f"{{{OFFICE}/drawingml/2006/main}}"
COUNTED = (  # in notes
    "hidden slide", "picture", "chart", "diagram", "equation", "symbol", "comment", "embedded document",
    "hidden row", "hidden column",
)  # fmt: skip
MAX_TAGS = 3_000_000  # a book of 1000 pages has a million; the libraries take seconds for them
# Files of the strict standard differ only in these names.
STRICT, USUAL = re.compile(rb"http://purl\.oclc\.org/ooxml/(\w+)/"), rf"{OFFICE}/\1/2006/".encode()


def notes_on(seen: Counter[str]) -> tuple[str, ...]:
    """Return what was left out of an Office file, by its kind and number."""
    hidden = ["hidden text was left out"] * (seen["hidden"] > 0)
    counted = ((kind, seen[kind]) for kind in COUNTED)
    notes = (f"{n} {kind}{'s' * (n > 1)} {'was' if n == 1 else 'were'} left out" for kind, n in counted if n)
    return (*hidden, *notes)


def repacked(
    name: str,
    content: bytes,
    change: Callable[[str, bytes], bytes] = lambda path, member: member,
    most_tags: int = MAX_TAGS,
) -> BytesIO:
    """Return an Office file with its members, as ``change`` makes them, unpacked within limits."""
    plain, n_tags = BytesIO(), 0
    with open_archive(name, content) as archive, ZipFile(plain, "w", ZIP_DEFLATED, compresslevel=1) as copy:
        for info in {info.filename: info for info in archive.infolist()}.values():  # the last of equal names
            if not info.filename.endswith("/"):
                try:
                    member = read_member(archive, info)
                except DocumentError as error:
                    raise DocumentError(f"{name}/{error}") from error
                if info.filename.endswith((".xml", ".rels")):
                    member = change(info.filename, STRICT.sub(USUAL, member))
                    n_tags += member.count(b"<")
                copy.writestr(info.filename, member)
                if n_tags > most_tags:
                    raise DocumentError(f"{name} has over {most_tags} tags, the most that are read: split it")
    return plain


def stated(plain: BytesIO, core: Any) -> tuple[str, str, tuple[str, ...]]:
    """Return the title, the day and the tags that a repacked file states: libraries make some up."""
    if b"/core-properties" not in ZipFile(plain).read("_rels/.rels"):
        return "", "", ()
    return one_line(unified(core.title or "")), date_of(core.modified or core.created), tags_of(core.keywords)


def nearest(element: Any, *tags: str) -> Iterator[Any]:
    """Yield the outermost elements with these tags below an element.

    The recursion is limited since libxml2 refuses files nested deeper than 256.
    """
    for child in element:
        yield from [child] if child.tag in tags else nearest(child, *tags)
