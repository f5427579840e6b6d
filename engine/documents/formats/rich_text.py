"""RTF files (striprtf), with their footnotes, which striprtf leaves out."""

import re
from collections.abc import Callable

from ...errors import DocumentError
from ...wording import counted
from ..document import Document
from .outline import one_line
from .plain import as_document_error, kind_of, unified

NOTE = re.compile(r"\{(?:\\\*)?\\footnote\b")
BRACE = re.compile(r"\\.|[{}]", re.DOTALL)
CODE_PAGE = re.compile(r"\\ansicpg(\d{3,5})")
TITLE = re.compile(r"\{\\title ((?:[^{}\\]|\\'[0-9a-f]{2}|\\u-?\d{1,5} ?\?)*)\}")
WORDS = r"\{(?:\\[a-z]{1,32}-?\d{0,9} ?)*"  # a group's control words
HIDDEN = re.compile(WORDS + r"\\v(?![a-z0-9])[^{}]*\}")
DELETED = re.compile(WORDS + r"\\(?:deleted|abi\w{1,30})(?![a-z0-9])[^{}]*\}")  # or of AbiWord's own
RAISED = re.compile(  # behind other control words, but characters, and behind marks of a program's own
    r"(\\(?:super|up[1-9]\d?)(?![a-z]) ?(?>(?:\\(?!up?\d|super)[a-z]{1,32}-?\d* ?|\s|\{\\\*[^{}]*\}|\{)*))"
    r"(?=(?:[-+−]|\\u8722 ?(?:\\'3f|\?)?)?\d{1,3}(?:\}|\\nosupersub|\\up0))"
)
STRUCK = re.compile(r"\\striked?(\d*)(?![a-z]) ?|\\plain(?![a-z]) ?|\\.|[{}]", re.DOTALL)
BOX = re.compile(r"\\(?:\*\\shpinst|shp|shptxt)(?![a-z])")
CELLS = re.compile(r"\|(?:\n|\Z)")
END_OF_CELL = re.compile(r"\\par(?=[{}\s]*\\cell(?![a-z]))")  # as pandoc writes it
MARGINS = re.compile(r"\{\\(?:header|footer)[lrf]?\b")


def read_rtf(name: str, content: bytes) -> Document:
    """Make a document from an RTF file: its text, and its footnotes at the end."""
    from striprtf.striprtf import rtf_to_text

    if not content.lstrip().startswith(b"{\\rtf"):
        kind = kind_of(content) or "something else"
        raise DocumentError(f"{name} is no RTF file but {kind}: save it again as .rtf")
    source = content.decode("latin-1")
    found = CODE_PAGE.search(source)
    encoding = f"cp{found[1]}" if found else "cp1252"
    hidden = HIDDEN.findall(source)
    source = RAISED.sub(raised, DELETED.sub("", HIDDEN.sub("", source)))
    source = END_OF_CELL.sub("", source)
    source = re.sub(r"\\fcharset128(?= \w*Symbol)", r"\\fcharset0", source)  # bullets, not Japanese letters
    source = BOX.sub(lambda box: "" if box[0].startswith("\\*") else "\\par", source)
    source = with_struck(source.replace("\\pntext", ""))  # which are numbers of lists
    source, footnotes = without_footnotes(source)
    with as_document_error(f"{name} is damaged", "save it again as .rtf"):
        read: Callable[[str, str, str], str] = rtf_to_text  # which has no types
        parts = [read(each, encoding, "replace") for each in (source, *footnotes)]
    text, *below = (unified(part).strip() for part in parts)
    text = "\n\n".join([CELLS.sub("\n", text).replace("|", " | "), *below]).strip()
    if not text:
        raise DocumentError(f"{name} is empty: there is no text to search")
    seen = {"picture": source.count("\\pict"), "head and foot line": len(MARGINS.findall(source))}
    seen["comment"] = source.count("\\annotation")
    notes = ["hidden text was left out"] * bool(hidden)
    notes += [f"{counted(n, what)} left out" for what, n in seen.items() if n]
    found = TITLE.search(source)
    title = one_line(read(f"{{\\rtf1 {found[1]}}}", encoding, "replace")) if found else ""
    return Document(name, text, title, notes=tuple(notes))


def raised(group: re.Match[str]) -> str:
    """Return the start of a group of raised digits, with ``^`` before them where they are a power."""
    before = group.string[: group.start()].rstrip("{}")[-1:]
    return f"{group[1]}^" if before.isalnum() or before == ")" else group[0]


def with_struck(source: str) -> str:
    """Return a file with ``~~`` around what is struck out."""
    if "\\strike" not in source:
        return source
    stack = [False]

    def marked(found: re.Match[str]) -> str:
        before = stack[-1]
        if found[0] == "{":
            stack.append(before)
        elif found[0] == "}" and len(stack) > 1:
            stack.pop()
        elif found[0].startswith(("\\strike", "\\plain")):
            stack[-1] = found[1] not in ("0", None)
        marks = "~~" * (before != stack[-1])
        return f"{marks}{found[0]}" if found[0] == "}" else f"{found[0]}{marks}"

    return STRUCK.sub(marked, source)


def without_footnotes(source: str) -> tuple[str, list[str]]:
    """Return a file with a mark in the place of every footnote, and the footnotes as files of their own."""
    head = source[: source.find("}}", source.find("\\fonttbl")) + 2] if "\\fonttbl" in source else "{\\rtf1 "
    kept: list[str] = []
    notes: list[str] = []
    position = 0
    while found := NOTE.search(source, position):
        depth, end = 1, len(source)
        for brace in BRACE.finditer(source, found.end()):
            depth += {"{": 1, "}": -1}.get(brace[0], 0)
            if not depth:
                end = brace.end()
                break
        mark = f"[^{len(notes) + 1}]"
        kept += [source[position : found.start()], mark]
        notes.append(f"{head}\\pard {mark} {source[found.end() : end - 1]}}}")
        position = end
    return "".join([*kept, source[position:]]), notes
