"""Number formats of Excel (ECMA-376, part 1, 18.8.30): values as a reader of the sheet sees them."""

import operator
import re
from datetime import date, datetime, time, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any

# What stands for itself, "_)" for a gap and "*-" for a fill, a currency, and colours or conditions.
LITERAL = re.compile(r'"([^"]*)"|\\(.)|[_*].|\[\$([^\]-]*)[^\]]*\]|\[[^\]]*\]')
SECTION = re.compile(r'(?:"[^"]*"|\\.|\[[^\]]*\]|[^;])+|(?<=;)(?=;|$)|^(?=;)')
CONDITION = re.compile(r"\[([<>=]{1,2})(-?\d+(?:\.\d*)?)\]")
COMPARE = {
    "<": operator.lt, ">": operator.gt, "<=": operator.le, ">=": operator.ge, "=": operator.eq,
    "<>": operator.ne,
}  # fmt: skip
DIGITS = re.compile(r"[0#?](?:.*[0#?])?(?:/\d+)?,*")
FRACTION = re.compile(r"(?:([0#?]+) +)?[0#?]+ ?/ ?([0#?]+|\d+)")
POWER = re.compile(r"([0#?.,]+)E([+-])([0#?]+)")
SHIFT = 0xF0000  # of literal characters, so that none is taken for a digit's place
LONGEST = 200  # characters of a format
EXACT = Context(prec=1000)  # digits of the largest number, in percent of percent


def shown(value: Any, layout: str) -> str:
    """Return a value as its number format shows it, but dates in ISO 8601."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, timedelta):
        minutes, seconds = divmod(round(value.total_seconds()), 60)
        return f"{minutes // 60}:{minutes % 60:02}" + f":{seconds:02}" * ("s" in layout)
    if isinstance(value, datetime | time):
        return shown_time(value, layout.lower())
    if isinstance(value, date) or not isinstance(value, int | float):
        return str(value)
    if layout.title() == "General":
        return general(value)
    section, is_signed = section_of(layout[:LONGEST], value)
    before, places, after, n_percent = pieces_of(section)
    number = Decimal(repr(value)) * 100**n_percent
    if not number.is_finite() or not (before or places or after):
        return general(value)
    digits = digits_in(abs(number), places) if places else ""
    text = before + (digits if digits.isascii() else shifted(digits, -SHIFT)) + after
    return ("-" * (is_signed and value < 0) + " ".join(text.split())) or general(value)


def shown_time(value: datetime | time, layout: str) -> str:
    """Return a time of day, or a day with its time where it has one."""
    day = value if isinstance(value, datetime) else datetime.combine(date(2000, 1, 1), value)
    is_later = day.microsecond >= 500_000 and day < datetime(9999, 12, 31)
    day = day.replace(microsecond=0) + timedelta(seconds=is_later)
    precision = "seconds" if "s" in layout and day.second else "minutes"
    if isinstance(value, time):
        return day.time().isoformat(precision) if "h" in layout else f"{day.minute:02}:{day.second:02}"
    return day.isoformat(" ", precision) if day.time() != time() else day.date().isoformat()


@lru_cache
def pieces_of(section: str) -> tuple[str, str, str, int]:
    """Return the text before a number's digits, their places, the text after them, and percent signs.

    All are empty in a part of a format that shows the value as it is.
    """
    plain = LITERAL.sub(lambda found: shifted(next(filter(None, found.groups()), ""), SHIFT), section)
    places = DIGITS.search(plain)
    if not (places or plain.strip()) or "general" in plain.lower() or "@" in plain:
        return "", "", "", 0
    start, end = places.span() if places else (len(plain), len(plain))
    return shifted(plain[:start], -SHIFT), plain[start:end], shifted(plain[end:], -SHIFT), plain.count("%")


def shifted(text: str, by: int) -> str:
    """Return a text whose literal characters have no meaning in a format, or again their own."""
    return "".join(chr(ord(sign) + by) if (ord(sign) < SHIFT) == (by > 0) else sign for sign in text)


def general(value: float) -> str:
    """Return a number without a format."""
    return str(int(value)) if float(value).is_integer() else f"{value:.15g}"


@lru_cache
def sections_of(layout: str) -> tuple[list[str], list[tuple[str, str, float]]]:
    """Return the parts of a format, for numbers over 0, below, 0 and text, and those with a condition."""
    sections = SECTION.findall(layout) or [""]
    found = [(section, CONDITION.search(section)) for section in sections]
    conditions = [(section, each[1], float(each[2])) for section, each in found if each]
    return [section for section, each in found if not each] or sections, conditions


def section_of(layout: str, value: float) -> tuple[str, bool]:
    """Return the part of a format for a value, and whether it leaves the sign to be written."""
    sections, conditions = sections_of(layout)
    for section, sign, limit in conditions:
        if COMPARE.get(sign, operator.eq)(value, limit):
            return section, True
    if value < 0 and len(sections) > 1:
        return sections[1], False
    return sections[2 if value == 0 and len(sections) > 2 else 0], True


def digits_in(number: Decimal, places: str) -> str:
    """Return the digits of a number that is not negative in their places."""
    if found := FRACTION.fullmatch(places):
        return fraction(number, found)
    if found := POWER.fullmatch(places):
        exponent = number.adjusted() if number else 0
        sign = "-" if exponent < 0 else "+" * (found[2] == "+")
        mantissa = digits_in(number.scaleb(-exponent), found[1])
        return f"{mantissa}E{sign}{abs(exponent):0{len(found[3])}}"
    scale = len(places) - len(places.rstrip(","))
    whole, _, decimals = places.rstrip(",").partition(".")
    decimals = re.sub(r"[^0#?]", "", decimals)
    number = number.scaleb(-3 * scale).quantize(Decimal(1).scaleb(-len(decimals)), ROUND_HALF_UP, EXACT)
    before, _, after = f"{number:f}".partition(".")
    after = after[: decimals.rfind("0") + 1] + after[decimals.rfind("0") + 1 :].rstrip("0")
    least = len(re.findall("[0#?]", whole[whole.index("0") :])) if "0" in whole else 0
    before = before.lstrip("0").rjust(least, "0")
    if re.search(r"[0#?],[0#?]", whole):
        before = f"{int(before or 0):0{least + max(least - 1, 0) // 3},}" if before else ""
    elif re.search(r"[^0#?,]", whole):
        before = in_mask(before, whole)
    return f"{before}.{after}" if after else before


def fraction(number: Decimal, layout: re.Match[str]) -> str:
    """Return a number as a fraction, after its whole part if the format has one."""
    below = layout[2]
    part = Fraction(number) % 1 if layout[1] else Fraction(number)
    if below.isdecimal() and below.strip("0"):
        above, below = round(part * int(below)), int(below)
    else:
        above, below = part.limit_denominator(10 ** len(below) - 1).as_integer_ratio()
    whole = int(number) if layout[1] else 0
    whole, above = (whole + 1, 0) if layout[1] and above == below else (whole, above)
    return " ".join(
        filter(None, (str(whole) if whole or not above else "", f"{above}/{below}" if above else ""))
    )


def in_mask(digits: str, mask: str) -> str:
    """Return digits in the places of a mask, ``(000) 000-0000``, filled from the right."""
    written: list[str] = []
    left = list(digits)
    for sign in reversed(mask):
        if sign not in "0#?":
            written.append(sign)
        elif left:
            written.append(left.pop())
    return "".join([*left, *reversed(written)])
