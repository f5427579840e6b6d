import os

import pytest

from engine.errors import GlassboxError, MemoryLimitError
from engine.weights import memory
from engine.weights.memory import available_memory, require_memory
from tests.text_files import write_files

MB = 1_000_000


@pytest.fixture(autouse=True)
def root(tmp_path, monkeypatch):
    """An empty folder in the place of the system's."""
    monkeypatch.setattr(memory, "ROOT", tmp_path)
    return tmp_path


def meminfo(kilobytes):
    return {"proc/meminfo": f"MemTotal:  9999999 kB\nMemFree:  1 kB\nMemAvailable:  {kilobytes} kB\n"}


def group_2(folder, limit, usage, inactive=0):
    return {
        f"sys/fs/cgroup/{folder}memory.max": f"{limit}\n",
        f"sys/fs/cgroup/{folder}memory.current": f"{usage}\n",
        f"sys/fs/cgroup/{folder}memory.stat": f"anon 5\ninactive_file {inactive}\n",
    }


def group_1(folder, limit, usage, inactive=0):
    return {
        f"sys/fs/cgroup/memory/{folder}memory.limit_in_bytes": f"{limit}\n",
        f"sys/fs/cgroup/memory/{folder}memory.usage_in_bytes": f"{usage}\n",
        f"sys/fs/cgroup/memory/{folder}memory.stat": f"inactive_file 7\ntotal_inactive_file {inactive}\n",
    }


# The groups of the process, the files of the groups, and the bytes that are free.
GROUPS = {
    "none": ("", {}, 8000 * 1024),
    "2, a container": ("0::/", group_2("", 5 * MB, 2 * MB), 3 * MB),
    "2, file cache": ("0::/", group_2("", 5 * MB, 4 * MB, 3 * MB), 4 * MB),
    "2, a limit around it": ("0::/a/b", group_2("a/b/", "max", 0) | group_2("a/", 4 * MB, MB), 3 * MB),
    "2, no limit": ("0::/", group_2("", "max", 2 * MB), 8000 * 1024),
    "2, machine is less": ("0::/", group_2("", 99 * MB, 2 * MB), 8000 * 1024),
    "2, more than its limit": ("0::/", group_2("", 2 * MB, 3 * MB), 0),
    "2, a path outside": ("0::/../x", group_2("", 5 * MB, 2 * MB), 3 * MB),
    "2, no files": ("0::/gone", {}, 8000 * 1024),
    "1": ("5:cpu:/x\n4:hugetlb,memory:/\n0::/", group_1("", 5 * MB, 2 * MB, MB), 4 * MB),
    "1, a path outside its container": ("4:memory:/docker/3f2a", group_1("", 5 * MB, 2 * MB), 3 * MB),
    "1, the least of several": (
        "4:memory:/a/b",
        group_1("", 2**63 - 4096, MB) | group_1("a/", 6 * MB, MB) | group_1("a/b/", 9 * MB, MB),
        5 * MB,
    ),
}


@pytest.mark.parametrize(("own", "files", "expected"), GROUPS.values(), ids=GROUPS)
def test_the_less_of_what_machine_and_container_have_is_free(root, own, files, expected):
    groups = {"proc/self/cgroup": f"{own}\n"} if own else {}
    write_files(root, {**meminfo(8000), **groups, **files})
    assert available_memory() == expected


def test_a_system_without_proc_has_at_most_its_whole_memory():
    assert available_memory() == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def test_a_limit_counts_where_the_machine_says_nothing(root):
    write_files(root, {"proc/self/cgroup": "0::/\n", **group_2("", 5 * MB, 2 * MB)})
    assert available_memory() == 3 * MB


def test_what_fits_is_let_through_and_what_does_not_is_told(root):
    write_files(root, meminfo(2_000_000))
    require_memory(2_048_000_000, "model")
    with pytest.raises(
        MemoryLimitError,
        match=r"big\.gguf needs 2\.05 GB of memory and 2\.05 GB are free: choose a smaller model",
    ):
        require_memory(2_048_000_001, "big.gguf")
    assert issubclass(MemoryLimitError, GlassboxError)


def test_nothing_is_refused_where_nobody_knows(monkeypatch):
    monkeypatch.delattr(os, "sysconf")  # as on Windows
    assert available_memory() is None
    require_memory(10**18, "model")
