"""What benchmarks that let programs take turns share: a process for each, on the same cores."""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

CORES = 2
# Which kernels a BLAS uses and how many threads, each library chooses by itself.
CHOICES = ("OPENBLAS_", "OMP_", "MKL_", "GOTO_", "NUMBA_", "TOKENIZERS_")


def read_arguments(doc: str | None, rounds: int) -> argparse.Namespace:
    """Read the options of a benchmark whose description is the first line of its ``doc``."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0] if doc else None)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--rounds", type=int, default=rounds, help="turns each contestant has")
    return parser.parse_args()


def pin() -> None:
    """Keep this process, and those it starts, on the first cores."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])


def environment(**extra: str) -> dict[str, str]:
    """Return this process's environment without what chooses for a library."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(CHOICES)}
    return {**kept, "HF_HUB_OFFLINE": "1", **extra}


def run_once(module: str, arguments: list[str], env: dict[str, str]) -> str:
    """Run a module to its end; return what it printed."""
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(command, env=env, text=True, capture_output=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(arguments)} failed:\n{done.stderr[-2000:]}")
    return done.stdout


class Served:
    """A module that says on its standard output when it is ready, and then answers line by line."""

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
        """Send an order; return the answer."""
        assert self.process.stdin is not None
        print(json.dumps(order), file=self.process.stdin, flush=True)
        return self.receive()

    def receive(self) -> dict[str, Any]:
        """Read the next line."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.name} stopped:\n{self.errors.read_text(encoding='utf-8')[-2000:]}")
        return json.loads(line)

    def stop(self) -> None:
        """Let it end."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def memory(field: str) -> float:
    """Return a figure of this process's memory, in MB: VmRSS (now) or VmHWM (the most so far)."""
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith(field):
            return int(line.split()[1]) / 1000
    return float("nan")


def say(what: str) -> None:
    """Show progress on standard error."""
    print(what, file=sys.stderr)
