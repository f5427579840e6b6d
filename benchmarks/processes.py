"""Run the contestants of a benchmark, each in a process of its own on the same cores."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
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


class Ended(SystemExit):
    """A process ended before it answered; where nothing catches it, the benchmark ends with its message.

    ``how`` is ``"ended by SIGSEGV"`` or ``"ended with exit code 1"``.
    """

    def __init__(self, name: str, code: int, errors: str) -> None:
        self.how = f"ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        super().__init__(f"{name} {self.how}:\n{errors[-2000:]}")


@dataclass
class Lineup:
    """The contestants of a benchmark: those that end count no longer, and the others go on."""

    names: Sequence[str]  # all of them, in their order
    needed: Collection[str]  # all others are compared with these: the benchmark ends where one of them does
    ended: dict[str, str] = field(default_factory=dict)  # how the others ended

    def __iter__(self) -> Iterator[str]:
        """Yield the names of those that have not ended."""
        return (name for name in self.names if name not in self.ended)

    @contextmanager
    def turn(self, name: str) -> Iterator[None]:
        """Keep in mind how a contestant ends during its turn."""
        try:
            yield
        except Ended as error:
            if name in self.needed:
                raise
            self.ended[name] = error.how
            say(str(error))

    @property
    def ended_rows(self) -> dict[str, dict[str, str]]:
        """What takes the place of the figures of those that ended."""
        return {name: {"ended": how} for name, how in self.ended.items()}


def run_once(module: str, arguments: list[str], env: dict[str, str]) -> str:
    """Run a module and return its standard output; raise `Ended` where it fails."""
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(command, env=env, text=True, capture_output=True, check=False)
    if done.returncode:
        raise Ended(" ".join(arguments), done.returncode, done.stderr)
    return done.stdout


class Served:
    """A running module: it prints one JSON line when it is ready, then one for each order it receives.

    Where it ends instead, `Ended` is raised.
    """

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
        with suppress(BrokenPipeError):  # of a process that has ended, as `receive` finds
            print(json.dumps(order), file=self.process.stdin, flush=True)
        return self.receive()

    def receive(self) -> dict[str, Any]:
        """Return the next line of its output."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise Ended(self.name, self.process.wait(), self.errors.read_text(encoding="utf-8"))
        return json.loads(line)

    def stop(self) -> None:
        """Close its input and wait for it to end."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def memory(field: str, process: int | str = "self") -> float:
    """Return the memory of a process in MB: VmRSS (resident now) or VmHWM (peak)."""
    for line in Path(f"/proc/{process}/status").read_text(encoding="utf-8").splitlines():
        if line.startswith(field):
            return int(line.split()[1]) / 1000
    return float("nan")


def say(what: str) -> None:
    """Print progress on standard error."""
    print(what, file=sys.stderr)
