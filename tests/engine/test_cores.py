import os

import pytest

from engine import cores


@pytest.mark.parametrize(
    ("quota", "most"), [("100000 100000", 1), ("50000 100000", 1), ("150000 100000", 2), ("800000 100000", 8)]
)
def test_a_container_uses_no_more_cores_than_its_quota_makes(tmp_path, monkeypatch, quota, most):
    monkeypatch.setattr(cores, "QUOTA", tmp_path / "cpu.max")
    without = cores.n_cores()
    (tmp_path / "cpu.max").write_text(f"{quota}\n")
    assert cores.n_cores() == min(most, without)


@pytest.mark.parametrize("quota", ["max 100000", "", "nonsense"])
def test_without_a_quota_all_cores_are_used(tmp_path, monkeypatch, quota):
    monkeypatch.setattr(cores, "QUOTA", tmp_path / "cpu.max")
    (tmp_path / "cpu.max").write_text(quota)
    assert cores.n_cores() == len(os.sched_getaffinity(0))
