"""Files of strangers, read by a function of the engine in a child process: none stalls or ends the app.

The result comes back as a pickle. Nothing is taken of it but plain values, arrays, and the dataclasses and
errors of the engine: a file that has taken over a library there cannot have this process run anything.
"""

import io
import json
import pickle
import sys
import threading
from collections.abc import Callable
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any, TypeVar

from .errors import DocumentError, GlassboxError, RecognitionNeededError
from .limited_process import Limits, Program, Report, ask
from .wording import MAX_NAME, shortened

T = TypeVar("T")

READER = Program(Path(__file__).with_name("reading_program.py"), idle_s=30)
AT_ONCE = threading.BoundedSemaphore(2)  # files, whose memory adds up
# The same, where there is a first try. Recognition takes minutes: it has a turn of its own.
FIRST, ALONE, RECOGNISING = threading.Lock(), threading.Lock(), threading.Lock()
NOW, LATER, NEVER = "now", "later", "never"  # a page is recognised; raised; left out
LIMITS = Limits(seconds=60, megabytes=1500)  # of reading a file on the command line
NUMPY = {
    ("numpy", "dtype"),
    ("numpy", "ndarray"),
    ("numpy._core.numeric", "_frombuffer"),
    ("numpy._core.multiarray", "_reconstruct"),
}


class Unpickler(pickle.Unpickler):
    """Reads values, arrays, and the engine's dataclasses and errors; a pickle can name nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        """Return a class of the engine, which is the package ``engine`` in the child process."""
        if (module, name) in NUMPY:
            return super().find_class(module, name)
        package, _, below = module.partition(".")
        here = sys.modules.get(f"{__package__}.{below}") if package == "engine" else None
        found = getattr(here, name, None)
        if isinstance(found, type) and (is_dataclass(found) or issubclass(found, (GlassboxError, tuple))):
            return found
        raise pickle.UnpicklingError(f"{module}.{name} is no value")


def read_limited(
    read: Callable[..., T],
    name: str,
    content: bytes,
    *options: Any,
    limits: Limits = LIMITS,
    on_page: Report = lambda *_: None,
) -> T:
    """Return ``read(name, content, *options)``, a function of the engine, from a child process.

    The result consists of dataclasses, arrays and plain values; the options are those of JSON. ``on_page`` is
    called with each page that is recognised, and the number of all, outside a first try. Raises
    `DocumentError` where it takes more than the limits, and the function's own errors. With a first try, one
    file at a time has its pictures recognised, and another tells that this is busy.
    """
    below = read.__module__.removeprefix(f"{__package__}.")

    def found_by(limits: Limits, turn: str, on_page: Report | None = None) -> Any:
        """Return the result or the error, None beyond the limits."""
        request = json.dumps([turn, below, read.__name__, name, *options]).encode() + b"\n"
        answer = ask(READER, request, limits, on_page, content)
        return answer and Unpickler(io.BytesIO(answer)).load()

    if limits.first:
        with FIRST:
            found = found_by(limits.first, LATER)
        if found is None:
            with ALONE:
                found = found_by(limits, LATER)
        if isinstance(found, RecognitionNeededError) and RECOGNISING.acquire(blocking=False):
            try:
                found = found_by(limits, NOW, on_page)
            finally:
                RECOGNISING.release()
        elif isinstance(found, RecognitionNeededError):
            with ALONE:
                found = found_by(limits, NEVER)
    else:
        with AT_ONCE:
            found = found_by(limits, NOW, on_page)
    if found is None:
        raise DocumentError(f"reading {shortened(name, MAX_NAME)} takes over {limits}: give a smaller file")
    if isinstance(found, GlassboxError):
        raise found
    result: T = found
    return result
