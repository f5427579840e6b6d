"""Dynamic batching: texts of several requests go through the model in one pass.

While a batch is computed, requests gather; the next batch takes from each of them in turn, so that a request
of many texts does not make small ones wait for its end. Nothing waits for a batch to fill: a request that
comes alone is computed at once.
"""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray


@dataclass(eq=False)
class Job:
    """The items of one request.

    Attributes
    ----------
    key
        Only items with equal keys share a batch.
    items, sizes
        What is computed, and the tokens of each item.
    loop, answer
        The event loop of the request, and its future.
    n_taken, n_left
        Items put into batches so far, and items without a result.
    results
        The result of each item, None until it is computed.
    """

    key: Hashable
    items: Sequence[Any]
    sizes: Sequence[int]
    loop: asyncio.AbstractEventLoop
    answer: asyncio.Future[list[Any]]
    n_taken: int = 0
    n_left: int = field(init=False)
    results: list[Any] = field(init=False)

    def __post_init__(self) -> None:
        self.n_left = len(self.items)
        self.results = [None] * len(self.items)


Place = tuple[Job, int]  # a job, and which of its items
Work = Callable[[Hashable, list[Any]], Sequence[Any] | NDArray[Any]]


class QueueFullError(Exception):
    """The queue holds too many tokens; ``retry_s`` estimates the seconds until they are done."""

    def __init__(self, retry_s: float) -> None:
        super().__init__(f"try again in {retry_s:.0f} s")
        self.retry_s = retry_s


class Batcher:
    """A worker thread that computes batches of the items of all requests.

    Parameters
    ----------
    work
        Takes a key and items, returns a result for each.
    batch_tokens
        Tokens of a batch; an item of more is a batch of its own.
    most_tokens
        Tokens that may wait; a single request may have more where nothing else waits.
    on_batch
        Called with the items and the tokens of each batch, in the worker's thread.
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
        """Return the result of each item; items of a cancelled request are not computed.

        Raises
        ------
        QueueFullError
            Too much waits already.
        """
        loop = asyncio.get_running_loop()
        job, n_tokens = Job(key, items, sizes, loop, loop.create_future()), sum(sizes)
        if not items:
            return []
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
                fail({job for job, _ in places}, error)
                continue
            self._s_per_token = (time.perf_counter() - start) / max(1, n_tokens)
            self._deliver(places, results)

    def _take(self) -> list[Place]:
        """Take the next batch from the queue: an equal share of each request, then the rest in order."""
        self._drop_answered()
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

    def _drop_answered(self) -> None:
        """Take requests out of the queue that were cancelled, or failed in an earlier batch."""
        for job in [each for each in self._jobs if each.answer.done()]:
            self._jobs.remove(job)
            self.waiting_tokens -= sum(job.sizes[job.n_taken :])

    def _deliver(self, places: Sequence[Place], results: Sequence[Any] | NDArray[Any]) -> None:
        """Put results in their places; answer the requests that have all of theirs."""
        done: dict[asyncio.AbstractEventLoop, list[Job]] = {}
        with self._changed:
            for (job, number), result in zip(places, results, strict=True):
                job.results[number] = result
                job.n_left -= 1
                if not job.n_left:
                    done.setdefault(job.loop, []).append(job)
        for loop, jobs in done.items():
            loop.call_soon_threadsafe(answer_all, jobs)


def answer_all(jobs: Sequence[Job]) -> None:
    """Give requests their results, in the thread of their loop."""
    for job in jobs:
        if not job.answer.done():
            job.answer.set_result(job.results)


def fail(jobs: set[Job], error: Exception) -> None:
    """Give requests an error in place of results."""

    def refuse(job: Job) -> None:
        if not job.answer.done():
            job.answer.set_exception(error)

    for job in jobs:
        job.loop.call_soon_threadsafe(refuse, job)
