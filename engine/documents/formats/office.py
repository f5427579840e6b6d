"""What files of Office have in common: archives of XML, and what of them is not read."""

import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from io import BytesIO
from itertools import chain
from typing import IO, Any
from zipfile import ZIP_DEFLATED, ZipFile

from ...errors import DocumentError
from .archive import open_archive, open_member
from .metadata import date_of, tags_of
from .outline import check_number, one_line
from .plain import as_document_error, unified

OFFICE = "http://schemas.openxmlformats.org"
DRAWING, FALLBACK = (
    f"{{{OFFICE}/{end}" for end in ("drawingml/2006/main}", "markup-compatibility/2006}Fallback")
)
COUNTED = (  # in notes
    "hidden slide", "picture", "chart", "diagram", "equation", "symbol", "comment", "embedded document",
    "hidden row", "hidden column", "missing slide",
)  # fmt: skip
MAX_TAGS = 3_000_000  # a book of 1000 pages has a million; the libraries take seconds for them
# Of parts that are read piece by piece: a table of 20 MB has some ten million tags, and unpacks to 330 MB.
MOST_TAGS, MOST_UNPACKED = 12_000_000, 400 * 1024**2
BLOCK = 2**19  # bytes of such a part that are parsed at once
ENDS = (b"</row>", b"</si>", b">")  # of a block: rows and texts of workbooks come whole
Children = Callable[[Any], Iterable[Any]]  # the children of an element
# Files of the strict standard differ only in these names.
STRICT, USUAL = re.compile(rb"http://purl\.oclc\.org/ooxml/(\w+)/"), rf"{OFFICE}/\1/2006/".encode()


def notes_on(seen: Counter[str]) -> tuple[str, ...]:
    """Return what was left out of an Office file, by its kind and number."""
    hidden = ["hidden text was left out"] * (seen["hidden"] > 0)
    counted = ((kind, seen[kind]) for kind in COUNTED)
    notes = (f"{n} {kind}{'s' * (n > 1)} {'was' if n == 1 else 'were'} left out" for kind, n in counted if n)
    return (*hidden, *notes)


def repacked(
    name: str, content: bytes, change: Callable[[str, bytes], bytes], most_tags: int = MAX_TAGS
) -> BytesIO:
    """Return an Office file with its XML as ``change`` makes each block of it, unpacked within limits."""
    plain, n_tags, archive = BytesIO(), 0, open_archive(name, content, MOST_UNPACKED)
    with ZipFile(plain, "w", ZIP_DEFLATED, compresslevel=1) as copy:
        for info in {info.filename: info for info in archive.infolist()}.values():  # the last of equal names
            damaged = as_document_error(f"{info.filename} is damaged", "zip it again")
            try:
                with damaged, open_member(archive, info) as member, copy.open(info.filename, "w") as to:
                    for block in blocks_of(member) if info.filename.endswith((".xml", ".rels")) else ():
                        to.write(changed := change(info.filename, block))
                        n_tags += changed.count(b"<")
            except DocumentError as error:
                raise DocumentError(f"{name}/{error}") from error
            check_number(name, n_tags, most_tags, "tags")
    return plain


def stated(plain: BytesIO, core: Any) -> tuple[str, str, tuple[str, ...]]:
    """Return the title, the day and the tags that a repacked file states: libraries make some up."""
    if b"/core-properties" not in ZipFile(plain).read("_rels/.rels"):
        return "", "", ()
    return one_line(unified(core.title or "")), date_of(core.modified or core.created), tags_of(core.keywords)


def blocks_of(file: IO[bytes]) -> Iterator[bytes]:
    """Yield a file in blocks that end with one of `ENDS`; differences of the strict standard are undone."""
    rest = b""
    while block := file.read(BLOCK):
        rest += block
        if end := next((each for each in ENDS if each in rest), b""):
            before, _, rest = rest.rpartition(end)
            yield STRICT.sub(USUAL, before + end)
    yield rest


class Growing:
    """A part of a file whose tree grows while it is read, and is dropped behind the reader."""

    def __init__(self, name: str, content: bytes, path: str, body: str, parts: Iterable[str]) -> None:
        """Read to the start of an element ``body``; below it, elements with the tags ``parts`` come whole."""
        from lxml import etree

        archive = open_archive(name, content, MOST_UNPACKED)
        self._blocks = blocks_of(open_member(archive, archive.getinfo(path)))
        self._name, self._parts = name, frozenset(parts)
        self._n_tags, self._is_read = 0, False
        self._parser = etree.XMLPullParser(["start"], tag=body, resolve_entities=False, no_network=True)
        while not (found := list(self._parser.read_events())):
            self._grow()
        self.body = found[0][1]

    def _grow(self) -> None:
        """Parse the next block."""
        if block := next(self._blocks, b""):
            self._n_tags += block.count(b"<")
            check_number(self._name, self._n_tags, MOST_TAGS, "tags")
            self._parser.feed(block)
        else:
            self._parser.close()  # which raises, the second time
            self._is_read = True

    def _is_whole(self, element: Any) -> bool:
        """Whether the end of an element was read: something follows it, or one that it stands in."""
        around = chain([element], element.iterancestors())
        return self._is_read or any(each.getnext() is not None for each in around)

    def children(self, element: Any) -> Iterator[Any]:
        """Yield the children of an element; each is dropped when the next is asked for."""
        while (child := next(iter(element), None)) is not None or not self._is_whole(element):
            if child is None or (child.tag in self._parts and not self._is_whole(child)):
                self._grow()
                continue
            yield child
            if child.getparent() is element:  # else its reader took it out
                if not self._is_whole(child):
                    deque(self.children(child), maxlen=0)  # nobody asked for these
                element.remove(child)


def nearest(element: Any, *tags: str, children: Children = iter) -> Iterator[Any]:
    """Yield the outermost elements with these tags below an element.

    The recursion is limited since libxml2 refuses files nested deeper than 256.
    """
    for child in children(element):
        yield from [child] if child.tag in tags else nearest(child, *tags, children=children)
