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
from .memory import glibc
from .wording import MAX_NAME, reason_of, shortened

report: Report | None = None  # set by `engine.limited_program`
os.environ["ARROW_DEFAULT_MEMORY_POOL"] = "system"  # its own begins with a gigabyte
os.environ["OPENPYXL_DEFUSEDXML"] = "False"  # where that is installed, its parser takes twice as long


def answer(request: bytes) -> bytes:
    """Read the file of a request: a line of JSON with function, name and options, and the content."""
    recognition.report = report
    end = request.index(b"\n")
    recognition.turn, module, function, name, *options = json.loads(request[:end])
    read = getattr(import_module(f".{module}", __package__), function)
    found: Exception
    try:
        result = read(name, request[end + 1 :], *options)
        if (malloc_trim := glibc("malloc_trim")) is not None:
            malloc_trim(0)  # a workbook of 20 MB has freed 50 MB, and its pickle needs twice as much
        return pickle.dumps(result, pickle.HIGHEST_PROTOCOL)
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
