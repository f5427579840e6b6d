"""Encodings of texts that state none and are not UTF-8, judged by the letters of languages."""

import math
import re
from collections.abc import Iterator, Sequence
from functools import cache

from ...installed import rows_of

# The legacy encodings of browsers (https://encoding.spec.whatwg.org/#names-and-labels) and of DOS, each with
# the letters beyond ASCII of a language, the most common first. charset-normalizer and chardet, tried on the
# same texts, take short ones ("Ключ" in KOI8-R, "会议室" in GBK) for other scripts.
LANGUAGES = [(row["encodings"].split(), row["kind"], row["letters"]) for row in rows_of("encodings.csv")]
LEGACY = tuple(dict.fromkeys(name for names, _, _ in LANGUAGES for name in names))
# Letters that UTF-8 writes in two bytes; other such characters are pairs of bytes of another encoding.
LETTERS = frozenset("".join(letters for _, kind, letters in LANGUAGES if kind in ("latin", "alphabet")))
SIGNS = "".join(letters for _, kind, letters in LANGUAGES if kind == "signs")
PUNCTUATION = "“”„‚‘’«»‹›–—…€§°·•\u00a0©®™²³½¼×№，。、：；？！「」『』（）《》・ー　"
ASCII_LETTER = re.compile("[a-zA-Z]")
IN_NO_WORD = frozenset("“”„‚‘«»‹›–—…€§°•³²½¼×")
ASCII, MARK, RARE, UNKNOWN, BROKEN = 3.0, 3.0, 8.5, 11.0, 14.0  # negative log probabilities
EURO, KATAKANA, KANJI = 1.5, 6.0, 8.2
OUT_OF_CASE, IN_ASCII, SIDE_BY_SIDE, CAPITAL = 5.0, 4.0, 3.0, 0.4
PRIOR = {
    **{"cp1252": 0.0, "cp1251": 0.3, "cp1250": 0.3, "cp932": 0.3, "gb18030": 0.3},
    **dict.fromkeys(("cp437", "cp850", "cp852", "cp737", "cp862"), 2.0),
}  # of others 0.5
SAMPLE = 4000  # bytes of the lines that are looked at


def guessed(content: bytes) -> str:
    """Return the text in the most plausible legacy encoding."""
    return content.decode(guess(content, LEGACY), "replace")


def guess(content: bytes, encodings: Sequence[str]) -> str:
    """Return the encoding in which a text is likeliest, by the letters of the languages written in it.

    A letter has a probability that falls exponentially with its place among those of its language.
    Capitals within words, letters of other scripts next to those of ASCII, and marked Latin letters side by
    side are rare.
    """
    lines = [line for line in content[: 100 * SAMPLE].split(b"\n") if not line.isascii()]
    sample = b"\n".join(lines)[:SAMPLE]
    texts = {encoding: sample.decode(encoding, "replace") for encoding in encodings}
    return min(
        texts,
        key=lambda each: PRIOR.get(each, 0.5) + min(cost(texts[each], *model) for model in models(each)),
    )


@cache
def models(encoding: str) -> list[tuple[dict[str, float], float, bool]]:
    """Return for each language in an encoding the costs of its letters and of others, and if it is Latin."""
    found = []
    for encodings, kind, letters in LANGUAGES:
        if encoding not in encodings:
            continue
        costs = dict.fromkeys(PUNCTUATION, MARK) | {"€": EURO}
        if kind == "signs":
            costs |= dict.fromkeys(letters, math.log(len(letters) / 0.7))
        else:
            costs |= dict(letter_costs(letters))
        if kind == "kana":
            katakana = {chr(code): KATAKANA for code in range(0x30A1, 0x30F7)}
            costs = dict.fromkeys(SIGNS, KANJI) | katakana | costs
        found.append((costs, RARE if kind in ("signs", "kana") else UNKNOWN, kind == "latin"))
    return found


def letter_costs(alphabet: str) -> Iterator[tuple[str, float]]:
    """Yield the letters of an alphabet, small and capital, with their negative log probabilities."""
    decay = 3.5 / len(alphabet)
    total = sum(math.exp(-decay * place) for place in range(len(alphabet)))
    for place, letter in enumerate(alphabet):
        yield letter, decay * place + math.log(total)
        if letter.upper() != letter:
            yield letter.upper(), decay * place + math.log(total) + CAPITAL


def cost(text: str, costs: dict[str, float], other: float, is_latin: bool) -> float:
    """Return the negative logarithm of a text's probability in a language."""
    total = 0.0
    is_alphabet = other == UNKNOWN
    for before, sign, after in zip(" " + text, text, text[1:] + " ", strict=False):
        if sign < "\x80":
            total += ASCII
            continue
        is_letter = sign.isalpha()
        total += costs.get(sign, other if is_letter else BROKEN)
        is_odd = before.islower() or (before.isupper() and after.islower())
        if (sign.isupper() and is_odd) or (sign.islower() and after.isupper()):
            total += OUT_OF_CASE
        if sign in IN_NO_WORD and before.isalpha() and after.isalpha():
            total += OUT_OF_CASE
        if is_latin and is_letter and before > "\x7f" and before.isalpha():
            total += SIDE_BY_SIDE
        if is_latin and is_letter and after.isdigit():  # as behind signs of money
            total += OUT_OF_CASE
        if is_alphabet and not is_latin and is_letter and ASCII_LETTER.search(before + after):
            total += IN_ASCII
    return total


def decoded(content: bytes, encoding: str) -> str | None:
    """Return the text in an encoding, None if it is invalid or the encoding unknown."""
    try:
        return content.decode(encoding)
    except (UnicodeError, LookupError):
        return None
