"""Running lines of pages: heads, feet and page numbers, which interrupt sentences and mislead a search."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

LEAST_PAGES = 3  # with the same line
LEAST_WORDS = 3  # of a line with the page's number: "Day 1" and "Day 2" may be titles
N_LINES = 2  # at an edge of a page, at most: a head and a number, say
PAGE_NUMBER = re.compile(
    r"(?:page|seite|p\.|[-–—])?\s*(\d{1,4})\s*(?:(?:/|of|von|sur)\s*\d{1,4}|[-–—])?", re.IGNORECASE
)
NUMBERED = re.compile(r"(?:(\d{1,4})\s+)?(.*?)(?:\s+(\d{1,4}))?")


@dataclass(frozen=True)
class RunningLine:
    """The first (``edge`` 0) or last (-1) line of pages, where it may be a running one.

    The ``text`` leaves out the page's number, ``offset`` is that number less the page's place in the file;
    None for a line without one.
    """

    edge: int
    text: str
    offset: int | None


def without_running_lines(pages: Sequence[str]) -> list[str]:
    """Return the texts of pages without page numbers, and without heads and feet but for the first of each.

    A line is a running one if it is the first, or the last, of at least `LEAST_PAGES` pages, or holds a
    number that is as far from the page's as those of so many first and last lines: heads change with the
    chapters.
    """
    lines = [page.split("\n") for page in pages]
    for _ in range(N_LINES):
        found: dict[RunningLine, list[int]] = defaultdict(list)
        for number, page in enumerate(lines):
            for line in running_lines(page, number):
                found[line].append(number)
        numbered = Counter(line.offset for line, numbers in found.items() for _ in numbers)
        removed = defaultdict(set)
        for line, numbers in found.items():
            n_pages = len(numbers) if line.offset is None else numbered[line.offset]
            if n_pages >= LEAST_PAGES:
                for number in numbers[1:] if line.text else numbers:
                    removed[number].add(line.edge)
        for number, edges in removed.items():
            lines[number] = lines[number][(0 in edges) : len(lines[number]) - (-1 in edges)]
    return ["\n".join(page).strip() for page in lines]


def running_lines(page: Sequence[str], number: int) -> Iterator[RunningLine]:
    """Yield what the first and the last line of a page may be, each with and without a number."""
    for edge in (0, -1) if len(page) > 1 else (0,) * len(page):
        line = " ".join(page[edge].split())
        if match := PAGE_NUMBER.fullmatch(line):
            yield RunningLine(edge, "", int(match[1]) - number)
            continue
        if any(map(str.isalpha, line)):
            yield RunningLine(edge, line, None)
        match = NUMBERED.fullmatch(line)
        before, text, after = match.groups() if match else ("", line, "")
        if len(text.split()) >= LEAST_WORDS:
            for each in filter(None, (before, after)):
                yield RunningLine(edge, text, int(each) - number)
