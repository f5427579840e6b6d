"""The two kinds of vocabulary of a small decoder, each learnt from its corpus."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ...errors import InputError
from ...tokenizers.bpe import BPETokenizer
from ...tokenizers.bpe_training import N_BYTES, bpe_tokenizer, learn_merges
from ...tokenizers.characters import CharacterTokenizer

Kind = Literal["characters", "bpe"]
Tokenizer: TypeAlias = CharacterTokenizer | BPETokenizer


@dataclass(frozen=True)
class Vocabulary:
    """A learnt vocabulary."""

    kind: Kind
    tokens: tuple[str, ...] = ()  # the characters in the order of their ids
    merges: tuple[tuple[str, str], ...] = ()  # of BPE, which determine its tokens
    keep_unknown: bool = False  # unknown characters become U+FFFD

    @property
    def size(self) -> int:
        """Number of ids."""
        return N_BYTES + len(self.merges) if self.kind == "bpe" else len(self.tokens)

    def tokenizer(self) -> Tokenizer:
        """Make its tokenizer."""
        if self.kind == "characters":
            return CharacterTokenizer(self.tokens, self.keep_unknown)
        return bpe_tokenizer(self.merges)


def learn_vocabulary(kind: Kind, text: str, size: int, keep_unknown: bool = False) -> Vocabulary:
    """Learn a vocabulary from a text: every character that occurs, or at most ``size`` bytes and merges.

    With ``keep_unknown``, characters that do not occur in the text are later encoded as U+FFFD.
    """
    if not text:
        raise InputError("there is no text to learn a vocabulary from: give one")
    if kind == "characters":
        return Vocabulary(kind, CharacterTokenizer.of([text], keep_unknown).tokens, keep_unknown=keep_unknown)
    return Vocabulary(kind, merges=tuple(learn_merges(text, size)))


def token_texts(tokenizer: Tokenizer, ids: Sequence[int]) -> list[str]:
    """Text of each single token; an incomplete character is U+FFFD."""
    if isinstance(tokenizer, BPETokenizer):
        return [tokenizer.token_bytes(number).decode("utf-8", errors="replace") for number in ids]
    return [tokenizer.decode([number]) for number in ids]
