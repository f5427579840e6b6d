"""Run the contestants of a benchmark, each in a process of its own on the same cores."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

CORES = 2
# Prefixes of variables that choose kernels and threads: each library keeps its own defaults.
CHOICES = ("OPENBLAS_", "OMP_", "MKL_", "GOTO_", "NUMBA_", "TOKENIZERS_")


def pin() -> None:
    """Restrict this process and its children to the first `CORES` cores."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])


def environment(**extra: str) -> dict[str, str]:
    """Return the environment without the variables of `CHOICES`, with ``extra`` added."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(CHOICES)}
    return {**kept, "HF_HUB_OFFLINE": "1", **extra}


def run_once(module: str, arguments: list[str], env: dict[str, str]) -> str:
    """Run a module and return its standard output; exit with its errors where it fails."""
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(command, env=env, text=True, capture_output=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(arguments)} failed:\n{done.stderr[-2000:]}")
    return done.stdout


class Served:
    """A running module: it prints one JSON line when it is ready, then one for each order it receives."""

    def __init__(self, module: str, arguments: list[str], env: dict[str, str], errors: Path) -> None:
        self.name, self.errors = arguments[0], errors
        with errors.open("a", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", module, *arguments],
                env=env,
                text=True,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
            )
        self.ready = self.receive()

    def ask(self, order: dict[str, Any]) -> dict[str, Any]:
        """Send an order and return the answer."""
        assert self.process.stdin is not None
        print(json.dumps(order), file=self.process.stdin, flush=True)
        return self.receive()

    def receive(self) -> dict[str, Any]:
        """Return the next line of its output; exit with its errors where it has ended."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.name} stopped:\n{self.errors.read_text(encoding='utf-8')[-2000:]}")
        return json.loads(line)

    def stop(self) -> None:
        """Close its input and wait for it to end."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def memory(field: str) -> float:
    """Return this process's memory in MB: VmRSS (resident now) or VmHWM (peak)."""
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith(field):
            return int(line.split()[1]) / 1000
    return float("nan")


def say(what: str) -> None:
    """Print progress on standard error."""
    print(what, file=sys.stderr)
