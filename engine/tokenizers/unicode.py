"""Character classes of BERT's tokenizer, independent of the Unicode version of Python.

A model depends on its tokenizer's behaviour at training time: a mark added by a later Unicode version must
not be removed because Python was updated. These are the tables that the `tokenizers` library was built with:
general categories of Unicode 8, decompositions of Unicode 9, lower case of Unicode 17.
Decompositions and combining classes of existing characters never change, and are read from `unicodedata`.
"""

import re
import unicodedata
from typing import Literal

from ..installed import rows_of

# Unicode's normalisation forms (UAX 15).
Form = Literal["NFC", "NFD", "NFKC", "NFKD"]

# Ranges of code points, in hexadecimal; the long ones are in `data/characters.csv`.
RANGES = {row["class"]: row["ranges"] for row in rows_of("characters.csv")}
WHITE_SPACE = "9-D 20 85 A0 1680 2000-200A 2028-2029 202F 205F 3000"

# As in the original BERT, including its error: the block 2B820-2CEAF starts at 2B920.
CHINESE = "3400-4DBF 4E00-9FFF F900-FAFF 20000-2A6DF 2A700-2B81F 2B920-2CEAF 2F800-2FA1F"

# Categories Cc, Cf and Co, and the replacement character FFFD.
CONTROL = RANGES["control"]

# Categories Pc, Pd, Ps, Pe, Pi, Pf and Po, and the symbols of ASCII.
PUNCTUATION = RANGES["punctuation"]

# Category Mn: accents and other marks over or under a character.
NONSPACING_MARK = RANGES["nonspacing mark"]

# Characters with a combining class that are not in NONSPACING_MARK.
OTHER_COMBINING = RANGES["other combining"]

# Their decompositions contain such a character: musical notes with their stems.
DECOMPOSED_TO_COMBINING = "1D15E-1D164 1D1BB-1D1C0"

# Characters that only later versions decompose, and those that they decompose only for compatibility.
NOT_DECOMPOSED = "105C9 105E4 11383-113C8 11938 16121-16128 16D68-16D6A"
NOT_COMPATIBLE = RANGES["not compatible"]

# Marks of later versions, and those that are letters since.
NEW_MARKS = RANGES["new marks"]
OLD_MARKS = "1CF2-1CF3"

# Capitals added after Unicode 15, and the distance to their small letters: Python 3.11 to 3.14 have only
# some of them, or none.
NEW_CAPITALS = {
    "1C89 A7CC A7CE A7D2 A7D4 A7DA": 1,
    "A7CB": 0x264 - 0xA7CB,
    "A7DC": 0x19B - 0xA7DC,
    "10D50-10D65": 0x20,
    "16EA0-16EB8": 0x1B,
}


def code_points(ranges: str) -> list[tuple[int, int]]:
    """``"9-D 20" -> [(9, 13), (32, 32)]``: first and last code point of each range."""
    spans = [text.split("-") for text in ranges.split()]
    return [(int(span[0], 16), int(span[-1], 16)) for span in spans]


def character_class(*tables: str) -> str:
    """Return the inside of a regular expression's ``[...]`` that matches the characters of the tables."""
    return "".join(rf"\U{first:08x}-\U{last:08x}" for table in tables for first, last in code_points(table))


def any_of(*tables: str) -> re.Pattern[str]:
    """Return the regular expression that matches one character of the tables."""
    return re.compile(f"[{character_class(*tables)}]")


is_white_space = any_of(WHITE_SPACE).match
is_chinese = any_of(CHINESE).match
is_control = any_of(CONTROL).match
is_nonspacing_mark = any_of(NONSPACING_MARK).match
is_combining = any_of(NONSPACING_MARK, OTHER_COMBINING).match
is_not_decomposed = any_of(NOT_DECOMPOSED).match
is_not_compatible = any_of(NOT_COMPATIBLE).match
is_new_mark = any_of(NEW_MARKS).match
is_old_mark = any_of(OLD_MARKS).match

SMALL_LETTERS = {
    chr(capital): chr(capital + distance)
    for ranges, distance in NEW_CAPITALS.items()
    for first, last in code_points(ranges)
    for capital in range(first, last + 1)
}


def decompose(character: str, form: Form = "NFD") -> str:
    """Return the canonical decomposition: a letter, then its accents; NFKD replaces variants too."""
    later = is_not_decomposed(character) or (form == "NFKD" and is_not_compatible(character))
    return character if later else unicodedata.normalize(form, character)


def composed(first: str, second: str) -> str | None:
    """Return the one character that a letter and a mark are together, None if there is none."""
    both = unicodedata.normalize("NFC", first + second)
    return both if len(both) == 1 and not is_not_decomposed(both) else None


def is_mark(character: str) -> bool:
    """Whether a character is an accent or another mark."""
    is_one = unicodedata.category(character).startswith("M") and not is_new_mark(character)
    return is_one or is_old_mark(character) is not None


def combining_class(character: str) -> int:
    """Return the canonical combining class of a mark, which orders the marks of a letter; 0 for a letter."""
    return unicodedata.combining(character) if is_combining(character) else 0


def lower_case(character: str) -> str:
    """Return the lower case of a character, which may be two characters."""
    return SMALL_LETTERS.get(character) or character.lower()
