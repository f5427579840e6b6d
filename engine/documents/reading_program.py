"""The reading of files, for `engine.documents.limited_reader`."""

import json

# Readers import these when they need them; imported here, every fork has them.
import charset_normalizer  # noqa: F401
import docx  # noqa: F401
import lxml.html  # noqa: F401
import pypdfium2  # noqa: F401

from .limited_reader import LOADED
from .loaders import parse_file


def answer(request: bytes) -> bytes:
    """Read the file of a request: a line of JSON with its name and the column, and the content."""
    line, _, content = request.partition(b"\n")
    name, csv_column = json.loads(line)
    loaded = LOADED.dump_python(parse_file(name, content, csv_column))
    text = json.dumps(loaded, ensure_ascii=False)
    return text.encode("utf-8", "surrogatepass")  # a file's name may have halves of surrogate pairs
