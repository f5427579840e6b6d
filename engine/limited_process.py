"""Programs in child processes with limits on time and memory: for input of strangers, and for PyTorch.

A process goes on with the next request, since starting one takes longer than most requests: see
`engine.limited_program`. It answers each in a fork of its own, and where a request exceeds a limit, its fork
alone ends. A program that keeps what it has loaded, such as a model, answers in the process itself.
"""

import subprocess
import sys
import threading
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from .limited_program import ANSWER, REQUEST, WALL_S

LOOP = Path(__file__).with_name("limited_program.py")


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


def ask(program: Program, request: bytes, limits: Limits) -> bytes | None:
    """Return a program's answer, None where it exceeds the limits."""
    header = REQUEST.pack(len(request), limits.seconds, limits.megabytes)
    while True:
        process = idle_process(program)
        timer = threading.Timer((WALL_S + 1) * limits.seconds, process.kill)  # after the fork's own limit
        timer.start()
        try:
            has_answer, answer = exchange(process, header, request)
        except EOFError:
            if process.wait() == 0:  # it ended at the moment of the request, having waited long enough
                continue
            return None
        finally:
            timer.cancel()
        program.idle.append(process)
        return answer if has_answer else None


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


def exchange(process: subprocess.Popen[bytes], *parts: bytes) -> tuple[bool, bytes]:
    """Return whether a process has an answer to a request, and the answer; raise EOFError if it ends."""
    assert process.stdin
    with suppress(BrokenPipeError):
        for part in parts:
            process.stdin.write(part)
        process.stdin.flush()
    has_answer, n_bytes = ANSWER.unpack(read_all(process, ANSWER.size))
    return has_answer, read_all(process, n_bytes)


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
