"""WordPiece, the tokenizer of BERT (Devlin et al. 2019).

A text is normalised and split into words and punctuation, and each word, from left to right, into the
longest pieces in the vocabulary.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ..errors import ModelFileError
from ..weights.tensors import unreadable_tokenizer
from .added_tokens import AddedVocabulary, Segment, encode_words
from .encoding import Encoding, TokenSpan, cached_words, check_text
from .normalization import words
from .normalized import Change, apply
from .normalizers import read_normalizer
from .templates import checked
from .text_tokenizer import NO_CHANGES, SharedSettings, TextTokenizer, read_content, read_shared

# Most characters of a word for which the library is used: its time grows with their cube.
MOST_IN_LIBRARY = 1000


@dataclass(frozen=True)
class Piece:
    """A token of a word: ``word[start:end]`` of the normalised word."""

    token: str
    id: int
    start: int
    end: int
    # candidates that were looked up, from the longest to the one found; all for an unknown word
    tried: list[str]
    unknown: bool = False


@dataclass(frozen=True)
class WordPieceStages:
    """The stages from one word of a text to its tokens."""

    original: str  # ``text[start:end]`` of the whole text
    start: int
    end: int
    normalized: str
    pieces: list[Piece]
    offsets: list[tuple[int, int]]  # spans of the pieces in the whole text
    special: bool  # an added token in the text, such as ``[MASK]``, which is not split


class WordPieceTokenizer(TextTokenizer):
    """The tokenizer.json of a BERT-family model; never truncates and never pads."""

    def __init__(self, path: Path, changes: Mapping[str, Any] = NO_CHANGES) -> None:
        settings = read_wordpiece(read_content(path, changes), path)
        super().__init__(path, settings.shared, changes)
        self._vocabulary = settings.shared.tokens
        self._longest = max(map(len, self._vocabulary))
        self._unknown = settings.unknown
        self._max_characters = settings.max_characters
        self.in_library &= settings.max_characters <= MOST_IN_LIBRARY
        self.continuation = settings.continuation
        self._added = AddedVocabulary(settings.shared.added, partial(apply, settings.normalization))
        self._cached_tokens = cached_words(self._spans)

    def stages(self, text: str) -> list[WordPieceStages]:
        """Return the stages of each word of a text, without [CLS] and [SEP]."""
        check_text(text, "the text")
        return [self._explain(word, text) for word in self._words(text)]

    def _explain(self, word: Segment, text: str) -> WordPieceStages:
        pieces = (
            self._match(word.text)
            if word.added is None
            else [Piece(word.text, word.added.id, 0, len(word.text), [])]
        )
        start, end = word.span(0, word.end - word.start)
        offsets = [word.span(piece.start, piece.end) for piece in pieces]
        return WordPieceStages(
            text[start:end], start, end, word.text, pieces, offsets, word.added is not None
        )

    def _encode_plain(self, text: str) -> Encoding:
        """Return the tokens of a text without [CLS] and [SEP]."""
        return encode_words(self._words(text), self._cached_tokens)

    def _words(self, text: str) -> Iterator[Segment]:
        """Yield the words and the added tokens of a text."""
        for segment in self._added.split(text):
            if segment.added is not None:
                yield segment
            else:
                for start, end in words(segment.normalized.text, segment.start, segment.end):
                    yield Segment(segment.normalized, start, end)

    def _spans(self, word: str) -> tuple[TokenSpan, ...]:
        """Return the pieces of a word as `encode` needs them."""
        return tuple((piece.token, piece.id, piece.start, piece.end) for piece in self._match(word))

    def _match(self, word: str) -> list[Piece]:
        """Split a word into the longest pieces in the vocabulary; if one is missing, the word is unknown."""
        unknown = self._vocabulary[self._unknown]
        if len(word) > self._max_characters:
            return [Piece(self._unknown, unknown, 0, len(word), [], unknown=True)]
        pieces: list[Piece] = []
        start = 0
        while start < len(word):
            tried = list(self._candidates(word, start))
            token = tried[-1]
            if token not in self._vocabulary:
                all_tried = [candidate for piece in pieces for candidate in piece.tried] + tried
                return [Piece(self._unknown, unknown, 0, len(word), all_tried, unknown=True)]
            end = start + len(token) - len(self.continuation if start else "")
            pieces.append(Piece(token, self._vocabulary[token], start, end, tried))
            start = end
        return pieces

    def _candidates(self, word: str, start: int) -> Iterator[str]:
        """Yield candidates for the start of ``word[start:]``, from the longest to the first token found."""
        prefix = self.continuation if start else ""
        for end in range(min(len(word), start + self._longest), start, -1):
            candidate = prefix + word[start:end]
            yield candidate
            if candidate in self._vocabulary:
                return


@dataclass(frozen=True)
class WordPieceSettings:
    """The data of a WordPiece tokenizer."""

    shared: SharedSettings
    normalization: Sequence[Change]
    unknown: str  # of a word with more than ``max_characters``, or with a part that is not in the vocabulary
    continuation: str  # prefix of tokens within a word
    max_characters: int


def read_wordpiece(content: Mapping[str, Any], path: Path) -> WordPieceSettings:
    """Read the content of tokenizer.json."""
    section(content, "pre_tokenizer", "BertPreTokenizer", path)
    model = section(content, "model", "WordPiece", path)
    try:
        vocabulary = {checked(token, str): checked(number, int) for token, number in model["vocab"].items()}
        unknown = checked(model["unk_token"], str)
        vocabulary[unknown]  # a KeyError here is better than one in the middle of a text
        return WordPieceSettings(
            shared=read_shared(content, vocabulary, path),
            normalization=read_normalizer(content, path),
            unknown=unknown,
            continuation=checked(model["continuing_subword_prefix"], str),
            max_characters=checked(model["max_input_chars_per_word"], int),
        )
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise unreadable_tokenizer(path, error) from error


def section(content: Mapping[str, Any], name: str, kind: str, path: Path) -> Mapping[str, Any]:
    """Return a section of tokenizer.json, checked to be of one kind."""
    part = content.get(name)
    found = part.get("type", kind) if isinstance(part, dict) else "missing"  # early files name no type
    if not isinstance(part, dict) or found != kind:
        raise ModelFileError(
            f"{path} is not a readable tokenizer: its {name} is {found}, only {kind} is read: "
            f"use a model with BERT's tokenizer"
        )
    return part
