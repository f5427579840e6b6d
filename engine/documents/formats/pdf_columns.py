"""Columns of a PDF's page: gaps between prose, and what stands before and behind one after the other."""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import chain, pairwise
from statistics import fmean, median

from .from_right import is_mostly_from_right
from .pdf_lines import (
    APART,
    FAR,
    FULL,
    LEAST_LINES,
    LEVEL,
    MARKER,
    MAX_EDGE,
    PARAGRAPH,
    ROW_GAP,
    SHORT,
    SPANNING,
    Line,
    has_lines,
    is_near_some,
)

LEAST_COLUMN = 20  # of one that is no cell of a table, whatever the file draws together
LEAST_FLOW = 0.3  # of its lines go on in the next one
NARROWEST_GAP, MAX_GUTTERS = 0.7, 4  # times the height of letters, between columns; gaps that are tried


def body_of(lines: Sequence[Line]) -> tuple[int, int]:
    """Return where the lines between a head and a foot start and end, if these have parts above both columns.

    Within the columns such a head, or a title above one of them, would interrupt the text between them.
    """
    gutter = gutter_of(lines)
    if gutter is None:
        return 0, len(lines)
    sides = sides_of(lines[1:-1], gutter)
    are_long = min(map(len, sides)) > LEAST_COLUMN
    if not (all(map(is_prose, sides)) or (are_long and are_independent(*sides))):
        return 0, len(lines)
    distances = [a[0].middle - b[0].middle for a, b in pairwise(lines)]
    usual = PARAGRAPH * median(distances)
    lefts = sorted(each.left for line in sides[1] for each in line)

    def n_apart(edge: Sequence[Line], gaps: Sequence[float], longest: float) -> int:
        """Return how many lines from an edge are a head or foot, several only if far from the others."""
        n = 0
        for number, (line, gap) in enumerate(zip(edge[:MAX_EDGE], gaps, strict=False), 1):
            is_whole = (
                len(line) == 1 and len(line[0].text) < longest and not is_near_some(line[0].left, lefts)
            )
            if not is_whole and len({each.left < gutter for each in line}) < 2:
                break
            if gap > (usual if number == 1 else max(usual, APART * (line[0].top - line[0].bottom))):
                n = number
        return n

    head = n_apart(lines, distances, math.inf)
    return head, len(lines) - n_apart(lines[::-1], distances[::-1], 3 * SHORT)


def text_blocks(lines: list[Line]) -> Iterator[list[Line]]:
    """Yield lines in reading order, whatever the file draws first: columns of prose one after the other."""
    first, last = body_of(lines)
    yield from (lines[:first], *columns_in(lines[first:last]), lines[last:])


def are_columns(lines: Sequence[Line]) -> bool:
    """Whether lines are two columns of prose, or more, and longer than a table of sentences."""
    gutter = gutter_of(lines)
    sides = sides_of(lines, gutter) if gutter is not None else ([], [])
    are_prose = all(map(is_prose, sides)) and any(map(is_even_prose, sides))  # a table may be in one of them
    return min(map(len, sides)) > LEAST_COLUMN and (are_prose or all(map(is_even_prose, sides)))


def columns_in(lines: list[Line]) -> Iterator[list[Line]]:
    """Yield the lines in reading order where columns of text stand next to a gap."""
    for gutter in gutters_of(lines)[:MAX_GUTTERS]:
        blocks = [*filter(None, columns_beside(lines, gutter))]
        if len(blocks) > 1:
            yield from blocks
            return
    yield lines


def columns_beside(lines: list[Line], gutter: float) -> Iterator[list[Line]]:
    """Yield the lines in reading order, one after the other what stands before and behind a gap."""
    band: list[Line] = []
    across: list[Line] = []  # lines over the whole width, and tables
    for line in [*lines, None]:
        is_across = line is None or any(each.left < gutter < each.right for each in line)
        if line is not None and not is_across:
            band.append(line)
            continue
        left, right = sides_of(band, gutter)
        are_prose = is_prose(left) and is_prose(right)
        for part in [band] if are_prose else parts_apart(band):
            left, right = sides_of(part, gutter)
            if not (are_prose or are_independent(left, right)) or any(map(has_lines, chain(*part))):
                across += part
                continue
            yield across
            is_from_right = is_mostly_from_right("".join(each.text for line in left for each in line))
            for column in (right, left) if is_from_right else (left, right):
                yield from text_blocks(column)
            across = []
        band = []
        across += [line] if line is not None else []
    yield across


def parts_apart(lines: Sequence[Line]) -> list[list[Line]]:
    """Return the parts of lines that are far above one another."""
    starts = [
        n
        for n, (a, b) in enumerate(pairwise(lines), 1)
        if a[0].middle - b[0].middle > FAR / 2 * (b[0].top - b[0].bottom)
    ]
    return [[*lines[start:end]] for start, end in pairwise([0, *starts, len(lines)])]


def are_independent(left: Sequence[Line], right: Sequence[Line]) -> bool:
    """Whether two parts side by side have their lines at other heights, and are no rows of cells.

    One of them is prose in even lines, or both are long and have their lines at like distances.
    """
    if min(len(left), len(right)) < LEAST_LINES:
        return False
    near, far = sorted(median(a[0].middle - b[0].middle for a, b in pairwise(side)) for side in (left, right))
    are_long = min(len(left), len(right)) > LEAST_COLUMN and far < PARAGRAPH * near
    few, many = sorted(([line[0] for line in side] for side in (left, right)), key=len)
    n_level = sum(
        any(abs(each.middle - other.middle) < LEVEL * (each.top - each.bottom) for other in many)
        for each in few
    )
    is_text = are_long or is_even_prose(left) or is_even_prose(right)
    return is_text and 2 * n_level < len(few)


def is_even_prose(lines: Sequence[Line]) -> bool:
    """Whether lines are prose, and few of them farther apart than the others, as the rows of a table are."""
    distances = [a[0].middle - b[0].middle for a, b in pairwise(lines)]
    n_far = sum(each > ROW_GAP * median(distances) for each in distances)
    are_long = fmean(len(each.text) for line in lines for each in line) > 3 * SHORT
    is_long = len(lines) > 2 * LEAST_LINES and n_far < SPANNING * len(lines)
    return is_long and (are_long or is_prose(lines))


def gutter_of(lines: Sequence[Line]) -> float | None:
    """Return the middle of the widest gap that few lines cross and that has text on both sides."""
    return next(iter(gutters_of(lines)), None)


def gutters_of(lines: Sequence[Line]) -> list[float]:
    """Return the middles of gaps that few lines cross and that have text on both sides, the widest first."""
    if len(lines) < LEAST_LINES:
        return []
    segments = [segment for line in lines for segment in line]
    lefts, rights = map(sorted, zip(*((each.left, each.right) for each in segments), strict=True))
    if lefts[-1] < rights[0]:  # no gap has text on both sides
        return []
    most = SPANNING * len(lines)
    edges = sorted([(each.left, 1) for each in segments] + [(each.right, -1) for each in segments])
    n_open = 0
    found: dict[float, tuple[float, float]] = {}  # the widths and middles of gaps by their starts
    start: float | None = None  # of the gap
    # of the clearest part of the gap: the segments over it, its width and its middle
    fewest, widest, clearest = len(segments), 0.0, 0.0
    for (left, step), (right, _) in pairwise(edges):
        n_open += step
        if n_open > most:
            start = None
            continue
        if start is None:
            start, fewest, widest = left, len(segments), 0.0
        if (-n_open, right - left) > (-fewest, widest):
            fewest, widest, clearest = n_open, right - left, (left + right) / 2
        n_beside = min(bisect_right(rights, clearest), len(lefts) - bisect_left(lefts, clearest))
        if n_beside >= LEAST_LINES:
            found[start] = right - start, clearest
    least = NARROWEST_GAP * median(each.top - each.bottom for each in segments)
    return [middle for width, middle in sorted(found.values(), reverse=True) if width > least]


def sides_of(lines: Sequence[Line], gutter: float) -> tuple[list[Line], list[Line]]:
    """Return the parts of lines before and behind the gap between two columns."""
    left = [part for each in lines if (part := [one for one in each if one.right <= gutter])]
    right = [part for each in lines if (part := [one for one in each if one.left >= gutter])]
    return left, right


def is_prose(lines: Sequence[Line]) -> bool:
    """Whether the lines of a column are sentences that go on from one to the next, not cells of a table."""
    if 2 * sum(len(line) > 1 for line in lines) > len(lines):
        gutter = gutter_of(lines)
        return gutter is not None and all(map(is_prose, sides_of(lines, gutter)))
    texts = [" ".join(segment.text for segment in line) for line in lines]
    if len(texts) < LEAST_LINES or fmean(map(len, texts)) < SHORT:
        return False
    left, right = min(line[0].left for line in lines), max(line[-1].right for line in lines)
    is_full = [line[-1].right - line[0].left > FULL * (right - left) for line in lines]
    goes_on = [  # German has capitals within sentences
        a[-1] not in ".!?:;"
        and not MARKER.match(b)
        and (b[0].islower() or a[-1] in ",-" or (full and len(a) > 2 * SHORT and ":" not in b))
        for (a, b), full in zip(pairwise(texts), is_full[:-1], strict=True)
    ]
    return fmean(goes_on) >= LEAST_FLOW or (len(lines) > LEAST_LINES + 2 and fmean(is_full) > 2 * LEAST_FLOW)
