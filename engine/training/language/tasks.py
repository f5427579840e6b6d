"""Two generated translation tasks: numbers in words, and formats of a date.

Each pair belongs to a whole number, its key: the number itself, or the day. A tenth of the keys, chosen by
a hash, is held out: training never draws them.
"""

import contextlib
import re
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime

import numpy as np

from engine.errors import InputError
from engine.layers.tracing import Array
from engine.training.language.number_words import (
    ENGLISH,
    ENGLISH_TENS,
    ENGLISH_WORDS,
    LARGEST,
    SPANISH_WORDS,
    english,
    spanish,
)

PAD, BOS, EOS = "<pad>", "<start>", "<end>"
SPECIAL = (PAD, BOS, EOS)  # their ids are 0, 1 and 2, as `Seq2SeqConfig` has them
MAX_TOKENS = 16  # no source or target of a task is longer, its start and end included
HELD_OUT = 10  # one key in ten is held out
OWN_WORDS = 30  # numbers below have a Spanish word of their own, which no other number teaches
WORTH = {word: n for n, word in enumerate(ENGLISH)} | {word: 10 * n for n, word in enumerate(ENGLISH_TENS, 2)}
MONTHS = ("January February March April May June July August September October November December").split()  # noqa: SIM905
FIRST_DAY, LAST_DAY = date(1900, 1, 1).toordinal(), date(2099, 12, 31).toordinal()


@dataclass(frozen=True)
class Pair:
    """A source text and its only correct translation."""

    source: str
    target: str


@dataclass(frozen=True)
class Task:
    """A translation task.

    Attributes
    ----------
    name
        Title.
    words
        Vocabulary of both sides: `SPECIAL`, then all tokens; a token's id is its place.
    draw_key
        Draws a key.
    pair
        Makes a pair of a key, in a randomly drawn format if there are several.
    split
        Tokenizes a text of either side; the tokens need not be in the vocabulary.
    key_of
        Returns the key of a source in any of its formats, or None for another text.
    joiner
        Separator of the tokens of a target.
    example
        A source to try.
    """

    name: str
    words: tuple[str, ...]
    draw_key: Callable[[np.random.Generator], int]
    pair: Callable[[int, np.random.Generator], Pair]
    split: Callable[[str], list[str]]
    key_of: Callable[[str], int | None]
    joiner: str
    example: str

    def ids(self, text: str) -> list[int]:
        """Ids of a text's tokens.

        Raises
        ------
        InputError
            If the text is empty, too long, or has a token that is not in the vocabulary.
        """
        tokens = self.split(text)
        known = self.words[len(SPECIAL) :]
        if unknown := [token for token in tokens if token not in known]:
            raise InputError(f"“{unknown[0][:40]}” is not in the vocabulary: write it like “{self.example}”")
        if not 1 <= len(tokens) <= MAX_TOKENS - 2:
            raise InputError(
                f"the text has {len(tokens)} tokens, not 1 to {MAX_TOKENS - 2}: write it like "
                f"“{self.example}”"
            )
        return [self.words.index(token) for token in tokens]

    def text(self, ids: Sequence[int]) -> str:
        """Target text of some ids, up to the end token."""
        tokens = [self.words[token] for token in ids]
        return self.joiner.join(tokens[: tokens.index(EOS) if EOS in tokens else None])


def is_held_out(key: int) -> bool:
    """Whether a key is held out of training; those below `OWN_WORDS` never are."""
    return key >= OWN_WORDS and zlib.crc32(str(key).encode()) % HELD_OUT == 0


def draw_pairs(task: Task, rng: np.random.Generator, n: int, held_out: bool = False) -> list[Pair]:
    """Draw ``n`` pairs, either all held out or none."""
    pairs: list[Pair] = []
    while len(pairs) < n:
        key = task.draw_key(rng)
        if is_held_out(key) == held_out:
            pairs.append(task.pair(key, rng))
    return pairs


def batch(task: Task, pairs: Sequence[Pair]) -> tuple[Array, Array]:
    """Ids of sources ``(n_pairs, n_source)`` and targets ``(n_pairs, n_target)``, padded.

    A source ends with `EOS`; a target goes from `BOS` to `EOS`.
    """
    bos, eos = SPECIAL.index(BOS), SPECIAL.index(EOS)
    sources = [[*task.ids(pair.source), eos] for pair in pairs]
    targets = [[bos, *task.ids(pair.target), eos] for pair in pairs]
    return padded(sources), padded(targets)


def padded(rows: Sequence[Sequence[int]]) -> Array:
    """Rows of ids as one array ``(n_rows, n_longest)``, filled up with `PAD` at their ends."""
    ids = np.full((len(rows), max(map(len, rows))), SPECIAL.index(PAD))
    for row, values in zip(ids, rows, strict=True):
        row[: len(values)] = values
    return ids


def number_task(largest: int = LARGEST) -> Task:
    """Numbers from 0 to ``largest``, from English to Spanish words.

    Numbers of n digits are drawn in proportion to n, so that the few short ones are not rare.
    """
    bounds = [0, *(10**n for n in range(1, len(str(largest)))), largest + 1]  # 0, 10, 100, …
    weights = np.arange(1, len(bounds)) / np.arange(1, len(bounds)).sum()

    def draw_key(rng: np.random.Generator) -> int:
        n_digits = int(rng.choice(len(weights), p=weights))
        return int(rng.integers(bounds[n_digits], bounds[n_digits + 1]))

    return Task(
        name="Numbers: English words to Spanish words",
        words=(*SPECIAL, *ENGLISH_WORDS, *SPANISH_WORDS),
        draw_key=draw_key,
        pair=lambda key, rng: Pair(english(key), spanish(key)),
        split=number_tokens,
        key_of=number_of,
        joiner=" ",
        example="two hundred and five",
    )


def number_tokens(text: str) -> list[str]:
    """Words of a number; digits are written out first: ``"1,205" -> one thousand two …``."""
    if re.fullmatch(r"[0-9]{1,15}|[0-9]{1,3}([, ][0-9]{3}){1,4}", text.strip()):
        text = english(int(re.sub(r"\D", "", text)))
    return text.lower().replace("-", " ").split()


def number_of(text: str) -> int | None:
    """Return the number that English words or digits stand for; None for other texts."""
    tokens = number_tokens(text)
    total = part = 0
    for token in tokens:
        if token == "hundred":
            part *= 100
        elif token == "thousand":
            total, part = part * 1000, 0
        else:
            part += WORTH.get(token, 0)
    number = total + part
    return number if number <= LARGEST and number_tokens(english(number)) == tokens else None


def date_task() -> Task:
    """Task of dates from 1900 to 2099: from several formats to ISO 8601."""
    names = [name.lower() for name in MONTHS]
    short = [name[:3] for name in names if name[:3] not in names]
    return Task(
        name="Dates: any format to ISO 8601",
        words=(*SPECIAL, *"0123456789", *names, *short, ",", "/", ".", "-"),
        draw_key=lambda rng: int(rng.integers(FIRST_DAY, LAST_DAY + 1)),
        pair=date_pair,
        split=lambda text: re.findall(r"[^\W\d_]+|[^\s]", text.lower()),
        key_of=day_of,
        joiner="",
        example="March 5, 2024",
    )


def date_formats(day: date) -> tuple[str, ...]:
    """Formats of a day; in those of digits only, the day comes first."""
    month = MONTHS[day.month - 1]
    return (
        f"{month} {day.day}, {day.year}",
        f"{day.day} {month} {day.year}",
        f"{month[:3]} {day.day}, {day.year}",
        f"{day.day} {month[:3]} {day.year}",
        f"{day.day:02}/{day.month:02}/{day.year}",
        f"{day.day}.{day.month}.{day.year}",
    )


def day_of(text: str) -> int | None:
    """Return the ordinal of a day in any of the formats; None for other texts and years."""
    for pattern in ("%B %d, %Y", "%d %B %Y", "%b %d, %Y", "%d %b %Y", "%d/%m/%Y", "%d.%m.%Y"):
        with contextlib.suppress(ValueError):
            day = datetime.strptime(text.strip(), pattern).toordinal()
            return day if FIRST_DAY <= day <= LAST_DAY else None
    return None


def date_pair(key: int, rng: np.random.Generator) -> Pair:
    """Return the day with ordinal ``key`` in a random format, and in ISO 8601."""
    day = date.fromordinal(key)
    formats = date_formats(day)
    return Pair(formats[rng.integers(len(formats))], day.isoformat())
