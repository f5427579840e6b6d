"""Abbreviations with a full stop, and words that begin sentences, in the languages that have such.

The tables of ``data/abbreviations.csv`` serve all languages: a text need not say which is its own, and may
mix several. An entry in lower case stands for either case ("fig", "Fig"), one with a capital only for that
("Gen. Hart", "a gen. rule"). Left out is what also ends sentences as a word of some language ("ill", "ten").
"""

import re
from functools import lru_cache

from ..installed import rows_of

ROWS = rows_of("abbreviations.csv")


def words_of(table: str) -> frozenset[str]:
    """Return the words of one of the tables, of all languages."""
    return frozenset(word for row in ROWS if row["table"] == table for word in row["words"].split())


# Titles before names, and abbreviations that introduce what follows: no sentence ends after them.
NEVER_LAST = words_of("never last")
# Months, days, and words that may end sentences too: abbreviations only before a number.
BEFORE_NUMBERS = words_of("before numbers")
# A sentence ends after these only before one of the words that begin sentences.
ABBREVIATIONS = words_of("abbreviations")
# Words that often begin sentences, and are hardly ever names.
OPENERS = words_of("openers")
# Of these, those that begin family names too, after an initial: "E. Le Roy", "J. De Witt".
PARTICLES = words_of("particles")
# German ordinals are numbers with a full stop: "im 2. Stock", "der 1. Preis", "am 3. Oktober".
BEFORE_ORDINALS, MONTHS_AFTER_ORDINALS = words_of("before ordinals"), words_of("months after ordinals")

WORD_BREAK = re.compile(r"[.\-(\[\"'’“‘«»„]")
DOTTED = re.compile(r"\b(?:[^\W\d_]{1,2}\.[ \u00a0\u202f-]?){1,4}[^\W\d_]{1,2}$")  # "U.S", "z. B", "J.-C"
ROMAN = re.compile(r"[IVXL]{2,}|[VX]")
UNITS = frozenset("ghlmst")  # a number and one of these may end a sentence
NEXT_WORD = re.compile(r"[\"'“‘„«»(\[*_\u00a0\u202f]*([^\W\d_]++|[¿¡])(\.?)")
# A number, a date, or the end of a period ("Jan. – Mar.").
NEXT_NUMBER = re.compile(
    r"[-–&(]|(?:(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\.? )?\d", re.IGNORECASE
)


# Lists repeat their marks.
@lru_cache(maxsize=10_000)
def is_of_word(before: str, after: str, is_lower: bool) -> bool:
    """Whether a full stop belongs to the word, number or initial before it, and ends no sentence."""
    words = before.split()
    word = WORD_BREAK.split(words[-1])[-1] if words else ""
    if not word:
        return False
    next_match = NEXT_WORD.match(after)
    following, stop = next_match.groups() if next_match else ("", "")
    opener = following.lower()
    begins_next = (opener in OPENERS and (not stop or len(opener) > 2)) or opener in {"¿", "¡"}
    is_number = word.isdecimal() or bool(ROMAN.fullmatch(word))
    if len(words) == 1 and (is_number or len(words[0].strip("([")) == 1):  # of an item in a list
        return True
    if is_number and word == words[-1]:
        return is_ordinal(words, following, begins_next)
    match = DOTTED.search(before[-16:].rstrip()) if len(word) <= 2 else None
    dotted = re.sub(r"[^\w.]", "", match.group()).lower() if match else ""
    if dotted in NEVER_LAST or is_entry(word, NEVER_LAST, is_lower):
        return True
    if dotted in ABBREVIATIONS or is_entry(word, ABBREVIATIONS, is_lower) or word.lower().endswith("str"):
        return not begins_next
    if len(word) == 1 and word.isalpha() and words[-1][-2:-1] not in {"'", "’"}:  # an initial, no "can't"
        is_unit = word in UNITS and words[-2:-1] and words[-2][-1].isdecimal() and after[0].isupper()
        return not is_unit and not (begins_next and opener not in PARTICLES)
    if is_entry(word, BEFORE_NUMBERS, is_lower):
        return bool(NEXT_NUMBER.match(after) or ROMAN.fullmatch(following))
    return False


def is_entry(word: str, table: frozenset[str], is_lower: bool) -> bool:
    """Whether a table holds a word, or the one that a text in lower case, or in capitals, writes so."""
    is_other_case = is_lower or word.isupper()
    return word in table or word.lower() in table or (is_other_case and word.capitalize() in table)


def is_ordinal(words: list[str], following: str, begins_next: bool) -> bool:
    """Whether the last of the words, a number, is an ordinal in German, or the day of a month."""
    is_date = following.lower() in MONTHS_AFTER_ORDINALS or following.startswith("Jahrhundert")
    if is_date and len(words[-1]) <= 2:
        return True
    before = words[-2].lower() if words[-3:-2] != ["I"] else ""  # "I am 12. Kim is 9."
    return before in BEFORE_ORDINALS and len(words[-1]) <= 3 and following[:1].isupper() and not begins_next
