"""SentencePiece Unigram, the tokenizer of XLM-R (Kudo 2018).

Every piece of the vocabulary has a log-probability. A word is split into the pieces with the largest sum, by
the Viterbi algorithm: the best split of each prefix extends the best split of a shorter one.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import regex

from ..errors import ModelFileError
from ..weights.tensors import unreadable_tokenizer
from .added_tokens import AddedVocabulary, Segment, encode_words
from .bpe_json import PREFIXES
from .bpe_vocabulary import byte_token
from .encoding import Encoding, TokenSpan, cached_words, check_text
from .normalized import Change, Normalized, apply, replace
from .normalizers import parts_of, read_normalizer
from .patterns import BLANK, WORD_WITH_BLANK, cut
from .templates import checked
from .text_tokenizer import NO_CHANGES, SharedSettings, TextTokenizer, read_content, read_shared
from .unicode import WHITE_SPACE, character_class

# One step of splitting a text into words.
Split = Callable[[Normalized], list[Normalized]]

NO_BLANKS = regex.compile(f"[^{character_class(WHITE_SPACE)}]+")
BLANK_WORDS = regex.compile(WORD_WITH_BLANK)
UNKNOWN_PENALTY = 10.0  # below the least probable piece


@dataclass(frozen=True)
class PieceCandidate:
    """A piece that fits a word at ``word[start:end]``."""

    piece: str
    id: int | None  # None for a character without a piece
    start: int
    end: int
    score: float
    total: float  # score of the best split that ends in it
    kept: bool  # whether it is the best way to reach ``end`` so far


@dataclass(frozen=True)
class UnigramStages:
    """The stages from one word of a text to its tokens."""

    original: str  # ``text[start:end]`` of the whole text
    start: int
    end: int
    normalized: str  # the word that is split, with ``▁`` for a blank
    candidates: list[PieceCandidate]  # the pieces that were weighed
    tokens: list[str]  # those of the best split
    ids: list[int]
    offsets: list[tuple[int, int]]  # their spans in the whole text
    special: bool  # an added token, which is not split


class UnigramTokenizer(TextTokenizer):
    """A tokenizer.json of SentencePiece Unigram; never truncates and never pads."""

    def __init__(self, path: Path, changes: Mapping[str, Any] = NO_CHANGES) -> None:
        settings = read_unigram(read_content(path, changes), path)
        super().__init__(path, settings.shared, changes)
        self._pieces, self._scores = settings.shared.tokens, settings.scores
        self._longest = max(map(len, self._pieces))
        self._unknown, self._falls_back = settings.unknown, settings.byte_fallback
        self._unknown_score = min(settings.scores.values()) - UNKNOWN_PENALTY
        self._split = settings.split
        self._added = AddedVocabulary(settings.shared.added, partial(apply, settings.normalization))
        self._cached_tokens = cached_words(self._tokens)

    def stages(self, text: str) -> Sequence[UnigramStages]:
        """Return the stages of each word of a text, without special tokens around it."""
        check_text(text, "the text")
        return [self._explain(word, text) for word in self._words(text)]

    def _encode_plain(self, text: str) -> Encoding:
        return encode_words(self._words(text), self._cached_tokens)

    def _words(self, text: str) -> Iterator[Segment]:
        """Yield the words and the added tokens of a text."""
        for segment in self._added.split(text):
            if segment.added is not None:
                yield segment
                continue
            words: list[Normalized] = [segment.normalized.part(segment.start, segment.end)]
            for step in self._split:
                words = [part for word in words for part in step(word)]
            yield from (Segment(word, 0, len(word.text)) for word in words if word.text)

    def _tokens(self, word: str) -> tuple[TokenSpan, ...]:
        """Return the pieces of the best split of a word; neighbouring characters without a piece are one."""
        found: list[TokenSpan] = []
        for start, end in best_split(self.candidates(word), len(word), self._unknown):
            piece = word[start:end]
            number = self._pieces.get(piece)
            fallback = self._bytes_of(piece) if number is None else None
            if fallback is not None:
                found += [(token, self._pieces[token], start, end) for token in fallback]
            else:
                found.append((piece, self._unknown if number is None else number, start, end))
        return tuple(found)

    def _bytes_of(self, text: str) -> list[str] | None:
        """Return the tokens of a text's bytes, or None if the vocabulary has not all of them."""
        tokens = [byte_token(byte) for byte in text.encode()]
        return tokens if self._falls_back and all(token in self._pieces for token in tokens) else None

    def candidates(self, word: str) -> Iterator[PieceCandidate]:
        """Weigh every piece that fits a word, from left to right and from the shortest on."""
        best: dict[int, float] = {0: 0.0}  # score of the best split of word[:end]
        for start in range(len(word)):
            single = False
            for end in range(start + 1, min(len(word), start + self._longest) + 1):
                piece = word[start:end]
                if piece not in self._pieces:
                    continue
                single |= end == start + 1
                yield candidate(best, piece, self._pieces[piece], start, end, self._scores[piece])
            if not single:
                character = word[start]
                yield candidate(best, character, None, start, start + 1, self._unknown_score)

    def _explain(self, word: Segment, text: str) -> UnigramStages:
        special = word.added is not None
        encoding = encode_words([word], self._cached_tokens)
        start, end = word.span(0, word.end - word.start)
        return UnigramStages(
            original=text[start:end],
            start=start,
            end=end,
            normalized=word.text,
            candidates=[] if special else list(self.candidates(word.text)),
            tokens=encoding.tokens,
            ids=encoding.ids,
            offsets=encoding.offsets,
            special=special,
        )


def candidate(
    best: dict[int, float], piece: str, number: int | None, start: int, end: int, score: float
) -> PieceCandidate:
    """Weigh a piece, and keep it in ``best`` if no split before it reaches ``end`` as well."""
    total = score + best[start]
    kept = end not in best or total > best[end]
    if kept:
        best[end] = total
    return PieceCandidate(piece, number, start, end, score, total, kept)


def best_split(
    candidates: Iterator[PieceCandidate], n_characters: int, unknown_id: int
) -> list[tuple[int, int]]:
    """Return the spans of the best split; neighbouring unknown characters are joined."""
    last: Mapping[int, PieceCandidate] = {each.end: each for each in candidates if each.kept}
    spans: list[tuple[int, int]] = []
    end, joins = n_characters, False
    while end:
        piece = last[end]
        unknown = piece.id in (None, unknown_id)
        if unknown and joins:
            spans[-1] = (piece.start, spans[-1][1])
        else:
            spans.append((piece.start, piece.end))
        end, joins = piece.start, unknown
    return spans[::-1]


@dataclass(frozen=True)
class UnigramSettings:
    """The data of a Unigram tokenizer."""

    shared: SharedSettings
    scores: Mapping[str, float]  # log-probabilities of the pieces
    unknown: int  # id of text without a piece
    byte_fallback: bool  # such text becomes the pieces of its bytes
    normalization: Sequence[Change]
    split: Sequence[Split]  # steps; each cuts the parts of the one before


def read_unigram(content: Mapping[str, Any], path: Path) -> UnigramSettings:
    """Read the content of tokenizer.json."""
    try:
        model = content["model"]
        pieces = [(checked(piece, str), float(score)) for piece, score in model["vocab"]]
        tokens = {piece: number for number, (piece, _) in enumerate(pieces)}
        unknown = checked(model.get("unk_id"), int)
        pieces[unknown]  # an IndexError here is better than one in the middle of a text
        return UnigramSettings(
            shared=read_shared(content, tokens, path),
            scores={piece: pieces[number][1] for piece, number in tokens.items()},
            unknown=unknown,
            byte_fallback=bool(model.get("byte_fallback")),
            normalization=read_normalizer(content, path),
            split=read_split(content, path),
        )
    except (LookupError, TypeError, ValueError, AttributeError, regex.error) as error:
        raise unreadable_tokenizer(path, error) from error


def read_split(content: Mapping[str, Any], path: Path) -> list[Split]:
    """Read the steps that split a text into words."""
    steps: list[Split] = []
    for part in parts_of(content.get("pre_tokenizer"), "pretokenizers"):
        match part:
            case {"type": "WhitespaceSplit"}:
                steps.append(between_blanks)
            case {"type": "Metaspace", "replacement": "▁"}:
                prefixed = part.get("add_prefix_space", True)
                scheme = part.get("prepend_scheme", "always") if prefixed else "never"
                steps.append(partial(marked_words, prefix=PREFIXES[scheme], splits=part.get("split", True)))
            case _:
                raise ModelFileError(f"{path}: pre-tokenizer {part!r} cannot be read: use another model")
    return steps


def between_blanks(text: Normalized) -> list[Normalized]:
    """Cut a text at white space, which is dropped."""
    return [text.part(*match.span()) for match in NO_BLANKS.finditer(text.text)]


def marked_words(text: Normalized, prefix: Sequence[Change], splits: bool) -> list[Normalized]:
    """Write spaces as ``▁``, put one before the text, and cut it in front of each."""
    marked = apply(prefix, replace(text, " ", BLANK))
    spans = cut(BLANK_WORDS, marked.text, 0, len(marked.text)) if splits else [(0, len(marked.text))]
    return [marked.part(*span) for span in spans]
