"""Tokens that a text may spell out as a whole, such as ``[MASK]``."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import regex

from engine.tokenizers.normalized import Change, Normalized, unchanged
from engine.tokenizers.templates import checked
from engine.tokenizers.unicode import is_white_space


@dataclass(frozen=True)
class AddedToken:
    """A token that is found before a text is cut into words.

    ``normalized`` ones are looked for in the normalised text, the others in the text as it was
    written; a ``single_word`` does not count within a word; ``lstrip`` and ``rstrip`` ones take the
    white space beside them along; ``special`` ones mean something to the model and are no text.
    """

    content: str
    id: int
    single_word: bool
    lstrip: bool
    rstrip: bool
    normalized: bool
    special: bool


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
        """Return the span in the original of a part of the segment."""
        return self.normalized.span(self.start + start, self.start + end)


class AddedTokens:
    """Added tokens by what they look like in a text."""

    def __init__(self, tokens: dict[str, AddedToken]) -> None:
        self._tokens = {content: token for content, token in tokens.items() if content}
        longest_first = sorted(self._tokens, key=len, reverse=True)
        self._pattern = regex.compile("|".join(map(regex.escape, longest_first)) or r"(?!)")

    def split(self, normalized: Normalized, literal: Sequence[tuple[int, int]] = ()) -> Iterator[Segment]:
        """Cut a text into added tokens and what lies between them.

        In the spans ``literal`` of the original, special tokens are plain text.
        """
        text, done = normalized.text, 0
        for match in self._pattern.finditer(text):
            token, (start, end) = self._tokens[match.group()], match.span()
            if token.single_word and within_word(text, start, end):
                continue
            if token.special and overlaps(normalized.span(start, end), literal):
                continue
            if token.lstrip:
                start = max(done, start_of_blanks(text, start))
            if token.rstrip:
                end = end_of_blanks(text, end)
            if done < start:
                yield Segment(normalized, done, start)
            yield Segment(normalized, start, end, token)
            done = end
        if done < len(text):
            yield Segment(normalized, done, len(text))


class AddedVocabulary:
    """All added tokens of a tokenizer; between them, the text is normalised."""

    def __init__(self, tokens: Sequence[AddedToken], normalize: Change) -> None:
        self._normalize = normalize
        self._as_written = AddedTokens({token.content: token for token in tokens if not token.normalized})
        self._as_normalized = AddedTokens(
            {
                normalize(unchanged(token.content)).text: token
                for token in tokens
                if token.normalized and token.content
            }
        )

    def split(self, text: str, literal: Sequence[tuple[int, int]] = ()) -> Iterator[Segment]:
        """Cut a text into added tokens and what lies between them, normalised."""
        for segment in self._as_written.split(unchanged(text), literal):
            if segment.added is not None:
                yield segment
            else:
                between = segment.normalized.part(segment.start, segment.end)
                yield from self._as_normalized.split(self._normalize(between), literal)


def read_added_token(entry: Mapping[str, Any], vocabulary: Mapping[str, int]) -> AddedToken:
    """Read an entry of ``added_tokens``; a token that the vocabulary has too keeps the id it has there."""
    flags = ("single_word", "lstrip", "rstrip", "normalized", "special")
    token = checked(entry["content"], str)
    number = vocabulary.get(token, checked(entry["id"], int))
    return AddedToken(token, number, **{flag: checked(entry[flag], bool) for flag in flags})


def overlaps(span: tuple[int, int], others: Sequence[tuple[int, int]]) -> bool:
    """Whether a span has a character in common with one of the others."""
    return any(span[0] < end and start < span[1] for start, end in others)


def within_word(text: str, start: int, end: int) -> bool:
    """Whether ``text[start:end]`` has a letter, a mark, a digit or an underscore right before or after it."""
    beside = text[max(start - 1, 0) : start], text[end : end + 1]
    return any(regex.match(r"\w", character) for character in beside)


def start_of_blanks(text: str, end: int) -> int:
    """Return where the white space that ends before ``text[end]`` begins."""
    while end and is_white_space(text[end - 1]):
        end -= 1
    return end


def end_of_blanks(text: str, start: int) -> int:
    """Return where the white space that begins at ``text[start]`` ends."""
    while start < len(text) and is_white_space(text[start]):
        start += 1
    return start
