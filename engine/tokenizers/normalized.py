"""Normalised texts that keep the original span of each character."""

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import regex

from .patterns import matches
from .unicode import is_white_space, lower_case


@dataclass(frozen=True)
class Normalized:
    """A text after normalisation: ``text[i]`` was made of ``original[starts[i]:ends[i]]``.

    A character without an original, such as a space put before the first word, has an empty span.
    """

    text: str
    starts: Sequence[int]
    ends: Sequence[int]

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return the span of the original that ``text[start:end]`` was made of."""
        return self.starts[start], self.ends[end - 1]

    def part(self, start: int, end: int) -> "Normalized":
        """Return ``text[start:end]`` as a text of its own, with the same original."""
        return Normalized(self.text[start:end], self.starts[start:end], self.ends[start:end])


# One change of a normalisation.
Change = Callable[[Normalized], Normalized]


def unchanged(text: str) -> Normalized:
    """Return a text before any change."""
    return Normalized(text, range(len(text)), range(1, len(text) + 1))


def apply(changes: Sequence[Change], text: Normalized) -> Normalized:
    """Apply changes in order."""
    for change in changes:
        text = change(text)
    return text


def compose(text: Normalized) -> Normalized:
    """Return Unicode's normalisation form C: a letter and its accents as one character where there is one.

    Composition never crosses grapheme clusters, so each cluster is composed alone; the characters of a
    changed cluster have the span of the whole cluster.
    """
    if unicodedata.is_normalized("NFC", text.text):
        return text
    forms, spans = [], []
    for cluster in regex.finditer(r"\X", text.text):
        whole = [text.span(*cluster.span())]
        form = unicodedata.normalize("NFC", cluster.group())
        same = form == cluster.group()
        forms.append(form)
        spans += [text.span(i, i + 1) for i in range(*cluster.span())] if same else whole * len(form)
    starts, ends = zip(*spans, strict=True)
    return Normalized("".join(forms), starts, ends)


def replace(text: Normalized, old: str, new: str) -> Normalized:
    """Replace the character ``old`` by ``new``."""
    return Normalized(text.text.replace(old, new), text.starts, text.ends)


def prepend(text: Normalized, prefix: str, shares_span: bool = False) -> Normalized:
    """Put a character before a text, unless the text is empty.

    Its span is empty; with ``shares_span`` that of the character behind it, as in the `tokenizers` library.
    """
    if not text.text:
        return text
    start, end = text.starts[0], text.ends[0] if shares_span else text.starts[0]
    return Normalized(prefix + text.text, [start, *text.starts], [end, *text.ends])


def prepend_missing(text: Normalized, prefix: str, shares_span: bool = False) -> Normalized:
    """Put a character before a text that does not begin with it."""
    return text if text.text.startswith(prefix) else prepend(text, prefix, shares_span)


def prepend_missing_at_start(text: Normalized, prefix: str, shares_span: bool = False) -> Normalized:
    """Apply `prepend_missing` only at the start of the original, not after a special token."""
    return prepend_missing(text, prefix, shares_span) if text.text and text.starts[0] == 0 else text


def lower(text: Normalized) -> Normalized:
    """Put every character into lower case, on its own: a final sigma is one like any other."""
    forms = [lower_case(character) for character in text.text]
    places = [place for place, form in enumerate(forms) for _ in form]
    return Normalized(
        "".join(forms), [text.starts[place] for place in places], [text.ends[place] for place in places]
    )


def replace_matches(text: Normalized, pattern: regex.Pattern[str], new: str) -> Normalized:
    """Replace the matches of a pattern; the new characters have the span of the match's last character."""
    characters: list[str] = []
    places: list[int] = []
    done = 0
    for match in matches(pattern, text.text):
        characters += [*text.text[done : match.start()], *new]
        places += [*range(done, match.start()), *[match.end() - 1] * len(new)]
        done = match.end()
    if not done:
        return text
    characters += text.text[done:]
    places += range(done, len(text.text))
    return Normalized(
        "".join(characters), [text.starts[place] for place in places], [text.ends[place] for place in places]
    )


def strip(text: Normalized, left: bool, right: bool) -> Normalized:
    """Leave out white space at the start, at the end, or both."""
    start, end = 0, len(text.text)
    while left and start < end and is_white_space(text.text[start]):
        start += 1
    while right and start < end and is_white_space(text.text[end - 1]):
        end -= 1
    return text.part(start, end)
