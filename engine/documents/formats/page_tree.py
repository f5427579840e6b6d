"""What the tree of a web page says besides its text, written into the text: numbers, powers, merged cells.

Each function changes elements in place, before `engine.documents.formats.webpage` walks over them.
"""

import re
from collections.abc import Iterable
from itertools import islice
from typing import Any

from ...wording import counted
from .equations import bracketed
from .outline import one_line
from .scripts import FRACTION, lowered, raised
from .word_numbers import formatted

# Elements with blank lines around them, and those that only start a new line.
PARAGRAPHS = frozenset(
    ("p", "pre", "blockquote", "ul", "ol", "dl", "table", "figure", "section", "article", "header", "footer",
     "main", "nav", "aside", "form", "fieldset", "hr", "address", "details", "h1", "h2", "h3", "h4", "h5",
     "h6")
)  # fmt: skip
LINES = frozenset(
    ("body", "div", "li", "dt", "dd", "tr", "br", "caption", "figcaption", "summary", "option", "optgroup",
     "textarea", "select", "legend")
)  # fmt: skip
CELLS = frozenset(("td", "th"))
MARKER = "data-glassbox-marker"  # the attribute of an item with its number
ROLES = {"row": "tr", "cell": "td", "gridcell": "td", "columnheader": "th", "rowheader": "th",
         "table": "table"}  # fmt: skip
# Styles that say what an element is, as in the exports of word processors.
SAID_BY_STYLE = {
    "sup": re.compile(
        r"vertical-align\s*:\s*(?:super\b|[2-9]\d[\d.]*%|0?\.[2-9]\d*em)|[;\s]top\s*:\s*-0?\.[2-9]\d*em", re.I
    ),
    "sub": re.compile(r"vertical-align\s*:\s*sub\b", re.IGNORECASE),
    "s": re.compile(r"text-decoration(?:-line)?\s*:[^;]*\bline-through\b", re.IGNORECASE),
}
HIDING = re.compile(  # or moved off the screen, or cut to a point, as links that skip a menu
    r"(?:display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse))\b"
    r"|(?:^|[;\s])(?:left|top)\s*:\s*-\d{3}(?:\d|r?em)"
    r"|clip\s*:\s*rect\(\s*[01](?:px)?[\s,]+[01]|clip-path\s*:\s*inset\(\s*(?:[5-9]\d|100)%",
    re.IGNORECASE,
)
NAME = re.compile(r"[.#]?[\w-]+")
PART = r"[.#]?[\w-]+(?:[.#][\w-]+)*"
SELECTOR = re.compile(rf"{PART}(?:\s+{PART})*")
Selectors = dict[str, list[list[frozenset[str]]]]
# Characters read of style sheets and of an element's style, selectors that end alike, elements around one.
MAX_SHEET, MAX_STYLE, MAX_ALIKE, MAX_AROUND = 200_000, 1000, 20, 100
FORMULAS = ("katex", "MathJax", "MathJax_Display", "mwe-math-element")  # classes around <math> and its copies
COPIES = ("katex-html", "MathJax_Preview", "MathJax_CHTML", "MathJax_SVG")
LINE_NUMBERS = ("ln", "lineno", "linenos", "line-number", "line-numbers", "linenumber", "hljs-ln-numbers")
FORMS = {"a": "lowerLetter", "A": "upperLetter", "i": "lowerRoman", "I": "upperRoman"}
STYLES = {
    "lower-alpha": "a", "lower-latin": "a", "upper-alpha": "A", "upper-latin": "A", "lower-roman": "i",
    "upper-roman": "I",
}  # fmt: skip
ON_SCREENS = re.compile(r"@media\s+(?:all|screen)\s*\{((?:[^{}]*\{[^{}]*\})*)\s*\}")
LIST_STYLE = re.compile(r"list-style(?:-type)?\s*:[^;]*?\b(none|[a-z]+-[a-z]+)\b")
MAX_SPAN, MAX_COPIED, MAX_COPIES = 100, 200, 50_000  # columns, characters of a cell, and cells of a page
MAX_SCRIPT, MAX_RUBY = 50, 500  # characters of a superscript or subscript, and of words with readings
MAX_CELL = 300  # characters of a cell whose paragraphs stand on one line
FILE_NAME = re.compile(r"\S+\.(?:png|jpe?g|gif|svg|webp|bmp)", re.IGNORECASE)
MATH_SPACED = frozenset("=<>≤≥≠≈→±∈+−")


def rewrite(root: Any) -> tuple[str, ...]:
    """Write into the text what a reader sees with it, and return notes of what is left out."""
    notes = []
    rename_elements(root)
    rewrite_formulas(root)
    rewrite_pictures(root)
    if n := remove_hidden(root):
        notes.append(f"{counted(n, 'part')} hidden on the page left out")
    if n := sum(1 for _ in root.iter("iframe", "frame", "object", "embed")):
        notes.append(f"{counted(n, 'embedded frame')} left out")
    if n := sum(drawing.find(".//text") is not None for drawing in root.iter("svg")):
        notes.append(f"the text of {counted(n, 'drawing')} left out")
    if n := rewrite_form(root):
        notes.append(f"{counted(n, 'form field')} {'was' if n == 1 else 'were'} read")
    for link in root.iterfind(".//a"):
        following = link.getnext()
        if following is not None and following.tag == "a" and not link.tail:
            link.tail = " "  # as of a menu, whose style parts them
        if link.text in ("¶", "#", "🔗", "\u200b") and link.get("href", "").startswith("#"):
            become(link, "")  # behind a heading, seen only under the pointer
    for element in with_class(root, LINE_NUMBERS):  # next to code
        if not text_of(element).strip(" \n\t0123456789:|"):
            become(element, "")
    rewrite_ruby(root)
    rewrite_scripts(root)
    number_items(root)
    spread_cells(root)
    return tuple(notes)


def text_of(element: Any) -> str:
    """Return all text of an element."""
    return "".join(element.itertext())


def become(element: Any, text: str) -> None:
    """Replace what an element holds by a text within the line."""
    tail = element.tail
    element.clear()
    element.tag, element.text, element.tail = "span", text, tail


def short_text(element: Any, most: int) -> str | None:
    """Return all text of an element on a line, None for over ``most`` characters."""
    pieces, n_characters = [], 0
    for piece in element.itertext():
        pieces.append(piece)
        n_characters += len(piece)
        if n_characters > most:
            return None
    return one_line("".join(pieces))


def with_class(root: Any, names: Iterable[str]) -> list[Any]:
    """Return the elements that have one of some classes."""
    wanted = set(names)
    return [each for each in root.xpath("//*[@class]") if not wanted.isdisjoint(each.get("class").split())]


def rename_elements(root: Any) -> None:
    """Name elements by what they are to a reader: cells of tables, powers, what is struck out."""
    for element in root.xpath("//*[@role]"):
        if element.tag in ("div", "span"):
            element.tag = ROLES.get(element.get("role"), element.tag)
    for tag, style in SAID_BY_STYLE.items():
        selectors = styled_selectors(root, style)
        for span in root.xpath("//span[@style or @class]"):
            if is_styled(span, style, selectors):
                span.tag = tag


def remove_hidden(root: Any) -> int:
    """Remove what the page hides, unless that is all its text; return the number of parts with text."""
    from lxml import etree

    names, parts, is_shown = styled_selectors(root, HIDING), [], False
    walk = etree.iterwalk(root, events=("start",))
    for _, element in walk:
        is_closed = element.tag == "dialog" and element.get("open") is None
        is_hidden = is_closed or element.get("hidden") is not None or is_styled(element, HIDING, names)
        if is_hidden and element.tag not in ("html", "body"):
            parts.append(element)
            walk.skip_subtree()
        elif element.tag in ("head", "script", "style"):
            walk.skip_subtree()
        else:
            is_shown = is_shown or bool(element.text and element.text.strip())
        is_shown = is_shown or bool(element.tail and element.tail.strip())
    if not is_shown:
        return 0
    n_parts = sum(bool(text_of(part).strip()) for part in parts)
    for part in parts:
        become(part, "")
    return n_parts


def is_styled(element: Any, style: re.Pattern[str], selectors: Selectors) -> bool:
    """Whether an element has a style by its own attribute, or by style sheets."""
    if style.search(element.get("style", "")[:MAX_STYLE]):
        return True
    if not selectors:
        return False
    own = selector_names(element)
    return any(
        last <= own and all(any(part <= selector_names(each) for each in around) for part in outer)
        for name in own
        for last, *outer in selectors.get(name, ())
        for around in [islice(element.iterancestors(), MAX_AROUND)]
    )


def selector_names(element: Any) -> set[str]:
    """Return what selectors call an element: its tag, its classes (``.x``) and its id (``#y``)."""
    classes = (f".{name}" for name in element.get("class", "").split())
    return {element.tag, f"#{element.get('id')}", *classes}


def styled_selectors(root: Any, style: re.Pattern[str]) -> Selectors:
    """Return the selectors to which style sheets give a style on every screen, by a name of their last part.

    They have tags, classes and ids, and the parts around them, from the inside: ``#menu p.x``.
    """
    sheet = ON_SCREENS.sub(r"\1", " ".join(each.text or "" for each in root.iter("style"))[:MAX_SHEET])
    found: dict[str, None] = {}
    depth, before, selectors = 0, "", ""
    for piece in re.split(r"([{}])", sheet):
        if piece == "{":
            depth += 1
            selectors = before if depth == 1 else ""  # within @media, say, nothing
        elif piece == "}":
            if depth == 1 and style.search(before):
                found |= dict.fromkeys(map(str.strip, selectors.rpartition("*/")[2].split(",")))
            depth = max(depth - 1, 0)
        before = piece
    by_name: Selectors = {}
    for selector in filter(SELECTOR.fullmatch, found):
        parts = [frozenset(NAME.findall(part)) for part in reversed(selector.split())]
        if len(alike := by_name.setdefault(min(parts[0]), [])) < MAX_ALIKE:
            alike.append(parts)
    return by_name


def rewrite_formulas(root: Any) -> None:
    """Write formulas as text on a line, each once."""
    for outer in with_class(root, FORMULAS):
        inner = outer.find(".//math")
        if inner is not None:
            become(outer, f" {linear_math(inner)} ")
    sources = [each for each in root.iter("script") if each.get("type", "").startswith("math/tex")]
    for source in sources if root.find(".//math") is None else ():
        become(source, f" {source.text or ''} ")  # formulas that the page draws from their source
    for copy in with_class(root, COPIES):
        around = copy.getparent()  # None within a formula that is written by now
        if around is not None and (
            "MathJax_Preview" in copy.get("class") or around.find(".//math") is not None
        ):
            become(copy, "")
    for math in list(root.iter("math")):
        become(math, f" {linear_math(math)} ")


def rewrite_pictures(root: Any) -> None:
    """Write what pictures show, as it is described, in brackets; and ``~~`` around what is struck out."""
    for picture in list(root.iter("img", "area")):
        shown = one_line(picture.get("alt", ""))[:MAX_CELL]
        if shown and not FILE_NAME.fullmatch(shown):
            become(picture, f" [{shown}] ")
    for struck in list(root.iter("del", "s", "strike")):
        if text := short_text(struck, MAX_CELL):
            become(struck, f"~~{text}~~")


def linear_math(element: Any) -> str:
    """Return MathML (https://www.w3.org/TR/mathml-core/) as text: ``(a+b)/2``, ``x^2``, ``√(x)``."""
    tag = str(element.tag).rpartition(":")[2]
    if tag in ("annotation", "annotation-xml", "mphantom"):
        return ""
    parts = [linear_math(child) for child in element]
    first, second, third = (bracketed(part) for part in (*parts[:3], "", "", "")[:3])
    match tag:
        case "mi" | "mn" | "mo" | "mtext" | "ms":
            text = one_line(text_of(element)).strip("\u2061\u2062\u2063")
            return f" {text} " if text in MATH_SPACED else text
        case "mfrac":
            return f"{first}/{second}"
        case "msup" | "mover":
            return f"{first}^{second}"
        case "msub" | "munder":
            return f"{first}_{second}"
        case "msubsup" | "munderover":
            return f"{first}_{second}^{third}" + " " * (tag == "munderover")
        case "msqrt":
            return f"√({''.join(parts).strip()})"
        case "mroot":
            return f"root_{second} ({parts[0].strip() if parts else ''})"
        case "mtr":
            return ", ".join(parts)
        case "mtable":
            return "; ".join(parts)
    return one_line("".join(parts)) if tag == "math" else "".join(parts)


def rewrite_form(root: Any) -> int:
    """Write what fields of forms hold, apart from the text around them; return how many hold something."""
    n_fields = 0
    for field in list(root.iter("input")):
        kind, value = field.get("type", "text").lower(), field.get("value", "")
        if kind in ("checkbox", "radio"):
            value = "[x]" if field.get("checked") is not None else "[ ]"
        elif kind in ("hidden", "password", "file", "image", "color", "range"):
            value = ""
        n_fields += bool(value) and kind not in ("submit", "button", "reset")
        become(field, f" {value} " if value else "")
    for option in root.iterfind(".//select//option[@selected]"):
        option.text = f"[x] {option.text or ''}"
    for area in root.iter("textarea"):
        n_fields += bool((area.text or "").strip())
    for button in root.iter("button", "label"):
        button.text, button.tail = f" {button.text or ''}", f" {button.tail or ''}"
    return n_fields


def rewrite_ruby(root: Any) -> None:
    """Write readings in brackets behind their characters: ``漢字(かんじ)``."""
    for ruby in list(root.iter("ruby")):
        if short_text(ruby, MAX_RUBY) is None:
            continue
        reading = one_line("".join(text_of(each) for each in ruby.iter("rt")))
        for each in list(ruby.iter("rt", "rp", "rtc")):
            become(each, "")
        base = one_line(text_of(ruby))
        become(ruby, f"{base}({reading})" if reading else base)


def rewrite_scripts(root: Any) -> None:
    """Write ``10^6`` for a power, ``x_1`` for an index, ``[4]`` for the number of a note, and ``H2O``."""
    for mark in root.iter("a"):
        kinds = f"{mark.get('epub:type')} {mark.get('role')}"
        if "noteref" in kinds and mark.find(".//sup") is None and (text := short_text(mark, MAX_SCRIPT)):
            become(mark, raised(text, "", True))
    for element in list(root.iter("sup", "sub")):
        text = short_text(element, MAX_SCRIPT)
        if not text:
            continue
        before, after = text_before(element), (element.tail or "")[:1]
        parent = element.getparent()
        links = (*element.iter("a"), parent if parent is not None and parent.tag == "a" else element)
        is_note = any("#" in link.get("href", "") for link in links)
        written = raised(text, before, is_note) if element.tag == "sup" else lowered(text, before, after)
        if after == FRACTION and element.tag == "sup":
            written = f" {text}" if before[-1:].isdigit() else text
        gap = " " if written[0] in "^_" and written[-1].isalnum() and after.isalnum() else ""
        become(element, written + gap)


def text_before(element: Any) -> str:
    """Return the end of the text before an element on its line."""
    while element is not None and element.tag not in PARAGRAPHS | LINES | CELLS:
        before, parent = element.getprevious(), element.getparent()
        text = (parent.text if before is None else before.tail) if parent is not None else ""
        while before is not None and not text and before.tag not in PARAGRAPHS | LINES | CELLS:
            text = before[-1].tail if len(before) else before.text
            before = before[-1] if len(before) else None
        if text:
            return str(text[-40:])
        element = parent if element.getprevious() is None else None
    return ""


def number_items(root: Any) -> None:
    """Note at each item of a numbered list its number, as it is counted and written there."""
    for numbered in root.iter("ol"):
        items = [child for child in numbered if child.tag == "li"]
        style = LIST_STYLE.search(numbered.get("style", "")[:MAX_STYLE].lower())
        form = STYLES.get(style[1], style[1]) if style else numbered.get("type", "1")
        is_reversed = numbered.get("reversed") is not None
        number = whole(numbered.get("start"), len(items) if is_reversed else 1)
        for item in items if form != "none" else ():
            number = whole(item.get("value"), number)
            item.set(MARKER, f"{formatted(number, FORMS.get(item.get('type', form), 'decimal'))}. ")
            number += -1 if is_reversed else 1


def whole(text: str | None, default: int) -> int:
    """Return a whole number of an attribute, the default where there is none."""
    return int(text) if text and re.fullmatch(r"\s*[-+]?\d{1,9}\s*", text) else default


def spread_cells(root: Any) -> None:
    """Write a cell that spans rows and columns in each of them, and a short cell on one line."""
    for cell in root.iter(*CELLS):  # whose tags stay: a list of a million takes 100 MB
        on_one_line(cell)
    n_left = MAX_COPIES
    for table in list(root.iter("table")):
        for group in (table, *(each for each in table if each.tag in ("thead", "tbody", "tfoot"))):
            n_left = spread_rows([each for each in group if each.tag == "tr"], n_left)


def spread_rows(rows: list[Any], n_left: int) -> int:
    """Copy the cells of a group of rows that span several; return how many more of the page may be copied."""
    below: dict[int, tuple[int, str]] = {}  # by column: the rows that a cell above still spans, and its text
    for number, row in enumerate(rows):
        cells = [each for each in row if each.tag in CELLS]
        is_whole_row = len(cells) == 1 and not below
        column = 0
        for cell in (*cells, None):
            while column in below and n_left > 0:
                n_rows, text = below.pop(column)
                if n_rows > 1:
                    below[column] = (n_rows - 1, text)
                copy = copied(row, text)
                row.append(copy) if cell is None else cell.addprevious(copy)
                n_left, column = n_left - 1, column + 1
            if cell is None:
                break
            n_rows = min(whole(cell.get("rowspan"), 1) or len(rows), len(rows) - number)
            n_columns = min(max(whole(cell.get("colspan"), 1), 1), MAX_SPAN)
            text = (short_text(cell, MAX_COPIED) or "") if max(n_rows, n_columns) > 1 else ""
            for i in range(n_columns):
                if i and not is_whole_row and n_left > 0:
                    cell.addnext(copied(row, text))
                    n_left -= 1
                if n_rows > 1:
                    below[column + i] = (n_rows - 1, text)
            column += n_columns
    return n_left


def copied(row: Any, text: str) -> Any:
    """Return a new cell for a row."""
    cell = row.makeelement("td")
    cell.text = text
    return cell


def on_one_line(cell: Any) -> None:
    """Make the paragraphs and lines of a short cell parts of its row's line."""
    blocks = list(islice(cell.iter("p", "div", "br"), MAX_CELL))
    long = ("table", "ul", "ol", "pre", "dl", "h1", "h2", "h3")
    if not blocks or any(True for _ in cell.iter(*long)) or short_text(cell, MAX_CELL) is None:
        return
    for block in blocks:
        block.tag, block.text, block.tail = "span", f" {block.text or ''}", f" {block.tail or ''}"
