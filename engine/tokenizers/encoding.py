"""What tokenizing a text gives, and what every tokenizer checks."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from engine.errors import InputError, ModelFileError

# A token, its id, and its start and end in its word.
TokenSpan = tuple[str, int, int, int]

# A longer word is hardly ever met twice, and not worth its memory.
LONGEST_REMEMBERED = 128


@dataclass(frozen=True)
class Encoding:
    """Tokens of one text, or of two.

    ``offsets[i]`` is the span ``(start, end)`` of ``tokens[i]`` in its text, in characters; special
    tokens that stand for no text have an empty span. ``type_ids[i]`` tells the texts of a pair apart;
    it is 0 throughout where it is not given.
    """

    ids: list[int]
    tokens: list[str]
    offsets: list[tuple[int, int]]
    type_ids: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not self.type_ids:
            self.type_ids.extend([0] * len(self.ids))

    def __len__(self) -> int:
        return len(self.ids)


def check_text(text: object, name: str) -> None:
    """Raise `InputError` unless ``text`` is a string that can be written as UTF-8: no lone surrogates."""
    if not isinstance(text, str):
        raise InputError(f"{name} is {type(text).__name__}, not a string")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError(f"{name} holds half of a surrogate pair: decode its source as UTF-8") from error


def check_vocab_size(tokenizer_size: int, model_size: int, folder: Path) -> None:
    """Raise `ModelFileError` where a tokenizer gives ids that the model beside it has no row for."""
    if tokenizer_size > model_size:
        raise ModelFileError(
            f"{folder}: the tokenizer has {tokenizer_size} tokens, the model {model_size}: "
            f"the two files are not of one model"
        )


def remembering(tokens_of: Callable[[str], tuple[TokenSpan, ...]]) -> Callable[[str], tuple[TokenSpan, ...]]:
    """Return a function that gives the tokens of a word from memory where it met the word before."""
    remembered = lru_cache(maxsize=1 << 16)(tokens_of)
    return lambda word: remembered(word) if len(word) <= LONGEST_REMEMBERED else tokens_of(word)
