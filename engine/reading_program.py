"""The reading of files, for `engine.limited_reader`."""

import json
import os
import pickle
from importlib import import_module

# Readers import these when they need them; imported here, every fork has them.
import docx  # noqa: F401
import lxml.html  # noqa: F401
import pypdfium2  # noqa: F401

from .documents import loaders, recognition  # noqa: F401
from .errors import DocumentError, GlassboxError
from .limited_process import Report
from .wording import MAX_NAME, reason_of, shortened

report: Report | None = None  # set by `engine.limited_program`
os.environ["ARROW_DEFAULT_MEMORY_POOL"] = "system"  # its own begins with a gigabyte


def answer(request: bytes) -> bytes:
    """Read the file of a request: a line of JSON with function, name and options, and the content."""
    recognition.report = report
    end = request.index(b"\n")
    recognition.turn, module, function, name, *options = json.loads(request[:end])
    content = request[end + 1 :]
    read = getattr(import_module(f".{module}", __package__), function)
    found: Exception
    try:
        return pickle.dumps(read(name, content, *options), pickle.HIGHEST_PROTOCOL)
    except GlassboxError as error:
        if isinstance(error.__cause__, MemoryError):
            raise  # beyond the limits, which a reader took for a damaged file
        found = error
    except MemoryError:
        raise
    except Exception as error:  # of any kind: libraries raise many
        found = DocumentError(
            f"{shortened(name, MAX_NAME)} cannot be read ({reason_of(error)}): save it again, or give another"
        )
    return pickle.dumps(found, pickle.HIGHEST_PROTOCOL)
