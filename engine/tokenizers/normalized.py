"""Normalised texts that keep the original span of each character."""

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import regex

from .patterns import matches
from .unicode import Form, combining_class, composed, decompose, is_mark, is_white_space, lower_case

# A character, and how it came about: 0 if it stands for the next one of the text, 1 if it is an additional
# one, -n if it stands for the next one and n more.
Piece = tuple[str, int]


@dataclass(frozen=True)
class Normalized:
    """A text after normalisation: ``text[i]`` was made of ``original[starts[i]:ends[i]]``.

    Spans are those of the `tokenizers` library: see `transform`.
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

    def at(self, text: str, places: Sequence[int]) -> "Normalized":
        """Return another text, whose characters have the spans of those at ``places``."""
        return Normalized(text, [self.starts[i] for i in places], [self.ends[i] for i in places])


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


def transform(text: Normalized, pieces: Iterable[Piece]) -> Normalized:
    """Replace a text by pieces, with spans counted as by the `tokenizers` library.

    A piece has the span of the character that it stands for, the first of several; an additional one that of
    the character before. What is left out at the beginning is not counted: all spans are then too far left.
    """
    characters, places, place = [], [], 0
    for character, change in pieces:
        characters.append(character)
        places.append(place - 1 if change > 0 else place)
        place += 0 if change > 0 else 1 - change
    return text.at("".join(characters), places)


def normal_form(text: Normalized, form: Form) -> Normalized:
    """Return one of Unicode's normalisation forms (UAX 15): NFC, NFD, NFKC or NFKD.

    C composes a letter and its accents to one character where there is one, D does the opposite; K replaces
    variants of letters, too.
    """
    if unicodedata.is_normalized(form, text.text):
        return text
    pieces = decomposition(text.text, "NFKD" if "K" in form else "NFD")
    return transform(text, composition(pieces) if form.endswith("C") else pieces)


def decomposition(text: str, form: Form) -> list[Piece]:
    """Decompose characters, and sort the marks behind each letter by their combining classes."""
    pieces = [(c, int(n > 0)) for character in text for n, c in enumerate(decompose(character, form))]
    classes = [combining_class(character) for character, _ in pieces]
    letters, letter = [], 0
    for number in classes:
        letter += number == 0
        letters.append(letter)
    order = sorted(range(len(pieces)), key=lambda i: (letters[i], classes[i]))
    return [pieces[i] for i in order]


def composition(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """Compose each letter with the marks behind it, but for those behind one of their own class."""
    letter: Piece | None = None
    marks: list[Piece] = []  # those behind the letter that are not composed with it
    last = 0  # the class of the last of them
    for character, change in pieces:
        number = combining_class(character)
        if letter is not None and (not marks or last < number):
            whole = composed(letter[0], character)
            if whole is not None:
                letter = whole, letter[1] + change - 1
                continue
        if letter is not None and number:
            marks.append((character, change))
            last = number
        elif number:
            yield character, change
        else:
            yield from [letter, *marks] if letter is not None else []
            letter, marks = (character, change), []
    yield from [letter, *marks] if letter is not None else []


def strip_accents(text: Normalized) -> Normalized:
    """Leave out all marks."""
    places = [place for place, character in enumerate(text.text) if not is_mark(character)]
    return text.at("".join(text.text[place] for place in places), places)


def prepend(text: Normalized, prefix: str) -> Normalized:
    """Put characters before a text, with the span of its first one, unless the text is empty."""
    return text.at(prefix + text.text, [0] * len(prefix) + [*range(len(text.text))]) if text.text else text


def prepend_missing(text: Normalized, prefix: str) -> Normalized:
    """Put a character before a text that does not begin with it."""
    return text if text.text.startswith(prefix) else prepend(text, prefix)


def prepend_missing_at_start(text: Normalized, prefix: str) -> Normalized:
    """Apply `prepend_missing` only at the start of the original, not after a special token."""
    return prepend_missing(text, prefix) if text.text and text.starts[0] == 0 else text


def lower(text: Normalized) -> Normalized:
    """Put every character into lower case, on its own: a final sigma is one like any other."""
    forms = [lower_case(character) for character in text.text]
    return text.at("".join(forms), [place for place, form in enumerate(forms) for _ in form])


def replace(text: Normalized, old: str, new: str) -> Normalized:
    """Replace the character ``old`` by the character ``new``."""
    return Normalized(text.text.replace(old, new), text.starts, text.ends)


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
    return text.at("".join([*characters, text.text[done:]]), [*places, *range(done, len(text.text))])


def strip(text: Normalized, left: bool, right: bool) -> Normalized:
    """Leave out white space at the start, at the end, or both."""
    start, end = 0, len(text.text)
    while left and start < end and is_white_space(text.text[start]):
        start += 1
    while right and start < end and is_white_space(text.text[end - 1]):
        end -= 1
    return text.part(start, end)
