"""The alphabet of SentencePiece's BPE (Kudo and Richardson 2018): characters, and bytes for the rare ones.

A space is written as ``▁``, so that a token shows whether it begins a word.
"""

import re
from collections.abc import Collection, Iterable

BLANK = "▁"
BYTE = re.compile(r"<0x([0-9A-F]{2})>")
# A word with all spaces before it, or with one.
WORD_WITH_BLANKS = f"{BLANK}+[^{BLANK}]*|[^{BLANK}]+"
WORD_WITH_BLANK = f"{BLANK}[^{BLANK}]*|[^{BLANK}]+"


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


def within_words(tokens: Iterable[str]) -> bool:
    """Whether no token spans words, so that a text may be split into words before merging."""
    return not any(BLANK in token.lstrip(BLANK) for token in tokens)
