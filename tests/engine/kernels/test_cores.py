import os

import pytest

from engine.kernels.cores import n_cores


@pytest.mark.parametrize(
    ("quota", "most"), [("100000 100000", 1), ("50000 100000", 1), ("150000 100000", 2), ("800000 100000", 8)]
)
def test_a_container_uses_no_more_cores_than_its_quota_makes(tmp_path, quota, most):
    (tmp_path / "cpu.max").write_text(f"{quota}\n")
    assert n_cores(tmp_path / "cpu.max") == min(most, n_cores(tmp_path / "absent"))


@pytest.mark.parametrize("quota", ["max 100000", "", "nonsense"])
def test_without_a_quota_all_cores_are_used(tmp_path, quota):
    (tmp_path / "cpu.max").write_text(quota)
    assert n_cores(tmp_path / "cpu.max") == len(os.sched_getaffinity(0))
