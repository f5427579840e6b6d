"""Free memory, to refuse a model that does not fit before it is loaded."""

import os
from pathlib import Path

from ..errors import MemoryLimitError

ROOT = Path("/")  # the folder of ``proc`` and ``sys``


def require_memory(n_bytes: int, what: str) -> None:
    """Raise `MemoryLimitError` if fewer than ``n_bytes`` are free, as far as that is known."""
    available = available_memory()
    if available is not None and n_bytes > available:
        raise MemoryLimitError(
            f"{what} needs {n_bytes / 1e9:.2f} GB of memory and {available / 1e9:.2f} GB are free: "
            f"choose a smaller model or a more strongly quantised file, or close other programs"
        )


def available_memory() -> int | None:
    """Bytes free on the machine and in this process's container, None if unknown."""
    limits = [machine_memory(), *group_memory()]
    return min((limit for limit in limits if limit is not None), default=None)


def machine_memory() -> int | None:
    """Bytes free on the machine; without /proc its total memory, or None."""
    for line in read(ROOT / "proc" / "meminfo").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024  # "MemAvailable:   24206252 kB"
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # Windows has no sysconf, other systems not these names
        return None


def group_memory() -> list[int]:
    """Bytes left in each control group around this process that has a limit, of version 1 or 2.

    A line of /proc/self/cgroup is ``number:controllers:path``, with no controllers in version 2. In a
    container the path may be the host's, where only the topmost group is visible.
    """
    left = []
    for line in read(ROOT / "proc" / "self" / "cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        files = VERSION_1 if "memory" in controllers.split(",") else VERSION_2
        if controllers and files is VERSION_2:
            continue  # another controller
        top = ROOT / "sys" / "fs" / "cgroup" / ("memory" if files is VERSION_1 else "")
        parts = [part for part in path.split("/") if part not in ("", "..")]
        groups = [top.joinpath(*parts[:depth]) for depth in range(len(parts) + 1)]
        left += [bytes_left for group in groups if (bytes_left := left_in(group, *files)) is not None]
    return left


VERSION_1 = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
VERSION_2 = ("memory.max", "memory.current", "inactive_file")


def left_in(group: Path, limit_file: str, usage_file: str, cached_key: str) -> int | None:
    """Bytes left in one control group, inactive page cache among them, or None if it has no limit."""
    limit, usage = read(group / limit_file).strip(), read(group / usage_file).strip()
    if not (limit.isdigit() and usage.isdigit()):  # no such group, or a limit of "max"
        return None
    stat = dict(line.split(maxsplit=1) for line in read(group / "memory.stat").splitlines())
    return max(int(limit) - int(usage) + int(stat.get(cached_key, 0)), 0)


def read(path: Path) -> str:
    """Text of a system file, empty if there is none."""
    try:
        return path.read_text()
    except OSError:
        return ""
