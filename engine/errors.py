"""The engine's errors. Each message names the value, the limit and a solution."""

from .wording import with_short_names

# Raised while the content of a file is read that has another form than expected.
UNREADABLE = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)


class GlassboxError(Exception):
    """Base of all errors that the engine raises on purpose; messages are written for users.

    Names in them, which may be those of strangers, have at most 80 characters.
    """

    def __str__(self) -> str:
        return with_short_names(super().__str__())


class InputError(GlassboxError, ValueError):
    """An argument is outside what the function accepts."""


class DocumentError(GlassboxError):
    """A document cannot be read: unreadable, binary, empty or too large."""


class ModelFileError(GlassboxError):
    """A model's files are damaged, incomplete or of an architecture the engine does not read."""


class ModelUnavailableError(GlassboxError):
    """A model is not on this machine and cannot be downloaded."""


class MemoryLimitError(GlassboxError):
    """A model would take more memory than is free."""


class ContextLengthError(GlassboxError):
    """A prompt has more tokens than the model has positions."""


def check_several(texts: object) -> None:
    """Raise `InputError` for a bare string, which would be read as a list of characters."""
    if isinstance(texts, str):
        raise InputError("a list of texts is wanted: pass [text] for a single one")
