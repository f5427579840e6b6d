"""Rows of tables in Markdown, and the heads of their columns."""

import re

# The line below the heads of columns: "|---|:-:|" or "--- | ---".
RULE = re.compile(r"(?=.*\|)[|:\- \t]*-[|:\- \t]*")


def is_row_of_heads(text: str, end: int) -> bool:
    """Whether a line that ends at ``text[end]`` names the columns of a table."""
    next_end = text.find("\n", end + 1)
    return text[end : end + 1] == "\n" and is_rule(text[end + 1 : None if next_end < 0 else next_end])


def heads_above(text: str, start: int) -> str:
    """Return the row that names the columns of the table around ``text[start]``; without one, ``""``."""
    line_end = text.find("\n", start)
    line = text[start : None if line_end < 0 else line_end]
    end = text.rfind("\n", 0, start)
    while "|" in line and end > 0:
        begin = text.rfind("\n", 0, end) + 1
        line = text[begin:end]
        end = begin - 1
        if is_rule(line):
            return text[text.rfind("\n", 0, max(end, 0)) + 1 : max(end, 0)].strip()
    return ""


def is_rule(line: str) -> bool:
    """Whether a line is the one below the heads of columns."""
    return RULE.fullmatch(line) is not None
