"""The engine's errors. Each message names the value, the limit and a solution."""

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import ClassVar, Self

from .wording import did_you_mean, with_short_names

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


class RecognitionNeededError(GlassboxError):
    """A page of a document is a picture of text, whose recognition has a turn of its own."""


class ModelFileError(GlassboxError):
    """A model's files are damaged, incomplete or of an architecture the engine does not read."""


class ModelUnavailableError(GlassboxError):
    """A model is not on this machine and cannot be downloaded."""


class MemoryLimitError(GlassboxError):
    """A model would take more memory than is free."""


class ContextLengthError(GlassboxError):
    """A prompt has more tokens than the model has positions."""


class MadeByMethod:
    """What a class method makes from a name or a path; the class itself takes the parts."""

    MAKER: ClassVar[str] = "load"

    def __new__(cls, *parts: object, **options: object) -> Self:
        """Raise `InputError` for a name in place of the parts."""
        is_alone = len(parts) == 1 and options.keys().isdisjoint(cls.__annotations__)
        if is_alone and isinstance(parts[0], str | Path):
            name = cls.__name__
            raise InputError(f"{name} takes the parts of one: call {name}.{cls.MAKER}({str(parts[0])!r})")
        return super().__new__(cls)


def check_several(texts: object) -> None:
    """Raise `InputError` for a bare string, which would be read as a list of characters, and for no list."""
    if isinstance(texts, str):
        raise InputError("a list of texts is wanted: pass [text] for a single one")
    if isinstance(texts, bytes | Mapping) or not isinstance(texts, Iterable):
        raise InputError(f"texts are wanted, and this is {type(texts).__name__}: give a list of strings")


def check_choice(what: str, value: object, names: Collection[str]) -> None:
    """Raise `InputError` for a value that is not one of these names; it proposes the one that is near."""
    if not (isinstance(value, str) and value in names):
        near = did_you_mean(str(value), names)
        raise InputError(f"{what} {value!r} is not one of {', '.join(names)}{near}")


def check_question(question: object) -> None:
    """Raise `InputError` for a question that is blank, or no text."""
    if not isinstance(question, str):
        raise InputError(f"the question is {type(question).__name__}, not a string: ask one question")
    if not question.strip():
        raise InputError("the question is empty: ask something")
