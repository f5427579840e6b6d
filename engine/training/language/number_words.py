"""Whole numbers written in English and in Spanish words."""

from engine.errors import InputError

LARGEST = 999_999  # the largest number that has words here

ENGLISH = (  # noqa: SIM905
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen"
).split()
ENGLISH_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
SPANISH = (  # noqa: SIM905
    "cero uno dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince dieciséis "
    "diecisiete dieciocho diecinueve veinte veintiuno veintidós veintitrés veinticuatro veinticinco "
    "veintiséis veintisiete veintiocho veintinueve"
).split()
SPANISH_TENS = ["treinta", "cuarenta", "cincuenta", "sesenta", "setenta", "ochenta", "noventa"]
SPANISH_HUNDREDS = (  # noqa: SIM905
    "ciento doscientos trescientos cuatrocientos quinientos seiscientos setecientos ochocientos novecientos"
).split()
SHORT = {"uno": "un", "veintiuno": "veintiún"}  # before a noun, here before "mil"
ENGLISH_WORDS = (*ENGLISH, *ENGLISH_TENS, "hundred", "thousand", "and")
SPANISH_WORDS = (*SPANISH, *SPANISH_TENS, *SPANISH_HUNDREDS, *SHORT.values(), "cien", "mil", "y")


def english(n: int) -> str:
    """Number in English words, with the British "and": ``205 -> "two hundred and five"``.

    Raises
    ------
    InputError
        If ``n`` is not between 0 and `LARGEST`.
    """
    check_number(n)
    if n < 20:
        return ENGLISH[n]
    if n < 100:
        tens, ones = divmod(n, 10)
        return ENGLISH_TENS[tens - 2] + (f"-{ENGLISH[ones]}" if ones else "")
    if n < 1000:
        hundreds, rest = divmod(n, 100)
        return f"{ENGLISH[hundreds]} hundred" + (f" and {english(rest)}" if rest else "")
    thousands, rest = divmod(n, 1000)
    between = " and " if rest < 100 else " "
    return f"{english(thousands)} thousand" + (f"{between}{english(rest)}" if rest else "")


def spanish(n: int) -> str:
    """Number in Spanish words: ``21_031 -> "veintiún mil treinta y uno"``.

    Raises
    ------
    InputError
        If ``n`` is not between 0 and `LARGEST`.
    """
    check_number(n)
    if n < 30:
        return SPANISH[n]
    if n < 100:
        tens, ones = divmod(n, 10)
        return SPANISH_TENS[tens - 3] + (f" y {SPANISH[ones]}" if ones else "")
    if n == 100:
        return "cien"
    if n < 1000:
        hundreds, rest = divmod(n, 100)
        return SPANISH_HUNDREDS[hundreds - 1] + (f" {spanish(rest)}" if rest else "")
    thousands, rest = divmod(n, 1000)
    return spanish_thousands(thousands) + (f" {spanish(rest)}" if rest else "")


def spanish_thousands(n: int) -> str:
    """``n`` thousand: 1 gives just "mil", and a final "uno" is shortened: ``31 -> "treinta y un mil"``."""
    if n == 1:
        return "mil"
    *before, last = spanish(n).split()
    return " ".join([*before, SHORT.get(last, last), "mil"])


def check_number(n: int) -> None:
    """Raise `InputError` unless a number is between 0 and `LARGEST`."""
    if not 0 <= n <= LARGEST:
        raise InputError(f"{n:,} is not between 0 and {LARGEST:,}: give a whole number in this range")
