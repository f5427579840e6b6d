"""Number of processor cores that this process may use."""

import math
import os
from contextlib import suppress
from pathlib import Path

# A container's quota, such as "200000 100000": microseconds of processor time in each period; or "max".
QUOTA = Path("/sys/fs/cgroup/cpu.max")

_limits: list[int] = []


def limit_cores(n: int) -> None:
    """Have this process use ``n`` cores or fewer, as one of several that share a machine does."""
    _limits[:] = [n]


def n_cores() -> int:
    """Return the number of cores this process is bound to, or fewer by its quota or `limit_cores`."""
    bound = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    limits = [bound, *_limits]
    with suppress(OSError, ValueError):  # no containers on this system, or no quota
        allowed, period = QUOTA.read_text("utf-8").split()
        limits.append(max(1, math.ceil(int(allowed) / int(period))))
    return min(limits)
