"""sentence-transformers and PyTorch in child processes, which take their memory along when they end."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from .errors import ModelUnavailableError
from .layers.tracing import Array
from .limited_process import Limits, Program, ask, end_idle
from .weights.memory import available_memory, require_memory

LIBRARY_BYTES = 600_000_000  # of PyTorch, sentence-transformers and a small model
UNKNOWN_MEGABYTES = 64_000  # where the system does not tell how much is free

Values = dict[str, Any]
Arrays = Mapping[str, Array]


@dataclass(frozen=True)
class LibraryProcess:
    """A program that keeps the model it has loaded, in a process that is started again where it has ended."""

    program: Program  # answers by `answer_with`
    what: str  # it runs, for messages
    limits: Limits  # of each request; the memory is all that was free before the process was started

    @classmethod
    def of(cls, path: Path, what: str, seconds: int, idle_s: float) -> "LibraryProcess":
        """Return the process of a Python file, without starting it; it ends ``idle_s`` after a request."""
        free = available_memory()
        megabytes = UNKNOWN_MEGABYTES if free is None else free // 1024**2
        return cls(Program(path, idle_s, forks=False), what, Limits(seconds, megabytes))

    def ask(self, **request: Any) -> tuple[Values, Arrays]:
        """Return the values and the arrays of the answer to a request, a JSON object.

        Raises `ModelUnavailableError` where the program fails or exceeds the limits.
        """
        answer = ask(self.program, json.dumps(request).encode(), self.limits)
        if answer is None:
            raise ModelUnavailableError(
                f"{self.what} takes over {self.limits}: give shorter texts, or a smaller model"
            )
        content = BytesIO(answer)
        values = json.loads(content.readline())
        if "error" in values:
            raise ModelUnavailableError(f"{self.what}: {values['error']}")
        has_arrays = content.tell() < len(answer)
        return values, dict(np.load(content, allow_pickle=False)) if has_arrays else {}

    def end(self) -> None:
        """End the process, and wait until its memory is given back."""
        end_idle(self.program)


def require_library(what: str, remedy: str, n_bytes: int = LIBRARY_BYTES) -> None:
    """Check, without importing it, that sentence-transformers is installed, and that it fits into memory.

    Raises `ModelUnavailableError` where it is not installed; the message ends with the remedy, and
    `MemoryLimitError` where fewer than ``n_bytes`` are free.
    """
    if find_spec("sentence_transformers") is None:
        raise ModelUnavailableError(f"{what} needs sentence-transformers, which is not installed: {remedy}")
    require_memory(n_bytes, f"{what}, run by PyTorch,")


def first_line(error: Exception) -> str:
    """Return the first line of a library's message, or the kind of an error without one."""
    return str(error).strip().split("\n")[0] or type(error).__name__


def answer_with(function: Callable[[Values], tuple[Values, Arrays]], request: bytes) -> bytes:
    """Answer a request of `LibraryProcess.ask` in the child process; an error becomes one line."""
    try:
        values, arrays = function(json.loads(request))
    except MemoryError:
        raise  # the process ends
    except Exception as error:  # of any kind: the library and its dependencies raise many
        values, arrays = {"error": first_line(error)[:500]}, {}
    content = BytesIO()
    content.write(json.dumps(values).encode() + b"\n")
    if arrays:
        np.savez(content, **arrays)  # type: ignore[arg-type]
    return content.getvalue()
