"""BERT's normaliser and word splitter, which keep the original span of every character."""

import re
from collections.abc import Callable, Iterator, Sequence

from .normalized import Normalized, decomposition, transform
from .unicode import (
    DECOMPOSED_TO_COMBINING,
    OTHER_COMBINING,
    PUNCTUATION,
    WHITE_SPACE,
    any_of,
    character_class,
    decompose,
    is_chinese,
    is_control,
    is_nonspacing_mark,
    is_white_space,
    lower_case,
)

# A punctuation character, or a run of characters other than punctuation and white space.
WORD = re.compile(f"[{character_class(PUNCTUATION)}]|[^{character_class(PUNCTUATION, WHITE_SPACE)}]+")
# Marks are sorted, and most are stripped then: their order can only be seen where one of these is left.
LASTING_MARK = any_of(OTHER_COMBINING, DECOMPOSED_TO_COMBINING)


def words(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Split ``text[start:end]`` at white space and around every punctuation character."""
    return (match.span() for match in WORD.finditer(text, start, end))


class Memo(dict[str, str]):
    """Results of a function of a string, each computed on first use."""

    def __init__(self, function: Callable[[str], str]) -> None:
        self._function = function

    def __missing__(self, key: str) -> str:
        self[key] = self._function(key)
        return self[key]


class BertNormalizer:
    """BERT's normaliser, as tokenizer.json sets it.

    It can remove control characters and replace white space by spaces, put spaces around every Chinese
    character, which makes it a word, remove the accents of letters, and convert to lower case.
    """

    def __init__(
        self, clean_text: bool, handle_chinese_chars: bool, strip_accents: bool, lowercase: bool
    ) -> None:
        self._clean_text = clean_text
        self._handle_chinese_chars = handle_chinese_chars
        self._strip_accents = strip_accents
        self._lowercase = lowercase
        self._forms = Memo(self._form)

    def __call__(self, text: Normalized) -> Normalized:
        """Normalise a text: character by character, but for the order of the marks on a letter."""
        if self._strip_accents and LASTING_MARK.search(text.text):
            text = by_character(text, [self._clean(character) for character in text.text])
            text = transform(text, decomposition(text.text, "NFD"))
        return by_character(text, [self._forms[character] for character in text.text])

    def _form(self, character: str) -> str:
        """Return the normalised form of a character."""
        form = self._clean(character)
        if self._handle_chinese_chars and form and is_chinese(form):
            form = f" {form} "
        if self._strip_accents:
            form = "".join(c for part in form for c in decompose(part) if not is_nonspacing_mark(c))
        return "".join(map(lower_case, form)) if self._lowercase else form

    def _clean(self, character: str) -> str:
        if not self._clean_text:
            return character
        if character in "\t\n\r":  # control characters by category, blanks by use
            return " "
        if is_control(character):
            return ""
        return " " if is_white_space(character) else character


def by_character(text: Normalized, forms: Sequence[str]) -> Normalized:
    """Replace each character of a text by its form."""
    normalized = "".join(forms)
    if text.text.isascii() and len(normalized) == len(text.text):  # mostly each character becomes one
        return Normalized(normalized, text.starts, text.ends)
    return text.at(normalized, [place for place, form in enumerate(forms) for _ in form])
