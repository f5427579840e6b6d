"""HTML pages: their visible text, one line per block. Nothing is run or fetched.

Only lxml is used: its parser and one walk over the tree took 0.06 s for a page of 0.8 MB; beautifulsoup4 took
1.1 s with either parser (html.parser, lxml).
"""

import re
from collections.abc import Iterator
from typing import Any

from ...errors import DocumentError
from ...wording import reason_of
from ..document import Document
from .metadata import date_of, tags_of
from .outline import Block, bounded, join_blocks, one_line
from .page_tree import CELLS, LINES, MARKER, PARAGRAPHS, rewrite
from .plain import decode, unified

# Elements whose text is not shown.
HIDDEN = frozenset(
    ("head", "title", "script", "style", "template", "noscript", "svg", "iframe", "object", "audio", "video",
     "canvas", "datalist", "noframes")
)  # fmt: skip
HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
CELL_GAP = " | "
DATES = ("article:published_time", "date", "dcterms.date", "dc.date")
TAGS = ("keywords", "article:tag")
MAX_ATTRIBUTES = 2000
MAX_ELEMENTS = 1_200_000  # a table of 20 MB has a million: 7 s and 470 MB
# Characters that no page shows and lxml refuses to write, and references to characters.
CONTROLS: dict[int, str | None] = {
    **dict.fromkeys((*range(9), 0x0B, *range(0x0E, 0x20), 0xFFFE, 0xFFFF)),
    0x0C: " ",  # between printed pages
}
REFERENCE = re.compile(r"&#(?:x([0-9a-f]{1,8})|([0-9]{1,9}))(?![0-9a-f]);?", re.IGNORECASE)
TAG = re.compile(r"""<[a-zA-Z](?>(?:=\s*(?:"[^"]*"|'[^']*')|[^>])*)""")
VALUE = re.compile(r"""=\s*(?:"[^"]*"|'[^']*'|[^\s>]*)""")
BETWEEN_ATTRIBUTES = re.compile(r"[\s/]+")
CHARSET = re.compile(
    rb"""(?:<meta[^>]{0,200}?charset|<\?xml[^>]{0,100}?encoding)\s*=\s*["']?\s*([\w.:-]{2,40})""",
    re.IGNORECASE,
)


def read_html(name: str, content: bytes, charset: str | None = None) -> Document:
    """Make a document from a page's visible text, with its headings as sections and its ``<title>``.

    ``charset`` is the encoding that is stated outside of the page, as in the head of an e-mail.
    Its date and tags are those of ``<meta>`` elements, the first of `DATES` and `TAGS` that there are.
    """
    declared = CHARSET.search(content[:4096])
    charset = charset or (declared[1].decode("ascii") if declared else None)
    root = parsed(name, decode(name, content, charset))
    notes = rewrite(root) if root is not None else ()
    text, sections = join_blocks(page_blocks(root) if root is not None else ())
    if not text:
        raise DocumentError(f"{name} shows no text: save the page once it is loaded, with its text in it")
    found = root.find("head/title")  # an SVG drawing can have one, too
    title = unified("".join(found.itertext())) if found is not None else ""
    metas = root.iterfind("head/meta")
    about = {(meta.get("name") or meta.get("property") or "").lower(): meta.get("content") for meta in metas}
    day = next(filter(None, (date_of(about.get(each)) for each in DATES)), "")
    tags = next(filter(None, (tags_of(about.get(each)) for each in TAGS)), ())
    return Document(name, text, one_line(title), sections, day, tags, notes)


def html_text(part: str) -> str:
    """Return the text of a part of a page, such as a table, with a line break; empty where it shows none."""
    try:
        return read_html("part", part.encode("utf-8", "replace")).text + "\n"
    except DocumentError:
        return ""


def parsed(name: str, text: str) -> Any:
    """Return the root element of a page, None for an empty one."""
    from lxml import etree

    text = REFERENCE.sub(
        lambda found: "" if int(found[1] or found[2], 16 if found[1] else 10) in CONTROLS else found[0],
        text.translate(CONTROLS),
    )
    check_tags(name, text)
    # As UTF-8 bytes: lxml refuses strings that declare an encoding.
    parser = etree.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True, huge_tree=True)
    try:
        root = etree.fromstring(text.encode(), parser)
    except etree.XMLSyntaxError as error:  # of a page without elements, or where the memory is short
        raise DocumentError(f"{name} cannot be read ({reason_of(error)}): save it as text") from error
    if any(entry.type_name == "ERR_RESOURCE_LIMIT" for entry in parser.error_log):
        raise DocumentError(f"{name} nests its elements deeper than 2048: save it as text")
    return root


def check_tags(name: str, text: str) -> None:
    """Raise for very many tags, or attributes of one: libxml2 takes time quadratic in the attributes."""
    for tag in bounded(name, TAG.finditer(text), MAX_ELEMENTS, "elements"):
        long = tag.end() - tag.start() > 2 * MAX_ATTRIBUTES
        if long and len(BETWEEN_ATTRIBUTES.split(VALUE.sub(" ", tag[0]))) > MAX_ATTRIBUTES:
            raise DocumentError(f"{name} has a tag of over {MAX_ATTRIBUTES} attributes: save it as text")


def page_blocks(root: Any) -> Iterator[Block]:
    """Yield the lines of a page, with the levels of headings."""
    from lxml import etree

    inline: list[str] = []  # the text since the last line began
    gap, marker, level, n_pre = "", "", 0, 0
    blank, in_row = True, False  # whether the line has no text yet, and a cell, which may be empty
    walk = etree.iterwalk(root, events=("start", "end"))
    for event, element in walk:
        tag, starts = element.tag, event == "start"
        if tag == "br" and level:
            inline.append(" ")
        elif tag in PARAGRAPHS or tag in LINES:
            text = unified("".join(inline))
            text = text.strip("\n") if n_pre else one_line(text)
            if text.strip() and not blank:
                yield Block(marker + text, level, gap)
                gap, marker, level = "", "", 0
            inline, blank, in_row = [], True, False
            if tag in HEADINGS:
                level = int(tag[1]) if starts else 0
            gap = max(gap, "\n\n" if tag in PARAGRAPHS else "\n")
            if tag == "li":
                marker = marker + element.get(MARKER, "") if starts else ""
        if starts and tag in HIDDEN:
            walk.skip_subtree()
        else:
            piece = (element.text if starts else element.tail) or ""
            is_cell = starts and tag in CELLS
            inline.append(CELL_GAP + piece if is_cell and (in_row or not blank) else piece)
            blank, in_row = blank and not piece.strip(), in_row or is_cell
        n_pre += (tag == "pre") * (1 if starts else -1)
