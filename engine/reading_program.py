"""The reading of files, for `engine.limited_reader`."""

import json
import pickle
from importlib import import_module

# Readers import these when they need them; imported here, every fork has them.
import charset_normalizer  # noqa: F401
import docx  # noqa: F401
import lxml.html  # noqa: F401
import pypdfium2  # noqa: F401

from .documents import loaders  # noqa: F401
from .errors import DocumentError, GlassboxError
from .wording import MAX_NAME, reason_of, shortened


def answer(request: bytes) -> bytes:
    """Read the file of a request: a line of JSON with function, name and options, and the content."""
    line, _, content = request.partition(b"\n")
    module, function, name, *options = json.loads(line)
    read = getattr(import_module(f".{module}", __package__), function)
    found: Exception
    try:
        return pickle.dumps(read(name, content, *options), pickle.HIGHEST_PROTOCOL)
    except GlassboxError as error:
        found = error
    except MemoryError:
        raise  # beyond the limits
    except Exception as error:  # of any kind: libraries raise many
        found = DocumentError(
            f"{shortened(name, MAX_NAME)} cannot be read ({reason_of(error)}): save it again, or give another"
        )
    return pickle.dumps(found, pickle.HIGHEST_PROTOCOL)
