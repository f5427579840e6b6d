"""The result of tokenizing a text, and checks shared by all tokenizers."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from ..errors import InputError, ModelFileError

# A token, its id, and its start and end in its word.
TokenSpan = tuple[str, int, int, int]

# Longer words rarely occur twice, and are not worth their memory.
LONGEST_CACHED = 128


@dataclass(frozen=True)
class Encoding:
    """Tokens of one text, or of two."""

    ids: list[int]
    tokens: list[str]
    # span of each token in its text, in characters; empty for special tokens without text
    offsets: list[tuple[int, int]]
    type_ids: list[int] = field(default_factory=list)  # tell the texts of a pair apart; 0 by default

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
    """Raise `ModelFileError` if a tokenizer has ids without a row in the model's embedding."""
    if tokenizer_size > model_size:
        raise ModelFileError(
            f"{folder}: the tokenizer has {tokenizer_size} tokens, the model {model_size}: "
            f"the two files are not of one model"
        )


def cached_words(tokens_of: Callable[[str], tuple[TokenSpan, ...]]) -> Callable[[str], tuple[TokenSpan, ...]]:
    """Cache the tokens of words up to `LONGEST_CACHED` characters."""
    cached = lru_cache(maxsize=1 << 16)(tokens_of)
    return lambda word: cached(word) if len(word) <= LONGEST_CACHED else tokens_of(word)
