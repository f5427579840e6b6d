"""Numbers, times and sizes in sentences; texts of files in messages and in tables."""

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import PurePath
from time import monotonic
from typing import Any

from pydantic_core import ValidationError

# A spreadsheet takes a cell that begins with one of these for a formula, which may read other cells and send
# them elsewhere: https://owasp.org/www-community/attacks/CSV_Injection
FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠")

SURE_S = 1.0  # of work that are measured before the rest is estimated
MAX_NAME, MAX_MESSAGE = 80, 1000  # characters of a name in a message, and of a message

# Marks that set the direction of the text around them, by which a name could turn the words behind it:
# https://www.unicode.org/reports/tr9/#Directional_Formatting_Characters
DIRECTIONS = dict.fromkeys([0x61C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)])


def counted(n: int, noun: str) -> str:
    """``1 chunk``, ``2,000 chunks``."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def some_of(names: Sequence[str], most: int) -> str:
    """``["a", "b", "c", "d"], 3 -> "a, b, c and 1 more"``."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """``" (did you mean 'sentences'?)"``, or nothing where no name is similar."""
    close = get_close_matches(name, list(names), 1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def shortened(text: str, characters: int) -> str:
    """Return the beginning of a text, with an ellipsis where it is cut."""
    return text if len(text) <= characters else text[: characters - 1].rstrip() + "…"


def beginning(text: str, characters: int) -> str:
    """Return the beginning of a text in one line; empty where it is only white space."""
    return shortened(" ".join(text.split()), characters)


def readable_time(seconds: float) -> str:
    """``7.6 -> "8 s"``, ``400 -> "6 min 40 s"``, ``9000 -> "2 h 30 min"``: a duration to wait for."""
    whole = max(1, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


class TimeLeft:
    """The time that the rest of some work takes, by its rate since the first report.

    What was done before that report, such as texts whose vectors are known, does not count for the rate.
    """

    def __init__(self) -> None:
        self._first: tuple[float, float] | None = None  # the time of the first report, and its share

    def __call__(self, share: float) -> str:
        """Note the share that is done: ``", about 12 s left"``, or ``""`` where it is not known yet."""
        now = monotonic()
        if self._first is None:
            self._first = now, share
        elapsed, done = now - self._first[0], share - self._first[1]
        if elapsed < SURE_S or not done > 0 or share >= 1:
            return ""
        return f", about {readable_time(elapsed * (1 - share) / done)} left"


def readable_bytes(n_bytes: float) -> str:
    """``1234567 -> "1.2 MB"``."""
    for unit in ("B", "kB", "MB"):
        if n_bytes < 1000:
            return f"{n_bytes:.0f} {unit}" if unit == "B" else f"{n_bytes:.1f} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:.1f} GB"


def readable_number(n: int) -> str:
    """``22713216 -> "22.7 million"``."""
    return f"{n / 1e9:.1f} billion" if n >= 1e9 else f"{n / 1e6:.1f} million" if n >= 1e6 else f"{n:,}"


def model_name(source: str) -> str:
    """Return the last part of a model's folder or Hugging Face id, or the whole address of a server's."""
    return source if "://" in source else PurePath(source).name


def with_short_names(message: str) -> str:
    """Return a message whose names, such as the parts of a path, have at most `MAX_NAME` characters."""
    return re.sub(rf"[^\s/]{{{MAX_NAME + 1},}}", lambda name: shortened(name[0], MAX_NAME), message)


def error_words(error: Exception | str) -> str:
    """Return an error's message with short names, a long one without its middle."""
    message = with_short_names(str(error))
    if len(message) <= MAX_MESSAGE:
        return message
    return f"{message[: MAX_MESSAGE // 2]} … {message[-MAX_MESSAGE // 2 :]}"


def printable(text: str) -> str:
    r"""``"a\nb" -> "a b"``: a text from a file on one line, with a blank for each sign that shows nothing."""
    return " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())


def without_directions(text: str) -> str:
    """Return a text without marks of direction; letters keep the direction of their script."""
    return text.translate(DIRECTIONS)


def reason_of(error: BaseException) -> str:
    """Return the message of a library's error as a line of at most 200 characters."""
    if isinstance(error, ValidationError):
        [first, *_] = error.errors(include_url=False)
        return printable(f"{'.'.join(map(str, first['loc']))}: {first['msg']}")[:200]
    if isinstance(error, OSError) and error.strerror:
        return error.strerror  # without the number and the path
    message = f"{error} is missing" if isinstance(error, KeyError) else str(error)
    return printable(message)[:200].rstrip(".")


def csv_cell(value: Any) -> Any:
    """Return a value for a CSV file: an apostrophe goes before a text that a spreadsheet would compute."""
    return f"'{value}" if isinstance(value, str) and value.lstrip().startswith(FORMULA) else value
