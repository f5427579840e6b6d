"""The merge loop of byte-pair encoding (Sennrich et al. 2016): the best pair of neighbours is merged."""

from collections.abc import Callable, Iterable, Iterator
from heapq import heapify, heappop, heappush

# The rank of a pair of neighbours, 0 for the one to be merged first; None where they are never merged.
Rank = Callable[[str, str], int | None]


def merges(symbols: list[str], rank: Rank) -> Iterator[tuple[tuple[str, str], int]]:
    """Merge neighbouring symbols, lowest rank first and then leftmost, until no pair has a rank.

    Works in place and yields every merged pair with its rank: the left symbol becomes the merged one, the
    right one empty. A heap of pairs and links between neighbours make it ``O(n log n)``, for words of
    any length.
    """
    n = len(symbols)
    following, preceding = list(range(1, n + 1)), list(range(-1, n - 1))
    heap = [
        (number, left, (symbols[left], symbols[left + 1]))
        for left in range(n - 1)
        if (number := rank(symbols[left], symbols[left + 1])) is not None
    ]
    heapify(heap)
    while heap:
        number, left, pair = heappop(heap)
        right = following[left]
        if right == n or (symbols[left], symbols[right]) != pair:
            continue  # one of the two was already merged with its other neighbour
        symbols[left], symbols[right] = pair[0] + pair[1], ""
        following[left] = after = following[right]
        if after < n:
            preceding[after] = left
        yield pair, number
        for first, second in ((preceding[left], left), (left, after)):
            if first >= 0 and second < n:
                new = rank(symbols[first], symbols[second])
                if new is not None:
                    heappush(heap, (new, first, (symbols[first], symbols[second])))


def merge(symbols: Iterable[str], rank: Rank) -> list[str]:
    """Return the symbols after all `merges`, with empty strings for those merged into others."""
    symbols = list(symbols)
    for _ in merges(symbols, rank):
        pass
    return symbols
