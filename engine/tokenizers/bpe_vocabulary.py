"""The data of a BPE tokenizer, independent of its file format, and its two alphabets.

Byte-level BPE (Radford et al. 2019) spells a text in its UTF-8 bytes, each as a printable character.
SentencePiece's BPE (Kudo and Richardson 2018) spells it in characters, and in bytes for the rare ones; a
space is written as ``▁``, so that a token shows whether it begins a word.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ..errors import ModelFileError
from .added_tokens import AddedToken
from .normalized import Change
from .patterns import BLANK, WORD_WITH_BLANKS

# The rank of a pair of neighbours, 0 for the one to be merged first; None where they are never merged.
Rank = Callable[[str, str], int | None]


@dataclass(frozen=True)
class Alphabet:
    """``spell`` writes a text in symbols, ``token_bytes`` returns the bytes of a token."""

    spell: Callable[[str], Sequence[str]]
    token_bytes: Callable[[str], bytes]


@dataclass(frozen=True)
class BPEVocabulary:
    """The data of a BPE tokenizer."""

    tokens: Mapping[str, int]  # the id of each
    added: Sequence[AddedToken]  # matched as a whole before anything else
    alphabet: Alphabet  # in which words are spelled
    rank: Rank  # by which they are merged
    normalization: Sequence[Change] = ()  # of the text between added tokens, before a second match of these
    preparation: Sequence[Change] = ()  # of the text between them then
    # regular expressions that split it into words, each applied to the pieces of the one before
    patterns: Sequence[str] = ()
    ignore_merges: bool = False  # a word that is a token is not merged
    unknown: str | None = None  # of a symbol without a token, which is dropped if this is None
    start_ids: Sequence[int] = ()  # before every text
    drops_blank: bool = False  # decoding removes the space that a text begins with


@cache
def byte_characters() -> dict[int, str]:
    """Return the printable character of each byte: itself in Latin-1, the rest from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    characters = {byte: chr(byte) for byte in printable}
    return characters | {byte: chr(0x100 + number) for number, byte in enumerate(others)}


@cache
def character_bytes() -> dict[str, int]:
    """Return the inverse of `byte_characters`."""
    return {character: byte for byte, character in byte_characters().items()}


def byte_symbols(text: str) -> list[str]:
    """Return the UTF-8 bytes of a text, each as its printable character."""
    characters = byte_characters()
    return [characters[byte] for byte in text.encode()]


def symbol_bytes(token: str) -> bytes:
    """Return the bytes of a token; one with a character outside the table is encoded as UTF-8."""
    numbers = character_bytes()
    try:
        return bytes([numbers[character] for character in token])
    except KeyError:
        return token.encode()


BYTE_LEVEL = Alphabet(byte_symbols, symbol_bytes)
BYTE = re.compile(r"<0x([0-9A-F]{2})>")


def byte_token(byte: int) -> str:
    """Return the token of a byte: ``<0xE2>``."""
    return f"<0x{byte:02X}>"


BYTE_TOKENS = [byte_token(byte) for byte in range(256)]


def character_symbols(text: str, tokens: Collection[str]) -> list[str]:
    """Return the characters of a text; for one that has no token, the tokens of its bytes."""
    return [
        symbol
        for character in text
        for symbol in ([character] if character in tokens else map(byte_token, character.encode()))
    ]


def piece_bytes(token: str) -> bytes:
    """Return the bytes of a token."""
    byte = BYTE.fullmatch(token)
    return bytes([int(byte[1], 16)]) if byte else token.replace(BLANK, " ").encode()


def sentencepiece(tokens: Mapping[str, int], path: Path) -> Alphabet:
    """Return the alphabet of a SentencePiece vocabulary, which must have a token for every byte."""
    missing = [token for token in BYTE_TOKENS if token not in tokens]
    if missing:
        raise ModelFileError(
            f"{path}: its tokenizer has no token {missing[0]} and {len(missing)} of the 256 byte tokens are "
            f"missing: use a model whose SentencePiece tokenizer falls back to bytes"
        )
    return Alphabet(lambda text: character_symbols(text, tokens), piece_bytes)


def word_patterns(tokens: Mapping[str, int]) -> list[str]:
    """Return the pattern that splits a SentencePiece text into words, if no token spans words."""
    spans_words = any(BLANK in token.lstrip(BLANK) for token in tokens)
    return [] if spans_words else [WORD_WITH_BLANKS]


def learnt_order(
    merges: Sequence[str], tokens: Mapping[str, int], added: Sequence[AddedToken], path: Path
) -> Rank:
    """Rank pairs by the order of ``merges``, but for those that would make a control token."""
    for line in merges:
        left, _, right = line.partition(" ")
        if not (left in tokens and right in tokens and left + right in tokens):
            raise ModelFileError(
                f"{path}: its tokenizer merges {line!r}, which is not two tokens that make a third: "
                f"download it again"
            )
    ranks = dict(zip(merges, range(len(merges)), strict=True))
    for content in (token.content for token in added if token.special):
        for middle in range(1, len(content)):
            ranks.pop(f"{content[:middle]} {content[middle:]}", None)
    return lambda left, right: ranks.get(f"{left} {right}")


def best_score(scores: Mapping[str, float]) -> Rank:
    """Rank pairs by the score of the token they make, the highest first, as SentencePiece does."""
    places = {score: place for place, score in enumerate(sorted(set(scores.values()), reverse=True))}
    ranks = {token: places[score] for token, score in scores.items()}
    return lambda left, right: ranks.get(left + right)
