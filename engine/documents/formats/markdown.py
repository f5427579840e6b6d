"""Markdown: the text without comments and embedded pictures; its headings become sections."""

import re
from collections import Counter
from collections.abc import Iterator

from ...wording import counted
from ..document import Document
from .metadata import date_of, front_matter, tags_of
from .outline import MAX_HEADINGS, Heading, bounded, one_line, sections_under, title_of
from .plain import decode, unified
from .webpage import html_text

DATA_URI = re.compile(r"\bdata:[a-z]{1,20}/[\w.+-]{1,80}[;,][^\s()<>\"']{40,}+")
HTML_HEADING = re.compile(r"<h([1-6])(?:\s[^>]{0,500})?>(.{1,1000}?)</h\1\s*>", re.IGNORECASE)
# Code, and tables in HTML outside of it.
TABLE = re.compile(
    r"^[ \t]*(?P<fence>`{3,9}|~{3,9})[^\n]*\n(?:(?![ \t]*(?P=fence))[^\n]*\n)*|"
    r"`[^`\n]+`|<!--(?:(?!-->|<!--).)*|^[ \t]*(?P<table><table\b(?:(?!</table>|<table\b).)*</table>)",
    re.IGNORECASE | re.MULTILINE | re.DOTALL,
)
HTML_TAG = re.compile(r"<[^<>]{0,500}>")
UNDERLINE = re.compile(r"(?:=+|-+)[ \t]*")
LIST_ITEM = re.compile(r"(?:[-*+]|\d{1,9}[.)])(?:\s+|$)")
NO_PARAGRAPH = re.compile(r"[>|#]|<[/!a-zA-Z]")  # a quote, a row of a table or HTML
MOST_LINES = 3  # of an underlined heading
COMMENT_LINE = re.compile(r"\[(?://|comment)\]: ?(?:#|<>) ", re.IGNORECASE)  # a link that nothing names
COMMENT, COMMENT_END = "<!--", "-->"


def read_markdown(name: str, content: bytes) -> Document:
    """Make a document with a section under each heading: ``# A``, underlined by ``=`` or ``-``, or ``<h1>``.

    Title, date and tags are those of the front matter, or else the title is the first heading. The front
    matter remains part of the text; comments and pictures embedded as data are left out, and tables in HTML
    are read as their rows.
    """
    text = decode(name, content)
    values, end = front_matter(text)
    body, found, left_out = shown(text[end:], end)
    headings = list(bounded(name, found, MAX_HEADINGS, "headings"))
    title = values.get("title")
    title = one_line(unified(title)) if isinstance(title, str) else title_of(headings)
    tags = next(filter(None, (tags_of(values.get(key)) for key in ("tags", "keywords", "categories"))), ())
    notes = notes_of(left_out)
    return Document(
        name, text[:end] + body, title, sections_under(headings), date_of(values.get("date")), tags, notes
    )


def notes_of(left_out: Counter[str]) -> tuple[str, ...]:
    """Return notes of the parts that were left out."""
    return tuple(f"{counted(n, what)} left out" for what, n in left_out.items() if n)


def shown(text: str, offset: int = 0) -> tuple[str, list[Heading], Counter[str]]:
    """Return a text without what a reader does not see, its headings, and how much was left out of what.

    Headings are those outside of code (CommonMark 0.31, sections 4.2, 4.3 and 4.5); fences within lists may
    be indented to any depth. ``offset`` is the start of the text in the document.
    """
    text, n_pictures = DATA_URI.subn("", text)
    text = TABLE.sub(lambda found: (found["table"] and html_text(found["table"])) or found[0], text)
    left_out = Counter({"embedded picture": n_pictures})
    lines: list[str] = []
    headings: list[Heading] = []
    paragraph: list[tuple[int, str]] = []  # the lines of the paragraph so far, and where they start
    fence, in_list = "", False
    for line in without_comments(text, left_out):
        body = line.lstrip(" \t")
        start = offset + len(line) - len(body)
        indent = len(line[: start - offset].expandtabs(4))
        offset += len(line) + 1
        lines.append(line)
        item = None if fence else LIST_ITEM.match(body)
        if item:
            body, in_list = body[item.end() :], True
        elif body and not indent and not (lines[-2:-1] and lines[-2].strip()):
            in_list = in_list and bool(fence)
        is_plain = False
        if fence:
            fence = "" if closes(body, fence) else fence
        elif opening := fence_of(body) if indent <= 3 or in_list else "":
            fence = opening
        elif indent > 3 or item:
            pass  # indented code, or the content of a list
        elif heading := heading_of(body):
            headings.append(Heading(start, heading[0], one_line(heading[1])))
        elif 0 < len(paragraph) <= MOST_LINES and UNDERLINE.fullmatch(body):
            level = 1 if body[0] == "=" else 2
            headings.append(
                Heading(paragraph[0][0], level, one_line(" ".join(each for _, each in paragraph)))
            )
        elif match := HTML_HEADING.match(body):
            if title := one_line(HTML_TAG.sub("", match[2])):
                headings.append(Heading(start, int(match[1]), title))
        else:
            is_plain = bool(body) and not NO_PARAGRAPH.match(body)
        if len(headings) > MAX_HEADINGS:
            break  # the file is refused
        paragraph = [*paragraph[:MOST_LINES], (start, body)] if is_plain else []
    return "\n".join(lines), headings, left_out


def without_comments(text: str, left_out: Counter[str]) -> Iterator[str]:
    """Yield the lines of a text without comments outside of code, and count these."""
    in_comment, fence, position, last_end = False, "", 0, text.rfind(COMMENT_END)
    for line in text.split("\n"):
        start, position = position, position + len(line) + 1
        body = line.lstrip(" \t")
        if not in_comment and (fence or fence_of(body)):
            fence = ("" if closes(body, fence) else fence) if fence else fence_of(body)
            yield line
            continue
        if not in_comment and COMMENT_LINE.match(line):
            left_out["comment"] += 1
            continue
        pieces, cursor, n_ticks, had_comment = [], 0, 0, in_comment
        while cursor < len(line):
            mark = COMMENT_END if in_comment else COMMENT
            end = line.find(mark, cursor)
            end = len(line) if end < 0 else end
            if not in_comment:
                pieces.append(line[cursor:end])
                n_ticks += line.count("`", cursor, end)
                if end < len(line) and (n_ticks % 2 or start + end > last_end):  # in code, or never ends
                    pieces.append(mark)
                    cursor = end + len(mark)
                    continue
            if end < len(line):
                left_out["comment"] += not in_comment
                in_comment, had_comment = not in_comment, True
            cursor = end + len(mark)
        kept = "".join(pieces)
        if kept.strip() or not had_comment:
            yield kept


def fence_of(line: str) -> str:
    """Return the three or more marks that open a code fence, empty for other lines."""
    marks = line[: len(line) - len(line.lstrip(line[:1]))] if line[:1] in ("`", "~") else ""
    return marks if len(marks) >= 3 and not (marks[0] == "`" and "`" in line[len(marks) :]) else ""


def closes(line: str, fence: str) -> bool:
    """Whether a line closes a code fence: only its marks, at least as many."""
    marks = line.rstrip(" \t")
    return len(marks) >= len(fence) and marks == fence[0] * len(marks)


def heading_of(line: str) -> tuple[int, str] | None:
    """Return level and text of an ATX heading without its closing marks, or None."""
    rest = line.lstrip("#")
    level = len(line) - len(rest)
    if not 1 <= level <= 6 or (rest and rest[0] not in " \t"):
        return None
    text = rest.strip(" \t")
    unmarked = text.rstrip("#")
    if not unmarked or unmarked[-1] in " \t":
        text = unmarked.rstrip(" \t")
    return (level, text) if text else None
