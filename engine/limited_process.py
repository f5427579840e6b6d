"""Programs in child processes with limits on time and memory: for input of strangers, and for PyTorch.

A process goes on with the next request, since starting one takes longer than most requests: see
`engine.limited_program`. It answers each in a fork of its own, and where a request exceeds a limit, its fork
alone ends. A program that keeps what it has loaded, such as a model, answers in the process itself.
"""

import subprocess
import sys
import threading
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from .limited_program import ANSWER, COUNTS, DONE, REPORT, REQUEST, WALL_S
from .limited_program import Report as Report

LOOP = Path(__file__).with_name("limited_program.py")
MOST_S = 1200  # of wall time for a request, whose reports each start its wall time anew


@dataclass(frozen=True)
class Limits:
    """Of one request: seconds of computing, and megabytes of memory."""

    seconds: int
    megabytes: int
    # lower limits of a first try, so that few files wait for one that takes long
    first: "Limits | None" = None

    def __str__(self) -> str:
        return f"{self.seconds} s or {self.megabytes} MB"


@dataclass(frozen=True)
class Program:
    """A Python file with a function ``answer(request: bytes) -> bytes``."""

    path: Path
    idle_s: float  # seconds after which a process without a request ends
    # whether each request is answered in a fork. Otherwise a process has what earlier requests left in it,
    # and ends where a request exceeds the limits.
    forks: bool = True
    # processes that wait for a request
    idle: deque[subprocess.Popen[bytes]] = field(default_factory=deque, compare=False)


def ask(
    program: Program, request: bytes, limits: Limits, on_report: Report | None = None, content: bytes = b""
) -> bytes | None:
    """Return a program's answer to a request and the content that follows it, None beyond the limits.

    With ``on_report`` the wall time is that between two reports of the program, and `MOST_S` in all.
    """
    header = REQUEST.pack(len(request) + len(content), limits.seconds, limits.megabytes)
    while True:
        process = idle_process(program)
        try:
            kind, answer = exchange(process, limits, on_report, header, request, content)
        except EOFError:
            if process.wait() == 0:  # it ended at the moment of the request, having waited long enough
                continue
            return None
        except BaseException:  # of the listener, who does not wait for the answer
            process.kill()
            release(process)
            raise
        program.idle.append(process)
        return answer if kind == DONE else None


def idle_process(program: Program) -> subprocess.Popen[bytes]:
    """Return a process that answers nothing just now: one that is there, or a new one."""
    with suppress(IndexError):
        while (process := program.idle.pop()).poll() is not None:
            release(process)
        return process
    options = [str(program.path), str(program.idle_s), str(int(program.forks))]
    command = [sys.executable, "-I", str(LOOP), *options]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)


def end_idle(program: Program) -> None:
    """End the processes that wait for a request, and wait until their memory is given back."""
    with suppress(IndexError):
        while True:
            release(program.idle.pop())


def exchange(
    process: subprocess.Popen[bytes], limits: Limits, on_report: Report | None, *parts: bytes
) -> tuple[int, bytes]:
    """Return the kind of a process's answer to a request, and the answer; raise EOFError if it ends."""
    wall_s = (WALL_S + 1) * limits.seconds  # after the fork's own limit
    end = time.monotonic() + (MOST_S if on_report else wall_s)
    while True:
        timer = threading.Timer(min(wall_s, end - time.monotonic()), process.kill)
        timer.start()
        try:
            kind, content = next_answer(process, *parts)
        finally:
            timer.cancel()
        if kind != REPORT:
            return kind, content
        parts = ()
        done, total = COUNTS.unpack(content)
        if on_report and 0 < done <= total:  # a file may have taken over the program
            on_report(done, total)


def next_answer(process: subprocess.Popen[bytes], *parts: bytes) -> tuple[int, bytes]:
    """Write the parts of a request, and return the kind and the bytes of what the process says next."""
    assert process.stdin
    with suppress(BrokenPipeError):
        for part in parts:
            process.stdin.write(part)
        process.stdin.flush()
    kind, n_bytes = ANSWER.unpack(read_all(process, ANSWER.size))
    return kind, read_all(process, n_bytes)


def read_all(process: subprocess.Popen[bytes], n_bytes: int) -> bytes:
    """Return the next bytes of a process's output; raise EOFError if it ends before."""
    assert process.stdout
    found = process.stdout.read(n_bytes)
    if len(found) < n_bytes:
        release(process)
        raise EOFError
    return found


def release(process: subprocess.Popen[bytes]) -> None:
    """Close the pipes of a process that has ended or is ending, and wait for its end."""
    process.communicate()
