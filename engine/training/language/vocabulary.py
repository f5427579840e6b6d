"""The two kinds of vocabulary of a small decoder, each learnt from its corpus."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from ...errors import InputError
from ...tokenizers.bpe import BPETokenizer
from ...tokenizers.bpe_vocabulary import BYTE_LEVEL, BPEVocabulary, byte_characters
from ...tokenizers.characters import CharacterTokenizer
from ...tokenizers.encoding import Encoding
from ...tokenizers.patterns import GPT2

Kind = Literal["characters", "bpe"]
Merges = Sequence[tuple[str, str]]  # pairs of symbols of byte-level BPE, in the order of learning
N_BYTES = 256


class TextTokenizer(Protocol):
    """The part of a tokenizer that training uses."""

    @property
    def vocab_size(self) -> int: ...  # noqa: D102
    def encode(self, text: str, /) -> Encoding: ...  # noqa: D102
    def decode(self, ids: Sequence[int]) -> str: ...  # noqa: D102


@dataclass(frozen=True)
class Vocabulary:
    """A learnt vocabulary, from which `tokenizer_of` makes a tokenizer."""

    kind: Kind
    tokens: tuple[str, ...] = ()  # the characters in the order of their ids
    merges: tuple[tuple[str, str], ...] = ()  # of BPE, which determine its tokens
    keep_unknown: bool = False  # unknown characters become U+FFFD

    @property
    def size(self) -> int:
        """Number of ids."""
        return N_BYTES + len(self.merges) if self.kind == "bpe" else len(self.tokens)


def learn_vocabulary(kind: Kind, text: str, size: int, keep_unknown: bool = False) -> Vocabulary:
    """Learn a vocabulary from a text: every character that occurs, or at most ``size`` bytes and merges.

    With ``keep_unknown``, characters that do not occur in the text are later encoded as U+FFFD.
    """
    if not text:
        raise InputError("there is no text to learn a vocabulary from: give one")
    if kind == "characters":
        return Vocabulary(kind, CharacterTokenizer.of([text], keep_unknown).tokens, keep_unknown=keep_unknown)
    if size < N_BYTES:
        raise InputError(
            f"a vocabulary of {size} has no room for the {N_BYTES} bytes: give {N_BYTES} or more"
        )
    return Vocabulary(kind, merges=learn_merges(text, size))


def learn_merges(text: str, size: int) -> tuple[tuple[str, str], ...]:
    """Learn merges by the `tokenizers` library (Sennrich et al. 2016; on bytes, Radford et al. 2019).

    The most frequent pair of neighbouring symbols within words becomes one symbol, repeatedly.
    """
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    library = Tokenizer(models.BPE())
    library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    symbols = pre_tokenizers.ByteLevel.alphabet()
    library.train_from_iterator(
        [text], trainers.BpeTrainer(vocab_size=size, initial_alphabet=symbols, show_progress=False)
    )
    return tuple((left, right) for left, right in json.loads(library.to_str())["model"]["merges"])


def bpe_tokenizer(merges: Merges) -> BPETokenizer:
    """Return the tokenizer of learnt merges; ids are those of the bytes, then those of the merges."""
    symbols = [*sorted(byte_characters().values()), *(left + right for left, right in merges)]
    ranks = {pair: number for number, pair in enumerate(merges)}
    return BPETokenizer(
        BPEVocabulary(
            tokens={symbol: number for number, symbol in enumerate(symbols)},
            added=(),
            alphabet=BYTE_LEVEL,
            rank=lambda left, right: ranks.get((left, right)),
            patterns=(GPT2,),
        )
    )


def tokenizer_of(vocabulary: Vocabulary) -> TextTokenizer:
    """Return the tokenizer of a vocabulary."""
    if vocabulary.kind == "characters":
        return CharacterTokenizer(vocabulary.tokens, vocabulary.keep_unknown)
    return bpe_tokenizer(vocabulary.merges)


def token_texts(tokenizer: TextTokenizer, ids: Sequence[int]) -> list[str]:
    """Text of each single token; an incomplete character is U+FFFD."""
    if isinstance(tokenizer, BPETokenizer):
        return [tokenizer.token_bytes(number).decode("utf-8", errors="replace") for number in ids]
    return [tokenizer.decode([number]) for number in ids]
