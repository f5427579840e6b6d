"""A token for each character, the smallest vocabulary."""

from collections.abc import Iterable, Sequence

from ..errors import InputError
from .encoding import Encoding, check_text

UNKNOWN = "\N{REPLACEMENT CHARACTER}"


class CharacterTokenizer:
    """Characters of an alphabet, each its own token, in the order of their ids.

    With ``keep_unknown``, another character becomes U+FFFD, a token added at the end, else an error.
    """

    def __init__(self, alphabet: Sequence[str], keep_unknown: bool = False) -> None:
        tokens = [*alphabet, UNKNOWN] if keep_unknown and UNKNOWN not in alphabet else list(alphabet)
        if not tokens:
            raise InputError("an alphabet without characters spells nothing: give at least one")
        wrong = [token for token in tokens if not isinstance(token, str) or len(token) != 1]
        if wrong or len(set(tokens)) < len(tokens):
            raise InputError(
                f"an alphabet of {len(tokens)} is not of different single characters: {wrong[:3]}"
            )
        self.tokens = tuple(tokens)
        self.keep_unknown = keep_unknown
        self._ids = {token: number for number, token in enumerate(tokens)}

    @classmethod
    def of(cls, texts: Iterable[str], keep_unknown: bool = False) -> "CharacterTokenizer":
        """Return the tokenizer of the characters that occur in some texts, in code point order."""
        return cls(sorted(set().union(*map(set, texts))), keep_unknown)

    @property
    def vocab_size(self) -> int:
        """Number of tokens."""
        return len(self.tokens)

    def encode(self, text: str) -> Encoding:
        """Return the token of every character."""
        check_text(text, "the text")
        if not self.keep_unknown:
            self._check(text)
        tokens = [character if character in self._ids else UNKNOWN for character in text]
        offsets = [(place, place + 1) for place in range(len(text))]
        return Encoding([self._ids[token] for token in tokens], tokens, offsets)

    def decode(self, ids: Sequence[int]) -> str:
        """Text of a sequence of ids."""
        return "".join(self.tokens[number] for number in ids)

    def _check(self, text: str) -> None:
        for place, character in enumerate(text):
            if character not in self._ids:
                raise InputError(
                    f"character {character!r} at place {place} is none of the {len(self.tokens)} in the "
                    "vocabulary: leave it out, train on a text that has it, or keep unknown ones as U+FFFD"
                )
