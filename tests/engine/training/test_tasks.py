from datetime import date

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import InputError
from engine.training.language.number_words import LARGEST, SPANISH_WORDS, english, spanish
from engine.training.language.tasks import (
    BOS,
    EOS,
    MAX_TOKENS,
    OWN_WORDS,
    PAD,
    SPECIAL,
    Pair,
    batch,
    date_formats,
    date_task,
    draw_pairs,
    is_held_out,
    number_task,
)

# From the tables of cardinals in the Diccionario panhispánico de dudas (RAE), "cardinales".
SPANISH = {
    0: "cero",
    1: "uno",
    15: "quince",
    16: "dieciséis",
    20: "veinte",
    21: "veintiuno",
    22: "veintidós",
    23: "veintitrés",
    26: "veintiséis",
    29: "veintinueve",
    30: "treinta",
    31: "treinta y uno",
    45: "cuarenta y cinco",
    99: "noventa y nueve",
    100: "cien",
    101: "ciento uno",
    121: "ciento veintiuno",
    200: "doscientos",
    205: "doscientos cinco",
    300: "trescientos",
    400: "cuatrocientos",
    500: "quinientos",
    600: "seiscientos",
    700: "setecientos",
    800: "ochocientos",
    900: "novecientos",
    999: "novecientos noventa y nueve",
    1000: "mil",
    1001: "mil uno",
    1100: "mil cien",
    1999: "mil novecientos noventa y nueve",
    2000: "dos mil",
    11_000: "once mil",
    21_000: "veintiún mil",
    21_021: "veintiún mil veintiuno",
    31_000: "treinta y un mil",
    41_031: "cuarenta y un mil treinta y uno",
    100_000: "cien mil",
    101_000: "ciento un mil",
    121_000: "ciento veintiún mil",
    200_000: "doscientos mil",
    501_001: "quinientos un mil uno",
    700_900: "setecientos mil novecientos",
    999_999: "novecientos noventa y nueve mil novecientos noventa y nueve",
}
ENGLISH = {
    0: "zero",
    8: "eight",
    12: "twelve",
    13: "thirteen",
    15: "fifteen",
    18: "eighteen",
    20: "twenty",
    21: "twenty-one",
    40: "forty",
    50: "fifty",
    80: "eighty",
    99: "ninety-nine",
    100: "one hundred",
    101: "one hundred and one",
    205: "two hundred and five",
    342: "three hundred and forty-two",
    1000: "one thousand",
    1001: "one thousand and one",
    1100: "one thousand one hundred",
    2024: "two thousand and twenty-four",
    12_345: "twelve thousand three hundred and forty-five",
    100_000: "one hundred thousand",
    200_005: "two hundred thousand and five",
    999_999: "nine hundred and ninety-nine thousand nine hundred and ninety-nine",
}
NUMBERS, DATES = number_task(), date_task()


@pytest.mark.parametrize(("words_of", "golden"), [(spanish, SPANISH), (english, ENGLISH)])
def test_numbers_are_written_as_the_language_writes_them(words_of, golden):
    assert {n: words_of(n) for n in golden} == golden


@pytest.mark.parametrize("words_of", [english, spanish])
def test_no_two_numbers_have_the_same_words(words_of):
    numbers = [*range(2200), *range(20_000, 32_000, 7), *range(0, LARGEST + 1, 97)]
    assert len({words_of(n) for n in numbers}) == len(set(numbers))


@given(st.integers(0, 999), st.integers(0, 999))
def test_thousands_and_the_rest_are_written_one_after_the_other(thousands, rest):
    words = spanish(1000 * thousands + rest).split(" mil ")
    if thousands > 1 and rest:
        assert words == [spanish(1000 * thousands).removesuffix(" mil"), spanish(rest)]
    assert ("mil" in spanish(1000 * thousands + rest).split()) == (thousands > 0)


@pytest.mark.parametrize("n", [-1, LARGEST + 1])
@pytest.mark.parametrize("words_of", [english, spanish])
def test_numbers_without_words_are_refused(words_of, n):
    with pytest.raises(InputError, match="is not between 0 and 999,999"):
        words_of(n)


def test_a_day_is_written_in_every_format():
    assert date_formats(date(2024, 3, 5)) == (
        "March 5, 2024",
        "5 March 2024",
        "Mar 5, 2024",
        "5 Mar 2024",
        "05/03/2024",
        "5.3.2024",
    )


@pytest.mark.parametrize("task", [NUMBERS, DATES, number_task(99)], ids=["numbers", "dates", "small"])
def test_every_pair_fits_the_vocabulary_and_the_positions_and_comes_back(task):
    assert task.words[:3] == SPECIAL
    assert len(set(task.words)) == len(task.words)
    pairs = draw_pairs(task, np.random.default_rng(0), 500) + draw_pairs(
        task, np.random.default_rng(1), 50, True
    )
    source, target = batch(task, pairs)
    assert max(source.shape[1], target.shape[1]) <= MAX_TOKENS
    assert (target[:, 0] == SPECIAL.index(BOS)).all()
    assert ((source == SPECIAL.index(EOS)).sum(axis=1) == 1).all()
    for pair, ids in zip(pairs, target.tolist(), strict=True):
        assert task.text(ids[1:]) == pair.target


def test_a_batch_is_filled_up_with_padding():
    source, target = batch(NUMBERS, [Pair(english(n), spanish(n)) for n in (2, 131)])
    words = [[NUMBERS.words[token] for token in row] for row in (*source, *target)]
    assert words == [
        ["two", EOS, PAD, PAD, PAD, PAD],
        ["one", "hundred", "and", "thirty", "one", EOS],
        [BOS, "dos", EOS, PAD, PAD, PAD],
        [BOS, "ciento", "treinta", "y", "uno", EOS],
    ]


def drawn_keys(task, n, held_out):
    """The numbers, or days, of drawn pairs, read back from their targets by other means."""
    targets = [pair.target for pair in draw_pairs(task, np.random.default_rng(3), n, held_out)]
    if task is DATES:
        return [date.fromisoformat(target).toordinal() for target in targets]
    number = {spanish(n): n for n in range(10_000)}
    return [number[target] for target in targets]


@pytest.mark.parametrize("task", [number_task(9999), DATES], ids=["numbers", "dates"])
def test_training_never_draws_what_is_held_out_and_an_examination_nothing_else(task):
    trained, examined = set(drawn_keys(task, 3000, False)), set(drawn_keys(task, 300, True))
    assert not trained & examined
    assert not any(map(is_held_out, trained))
    assert all(map(is_held_out, examined))


def test_a_tenth_is_held_out_of_every_range_but_numbers_of_one_word():
    assert not any(map(is_held_out, range(OWN_WORDS)))
    for low, high in ((100, 1000), (1000, 10_000), (600_000, 620_000), (730_000, 760_000)):
        assert abs(np.mean([is_held_out(key) for key in range(low, high)]) - 0.1) < 0.03
    # Every word of a target is in some number that is not held out.
    trained = (n for n in range(42_000) if not is_held_out(n))
    assert {word for n in trained for word in spanish(n).split()} == set(SPANISH_WORDS)


def test_the_same_seed_draws_the_same_pairs():
    for task in (NUMBERS, DATES):
        first, again, other = (draw_pairs(task, np.random.default_rng(seed), 20) for seed in (5, 5, 6))
        assert first == again != other


def test_all_lengths_of_numbers_are_drawn():
    pairs = draw_pairs(NUMBERS, np.random.default_rng(0), 2000)
    lengths = {len(pair.target.split()) for pair in pairs}
    assert lengths == set(range(1, 10))


@pytest.mark.parametrize("text", ["1,205", "1205", " 1 205 ", "One thousand two hundred and five"])
def test_digits_are_read_as_words(text):
    assert NUMBERS.split(text) == ["one", "thousand", "two", "hundred", "and", "five"]


@pytest.mark.parametrize(
    ("task", "text", "words"),
    [
        (
            NUMBERS,
            "two hundred and fivé",
            "“fivé” is not in the vocabulary: write it like “two hundred and five”",
        ),
        (NUMBERS, "", "0 tokens, not 1 to 14"),
        (NUMBERS, "one " * 15, "15 tokens, not 1 to 14"),
        (NUMBERS, "1000000", "1,000,000 is not between 0 and 999,999"),
        (NUMBERS, "1.5", "“1.5” is not in the vocabulary"),
        (NUMBERS, "-5", "“5” is not in the vocabulary"),
        (NUMBERS, "<pad>", "“<pad>” is not in the vocabulary"),
        (DATES, "5 Marzo 2024", "“marzo” is not in the vocabulary: write it like “March 5, 2024”"),
        (DATES, "<end>", "“<” is not in the vocabulary"),
        (NUMBERS, "x" * 10_000, f"“{'x' * 40}” is"),
    ],
)
def test_what_cannot_be_read_is_told_in_a_line(task, text, words):
    with pytest.raises(InputError) as error:
        task.ids(text)
    assert words in str(error.value)
    assert len(str(error.value)) < 200


@given(st.integers(0, LARGEST))
def test_the_number_that_words_or_digits_are_is_found_again(n):
    assert NUMBERS.key_of(english(n)) == NUMBERS.key_of(str(n)) == NUMBERS.key_of(f"{n:,}") == n


@given(st.dates(date(1900, 1, 1), date(2099, 12, 31)))
def test_a_day_is_found_again_in_every_format(day):
    assert {DATES.key_of(text) for text in date_formats(day)} == {day.toordinal()}


@pytest.mark.parametrize(
    ("task", "text"),
    [
        (NUMBERS, "hundred and five"),
        (NUMBERS, "one two"),
        (NUMBERS, "two hundred five"),
        (NUMBERS, "dos"),
        (NUMBERS, "nine hundred thousand thousand thousand"),
        (DATES, "February 30, 2024"),
        (DATES, "March 5, 1492"),
        (DATES, "soon"),
    ],
)
def test_what_is_no_number_or_day_has_no_key(task, text):
    assert task.key_of(text) is None


@given(st.text(max_size=60))
def test_any_text_gives_ids_or_a_reason(text):
    for task in (NUMBERS, DATES):
        try:
            ids = task.ids(text)
        except InputError:
            continue
        assert task.key_of(text) is None or len(ids) > 0
        assert all(len(SPECIAL) <= token < len(task.words) for token in ids)


def test_text_ends_at_the_end_token_and_needs_none():
    ids = NUMBERS.ids("doscientos cinco")
    assert NUMBERS.text([*ids, 2, 0, 0]) == NUMBERS.text(ids) == "doscientos cinco"
    assert DATES.text(DATES.ids("2024-03-05")) == "2024-03-05"
