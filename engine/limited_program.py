"""The child process that answers requests of `engine.limited_process`, each in a forked process with limits.

It runs as a script (``python -I limited_program.py FILE SECONDS``) and takes the function ``answer(request:
bytes) -> bytes`` from a Python file, without the package around that file, whose imports may take long.
Requests come from standard input, answers go to standard output. After some seconds without a request it ends
and gives its memory back.
"""

import importlib.util
import os
import select
import struct
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

REQUEST = struct.Struct("<QII")  # bytes of the request, seconds of computing and megabytes of memory at most
ANSWER = struct.Struct("<?Q")  # whether there is an answer, and its bytes
WALL_S = 5  # seconds of wall time for a second of computing, on a busy machine

Answer = Callable[[bytes], bytes]


def limit_process(seconds: int, megabytes: int) -> None:
    """Limit the seconds and the memory of this process, where the system can."""
    with suppress(OSError):  # if the system lacks memory, this process is to be ended, and not the app
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    with suppress(ImportError):  # Windows has no such limits: there the parent's time limit holds alone
        import resource
        import signal

        signal.alarm(WALL_S * seconds)
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
            resource.setrlimit(resource.RLIMIT_DATA, (megabytes * 1024**2,) * 2)


def answer_apart(answer: Answer, request: bytes, seconds: int, megabytes: int) -> bytes | None:
    """Answer a request in a forked process; None where it exceeds the limits."""
    if not hasattr(os, "fork"):  # Windows
        return answer(request)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(sys.stdout.fileno())  # or the parent would wait for this process when the other is killed
        try:
            limit_process(seconds, megabytes)
            with os.fdopen(writer, "wb") as pipe:
                pipe.write(answer(request))
        except BaseException:  # MemoryError above all
            os._exit(1)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        found = pipe.read()
    _, status = os.waitpid(child, 0)
    return None if status else found


def function_of(path: Path) -> Answer:
    """Return the function ``answer`` of a Python file, which may import the engine."""
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # a fork has no threads
    sys.path.append(str(Path(__file__).parent.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: Answer = module.answer
    return found


def is_asked(idle_s: float) -> bool:
    """Wait for a request; return False once ``idle_s`` seconds have passed."""
    return not hasattr(os, "fork") or bool(select.select([sys.stdin], [], [], idle_s)[0])


def main(path: str, idle_s: str) -> None:
    """Answer requests until there are none."""
    answer, source, target = function_of(Path(path)), sys.stdin.buffer, sys.stdout.buffer
    while is_asked(float(idle_s)) and len(header := source.read(REQUEST.size)) == REQUEST.size:
        n_bytes, seconds, megabytes = REQUEST.unpack(header)
        found = answer_apart(answer, source.read(n_bytes), seconds, megabytes)
        target.write(ANSWER.pack(found is not None, len(found or b"")) + (found or b""))
        target.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
