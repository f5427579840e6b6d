"""The three kinds of vocabulary of a small decoder, each learnt from its corpus."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from ...errors import InputError
from ...tokenizers.bpe import BPETokenizer
from ...tokenizers.bpe_training import N_BYTES, bpe_tokenizer, learn_merges
from ...tokenizers.characters import CharacterTokenizer
from ...tokenizers.encoding import Encoding
from ...tokenizers.wordpiece import WordPieceTokenizer

Kind = Literal["characters", "bpe", "wordpiece"]


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
    tokens: tuple[str, ...] = ()  # the characters or word pieces in the order of their ids
    merges: tuple[tuple[str, str], ...] = ()  # of BPE, which determine its tokens
    keep_unknown: bool = False  # unknown characters become U+FFFD

    @property
    def size(self) -> int:
        """Number of ids."""
        return N_BYTES + len(self.merges) if self.kind == "bpe" else len(self.tokens)


def learn_vocabulary(
    kind: Kind, text: str, size: int, wordpiece: WordPieceTokenizer, keep_unknown: bool = False
) -> Vocabulary:
    """Learn a vocabulary from a text.

    Its tokens are every character that occurs, or merges of bytes, or the most frequent pieces of the
    tokenizer ``wordpiece``, by ``kind``; at most ``size``, except of characters. With ``keep_unknown``,
    characters that do not occur in the text are later encoded as U+FFFD.
    """
    if not text:
        raise InputError("there is no text to learn a vocabulary from: give one")
    if kind == "characters":
        return Vocabulary(kind, CharacterTokenizer.of([text], keep_unknown).tokens, keep_unknown=keep_unknown)
    if kind == "bpe":
        return Vocabulary(kind, merges=tuple(learn_merges(text, size)))
    if size < 2:
        raise InputError(
            f"a vocabulary of {size} pieces has no room for any beside the unknown one: give 2 or more"
        )
    counted = Counter(token for token in wordpiece.encode(text).tokens[1:-1] if token != UNKNOWN_PIECE)
    return Vocabulary(kind, (UNKNOWN_PIECE, *sorted(token for token, _ in counted.most_common(size - 1))))


def tokenizer_of(vocabulary: Vocabulary, wordpiece: WordPieceTokenizer) -> TextTokenizer:
    """Return the tokenizer of a vocabulary; one of word pieces splits words by ``wordpiece``."""
    if vocabulary.kind == "characters":
        return CharacterTokenizer(vocabulary.tokens, vocabulary.keep_unknown)
    if vocabulary.kind == "bpe":
        return bpe_tokenizer(vocabulary.merges)
    return FrequentPieces(wordpiece, vocabulary.tokens)


def token_texts(tokenizer: TextTokenizer, ids: Sequence[int]) -> list[str]:
    """Text of each single token; an incomplete character is U+FFFD."""
    if isinstance(tokenizer, BPETokenizer):
        return [tokenizer.token_bytes(number).decode("utf-8", errors="replace") for number in ids]
    if isinstance(tokenizer, FrequentPieces):
        return [tokenizer.tokens[number] for number in ids]
    return [tokenizer.decode([number]) for number in ids]


UNKNOWN_PIECE = "[UNK]"


class FrequentPieces:
    """A subset of a WordPiece tokenizer's pieces with ids of its own; all others are ``[UNK]``, id 0."""

    def __init__(self, tokenizer: WordPieceTokenizer, tokens: Sequence[str]) -> None:
        if not tokens or tokens[0] != UNKNOWN_PIECE or len(set(tokens)) < len(tokens):
            raise InputError(
                f"a vocabulary of {len(tokens)} pieces must begin with [UNK] and hold none twice"
            )
        self.tokens = tuple(tokens)
        self._tokenizer = tokenizer
        self._ids = {token: number for number, token in enumerate(tokens)}

    @property
    def vocab_size(self) -> int:
        """Number of pieces."""
        return len(self.tokens)

    def encode(self, text: str, /) -> Encoding:
        """Return all pieces of a text, without ``[CLS]`` and ``[SEP]``; errors are the tokenizer's."""
        whole = self._tokenizer.encode(text)
        tokens = [token if token in self._ids else UNKNOWN_PIECE for token in whole.tokens[1:-1]]
        return Encoding([self._ids[token] for token in tokens], tokens, whole.offsets[1:-1])

    def decode(self, ids: Sequence[int]) -> str:
        """Text of a sequence of ids: lower-case words separated by spaces."""
        mark = self._tokenizer.continuation
        words = " ".join(self.tokens[number] for number in ids)
        return words.replace(f" {mark}", "")
