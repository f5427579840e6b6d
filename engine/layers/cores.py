"""How many cores there are to work on."""

import math
import os
from pathlib import Path

# "200000 100000": microseconds of processor time that a container may use in each so many; or "max".
QUOTA = Path("/sys/fs/cgroup/cpu.max")


def n_cores(quota: Path = QUOTA) -> int:
    """Return how many cores this process may use: those it is bound to, or as many as its quota makes."""
    bound = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        allowed, period = quota.read_text("utf-8").split()
        return max(1, min(bound, math.ceil(int(allowed) / int(period))))
    except (OSError, ValueError):  # no containers on this system, or no quota
        return bound
