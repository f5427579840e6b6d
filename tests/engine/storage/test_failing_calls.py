"""Files whose n-th write, synchronisation, rename or truncation fails hold the old state or the new."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.nightly
@pytest.mark.skipif(not shutil.which("cc") or sys.platform != "linux", reason="no compiler of C, or no Linux")
def test_every_call_that_fails_leaves_the_old_state_or_the_new_and_is_told(tmp_path):
    library = tmp_path / "failing_calls.so"
    source = Path(__file__).with_name("failing_calls.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    result = subprocess.run(
        [sys.executable, "-m", "tests.engine.storage.failing_calls", tmp_path / "files"],
        # The modules of this process, wherever it found them.
        env={**os.environ, "LD_PRELOAD": str(library), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr[-2000:]
    failed = {tuple(line.split()[:2]): int(line.split()[2]) for line in result.stdout.splitlines()}
    for file in ("WorkspaceFile", "CacheFile", "SweepFile", "ExperimentFile"):
        assert failed[file, "writes"] > 0
        assert failed[file, "synchronisations"] > 0
    assert failed["ExperimentFile", "renames"] == 1
