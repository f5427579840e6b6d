import re
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.generation.numbers import given_values, has_decimal_comma, value_of_digits, written


def is_held(text, source):
    """Whether a source holds the last number, date or time of a text."""
    places = list(written(text, has_decimal_comma(text)))
    widest = max(places, key=lambda each: (each.end - each.start, each.end))
    held = given_values([source])
    return any(each.said & held for each in places if (each.start, each.end) == (widest.start, widest.end))


@pytest.mark.parametrize(
    ("digits", "comma", "number"),
    [
        ("1,250", False, 1250), ("1,250", True, "1.25"), ("1.250", True, 1250), ("1.250", False, "1.25"),
        ("1,250.00", True, 1250), ("1.250,00", False, 1250), ("12,50", False, "12.5"), ("3.0", True, 3),
        (".5", False, "0.5"), ("0,125", False, "0.125"), ("1,000,000", True, 10**6),
        ("1,34,567", False, 134_567),
        ("1 250", False, 1250), ("1’250.5", False, "1250.5"), ("٣٫٥", False, "3.5"), ("१२", False, 12),
        ("1.2.3", False, None), ("12:30", False, None), ("1,23,4", False, None), ("9" * 5_000, False, None),
    ],
)  # fmt: skip
def test_digits_are_read_by_their_marks(digits, comma, number):
    assert value_of_digits(digits, comma) == (None if number is None else Fraction(number))


SAME = """
1250 = $1,250.00 a year; 1,250 = Es kostet 1.250 Euro und 12,50 Euro Pfand.; 1 250 = 1250; 3.0 % = 3 %
0.5 = ½; 0.5 = 1/2; 1.5 = 1½; 10² = 10^2; 1.2.3 = version 1.2.3; 75:10 = 75:10; 3rd = third
12 = twelve; twelve = 12; 12 = a dozen; 21 = twenty-one; 25 = fünfundzwanzig; 35 = treinta y cinco
250 = two hundred and fifty; 1200000 = one million two hundred thousand; 7 million = 7,000,000
7,000,000 = 7 Mio. Euro; $1.2m = 1,200,000; 700万 = 7 million; 7 million = 7 | in millions; 7 = 7 million
5 May 2021 = 2021-05-05; 2021-05-05 = May 5th, 2021
5. Mai 2021 = 05.05.2021
2021年5月5日 = 5 de mayo de 2021; in May 2021 = 5 May 2021; 5 May = on 2021-05-05; 6 May 2021 = 5/6/2021
5 June 2021 = 5/6/2021
9:00 = 9 a.m.; 9 p.m. = 21:00; 9.30 Uhr = 9:30; 12 p.m. = noon; 9 Uhr = 9 o'clock
19:30 = half past seven in the evening; 8:45 = quarter to nine; five o'clock = 17:00; ten at night = 22:00
1870 = MDCCCLXX; II = 2; 1994 = MCMXCIV; 2.5 = two and a half; 2500000 = two and a half million
40 % = 0.4; 0.4 = 40 percent; 3/5/24 = 3 May 2024
"""
OTHER = """
1250 = $1,251.00; 1250 = 12.50; 12.5 = 112.5; 1,250 = 1.25; 0.5 = 5; 1.2.3 = 1.2.4
1.250 = It is 1250 and a half.
12 = thirteen; 12 = one, two; 3 = one two; 21 = twenty; 7 million = 7 billion; 7 million = 7 thousand
5 May 2021 = 2021-05-06; 5 May 2021 = in May 2021; 5.6.2021 = 6 May 2021; 9:00 = 9 p.m.; 9 a.m. = 9:30
19:30 = half past seven in the morning; 40 % = 0.5; 2 = I am; 1500 = MD; 40 % = 40 million
"""


def sides(equations):
    """The text and the source of each equation."""
    return [each.split(" = ") for each in re.split("; |\n", equations) if each]


@pytest.mark.parametrize(
    ("text", "source", "held"),
    [*((*each, True) for each in sides(SAME)), *((*each, False) for each in sides(OTHER))],
)
def test_values_are_compared_not_spellings(text, source, held):
    assert is_held(text, source) is held


WORDS = {7: "seven", 12: "twelve", 40: "forty", 365: "three hundred and sixty-five", 5_000: "five thousand"}
NUMBERS = st.one_of(st.integers(0, 10**7), st.sampled_from(sorted(WORDS)))


def spellings(number):
    """Ways to write a number in an English text."""
    yield from (
        str(number),
        f"{number:,}",
        f"${number:,}.00",
        f"{number:,}".replace(",", "\u202f"),
        f"{number}.0",
    )
    if number in WORDS:
        yield WORDS[number]
    if number and number % 1_000 == 0:
        yield f"{number // 1_000} thousand"
        yield f"{number / 1_000_000:g} million" if number >= 100_000 else f"{number // 1_000}k"


@given(NUMBERS, NUMBERS, st.data())
def test_a_number_is_held_by_a_source_that_writes_it_in_any_way_and_by_no_other(one, other, data):
    text = f"It is {data.draw(st.sampled_from(list(spellings(one))))}"
    source = f"There are {data.draw(st.sampled_from(list(spellings(other))))} of them."
    n_thousands, thousands = (min(one, other), max(one, other)) if one != other else (0, 1)
    is_without_scale = n_thousands and thousands in {n_thousands * 10**3, n_thousands * 10**6}
    assert is_held(text, source) is (one == other) or is_without_scale
