"""The child process that answers requests of `engine.limited_process`, within limits.

It runs as a script (``python -I limited_program.py FILE SECONDS FORKS``) and takes the function ``answer(
request: bytes) -> bytes`` from a Python file, without the package around that file, whose imports may take
long. Requests come from standard input, answers go to standard output. With ``FORKS`` "1" each is answered in
a fork. The file's ``report`` becomes a function that tells how far an answer is, and starts the wall time
anew. After some seconds without a request the process ends and gives its memory back.
"""

import importlib.util
import math
import os
import select
import signal
import struct
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

REQUEST = struct.Struct("<QII")  # bytes of the request, seconds of computing and megabytes of memory at most
ANSWER = struct.Struct("<BQ")  # a kind of the next line, and the bytes that follow
NOTHING, DONE, REPORT = range(3)
COUNTS = struct.Struct("<II")  # of a report
WALL_S = 5  # seconds of wall time for a second of computing, on a busy machine
WATCH_S, PART = 0.01, 2**20  # between two looks at a fork's memory, and bytes of an answer read at once
LEAST_MB, UNUSED_MB = 200, 40  # that a fork may ask for: in all, and beyond its limit, as libraries do

Report = Callable[[int, int], None]  # called with what is done, or being done, and with all there is


def limit_process(seconds: int, megabytes: int) -> None:
    """Limit the seconds from now on, and the memory of this process, where the system can."""
    with suppress(OSError):  # if the system lacks memory, this process is to be ended, and not the app
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    with suppress(ImportError):  # Windows has no such limits: there only the parent's time limit holds
        import resource

        signal.alarm(WALL_S * seconds)
        used = resource.getrusage(resource.RUSAGE_SELF)
        spent = math.ceil(used.ru_utime + used.ru_stime)
        limits = {resource.RLIMIT_CPU: spent + seconds, resource.RLIMIT_DATA: megabytes * 1024**2}
        for limit, most in limits.items():
            with suppress(ValueError, OSError):
                resource.setrlimit(limit, (most, resource.getrlimit(limit)[1]))


def reporter(send: Callable[[bytes], object], seconds: int) -> Report:
    """Return a function that sends counts, and starts the wall time anew."""

    def report(done: int, total: int) -> None:
        if hasattr(signal, "alarm"):
            signal.alarm(WALL_S * seconds)
        send(COUNTS.pack(done, total))

    return report


def send(target: BinaryIO, kind: int, content: bytes) -> None:
    """Write an answer or a report."""
    target.write(ANSWER.pack(kind, len(content)))
    target.write(content)
    target.flush()


def answer_here(program: Any, request: bytes, seconds: int, megabytes: int, target: BinaryIO) -> bytes:
    """Answer a request in this process, which ends where it exceeds the limits."""
    limit_process(seconds, megabytes)
    program.report = reporter(partial(send, target, REPORT), seconds)
    found: bytes = program.answer(request)
    if hasattr(signal, "alarm"):
        signal.alarm(0)
    return found


def answer_apart(
    program: Any, request: bytes, seconds: int, megabytes: int, target: BinaryIO
) -> bytes | None:
    """Answer a request in a forked process, which does not change ``target``; None beyond the limits.

    It ends by the memory that it uses, before it is refused any: libraries take that for a damaged file.
    """
    reader, writer = os.pipe()
    reports, counts = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(target.fileno())  # or the parent would wait for this process when the other is killed
        try:
            limit_process(seconds, max(LEAST_MB, megabytes + UNUSED_MB))
            program.report = reporter(partial(os.write, counts), seconds)
            with os.fdopen(writer, "wb") as pipe:
                pipe.write(program.answer(request))
        except BaseException:  # MemoryError above all
            os._exit(1)
        os._exit(0)
    os.close(writer)
    os.close(counts)
    parts = list[bytes]()
    while not parts or parts[-1]:
        while not (ready := select.select([reader, reports], [], [], WATCH_S)[0]):
            if memory_in_use(child) > megabytes * 1024**2:
                os.kill(child, signal.SIGKILL)
        if reports in ready and len(found := os.read(reports, COUNTS.size)) == COUNTS.size:
            send(target, REPORT, found)
        elif reader in ready:
            parts.append(os.read(reader, PART))
    os.close(reader)
    os.close(reports)
    _, status = os.waitpid(child, 0)
    return None if status else b"".join(parts)


def memory_in_use(process: int) -> int:
    """Return the bytes that a process has besides the files it maps, 0 where the system does not tell."""
    try:
        _, resident, shared, *_ = Path(f"/proc/{process}/statm").read_bytes().split()
    except OSError:
        return 0
    return (int(resident) - int(shared)) * os.sysconf("SC_PAGE_SIZE")


def module_of(path: Path) -> Any:
    """Return the module of a Python file, which may import the engine."""
    root = Path(__file__).parent.parent
    sys.path.insert(0, str(root))  # before another package of the name `engine`
    place = path.relative_to(root) if path.is_relative_to(root) else Path(path.name)
    # Its own imports are relative to the package that the name has it in.
    spec = importlib.util.spec_from_file_location(".".join(place.with_suffix("").parts), path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def is_asked(idle_s: float) -> bool:
    """Wait for a request; return False once ``idle_s`` seconds have passed."""
    return not hasattr(os, "fork") or bool(select.select([sys.stdin], [], [], idle_s)[0])


def own_output() -> BinaryIO:
    """Return standard output, into which nothing else is written from now on: a library may print."""
    target = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
    return target


def main(path: str, idle_s: str, forks: str) -> None:
    """Answer requests until there are none."""
    source, target = sys.stdin.buffer, own_output()
    if in_fork := forks == "1" and hasattr(os, "fork"):
        os.environ["OPENBLAS_NUM_THREADS"] = "1"  # a fork has no threads
    program = module_of(Path(path))
    answer = answer_apart if in_fork else answer_here
    while is_asked(float(idle_s)) and len(header := source.read(REQUEST.size)) == REQUEST.size:
        n_bytes, seconds, megabytes = REQUEST.unpack(header)
        request = source.read(n_bytes)
        found = answer(program, request, seconds, megabytes, target)
        send(target, NOTHING if found is None else DONE, found or b"")


if __name__ == "__main__":
    main(*sys.argv[1:])
