"""Byte-pair encoding, the tokenizer of GPT-2 (Radford et al. 2019) and of the Llama family.

A text is split into words, each word is spelled in the symbols of an alphabet, and neighbouring symbols
are merged, the best pair first. In byte-level BPE the symbols are bytes and the best pair is the one
learnt first; in SentencePiece BPE (Llama 2) they are characters, and files may rank pairs by score.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from heapq import heapify, heappop, heappush
from itertools import pairwise
from pathlib import Path

import regex

from ..errors import ModelFileError
from ..weights.gguf_file import GGUF
from ..weights.tensors import read_json
from .added_tokens import AddedVocabulary, Segment, encode_words, word_tokens
from .bpe_gguf import read_gguf
from .bpe_json import read_bpe
from .bpe_vocabulary import BPEVocabulary, Rank
from .configured import changed, read_changes
from .encoding import Encoding, TokenSpan, cached_words, check_text
from .normalized import apply
from .patterns import compiled, cut


def merges(symbols: list[str], rank: Rank) -> Iterator[tuple[tuple[str, str], int]]:
    """Merge neighbours, lowest rank first and then leftmost, until no pair has a rank (Sennrich et al. 2016).

    Works in place and yields every merged pair with its rank: the left symbol becomes the merged one, the
    right one empty. A heap of pairs and links between neighbours make it ``O(n log n)``, for words of
    any length.
    """
    n = len(symbols)
    following, preceding = list(range(1, n + 1)), list(range(-1, n - 1))
    heap = [
        (number, left, (symbols[left], symbols[left + 1]))
        for left in range(n - 1)
        if (number := rank(symbols[left], symbols[left + 1])) is not None
    ]
    heapify(heap)
    while heap:
        number, left, pair = heappop(heap)
        right = following[left]
        if right == n or (symbols[left], symbols[right]) != pair:
            continue  # one of the two was already merged with its other neighbour
        symbols[left], symbols[right] = pair[0] + pair[1], ""
        following[left] = after = following[right]
        if after < n:
            preceding[after] = left
        yield pair, number
        for first, second in ((preceding[left], left), (left, after)):
            if first >= 0 and second < n:
                new = rank(symbols[first], symbols[second])
                if new is not None:
                    heappush(heap, (new, first, (symbols[first], symbols[second])))


def merge(symbols: Iterable[str], rank: Rank) -> list[str]:
    """Return the symbols after all `merges`, with empty strings for those merged into others."""
    symbols = list(symbols)
    for _ in merges(symbols, rank):
        pass
    return symbols


@dataclass(frozen=True)
class Merge:
    """One merge of a word."""

    pair: tuple[str, str]  # that became one symbol
    rank: int  # the pair's priority; 0 is merged first
    symbols: list[str]  # all symbols after it


@dataclass(frozen=True)
class BPEStages:
    """The stages from one word of a text to its tokens."""

    original: str  # ``text[start:end]`` of the whole text
    start: int
    end: int
    symbols: list[str]  # its spelling, without symbols that have no token
    merges: list[Merge]  # in order
    tokens: list[str]  # the resulting symbols
    ids: list[int]
    offsets: list[tuple[int, int]]  # their spans in the whole text
    special: bool  # an added token in the text, such as ``<|im_end|>``, which is not merged


class BPETokenizer:
    """Byte-level or SentencePiece BPE; decoding restores the text, except bytes that the vocabulary lacks."""

    def __init__(self, vocabulary: BPEVocabulary) -> None:
        self._vocabulary = vocabulary
        self._patterns = [compiled(pattern) for pattern in vocabulary.patterns]
        self._added = AddedVocabulary(vocabulary.added, partial(apply, vocabulary.normalization))
        self.special = {token.content: token.id for token in vocabulary.added}
        self.control = frozenset(token.id for token in vocabulary.added if token.special)
        self.start_ids = tuple(vocabulary.start_ids)
        self._texts = {number: token for token, number in vocabulary.tokens.items()}
        self._texts |= {token.id: token.content for token in vocabulary.added}
        # Tokens of plain words, without the control tokens.
        self._ids = {token: n for token, n in vocabulary.tokens.items() if n not in self.control}
        self._cached_tokens = cached_words(self._merge_word)

    @classmethod
    def from_gguf(cls, file: GGUF) -> "BPETokenizer":
        """Read the tokenizer from a GGUF file's metadata."""
        return cls(read_gguf(file))

    @classmethod
    def from_json(cls, path: Path) -> "BPETokenizer":
        """Read the tokenizer from a tokenizer.json file, with the settings of other files in its folder."""
        content = read_json(path)
        vocabulary = read_bpe(changed(content, read_changes(content, path)), path)
        try:
            return cls(vocabulary)
        except regex.error as error:
            raise ModelFileError(f"{path} splits words by a pattern that cannot be read: {error}") from error

    @property
    def vocab_size(self) -> int:
        """One more than the largest token id."""
        return max(self._texts) + 1

    def encode(self, text: str, literal: Sequence[tuple[int, int]] = ()) -> Encoding:
        """Return all tokens of a text; special tokens in it, such as ``<|im_end|>``, become their own id.

        Within the spans ``literal`` control tokens are plain text, so that a document cannot end a chat turn.
        """
        check_text(text, "the text")
        return encode_words(self._words(text, literal), self._cached_tokens)

    def stages(self, text: str, literal: Sequence[tuple[int, int]] = ()) -> list[BPEStages]:
        """Return the stages of each word of a text; parameters and errors are those of `encode`."""
        check_text(text, "the text")
        return [self._explain(word, text) for word in self._words(text, literal)]

    def decode(self, ids: Sequence[int]) -> str:
        """Text of ids, without control tokens and the space in front; invalid UTF-8 becomes U+FFFD."""
        text = b"".join(map(self.token_bytes, ids)).decode("utf-8", errors="replace")
        return text.removeprefix(" ") if self._vocabulary.drops_blank else text

    def token_bytes(self, number: int) -> bytes:
        """Bytes of a token; none for control tokens, such as the end of a turn, and unused ids."""
        if number in self.control or number not in self._texts:
            return b""
        token = self._texts[number]
        return token.encode() if token in self.special else self._vocabulary.alphabet.token_bytes(token)

    def _words(self, text: str, literal: Sequence[tuple[int, int]]) -> Iterator[Segment]:
        """Yield the words and the added tokens of a text."""
        for segment in self._added.split(text, literal):
            if segment.added is not None:
                yield segment
                continue
            plain = segment.normalized.part(segment.start, segment.end)
            prepared = apply(self._vocabulary.preparation, plain)
            spans = [(0, len(prepared.text))]
            for pattern in self._patterns:
                spans = [piece for span in spans for piece in cut(pattern, prepared.text, *span)]
            for start, end in spans:
                yield Segment(prepared, start, end)

    def _merge_word(self, word: str) -> tuple[TokenSpan, ...]:
        """Return the tokens of a word and their spans in it."""
        whole = self._whole(word)
        if whole is not None:
            return ((whole, self._ids[whole], 0, len(word)),)
        symbols, places = self._spell(word)
        merged = merge(symbols, self._vocabulary.rank)
        borders = [*(place for place, symbol in enumerate(merged) if symbol), len(merged)]
        return tuple(
            (merged[left], self._vocabulary.tokens[merged[left]], places[left], places[right - 1] + 1)
            for left, right in pairwise(borders)
        )

    def _whole(self, word: str) -> str | None:
        """Return the token equal to a word, for vocabularies with ``ignore_merges``."""
        whole = "".join(self._vocabulary.alphabet.spell(word)) if self._vocabulary.ignore_merges else None
        return whole if whole in self._ids else None

    def _spell(self, word: str) -> tuple[list[str], list[int]]:
        """Return the symbols of a word that have a token, and the place of each one's character."""
        symbols, places = [], []
        for place, character in enumerate(word):
            for symbol in self._vocabulary.alphabet.spell(character):
                known = symbol if symbol in self._ids else self._vocabulary.unknown
                if known is not None:
                    symbols.append(known)
                    places.append(place)
        return symbols, places

    def _explain(self, word: Segment, text: str) -> BPEStages:
        special = word.added is not None
        found = word_tokens(word, self._cached_tokens)
        merging = [] if special or self._whole(word.text) else self._spell(word.text)[0]
        start, end = word.span(0, word.end - word.start)
        return BPEStages(
            original=text[start:end],
            start=start,
            end=end,
            symbols=[word.text] if special else list(self._vocabulary.alphabet.spell(word.text)),
            merges=[
                Merge(pair, rank, [symbol for symbol in merging if symbol])
                for pair, rank in merges(merging, self._vocabulary.rank)
            ],
            tokens=[token for token, _, _, _ in found],
            ids=[number for _, number, _, _ in found],
            offsets=[word.span(first, last) for _, _, first, last in found],
            special=special,
        )
