"""Tokens that a text may spell out as a whole, such as ``[MASK]``."""

from collections.abc import Iterator
from dataclasses import dataclass

import regex

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
    """``text[start:end]`` is an added token, or plain text where ``added`` is None."""

    start: int
    end: int
    added: AddedToken | None = None


class AddedTokens:
    """Added tokens by what they look like in a text."""

    def __init__(self, tokens: dict[str, AddedToken]) -> None:
        self._tokens = {content: token for content, token in tokens.items() if content}
        longest_first = sorted(self._tokens, key=len, reverse=True)
        self._pattern = regex.compile("|".join(map(regex.escape, longest_first)) or r"(?!)")

    def split(self, text: str) -> Iterator[Segment]:
        """Cut a text into added tokens and what lies between them."""
        done = 0
        for match in self._pattern.finditer(text):
            token, (start, end) = self._tokens[match.group()], match.span()
            if token.single_word and within_word(text, start, end):
                continue
            if token.lstrip:
                start = max(done, start_of_blanks(text, start))
            if token.rstrip:
                end = end_of_blanks(text, end)
            if done < start:
                yield Segment(done, start)
            yield Segment(start, end, token)
            done = end
        if done < len(text):
            yield Segment(done, len(text))


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
