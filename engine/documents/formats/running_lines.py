"""Running lines of pages: heads, feet and page numbers, which interrupt sentences and mislead a search."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from .word_numbers import formatted

LEAST_PAGES = 3  # with the same line
LEAST_WORDS = 3  # of a line with the page's number: "Day 1" and "Day 2" may be titles
MOST = 0.5
N_LINES = 3  # at an edge of a page, at most: a head in two lines and a number, say
WORDS = (
    r"page|pg?\.|seite|s\.|página|pagina|pág\.|side|sida|sivu|strona|strana|ст(?:о?р(?:аница|інка|\.)|\.)|σελίδα|sayfa|trang"
    r"|halaman|第|ページ|sheet|blatt|folie|slide|hoja|blad|صفح[ةه]|عمود|עמוד|หน้า|पृष्ठ"
)
TOTAL = r"(?:/|of|von|sur|de|di|из|av|af|van|z|από|من|از|מתוך)\s*\d{1,4}|\(\d{1,4}\)"
PAGE_NUMBER = re.compile(
    rf"\W{{0,3}}(?:{WORDS})?\W{{0,3}}(\d{{1,4}})\W{{0,3}}(?:{TOTAL}|page|页|頁|ページ|쪽|페이지)?\W{{0,3}}",
    re.IGNORECASE,
)
PAGE_WORD = re.compile(rf"\s(?:{WORDS})\s*$", re.IGNORECASE)
COUNTER = re.compile(r"(?<!\d)(\d{1,4})(?=\D{1,15}?(\d{1,4})(?!\d)\)?)")
# Numbers behind a word for pages, within a head: "Case 8, page 1 of 4, page ID 365".
PAGES_WITHIN = re.compile(rf"(?<!\w)(?:{WORDS})(?: ?(?:ID|no\.?|nr\.?))?\W{{0,3}}(\d{{1,6}})", re.IGNORECASE)
# The number of a page next to a head stands before it, or after a mark, a wide gap or a word for pages: that
# of "Report for week 2" is of something else.
NUMBERED = re.compile(
    rf"(?:(\d{{1,4}})\s+)?(.*?)"
    rf"(?:(?:\t|\s+(?:{WORDS})|\s*[|·•–—-])\s*(\d{{1,4}})(?:\s*(?:{TOTAL}|[-–—]))?)?",
    re.IGNORECASE,
)
# A note below a text, the line of a head or foot, and the end of a sentence.
NOTE = re.compile(r"(?:\^?\d{1,3}|[*†‡])[ .)]*[^\W\d].*[.!?)]", re.DOTALL)
BETWEEN = re.compile(
    r"[ivxlc]{1,7}|[^\n\t]{1,80}\t[^\n]{1,80}|"
    rf"(?![a-zà-ÿ]+[\s,-])(?:[^\n.]|\.(?=\w)){{1,80}}|{NOTE.pattern}",
    re.DOTALL,
)
FINISHED = re.compile(r"[.!?:…][^\w\s]*$|\t[^\n]*$")
LEAST_OPEN = 80  # characters of a paragraph whose sentence is not finished
MAX_BETWEEN, MAX_FIGURE = 4, 13  # paragraphs, also with those of a figure
GOING_ON = re.compile(r"[^\W\d_]+[ \n,][^\t\n]*(?:\n|$)")  # no item, formula or row
PROSE = re.compile(r"[^\W\d_]{3}[.!?](?:\s|$)")  # a sentence of it
CAPTION = re.compile(r"[A-ZÀ-Þ][A-Za-zÀ-ÿ]{1,11}\.? ?\d{1,3}(?:\.\d+)*(?:[.:]| [–—]) ")  # "Fig. 3. Flow"
OPENING = "($€£“„«"  # before the first letter of what goes on
SENTENCE = re.compile(r"[^©]*\w+\W+\w+\W+\w+\W+\w+[.!?]")  # no head, but part of what all pages say
VALUE = re.compile(r"[^:]+:\s+\S.*")  # "Weather: dry" in a paragraph: the same on several pages by chance
ROMAN = [formatted(number, "lowerRoman") for number in range(1, 60)]
YEARS = range(1900, 2101)

# The first (0) or last (-1) line of pages, its text without the page's number, and that number less the place
# of the page in the file, None for a line without one.
RunningLine = tuple[int, str, int | None]


def without_running_lines(pages: Sequence[str]) -> list[str]:
    """Return the texts of pages without page numbers, and without heads and feet but for the first of each.

    A line is a running one if it is the first, or the last, of at least `LEAST_PAGES` pages and of most pages
    from its first to its last one (heads change with the chapters); of two pages in all if it has some words.
    With a number it is one if so many pages have their number in that way: the place of the page in the file,
    or as far from it as lines that are only a number.
    """
    lines = [page.split("\n") for page in pages]
    for _ in range(N_LINES):
        found: dict[RunningLine, list[int]] = defaultdict(list)
        for number, page in enumerate(lines):
            for line in running_lines(page, number, len(pages)):
                found[line].append(number)
        numbered = Counter(offset for (_, _, offset), numbers in found.items() for _ in numbers)
        alone = Counter(offset for (_, text, offset), numbers in found.items() if not text for _ in numbers)
        removed = defaultdict(set)
        for (edge, text, offset), numbers in found.items():
            are_few = len(pages) < LEAST_PAGES + (not text)
            is_on_both = are_few and (not text or len(text.split()) >= LEAST_WORDS)
            least = LEAST_PAGES - is_on_both
            if offset is None:
                is_running = len(numbers) >= max(least, MOST * (numbers[-1] - numbers[0] + 1))
            else:
                is_of_pages = offset == 1 or not text or alone[offset] > 0 or bool(PAGE_WORD.search(text))
                is_running = is_of_pages and numbered[offset] >= least
            if is_running:
                for number in numbers[1:] if text else numbers:
                    removed[number].add(edge)
                if text and offset is not None:
                    first = lines[numbers[0]]
                    first[edge] = without_number(first[edge]).strip(" |·•–—-\t")
        if not removed:
            break
        for number, edges in removed.items():
            left = lines[number][(0 in edges) : len(lines[number]) - (-1 in edges)]
            lines[number] = "\n".join(left).strip("\n").split("\n")
    return ["\n".join(page).strip() for page in lines]


def without_number(line: str) -> str:
    """Return a head or foot without the number of its page."""
    match = NUMBERED.fullmatch(line.strip())
    return match[2] if match else line


def running_lines(page: Sequence[str], number: int, n_pages: int) -> Iterator[RunningLine]:
    """Yield what the first and the last line of a page may be, each with and without a number."""
    for edge in (0, -1) if len(page) > 1 else (0,) * len(page):
        line = "\t".join(" ".join(part.split()) for part in page[edge].strip().split("\t"))
        for pair in COUNTER.finditer(line):
            if (int(pair[1]), int(pair[2])) == (number + 1, n_pages):
                rest = f"{line[: pair.start()]} 1 {line[pair.end(2) :]}".strip(" )")
                yield edge, "" if PAGE_NUMBER.fullmatch(rest) else PAGES_WITHIN.sub("", rest), 1
        if line in ROMAN:
            yield edge, "", ROMAN.index(line) + 1 - number
        if match := PAGE_NUMBER.fullmatch(line):
            offset = int(match[1]) - number
            if offset == 1 or int(match[1]) not in YEARS:
                yield edge, "", offset
            continue
        if SENTENCE.fullmatch(line):
            continue
        is_apart = len(page) < 2 or not page[1 if edge == 0 else -2].strip()
        if any(map(str.isalpha, line)) and (is_apart or not VALUE.fullmatch(line)):
            yield edge, line, None
        match = NUMBERED.fullmatch(line)
        before, text, after = match.groups() if match else ("", line, "")
        if after and PAGE_WORD.search(named := line[: line.rfind(after)]):
            text = named.strip()
        if len(text.split()) >= LEAST_WORDS:
            for each in filter(None, (before, after)):
                yield edge, text, int(each) - number
        if not (before or after) and (within := PAGES_WITHIN.search(line)):
            yield edge, PAGES_WITHIN.sub("", line), int(within[1]) - number


def with_whole_sentences(pages: Sequence[str]) -> list[str]:
    """Return pages with notes, figures, heads and feet out of a sentence that goes on behind them.

    Those on the page where it begins are put before its paragraph, those on the next page behind it.
    """
    parts = [(number, part) for number, page in enumerate(pages) for part in page.split("\n\n")]
    for n, (page, part) in enumerate(parts):
        first_letter = next(filter(str.isalpha, part[:LEAST_OPEN]), "")
        if not (part[:1].islower() or part[:1].isdigit() or (part[:1] in OPENING and first_letter.islower())):
            continue
        start = n - 1
        while n - start <= MAX_BETWEEN and start > 0 and BETWEEN.fullmatch(parts[start][1]):
            start -= 1
        opening = next((m for m in range(n - 1, max(n - MAX_FIGURE, -1), -1) if is_open(parts[m][1])), n)
        is_figure = GOING_ON.match(part) is not None and are_figures(
            [each for _, each in parts[opening + 1 : n]]
        )
        start = opening if is_figure else start
        between = parts[start + 1 : n]
        first, opened = parts[start]
        are_apart = is_figure or first < page or all(NOTE.fullmatch(each) for _, each in between)
        goes_on = not part[0].isdigit() or opened.endswith(",")
        if between and is_open(opened) and goes_on and are_apart:
            here = [each for each in between if each[0] == first]
            parts[start : n + 1] = [*here, parts[start], parts[n], *between[len(here) :]]
    whole: dict[int, list[str]] = defaultdict(list)
    for page, part in parts:
        whole[page].append(part)
    return ["\n\n".join(whole[number]) for number in range(len(pages))]


def is_open(text: str) -> bool:
    """Whether a paragraph ends within a sentence."""
    return len(text) > LEAST_OPEN and not FINISHED.search(text[-LEAST_OPEN:])


def are_figures(texts: Sequence[str]) -> bool:
    """Whether paragraphs are captions with what they name, and notes, but no prose."""
    captions = [text for text in texts if CAPTION.match(text)]
    others = (text for text in texts if text not in captions and not NOTE.fullmatch(text))
    return bool(captions) and not any(map(PROSE.search, others))
