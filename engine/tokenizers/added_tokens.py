"""Added tokens, which are matched in a text as a whole, such as ``[MASK]``."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import regex

from .encoding import Encoding, TokenSpan
from .normalized import Change, Normalized, unchanged
from .templates import checked
from .unicode import is_white_space

SPLIT = "split_special_tokens"  # of tokenizer_config.json: special tokens in texts are text
FLAGS = ("single_word", "lstrip", "rstrip", "normalized", "special")


@dataclass(frozen=True)
class AddedToken:
    """A token that is matched before a text is split into words."""

    content: str
    id: int
    single_word: bool  # not matched within a word
    lstrip: bool  # includes the white space before it
    rstrip: bool  # and behind it
    normalized: bool  # matched in the normalised text, else in the original
    special: bool  # a control token and not text
    found: bool = True  # in texts, else only put around them


@dataclass(frozen=True)
class Segment:
    """``normalized.text[start:end]``: an added token, or plain text where ``added`` is None."""

    normalized: Normalized
    start: int
    end: int
    added: AddedToken | None = None

    @property
    def text(self) -> str:
        """The segment after normalisation."""
        return self.normalized.text[self.start : self.end]

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return the span in the original of ``text[start:end]``."""
        return self.normalized.span(self.start + start, self.start + end)


class AddedTokens:
    """Finds added tokens in a text by their content."""

    def __init__(self, tokens: dict[str, AddedToken]) -> None:
        self._tokens = {content: token for content, token in tokens.items() if content}
        longest_first = sorted(self._tokens, key=len, reverse=True)
        self._pattern = regex.compile("|".join(map(regex.escape, longest_first)) or r"(?!)")

    def split(self, normalized: Normalized, literal: Sequence[tuple[int, int]] = ()) -> Iterator[Segment]:
        """Split a text into added tokens and text; within the spans ``literal`` special tokens are text."""
        text, done = normalized.text, 0
        for match in self._pattern.finditer(text):
            token, (start, end) = self._tokens[match.group()], match.span()
            if token.single_word and within_word(text, start, end):
                continue
            if token.special and overlaps(normalized.span(start, end), literal):
                continue
            while token.lstrip and start > done and is_white_space(text[start - 1]):
                start -= 1
            while token.rstrip and end < len(text) and is_white_space(text[end]):
                end += 1
            if done < start:
                yield Segment(normalized, done, start)
            yield Segment(normalized, start, end, token)
            done = end
        if done < len(text):
            yield Segment(normalized, done, len(text))


class AddedVocabulary:
    """All added tokens of a tokenizer; the text between them is normalised."""

    def __init__(self, tokens: Sequence[AddedToken], normalize: Change) -> None:
        self._normalize = normalize
        tokens = [token for token in tokens if token.found]
        self._as_written = AddedTokens({token.content: token for token in tokens if not token.normalized})
        self._as_normalized = AddedTokens(
            {
                normalize(unchanged(token.content)).text: token
                for token in tokens
                if token.normalized and token.content
            }
        )

    def split(self, text: str, literal: Sequence[tuple[int, int]] = ()) -> Iterator[Segment]:
        """Split a text into added tokens and the normalised text between them."""
        for segment in self._as_written.split(unchanged(text), literal):
            if segment.added is not None:
                yield segment
            else:
                between = segment.normalized.part(segment.start, segment.end)
                yield from self._as_normalized.split(self._normalize(between), literal)


def word_tokens(word: Segment, split: Callable[[str], tuple[TokenSpan, ...]]) -> tuple[TokenSpan, ...]:
    """Return the tokens of a word: an added token is its own, any other word is ``split``."""
    if word.added is not None:
        return ((word.text, word.added.id, 0, len(word.text)),)
    return split(word.text)


def encode_words(words: Iterable[Segment], split: Callable[[str], tuple[TokenSpan, ...]]) -> Encoding:
    """Return the tokens of all words, with their spans in the original."""
    ids, tokens, offsets = [], [], []
    for word in words:
        for token, number, start, end in word_tokens(word, split):
            ids.append(number)
            tokens.append(token)
            offsets.append(word.span(start, end))
    return Encoding(ids, tokens, offsets)


def read_added_tokens(content: Mapping[str, Any], vocabulary: Mapping[str, int]) -> list[AddedToken]:
    """Read ``added_tokens``; a token in the vocabulary keeps its id."""
    tokens = []
    for entry in content.get("added_tokens", []):
        flags = {name: checked(entry[name], bool) for name in FLAGS}
        token, number = checked(entry["content"], str), checked(entry["id"], int)
        is_found = not (flags["special"] and content.get(SPLIT))
        tokens.append(AddedToken(token, vocabulary.get(token, number), **flags, found=is_found))
    return tokens


def overlaps(span: tuple[int, int], others: Sequence[tuple[int, int]]) -> bool:
    """Whether a span overlaps one of the others."""
    return any(span[0] < end and start < span[1] for start, end in others)


def within_word(text: str, start: int, end: int) -> bool:
    """Whether ``text[start:end]`` has a letter, a mark, a digit or an underscore right before or after it."""
    neighbors = text[max(start - 1, 0) : start], text[end : end + 1]
    return any(regex.match(r"\w", character) for character in neighbors)
