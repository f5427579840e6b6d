import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.serving.batching import Batcher, QueueFullError

TOKENS = 8


class Gate:
    """Work that gives back its items, and waits before each batch until it is let through."""

    def __init__(self, is_open=True):
        self.batches, self.through, self.started = [], threading.Event(), threading.Semaphore(0)
        if is_open:
            self.through.set()

    def __call__(self, key, items):
        self.started.release()
        self.through.wait()
        self.batches.append((key, items))
        return [(key, item) for item in items]


def run(work, use, most_tokens=1000):
    """Use a batcher in a loop of its own, in a thread: Playwright's loop runs on in that of the tests."""
    batcher = Batcher(work, TOKENS, most_tokens)

    async def used():
        async with asyncio.timeout(60):
            return await use(batcher)

    try:
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(asyncio.run, used()).result()
    finally:
        batcher.close()


async def behind(batcher, gate, *requests):
    """Let requests gather behind a first one that is at work, then let all through."""
    first = asyncio.create_task(batcher.compute("first", ["first"], [1]))
    await asyncio.to_thread(gate.started.acquire)
    tasks = [asyncio.create_task(batcher.compute(*request)) for request in requests]
    while batcher.waiting_requests < len(requests):
        await asyncio.sleep(0)
    gate.through.set()
    await first
    return await asyncio.gather(*tasks)


SIZES = st.lists(st.integers(1, 2 * TOKENS), max_size=12)


@given(st.lists(st.tuples(st.sampled_from("ab"), SIZES), max_size=8))
def test_every_request_gets_its_own_results_in_order(requests):
    gate = Gate()

    async def use(batcher):
        return await asyncio.gather(
            *(
                batcher.compute(key, [(number, place) for place in range(len(sizes))], sizes)
                for number, (key, sizes) in enumerate(requests)
            )
        )

    results = run(gate, use)
    assert results == [
        [(key, (number, place)) for place in range(len(sizes))]
        for number, (key, sizes) in enumerate(requests)
    ]
    sizes = {
        (number, place): size for number, (_, own) in enumerate(requests) for place, size in enumerate(own)
    }
    for _, items in gate.batches:
        assert len(items) == 1 or sum(sizes[item] for item in items) <= TOKENS


def test_requests_that_wait_share_a_batch_and_a_long_one_does_not_hold_up_short_ones():
    gate = Gate(is_open=False)
    run(gate, lambda batcher: behind(batcher, gate, ("k", list("LLLLLLLL"), [4] * 8), ("k", ["s"], [2])))
    first, second, *others = [items for _, items in gate.batches]
    assert (first, second) == (["first"], ["L", "s"])
    assert others[0] == ["L", "L"]


def test_requests_of_other_keys_have_batches_of_their_own_and_their_turn():
    gate = Gate(is_open=False)
    run(gate, lambda batcher: behind(batcher, gate, ("a", [1, 2, 3], [8, 8, 8]), ("b", [4], [1])))
    assert [key for key, _ in gate.batches] == ["first", "a", "b", "a", "a"]


def test_what_fails_is_the_answer_of_its_requests_alone():
    def work(key, items):
        if key == "bad":
            raise ZeroDivisionError("of this batch")
        return items

    async def use(batcher):
        bad = batcher.compute("bad", [1, 2, 3], [TOKENS] * 3)
        return await asyncio.gather(bad, batcher.compute("good", [4], [1]), return_exceptions=True)

    failed, others = run(work, use)
    assert isinstance(failed, ZeroDivisionError)
    assert others == [4]


def test_requests_that_were_left_are_not_computed():
    gate = Gate(is_open=False)

    async def use(batcher):
        first = asyncio.create_task(batcher.compute("k", ["first"], [1]))
        await asyncio.to_thread(gate.started.acquire)
        left = asyncio.create_task(batcher.compute("k", ["left"], [5]))
        await asyncio.sleep(0)
        assert batcher.waiting_tokens == 5
        left.cancel()
        await asyncio.sleep(0)
        gate.through.set()
        await first
        await batcher.compute("k", ["last"], [1])
        return batcher.waiting_tokens

    assert run(gate, use) == 0
    assert [items for _, items in gate.batches] == [["first"], ["last"]]


def test_more_tokens_than_may_wait_are_refused_unless_nothing_else_waits():
    gate = Gate(is_open=False)

    async def use(batcher):
        first = asyncio.create_task(batcher.compute("k", ["first"], [1]))
        await asyncio.to_thread(gate.started.acquire)
        second = asyncio.create_task(batcher.compute("k", ["large"], [50]))
        await asyncio.sleep(0)
        with pytest.raises(QueueFullError) as refused:
            await batcher.compute("k", ["third"], [1])
        gate.through.set()
        await asyncio.gather(first, second)
        return refused.value.retry_s

    assert run(gate, use, most_tokens=20) >= 1
