"""Dynamic batching: texts of several requests go through the model in one pass.

While a batch is computed, requests gather; the next batch takes from each of them in turn, so that a request
of many texts does not make small ones wait for its end. Nothing waits for a batch to fill: a single
request is computed at once.
"""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray


@dataclass(eq=False)
class Job:
    """The items of one request."""

    key: Hashable  # only items with equal keys share a batch
    items: Sequence[Any]
    sizes: Sequence[int]  # tokens of each item
    answer: asyncio.Future[list[Any]]
    n_taken: int = 0  # items put into batches so far
    n_left: int = field(init=False)  # items without a result
    results: list[Any] = field(init=False)  # of each item, None until it is computed

    def __post_init__(self) -> None:
        self.n_left = len(self.items)
        self.results = [None] * len(self.items)


Place = tuple[Job, int]  # a job, and which of its items
Compute = Callable[[Hashable, Sequence[Any], Sequence[int]], Awaitable[list[Any]]]  # as `Batcher.compute`
Work = Callable[[Hashable, list[Any]], Sequence[Any] | NDArray[Any]]


class QueueFullError(Exception):
    """The queue holds too many tokens; ``retry_s`` estimates the seconds until they are done."""

    def __init__(self, retry_s: float) -> None:
        super().__init__(f"try again in {retry_s:.0f} s")
        self.retry_s = retry_s


class Batcher:
    """A worker thread that computes batches of the items of all requests of an event loop.

    ``work`` takes a key and items, and returns a result for each; an item of more than ``batch_tokens`` is a
    batch of its own. At most ``most_tokens`` may wait, but for a single request where nothing else does.
    ``on_batch`` is called with the items and the tokens of each batch, in the worker's thread.
    """

    def __init__(
        self,
        work: Work,
        batch_tokens: int,
        most_tokens: int,
        on_batch: Callable[[int, int], None] = lambda n_items, n_tokens: None,
    ) -> None:
        self._work, self._on_batch = work, on_batch
        self._batch_tokens, self._most_tokens = batch_tokens, most_tokens
        self._jobs: deque[Job] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._s_per_token = 0.0  # of the last batch
        self.waiting_tokens = 0
        self._thread = threading.Thread(target=self._run, name="batches", daemon=True)
        self._thread.start()

    @property
    def waiting_requests(self) -> int:
        """Requests with items in no batch yet."""
        return len(self._jobs)

    async def compute(self, key: Hashable, items: Sequence[Any], sizes: Sequence[int]) -> list[Any]:
        """Return the result of each item; items of a cancelled request are not computed."""
        if not items:
            return []
        job, n_tokens = Job(key, items, sizes, asyncio.get_running_loop().create_future()), sum(sizes)
        with self._changed:
            if self.waiting_tokens and self.waiting_tokens + n_tokens > self._most_tokens:
                raise QueueFullError(max(1.0, self.waiting_tokens * self._s_per_token))
            self.waiting_tokens += n_tokens
            self._jobs.append(job)
            self._changed.notify()
        return await job.answer

    def close(self) -> None:
        """End the thread once it has computed its batch; requests that wait get no result."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not (places := self._take()):
                    if self._closed:
                        return
                    self._changed.wait()
            items = [job.items[number] for job, number in places]
            n_tokens = sum(job.sizes[number] for job, number in places)
            self._on_batch(len(items), n_tokens)
            start = time.perf_counter()
            try:
                results = self._work(places[0][0].key, items)
            except Exception as error:  # of any kind: only these requests fail
                settle({job for job, _ in places}, error)
                continue
            self._s_per_token = (time.perf_counter() - start) / max(1, n_tokens)
            done = []
            for (job, number), result in zip(places, results, strict=True):
                job.results[number] = result
                job.n_left -= 1
                if not job.n_left:
                    done.append(job)
            settle(done)

    def _take(self) -> list[Place]:
        """Take the next batch from the queue: an equal share of each request, then the rest in order."""
        for job in [each for each in self._jobs if each.answer.done()]:  # cancelled, or failed in a batch
            self._jobs.remove(job)
            self.waiting_tokens -= sum(job.sizes[job.n_taken :])
        if not self._jobs or self._closed:
            return []
        jobs = [job for job in self._jobs if job.key == self._jobs[0].key]
        left, places = self._batch_tokens, list[Place]()
        for share in (self._batch_tokens // len(jobs), self._batch_tokens):
            for job in jobs:
                room = min(share, left)
                while room > 0 and job.n_taken < len(job.items):
                    size = job.sizes[job.n_taken]
                    if places and size > left:
                        break
                    places.append((job, job.n_taken))
                    job.n_taken += 1
                    room, left = room - size, left - size
        self.waiting_tokens -= sum(job.sizes[number] for job, number in places)
        served = dict.fromkeys(job for job, _ in places)
        unfinished = (job for job in served if job.n_taken < len(job.items))
        self._jobs = deque([*(job for job in self._jobs if job not in served), *unfinished])
        return places


def settle(jobs: Collection[Job], error: Exception | None = None) -> None:
    """Give requests of one event loop their results, or an error, in the loop's thread."""

    def give() -> None:
        for job in jobs:
            if job.answer.done():  # it was cancelled, or failed in an earlier batch
                continue
            if error is None:
                job.answer.set_result(job.results)
            else:
                job.answer.set_exception(error)

    if jobs:
        loop = next(iter(jobs)).answer.get_loop()
        loop.call_soon_threadsafe(give)  # once for all requests, since each call wakes the loop
