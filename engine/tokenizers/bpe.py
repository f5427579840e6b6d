"""Byte-level BPE, the tokenizer of GPT-2 (Radford et al. 2019) and of the Llama family since.

A text is cut into words by a pattern, each word becomes its UTF-8 bytes, and the bytes are merged
pair by pair, the earliest learnt merge first.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import regex

from engine.errors import ModelFileError
from engine.tokenizers.encoding import Encoding, check_text
from engine.weights.tensors import GGUF, read_json

GPT2_PATTERN = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
DIGIT_PATTERN = r"\p{N}"
# The word patterns that llama.cpp knows by the name stored in `tokenizer.ggml.pre`.
GGUF_PATTERNS = {"gpt-2": [GPT2_PATTERN], "smollm": [DIGIT_PATTERN, GPT2_PATTERN]}
GGUF_CONTROL, GGUF_USER_DEFINED = 3, 4  # values of `tokenizer.ggml.token_type`


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


def merge(symbols: Sequence[str], ranks: Mapping[tuple[str, str], int]) -> list[str]:
    """Merge neighbouring symbols, lowest rank first, until no pair has one."""
    symbols = list(symbols)
    while len(symbols) > 1:
        best = min(pairwise(symbols), key=lambda pair: ranks.get(pair, len(ranks)))
        if best not in ranks:
            break
        merged, i = [], 0
        while i < len(symbols):
            if tuple(symbols[i : i + 2]) == best:
                merged.append(symbols[i] + symbols[i + 1])
                i += 2
            else:
                merged.append(symbols[i])
                i += 1
        symbols = merged
    return symbols


@dataclass(frozen=True)
class BPEVocabulary:
    """What a byte-level BPE tokenizer is made of.

    ``tokens`` maps a token to its id, ``merges`` lists pairs from the first learnt to the last,
    ``special`` the tokens matched as a whole before anything else, ``control`` those of them that
    are not shown as text, ``patterns`` the regular expressions that cut a text into words, each
    applied within the pieces of the one before. Not every byte needs to have a token: ``unknown`` is the
    id of those that have none, which are left out where it is None.
    """

    tokens: Mapping[str, int]
    merges: Sequence[tuple[str, str]]
    special: Mapping[str, int]
    control: frozenset[int]
    patterns: Sequence[str]
    ignore_merges: bool = False
    unknown: int | None = None


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
        self._word = lru_cache(maxsize=1 << 16)(self._merge_word)

    @classmethod
    def from_gguf(cls, file: GGUF) -> "BPETokenizer":
        """Read the tokenizer from a GGUF file's metadata."""
        if file["tokenizer.ggml.model"] != "gpt2":
            raise ModelFileError(
                f"{file.path} has a {file['tokenizer.ggml.model']!r} tokenizer: only byte-level BPE "
                f"('gpt2') is read"
            )
        kind = file.get("tokenizer.ggml.pre", "gpt-2")
        if kind not in GGUF_PATTERNS:
            raise ModelFileError(
                f"{file.path} cuts words by the rules of {kind!r}: known are {', '.join(GGUF_PATTERNS)}"
            )
        texts, types = file["tokenizer.ggml.tokens"], file["tokenizer.ggml.token_type"]
        tokens = {text: number for number, text in enumerate(texts)}
        special = {
            text: number
            for number, (text, kind) in enumerate(zip(texts, types, strict=True))
            if kind in (GGUF_CONTROL, GGUF_USER_DEFINED)
        }
        control = frozenset(number for number, kind in enumerate(types) if kind == GGUF_CONTROL)
        merges = [split_pair(line) for line in file["tokenizer.ggml.merges"]]
        return cls(BPEVocabulary(tokens, merges, special, control, GGUF_PATTERNS[kind]))

    @classmethod
    def from_json(cls, path: Path) -> "BPETokenizer":
        """Read a byte-level BPE tokenizer from a tokenizer.json file."""
        content = read_json(path)
        model = content.get("model", {})
        if model.get("type") != "BPE" or model.get("byte_fallback") or content.get("normalizer"):
            raise ModelFileError(f"{path} is not a plain byte-level BPE tokenizer: only those are read")
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
        encoding = Encoding([], [], [])
        start = 0
        for match in self._special_pattern.finditer(text):
            if any(match.start() < end and begin < match.end() for begin, end in literal):
                continue
            self._encode_plain(text, start, match.start(), encoding)
            encoding.ids.append(self.special[match.group()])
            encoding.tokens.append(match.group())
            encoding.offsets.append(match.span())
            start = match.end()
        self._encode_plain(text, start, len(text), encoding)
        return encoding

    def decode(self, ids: Sequence[int]) -> str:
        """Text of a sequence of ids, control tokens left out; broken UTF-8 becomes U+FFFD."""
        return b"".join(map(self.token_bytes, ids)).decode("utf-8", errors="replace")

    def token_bytes(self, number: int) -> bytes:
        """Bytes a token stands for; a control token (end of turn, say) or an unused id stands for none."""
        return b"" if number in self.control else self._bytes.get(number, b"")

    def _encode_plain(self, text: str, start: int, end: int, encoding: Encoding) -> None:
        """Append the tokens of ``text[start:end]``, which holds no special token."""
        for word_start, word_end in self._words(text, start, end):
            word = text[word_start:word_end]
            # Place in the text of the character that each byte of the word belongs to.
            places = [word_start + i for i, character in enumerate(word) for _ in character.encode()]
            done = 0
            for token in self._word(word):
                number = self._tokens.get(token, self._unknown)
                if number is not None:
                    encoding.ids.append(number)
                    encoding.tokens.append(token)
                    encoding.offsets.append((places[done], places[done + len(token) - 1] + 1))
                done += len(token)  # one character of a token is one byte

    def _words(self, text: str, start: int, end: int) -> list[tuple[int, int]]:
        """Spans of the words of ``text[start:end]``; what a pattern does not match stays whole."""
        spans = [(start, end)] if end > start else []
        for pattern in self._patterns:
            spans = [piece for span in spans for piece in cut(pattern, text[span[0] : span[1]], span[0])]
        return spans

    def _merge_word(self, word: str) -> tuple[str, ...]:
        """Tokens of one word."""
        characters = byte_characters()
        symbols = "".join(characters[byte] for byte in word.encode())
        if self._ignore_merges and symbols in self._tokens:
            return (symbols,)
        return tuple(merge(symbols, self._ranks))

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


def split_pair(line: str) -> tuple[str, str]:
    """``"a b" -> ("a", "b")``, a line of a merges file."""
    left, right = line.split(" ")
    return left, right


def word_patterns(pre_tokenizer: Mapping[str, Any] | None, path: Path) -> list[str]:
    """Translate tokenizer.json's pre-tokenizer into the regular expressions it stands for."""
    steps = (pre_tokenizer or {}).get("pretokenizers", [pre_tokenizer])
    patterns = []
    for step in steps:
        match step:
            case {"type": "ByteLevel", "add_prefix_space": False, **rest}:
                patterns += [GPT2_PATTERN] if rest.get("use_regex", True) else []
            case {"type": "Digits", "individual_digits": True}:
                patterns.append(DIGIT_PATTERN)
            case {"type": "Split", "behavior": "Isolated", "pattern": {"Regex": expression}}:
                patterns.append(expression)
            case _:
                raise ModelFileError(f"{path}: pre-tokenizer {step!r} is not one that can be read")
    return patterns


def read_vocabulary(content: Mapping[str, Any], path: Path) -> BPEVocabulary:
    """Read what tokenizer.json says of a byte-level BPE tokenizer."""
    model, added = content["model"], content.get("added_tokens", [])
    return BPEVocabulary(
        tokens=model["vocab"],
        merges=[
            split_pair(pair) if isinstance(pair, str) else (pair[0], pair[1]) for pair in model["merges"]
        ],
        special={token["content"]: token["id"] for token in added},
        control=frozenset(token["id"] for token in added if token["special"]),
        patterns=word_patterns(content.get("pre_tokenizer"), path),
        ignore_merges=model.get("ignore_merges", False),
        unknown=model["vocab"].get(model.get("unk_token")),
    )
