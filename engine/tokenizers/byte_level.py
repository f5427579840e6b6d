"""The alphabet of byte-level BPE (Radford et al. 2019): a text is its UTF-8 bytes."""

from functools import cache


@cache
def byte_characters() -> dict[int, str]:
    """Return the printable character that stands for each byte in a vocabulary file.

    Bytes that print in Latin-1 stand for themselves, the rest for characters from U+0100 on.
    """
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
