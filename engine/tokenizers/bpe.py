"""Byte-level BPE, the tokenizer of GPT-2 (Radford et al. 2019) and of the Llama family since.

A text is cut into words by a pattern, each word becomes its UTF-8 bytes, and the bytes are merged
pair by pair, the earliest learnt merge first.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from heapq import heapify, heappop, heappush
from pathlib import Path

import regex

from engine.errors import ModelFileError
from engine.tokenizers.bpe_file import BPEVocabulary, read_bpe_json, read_gguf, read_vocabulary
from engine.tokenizers.encoding import Encoding, check_text
from engine.weights.tensors import GGUF


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


def byte_symbols(word: str) -> str:
    """Return the UTF-8 bytes of a word, each as its printable character."""
    characters = byte_characters()
    return "".join(characters[byte] for byte in word.encode())


@dataclass(frozen=True)
class Merge:
    """One merge of a word: a ``pair`` of neighbours became one symbol; ``symbols`` are those after it.

    ``rank`` says when the pair was learnt: 0 is the first.
    """

    pair: tuple[str, str]
    rank: int
    symbols: list[str]


@dataclass(frozen=True)
class WordSteps:
    """How one word of a text became tokens.

    ``original`` is ``text[start:end]`` of the whole text, ``symbols`` its bytes, ``merges`` what was
    merged, in order, and ``tokens`` the symbols at the end with their ``ids`` (None where a symbol has no
    token, and is left out of the text's) and their spans in the whole text. A ``special`` word is a
    token that the text spells out, such as ``<|im_end|>``: it is taken as it is, and nothing is merged.
    """

    original: str
    start: int
    end: int
    symbols: list[str]
    merges: list[Merge]
    tokens: list[str]
    ids: list[int | None]
    offsets: list[tuple[int, int]]
    special: bool


def merges(symbols: list[str], ranks: Mapping[tuple[str, str], int]) -> Iterator[tuple[tuple[str, str], int]]:
    """Merge neighbouring symbols, lowest rank first and then leftmost, until no pair has a rank.

    Works in place, and yields every pair that was merged with its rank: the left symbol takes in the
    right one, which is left behind empty. A heap of pairs and links between neighbours make it
    ``O(n log n)``, so that a word of a million characters is no trap.
    """
    n = len(symbols)
    following, preceding = list(range(1, n + 1)), list(range(-1, n - 1))

    def ranked(left: int) -> Iterator[tuple[int, int, tuple[str, str]]]:
        """Yield the pair that begins at a place, if it has a rank."""
        if left >= 0 and following[left] < n:
            pair = (symbols[left], symbols[following[left]])
            if pair in ranks:
                yield ranks[pair], left, pair

    heap = [entry for left in range(n) for entry in ranked(left)]
    heapify(heap)
    while heap:
        rank, left, pair = heappop(heap)
        right = following[left]
        if right == n or (symbols[left], symbols[right]) != pair:
            continue  # one of the two was merged with its other neighbour meanwhile
        symbols[left], symbols[right] = symbols[left] + symbols[right], ""
        following[left] = following[right]
        if following[left] < n:
            preceding[following[left]] = left
        for place in (preceding[left], left):
            for entry in ranked(place):
                heappush(heap, entry)
        yield pair, rank


def merge(symbols: Iterable[str], ranks: Mapping[tuple[str, str], int]) -> list[str]:
    """Return the symbols that are left after all `merges`."""
    symbols = list(symbols)
    for _ in merges(symbols, ranks):
        pass
    return [symbol for symbol in symbols if symbol]


class BPETokenizer:
    """Byte-level BPE; decoding gives a text back byte for byte, but for bytes the vocabulary lacks."""

    def __init__(self, vocabulary: BPEVocabulary) -> None:
        self._tokens = vocabulary.tokens
        self._ranks = {pair: rank for rank, pair in enumerate(vocabulary.merges)}
        self._ignore_merges = vocabulary.ignore_merges
        self._unknown = vocabulary.unknown
        self._patterns = [regex.compile(pattern) for pattern in vocabulary.patterns]
        self.special = dict(vocabulary.special)
        self.control = vocabulary.control
        longest_first = sorted(self.special, key=len, reverse=True)
        self._special_pattern = regex.compile("|".join(map(regex.escape, longest_first)) or r"(?!)")
        self._bytes = {
            number: token.encode() if token in self.special else self._token_bytes(token)
            for token, number in {**vocabulary.tokens, **self.special}.items()
        }
        self._remembered = lru_cache(maxsize=1 << 16)(self._merge_word)

    @classmethod
    def from_gguf(cls, file: GGUF) -> "BPETokenizer":
        """Read the tokenizer from a GGUF file's metadata."""
        return cls(read_gguf(file))

    @classmethod
    def from_json(cls, path: Path) -> "BPETokenizer":
        """Read a byte-level BPE tokenizer from a tokenizer.json file."""
        content = read_bpe_json(path)
        try:
            return cls(read_vocabulary(content, path))
        except (LookupError, TypeError, ValueError, regex.error) as error:
            raise ModelFileError(
                f"{path} is not a complete tokenizer ({error!r}): download it again"
            ) from error

    @property
    def vocab_size(self) -> int:
        """One more than the largest token id."""
        return max(self._bytes) + 1

    def encode(self, text: str, literal: Sequence[tuple[int, int]] = ()) -> Encoding:
        """Return all tokens of a text.

        Parameters
        ----------
        text
            The text. Special tokens in it, such as ``<|im_end|>``, become their own id.
        literal
            Spans ``(start, end)`` of the text in which special tokens are plain text, so that
            what a document says cannot end a chat turn.

        Raises
        ------
        InputError
            The text is not a string, or holds half of a surrogate pair.
        """
        check_text(text, "the text")
        ids, tokens, offsets = [], [], []
        for start, end, special in self._words(text, literal):
            for token, number, span in self._tokens_of(text[start:end], start, special):
                if number is not None:
                    ids.append(number)
                    tokens.append(token)
                    offsets.append(span)
        return Encoding(ids, tokens, offsets)

    def steps(self, text: str, literal: Sequence[tuple[int, int]] = ()) -> list[WordSteps]:
        """Tell how each word of a text becomes tokens; parameters and errors are those of `encode`."""
        check_text(text, "the text")
        return [
            self._explain(text[start:end], start, special)
            for start, end, special in self._words(text, literal)
        ]

    def decode(self, ids: Sequence[int]) -> str:
        """Text of a sequence of ids, control tokens left out; broken UTF-8 becomes U+FFFD."""
        return b"".join(map(self.token_bytes, ids)).decode("utf-8", errors="replace")

    def token_bytes(self, number: int) -> bytes:
        """Bytes a token stands for; a control token (end of turn, say) or an unused id stands for none."""
        return b"" if number in self.control else self._bytes.get(number, b"")

    def _words(self, text: str, literal: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int, bool]]:
        """Yield start and end of every word of a text, and whether it is a special token."""
        done = 0
        for match in self._special_pattern.finditer(text):
            if any(match.start() < end and begin < match.end() for begin, end in literal):
                continue
            yield from self._plain_words(text, done, match.start())
            yield (*match.span(), True)
            done = match.end()
        yield from self._plain_words(text, done, len(text))

    def _plain_words(self, text: str, start: int, end: int) -> Iterator[tuple[int, int, bool]]:
        """Yield the words of ``text[start:end]``; what a pattern does not match stays whole."""
        spans = [(start, end)] if end > start else []
        for pattern in self._patterns:
            spans = [piece for span in spans for piece in cut(pattern, text[span[0] : span[1]], span[0])]
        return ((*span, False) for span in spans)

    def _tokens_of(
        self, word: str, start: int, special: bool
    ) -> list[tuple[str, int | None, tuple[int, int]]]:
        """Return the tokens, their ids and their spans of a word that begins at ``start`` in the text."""
        if special:
            return [(word, self.special[word], (start, start + len(word)))]
        # Place in the text of the character that each byte of the word belongs to.
        places = [start + i for i, character in enumerate(word) for _ in character.encode()]
        tokens, done = [], 0
        for token in self._remembered(word):
            last = done + len(token) - 1  # one character of a token is one byte
            tokens.append((token, self._tokens.get(token, self._unknown), (places[done], places[last] + 1)))
            done = last + 1
        return tokens

    def _merge_word(self, word: str) -> tuple[str, ...]:
        """Tokens of one word."""
        symbols = byte_symbols(word)
        return (symbols,) if self._is_taken_whole(symbols) else tuple(merge(symbols, self._ranks))

    def _is_taken_whole(self, symbols: str) -> bool:
        return self._ignore_merges and symbols in self._tokens

    def _explain(self, word: str, start: int, special: bool) -> WordSteps:
        symbols = [word] if special else list(byte_symbols(word))
        merging = [] if special or self._is_taken_whole("".join(symbols)) else symbols[:]
        found = self._tokens_of(word, start, special)
        return WordSteps(
            original=word,
            start=start,
            end=start + len(word),
            symbols=symbols,
            merges=[
                Merge(pair, rank, [symbol for symbol in merging if symbol])
                for pair, rank in merges(merging, self._ranks)
            ],
            tokens=[token for token, _, _ in found],
            ids=[number for _, number, _ in found],
            offsets=[span for _, _, span in found],
            special=special,
        )

    @staticmethod
    def _token_bytes(token: str) -> bytes:
        return bytes(character_bytes()[character] for character in token if character in character_bytes())


def cut(pattern: regex.Pattern[str], text: str, offset: int) -> list[tuple[int, int]]:
    """Spans of the matches of ``pattern`` and of what lies between them, moved by ``offset``."""
    spans, done = [], 0
    for match in pattern.finditer(text):
        if match.start() > done:
            spans.append((offset + done, offset + match.start()))
        if match.end() > match.start():
            spans.append((offset + match.start(), offset + match.end()))
        done = match.end()
    if done < len(text):
        spans.append((offset + done, offset + len(text)))
    return spans
