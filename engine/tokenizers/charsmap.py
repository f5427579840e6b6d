"""SentencePiece's normaliser (Kudo & Richardson 2018): a table of strings and their replacements.

A model's file holds the table compiled: a trie of the strings in UTF-8 as a double array (Aoe 1989), whose
values point into a list of replacements. XLM-R's has about 5,000 strings: Unicode's NFKC, other blanks as
spaces, and control characters, which are removed.
"""

import base64
import binascii
from functools import lru_cache

import numpy as np
import regex

from ..errors import ModelFileError
from .normalized import Normalized, Piece, transform

LONGEST_GRAPHEME = 5  # bytes of a grapheme that is looked up as a whole


class CharsMap:
    """A compiled table of replacements, ``precompiled_charsmap`` of tokenizer.json in base64."""

    def __init__(self, encoded: str) -> None:
        try:
            content = base64.b64decode(encoded, validate=True)
            size = int.from_bytes(content[:4], "little")
            self._units: list[int] = np.frombuffer(content[4 : 4 + size], "<u4").tolist()
            self._replacements = content[4 + size :]
            self._replacements.decode()
        except (binascii.Error, UnicodeDecodeError, TypeError) as error:
            raise ValueError(f"precompiled_charsmap is damaged ({error})") from error
        if not self._units or size % 4:
            raise ValueError("precompiled_charsmap holds no table")
        self.forms = lru_cache(maxsize=1 << 16)(self._forms)

    def __call__(self, text: Normalized) -> Normalized:
        """Replace the strings of the table, grapheme by grapheme."""
        graphemes = regex.findall(r"\X", text.text)
        parts = [part for grapheme in graphemes for part in self.forms(grapheme)]
        if all(new is None for _, new in parts):
            return text
        pieces: list[Piece] = []
        for old, new in parts:
            new = old if new is None else new
            more = len(new) - len(old)
            pieces += [(character, int(len(new) - place <= more)) for place, character in enumerate(new)]
            if more < 0 and pieces:  # what a text begins with is not counted where it is left out
                pieces[-1] = pieces[-1][0], pieces[-1][1] + more
        return transform(text, pieces)

    def _forms(self, grapheme: str) -> tuple[tuple[str, str | None], ...]:
        """Return the parts of a grapheme, each with its replacement; None where it stays."""
        if len(grapheme.encode()) <= LONGEST_GRAPHEME:
            whole = self.replacement(grapheme)
            if whole is not None:
                return ((grapheme, whole),)
        return tuple((character, self.replacement(character)) for character in grapheme)

    def replacement(self, text: str) -> str | None:
        """Return the replacement of the shortest string that a text begins with; None without one."""
        node = child_base(0, self._units[0])
        try:
            for byte in text.encode():
                node ^= byte
                unit = self._units[node]
                if byte == 0 or unit & 0x800000FF != byte:
                    return None
                node = child_base(node, unit)
                if unit & 0x100:  # a string ends here
                    start = self._units[node] & 0x7FFFFFFF
                    return self._replacements[start : self._replacements.index(0, start)].decode()
        except (IndexError, ValueError) as error:
            raise ModelFileError(
                f"the tokenizer's precompiled_charsmap is damaged ({error}): download the model again"
            ) from error
        return None


def child_base(node: int, unit: int) -> int:
    """Return the place to which a child's byte is added, by exclusive or."""
    return node ^ ((unit >> 10) << ((unit & 0x200) >> 6))
