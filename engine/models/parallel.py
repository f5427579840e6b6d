"""Packs of texts, whose tokens are the rows of one matrix, and one worker a core for packs.

Each worker has a single-threaded BLAS. A multi-threaded one gains little for products of a few thousand rows,
and nothing between the products; whole packs in parallel gain in both.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from itertools import pairwise
from typing import TypeVar

import numpy as np
from threadpoolctl import threadpool_limits

from ..cores import n_cores
from ..layers.tracing import Array
from ..weights.fetch import Progress

T = TypeVar("T")

# The BLAS's thread count is global: overlapping callers that each set and restore it would leave it at one.
_lock = threading.Lock()
_n_inside = 0
_limits: threadpool_limits | None = None


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Limit the BLAS to one thread while any caller is inside; the last one restores the old limit."""
    global _n_inside, _limits
    with _lock:
        _n_inside += 1
        if _limits is None:
            _limits = threadpool_limits(1, user_api="blas")
    try:
        yield
    finally:
        with _lock:
            _n_inside -= 1
            if _n_inside == 0 and _limits is not None:
                _limits.restore_original_limits()
                _limits = None


def packed(sequences: Sequence[Sequence[int]]) -> tuple[Array, Array, list[slice]]:
    """Return ids and positions of all tokens of a pack, ``(n_tokens,)`` each, and the rows of each text."""
    lengths = [len(sequence) for sequence in sequences]
    ids = np.concatenate([np.asarray(sequence) for sequence in sequences])
    return ids, np.concatenate([np.arange(length) for length in lengths]), row_spans(lengths)


def row_spans(lengths: Sequence[int]) -> list[slice]:
    """Return the rows of each text of a pack, from their numbers of tokens."""
    ends = np.cumsum(lengths).tolist()
    return [slice(end - length, end) for end, length in zip(ends, lengths, strict=True)]


def even_packs(lengths: Sequence[int], pack_tokens: int, n_workers: int) -> list[slice]:
    """Cut a list of sequences into runs of like numbers of tokens, so that all workers end together.

    All workers get equally many runs, of about ``pack_tokens`` tokens or fewer; if these would be shorter
    than a quarter of that, there are fewer runs.
    """
    n_tokens = sum(lengths)
    if n_tokens == 0:
        return [slice(0, len(lengths))] if lengths else []
    n_needed = -(-n_tokens // pack_tokens)
    n_even = -(-n_needed // n_workers) * n_workers
    n_packs = max(n_needed, min(n_even, 4 * n_tokens // pack_tokens))
    middles = np.cumsum(lengths) - np.asarray(lengths) / 2
    borders = np.flatnonzero(np.diff((middles * n_packs / n_tokens).astype(int))) + 1
    return [slice(start, stop) for start, stop in pairwise([0, *borders.tolist(), len(lengths)])]


def run_packs(
    work: Callable[[slice], None],
    sequences: Sequence[Sequence[int]],
    batch_tokens: int,
    on_progress: Progress | None = None,
) -> None:
    """Run `even_packs` of sequences in parallel; ``on_progress`` gets sequences done and sequences in all."""
    n_done = 0
    lengths = [len(sequence) for sequence in sequences]
    for batch in run_parallel(work, even_packs(lengths, batch_tokens, n_cores())):
        n_done += batch.stop - batch.start
        if on_progress is not None:
            on_progress(n_done, len(sequences))


def run_parallel(work: Callable[[T], None], batches: Sequence[T]) -> Iterator[T]:
    """Run ``work`` on every batch in parallel; yield batches in order of completion."""
    if len(batches) <= 1:
        for batch in batches:
            work(batch)
            yield batch
        return
    with single_threaded_blas():
        pool = ThreadPoolExecutor(max_workers=n_cores())
        try:
            futures = {pool.submit(work, batch): batch for batch in batches}
            for future in as_completed(futures):
                future.result()
                yield futures[future]
        finally:  # if the caller stops early, batches not yet started are cancelled
            pool.shutdown(cancel_futures=True)
