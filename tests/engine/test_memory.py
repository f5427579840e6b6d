"""Bounds of memory: freed memory goes back, and what sessions keep of their prompts is bounded together."""

import numpy as np
import pytest

from engine.generation.prefix_cache import PrefixCache
from engine.memory import give_back, glibc
from ui.asking import keep_newest


@pytest.mark.skipif(glibc("malloc_trim") is None, reason="not the GNU C library")
def test_freed_memory_goes_back_to_the_system():
    def resident():
        with open("/proc/self/statm") as file:  # noqa: PTH123
            return int(file.read().split()[1]) * 4096

    arrays = [np.ones(10_000) for _ in range(1000)]  # 80 MB in pieces too small for maps of their own
    keep = arrays[::100]
    before = resident()
    del arrays
    give_back()
    assert before - resident() > 40_000_000
    assert len(keep) == 10


def test_the_sessions_that_asked_last_keep_their_prompts_within_the_bound(decoder):
    caches = [PrefixCache() for _ in range(3)]
    for number, cache in enumerate(caches):
        list(decoder.generate(f"Prompt {number}", 2, reuse=cache))
        keep_newest(cache, 2 * caches[0].n_bytes)
    assert [len(cache) > 0 for cache in caches] == [False, True, True]
    keep_newest(caches[1], 0)
    assert [len(cache) > 0 for cache in caches] == [False, True, False]  # the one in use stays
