"""Numbers, dates and times of a text by their values, however they are written.

"$1,250.00", "1250", "1 250" and, in German, "1.250" are one number; so are "7 million" and "7,000,000",
"twelve" and "12", "½" and "0.5". "5 May 2021" is the date 2021-05-05, "9 a.m." the time 9:00.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

from ..documents.language import is_english
from ..installed import rows_of

# ("number", 1250), ("date", 2021, 5, 5), ("time", 540): what is written, by its value.
Value = tuple[str | int | Fraction, ...]


@dataclass(frozen=True)
class Written:
    """A number, date or time at ``[start, end)`` of a text.

    It is written in another text if one of its ``said`` is among the ``given`` there. They differ: a source's
    "5 May 2021" gives the answer "in May 2021", but not the other way round.
    """

    start: int
    end: int
    said: frozenset[Value]
    given: frozenset[Value]


def values_by_word(kind: str) -> dict[str, int]:
    """Return the value of each word of a kind in ``data/number_words.csv``, which has seven languages."""
    rows = [row for row in rows_of("number_words.csv") if row["kind"] == kind]
    return {word: int(row["value"]) for row in rows for word in row["words"].split()}


def either(words: Iterable[str]) -> str:
    """Return a pattern for one of several words."""
    return f"(?:{'|'.join(sorted(words, key=len, reverse=True))})"


SMALL_VALUES, TENS_VALUES = values_by_word("small"), values_by_word("tens")
SCALE_VALUES, MONTH_NUMBERS = values_by_word("scale"), values_by_word("month")
WORD_VALUES = SMALL_VALUES | TENS_VALUES | SCALE_VALUES
WORD = either(WORD_VALUES)
LOW, HIGH = either(SMALL_VALUES), either(TENS_VALUES)
HUNDRED = either(word for word, value in SCALE_VALUES.items() if value == 100)
SCALE = either(word for word, value in SCALE_VALUES.items() if value > 100)
# "fünfundzwanzig", "treinta y cinco"; "two hundred and fifty"; "seven million two hundred thousand".
TO_99 = rf"(?:{LOW}und{HIGH}|{HIGH}(?:[ -]?(?:y |e |et )?{LOW})?|{LOW})"
TO_999 = rf"(?:(?:{TO_99}[ -]?)?{HUNDRED}(?:[ -]?(?:and |und )?{TO_99})?|{TO_99})"
# The first word is looked for first, which makes the search faster.
IN_WORDS = (
    rf"(?<!\w)(?={WORD})(?:{TO_999}[ -]?{SCALE},? (?:and )?)*{TO_999}(?: and a half)?(?:[ -]?{SCALE})?(?!\w)"
)

SPACE = "[ \u00a0\u2009\u202f]"
GROUPED = re.compile(rf"(?<![\d.,])\d{{1,3}}(?:{SPACE}\d{{3}}|['’]\d{{3}}){{1,6}}(?:[.,]\d+)?(?![.,]?\d)")
PERCENT = "%|per ?cent(?!\\w)|prozent(?!\\w)|pour cent(?!\\w)|por ciento(?!\\w)"
SCALED = rf"(?P<scale>{SPACE}?-?(?:{SCALE}(?!\w)|[千万萬億亿]|{PERCENT}))?"
# With a fraction after the digits ("1½"); or digits set high, fractions and Roman numerals only.
DIGITS = re.compile(
    rf"(?P<digits>\d+(?:[.,:٫٬]\d+)*|(?<![\d.,])[.,]\d+)(?P<fraction>[¼-¾⅐-⅞])?{SCALED}"
    r"|(?P<numeral>[²³¹⁰⁴-⁹¼-¾⅐-ↈ]{1,20})",
    re.IGNORECASE,
)
MONEY = re.compile(r"(?<=[$€£¥₹])(?P<digits>\d+(?:[.,]\d+)*)(?P<scale>[mb])(?!\w)", re.IGNORECASE)  # "$1.2m"
ROMAN = re.compile(  # of two letters only I, V and X, as "CD" and "MD" are other words
    r"(?<!\w)(?=[MDCLXVI]{3}|[IVX]{2})M{0,3}(?:CM|CD|D?C{0,3})(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})(?!\w)"
)
ROMAN_VALUES = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}
RATIO = re.compile(r"(?<![\d/])(\d{1,9})/(\d{1,9})(?![\d/])")

DAY, YEAR = r"(?<![\d.,])(?P<day>\d{1,2})(?!\d)(?:st|nd|rd|th|er|º|\.)?", r"(?P<year>\d{4})(?!\d)"
SHORT_YEAR = r"(?P<year>(?:\d\d)?\d\d)(?![\d.]*\d)"
MONTH = rf"(?<!\w)(?P<month>{either(MONTH_NUMBERS)})(?!\w)\.?"
DATES = [
    re.compile(rf"{DAY} ?(?:of |de )?{MONTH}(?:,? (?:de |del )?{YEAR})?", re.IGNORECASE),
    re.compile(rf"{MONTH} {DAY}(?:,? {YEAR})?", re.IGNORECASE),
    re.compile(rf"{MONTH},? (?:de |del )?{YEAR}", re.IGNORECASE),
    re.compile(rf"(?<!\d){YEAR}([-/.])(?P<number>\d{{1,2}})\2(?P<day>\d{{1,2}})(?!\d)"),
    re.compile(r"(?<!\d)(?P<year>\d{4})年(?P<number>\d{1,2})月(?:(?P<day>\d{1,2})日)?"),
    re.compile(rf"(?<![\d.])(?P<day>\d{{1,2}})([./-])(?P<number>\d{{1,2}})\2{SHORT_YEAR}"),
    re.compile(rf"(?<!\d)(?P<number>\d{{1,2}})/(?P<day>\d{{1,2}})/{SHORT_YEAR}"),  # in the United States
]
TIME = re.compile(
    r"(?<![\d.,:])(?P<hour>2[0-4]|[01]?\d)(?:(?P<mark>[:.h])(?P<minute>[0-5]\d)(?::[0-5]\d)?)?(?![.,:]?\d)"
    r"(?: ?(?P<half>[ap])\.? ?m\b\.?| ?(?P<clock>uhr|o['’]clock|h|heures?|uur)\b)?",
    re.IGNORECASE,
)
# "half past seven in the evening", "five o'clock", "ten at night"; of any half of the day without it.
CLOCK = (
    rf"(?<!\w)(?:(?P<part>half|quarter|{TO_99}|\d{{1,2}}) (?P<side>past|to) )?(?P<hour>{LOW}|1?\d)"
    r"(?P<clock> ?o['’]clock)?(?: in the (?P<day>morning|afternoon|evening)| at (?P<night>night))?(?![\w:])"
)
CLOCK_PARTS = {"half": 30, "quarter": 15}  # minutes
LONGEST = 40  # characters of a number; what is longer is a code
NOON = re.compile(r"\b(?:noon|midday|mittag|midi|mediodía|mezzogiorno)\b", re.IGNORECASE)


@cache
def in_words() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return the patterns of numbers and times in words, compiled at the first use, which takes 50 ms."""
    return re.compile(IN_WORDS, re.IGNORECASE), re.compile(CLOCK, re.IGNORECASE)


def given_values(texts: Iterable[str]) -> frozenset[Value]:
    """Return the values of what texts hold, in every form that may be said of it."""
    return frozenset(
        value for text in texts for each in written(text, has_decimal_comma(text)) for value in each.given
    )


def has_decimal_comma(text: str) -> bool:
    """Whether a text writes 1,5 for one and a half, by its numbers, or else by its language."""
    commas = len(re.findall(r"\d,\d{1,2}(?!\d)|\d\.\d{3},\d", text))
    points = len(re.findall(r"\d\.\d{1,2}(?![.\d])|\d,\d{3}(?!\d)", text))
    is_of_europe = re.search("[a-zA-ZͰ-ӿ]", text)  # Latin, Greek and Cyrillic letters
    if is_english(text) or not is_of_europe:
        return commas > points
    return commas > 0 or not re.search(r"\d,\d{3}(?!\d)", text)


def written(text: str, decimal_comma: bool) -> Iterator[Written]:
    """Yield the numbers, dates and times of a text, those within others too."""
    for match in (*DIGITS.finditer(text), *GROUPED.finditer(text), *MONEY.finditer(text)):
        yield number_of(match, decimal_comma)
    for match in RATIO.finditer(text):
        if int(match[2]):
            yield plain_number(match, Fraction(int(match[1]), int(match[2])))
    for match in ROMAN.finditer(text):
        yield plain_number(match, roman_number(match.group()))
    numbers, clocks = in_words()
    for match in numbers.finditer(text):
        yield plain_number(match, number_in_words(match.group()))
    for match in clocks.finditer(text):
        if any(match[name] for name in ("part", "clock", "day", "night")):
            yield time_in_words(match)
    for pattern in DATES:
        for match in pattern.finditer(text):
            yield date_of(match)
    for match in TIME.finditer(text):
        if match["mark"] in {":", "h"} or match["half"] or match["clock"]:
            yield time_of(match)
    for match in NOON.finditer(text):
        yield exactly(match, ("time", 12 * 60))


def exactly(match: re.Match[str], *values: Value) -> Written:
    """Return what is written, which says all that it gives."""
    return Written(*match.span(), frozenset(values), frozenset(values))


def plain_number(match: re.Match[str], number: Fraction) -> Written:
    """Return a number without a scale; another text may write it with one, or leave its scale out."""
    said: frozenset[Value] = frozenset({("number", number), ("of a scaled", number)})
    return Written(*match.span(), said, frozenset({("number", number), ("unscaled", number)}))


def number_of(match: re.Match[str], decimal_comma: bool) -> Written:
    """Return a number in digits; "7 million" may be said as 7, the cell of a table in millions, too."""
    parts = match.groupdict()
    if parts.get("numeral"):
        return plain_number(match, value_of_numeral(parts["numeral"]))
    number = value_of_digits(parts.get("digits") or match.group(), decimal_comma)
    if number is None:
        return exactly(match, ("text", match.group()))
    if parts.get("fraction"):
        number += value_of_numeral(parts["fraction"])
    if not parts.get("scale"):
        return plain_number(match, number)
    scale = re.sub(r"[\s-]", "", parts["scale"]).lower()
    # What is no word of the table is a sign or a word for percent.
    full = number * {"m": 10**6, "b": 10**9}.get(scale, SCALE_VALUES.get(scale, Fraction(1, 100)))
    said: frozenset[Value] = frozenset({("number", full), ("unscaled", number)})
    return Written(*match.span(), said, frozenset({("number", full), ("of a scaled", number)}))


def value_of_digits(digits: str, decimal_comma: bool) -> Fraction | None:
    """Return the number of digits with marks of thousands and decimals; None for a version or long code."""
    plain = "".join(str(unicodedata.decimal(each)) if each.isdecimal() else each for each in digits)
    plain = re.sub(r"[\s'’٬]", "", plain).replace("٫", ".")
    marks = set(plain) & set(".,:")
    last = max(plain.rfind("."), plain.rfind(","))
    if len(plain) > LONGEST or ":" in marks or (len(marks) == 2 and plain.count(plain[last]) > 1):
        return None
    decimal = plain[last] if marks else ""
    head, tail = plain[:last], plain[last + 1 :]
    if len(marks) == 1:
        is_group = len(tail) == 3 and 0 < len(head) <= 3 and head != "0"
        if plain.count(decimal) > 1 or (is_group and (decimal == ".") == decimal_comma):
            decimal = ""
    groups = (head if decimal else plain).replace(".", ",").split(",")
    if any(len(group) not in {2, 3} for group in groups[1:]) or (len(groups) > 1 and len(groups[-1]) != 3):
        return None
    return Fraction(f"{''.join(groups) or '0'}.{tail}" if decimal else "".join(groups))


def value_of_numeral(numeral: str) -> Fraction:
    """Return the value of digits set high, or of the last fraction or Roman numeral."""
    digits = unicodedata.normalize("NFKC", numeral)
    return (
        Fraction(digits)
        if digits.isdecimal()
        else Fraction(unicodedata.numeric(numeral[-1], 0)).limit_denominator(100_000)
    )


def roman_number(letters: str) -> Fraction:
    """``"MDCCCLXX" -> 1870``: a letter before a larger one is taken away."""
    values = [ROMAN_VALUES[letter] for letter in letters]
    return Fraction(sum(-a if a < b else a for a, b in zip(values, [*values[1:], 0], strict=True)))


def number_in_words(words: str) -> Fraction:
    """Return the value of a number in words."""
    total = below = Fraction(0)
    for word in re.findall(f"{WORD}|half", words.lower()):
        value = WORD_VALUES.get(word, Fraction(1, 2))
        if value < 100:
            below += value
        elif value == 100:
            below = max(below, Fraction(1)) * value
        else:
            total, below = total + max(below, Fraction(1)) * value, Fraction(0)
    return total + below


def time_of(match: re.Match[str]) -> Written:
    """Return a time, in minutes from midnight."""
    hour = int(match["hour"])
    if match["half"]:
        hour = hour % 12 + 12 * (match["half"].lower() == "p")
    return exactly(match, ("time", 60 * hour + int(match["minute"] or 0)))


def time_in_words(match: re.Match[str]) -> Written:
    """Return a spoken time, in both halves of the day where it does not say which."""
    part, hour = (
        CLOCK_PARTS.get(word.lower()) or int(word if word.isdecimal() else number_in_words(word))
        for word in (match["part"] or "0", match["hour"])
    )
    minutes = 60 * (hour % 12) + (-part if (match["side"] or "").lower() == "to" else part)
    is_late = (match["night"] and hour % 12 >= 6) or (match["day"] or "").lower() in {"afternoon", "evening"}
    is_early = not is_late and (match["day"] or match["night"])
    halves = (0,) if is_early else (720,) if is_late else (0, 720)
    return exactly(match, *(("time", (minutes + half) % 1440) for half in halves))


def date_of(match: re.Match[str]) -> Written:
    """Return a date, or a month with a day or a year, which a whole date gives too."""
    parts = match.groupdict()
    month = int(parts.get("number") or MONTH_NUMBERS.get(parts["month"].lower(), 0))
    year, day = int(parts.get("year") or 0), int(parts.get("day") or 0)
    year += 2000 * (0 < year < 100)
    if not 1 <= month <= 12 or day > 31:
        return exactly(match)
    if year and day:
        date: Value = ("date", year, month, day)
        return Written(
            *match.span(), frozenset({date}), frozenset({date, ("day", month, day), ("month", year, month)})
        )
    return exactly(match, ("day", month, day) if day else ("month", year, month))
