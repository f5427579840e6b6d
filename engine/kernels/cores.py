"""Number of processor cores that this process may use."""

import math
import os
from pathlib import Path

# A container's quota, such as "200000 100000": microseconds of processor time in each period; or "max".
QUOTA = Path("/sys/fs/cgroup/cpu.max")


def n_cores(quota: Path = QUOTA) -> int:
    """Return the number of cores this process is bound to, or fewer where its quota is smaller."""
    bound = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        allowed, period = quota.read_text("utf-8").split()
        return max(1, min(bound, math.ceil(int(allowed) / int(period))))
    except (OSError, ValueError):  # no containers on this system, or no quota
        return bound
