"""The reading of files, for `engine.documents.limited_reader`."""

# Readers import these when they need them; imported here, every fork has them.
import charset_normalizer  # noqa: F401
import docx  # noqa: F401
import lxml.html  # noqa: F401
import pypdf  # noqa: F401

from engine.documents.limited_reader import answer_of, arguments_of
from engine.documents.loaders import parse_file


def answer(request: bytes) -> bytes:
    """Read the file of a request."""
    return answer_of(parse_file(*arguments_of(request)))
