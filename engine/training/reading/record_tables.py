"""What made-up records are about: their kinds with columns, values and questions, and tasks with steps."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from ...installed import bundled
from .word_kinds import lines_of, listed

T = TypeVar("T")
Random = np.random.Generator
Names = Sequence[str]  # of an article
Value = Callable[[Random, int, Names], str]  # of a table's style, which the values of a column share

# Words that values are made of, by what they are.
WORDS = {
    kind: tuple(words.split(", "))
    for kind, words in (line.split(": ") for line in lines_of("record_words.txt"))
}
FIRST, LAST, INVENTED = WORDS["first names"], WORDS["last names"], WORDS["invented names"]
MONTHS, GERMAN_MONTHS = WORDS["months"], WORDS["German months"]
STEP_ENDS = ("", "", "", " twice", " by hand", " with a dry cloth", " for ten minutes", " at noon")
TIME_UNITS = listed("seconds minutes hours days weeks months years")
PERIODS = (
    " a month", " per month", "/month", " per user per month", " a year", " per year", " annually", " a week",
    " per person", " per hour", "/year", " per day",
)  # fmt: skip
CURRENCIES = ("${}", "€{}", "£{}", "{} EUR", "{} €", "CHF {}", "US${}", "{} USD")


def draw(rng: Random, found: Sequence[T]) -> T:
    """Draw one of several."""
    return found[int(rng.integers(len(found)))]


def person(rng: Random, style: int, names: Names) -> str:
    """Draw a person's name, in some cases two words of the article that may be one."""
    two = [name for name in names if name.count(" ") == 1 and name.replace(" ", "").isalpha()]
    return draw(rng, two) if two and rng.random() < 0.3 else f"{draw(rng, FIRST)} {draw(rng, LAST)}"


def own_name(rng: Random, style: int, names: Names) -> str:
    """Draw a name of the article, or one that is invented."""
    short = [name for name in names if 3 < len(name) < 25]
    return draw(rng, short) if short and rng.random() < 0.5 else draw(rng, INVENTED)


def place(rng: Random, style: int, names: Names) -> str:
    """Draw a place, in some cases a name of the article."""
    return own_name(rng, style, names) if rng.random() < 0.4 else draw(rng, WORDS["places"])


def company(rng: Random, style: int, names: Names) -> str:
    """Draw a company."""
    return own_name(rng, style, names) + draw(rng, (" Ltd", " GmbH", " Inc.", " & Sons", ""))


def grouped(number: float, style: int, decimals: int = 0) -> str:
    """Write a number: 1,250.00, 1250.00 or 1.250,00."""
    text = f"{number:,.{decimals}f}"
    if style % 7 == 5:
        return text.replace(",", "")
    return text.translate(str.maketrans(",.", ".,")) if style % 7 == 6 else text


def count(rng: Random, style: int, names: Names) -> str:
    """Draw a number."""
    return grouped(int(rng.integers(2, 10 ** int(rng.integers(1, 6)) + 3)), style)


def money(rng: Random, style: int, names: Names) -> str:
    """Draw an amount with its currency, such as $1,250.00 or 49 EUR."""
    number = float(rng.integers(1, 10 ** int(rng.integers(1, 5)) + 5))
    decimals = 2 if style % 3 else 0
    amount = grouped(number + (0.99 if decimals and rng.random() < 0.4 else 0), style // 3, decimals)
    return CURRENCIES[style % 8].format(amount)


def fee(rng: Random, style: int, names: Names) -> str:
    """Draw an amount with its period, such as $1,250.00 a month."""
    return money(rng, style, names) + PERIODS[style % 12]


def millions(rng: Random, style: int, names: Names) -> str:
    """Draw a large amount, such as $3.5 million."""
    word = (" million", " billion", "m", "bn")[style // 4 % 4]
    return ("${}", "€{}", "£{}", "{} USD")[style % 4].format(f"{rng.integers(10, 9999) / 10:,.1f}{word}")


def day(rng: Random, style: int, names: Names) -> str:
    """Draw a date: 3 October 1990, October 3, 1990, 3. Oktober 1990, 1990-10-03 and so on."""
    year, month, of_month = int(rng.integers(1950, 2031)), int(rng.integers(1, 13)), int(rng.integers(1, 29))
    name = MONTHS[month - 1]
    return (
        f"{of_month} {name} {year}",
        f"{name} {of_month}, {year}",
        f"{of_month}. {GERMAN_MONTHS[month - 1]} {year}",
        f"{year}-{month:02}-{of_month:02}",
        f"{of_month:02}/{month:02}/{year}",
        f"{of_month:02}.{month:02}.{year}",
        f"{name[:3]} {of_month}, {year}",
        f"{name} {year}",
        f"{of_month} {name}",
    )[style % 9]


def hours(rng: Random, style: int, names: Names) -> str:
    """Draw opening hours."""
    first, last = int(rng.integers(6, 12)), int(rng.integers(3, 11))
    half = "30" if rng.random() < 0.3 else "00"
    return (
        f"{first}:{half}–{12 + last}:00",
        f"{first}:{half} - {12 + last}:00",
        f"{first} am to {last} pm",
        f"{first}:{half} a.m. to {last}:00 p.m.",
        f"from {first} to {12 + last} h",
        f"{first:02}:{half}-{12 + last}:00",
    )[style % 6]


def clock(rng: Random, style: int, names: Names) -> str:
    """Draw a time of day."""
    hour, minute = int(rng.integers(1, 13)), int(rng.integers(0, 12)) * 5
    return (f"{hour + 11}:{minute:02}", f"{hour}:{minute:02} {draw(rng, ('am', 'pm'))}")[style % 2]


def duration(rng: Random, style: int, names: Names) -> str:
    """Draw a duration, such as 30 days."""
    unit = TIME_UNITS[(style + int(rng.random() < 0.2)) % 7]
    return f"{draw(rng, listed('2 3 5 7 10 14 15 24 30 45 60 90'))} {unit}"


def share(rng: Random, style: int, names: Names) -> str:
    """Draw a percentage."""
    number = f"{rng.integers(1, 999) / 10:.1f}" if style % 2 else f"{rng.integers(1, 100)}"
    return number + ("%", " %", " percent")[style // 2 % 3]


def size(rng: Random, style: int, names: Names) -> str:
    """Draw a size of memory."""
    unit = ("MB", "GB", "TB", "kB")[(style + int(rng.random() < 0.3)) % 4]
    return f"{2 ** int(rng.integers(1, 11))} {unit}"


def measured(units: str) -> Value:
    """Return how a number with one of these units is drawn."""
    found = listed(units)

    def value(rng: Random, style: int, names: Names) -> str:
        return f"{rng.integers(2, 900) / (10 if style % 2 else 1):g} {found[style % len(found)]}"

    return value


def area(rng: Random, style: int, names: Names) -> str:
    """Draw an area."""
    return f"{grouped(int(rng.integers(10, 90000)), style)} {('km²', 'square miles', 'ha')[style % 3]}"


def phone(rng: Random, style: int, names: Names) -> str:
    """Draw a telephone number."""
    a, b, c = int(rng.integers(20, 99)), int(rng.integers(100, 999)), int(rng.integers(1000, 9999))
    return (f"+49 {a} {b}{c}", f"(0{a}) {b}-{c}", f"+1 {b}-555-{c}", f"0{a} {b} {c}")[style % 4]


def email(rng: Random, style: int, names: Names) -> str:
    """Draw an e-mail address."""
    first, last = draw(rng, FIRST).lower(), draw(rng, LAST).lower()
    return f"{(first, first[0])[style % 2]}.{last}@{draw(rng, INVENTED).lower()}.example"


def default(rng: Random, style: int, names: Names) -> str:
    """Draw the value of a setting."""
    number = draw(rng, (duration(rng, style, names), size(rng, style, names), count(rng, 0, names)))
    return draw(rng, (number, number, number, "info", "true", "false", "auto"))


VALUES: dict[str, Value] = {
    "fee": fee, "count": count, "size": size, "duration": duration, "share": share, "money": money,
    "day": day, "company": company, "phone": phone, "email": email, "person": person, "hours": hours,
    "clock": clock, "place": place, "millions": millions, "default": default, "area": area,
    "weight": measured("kg g lbs"),     "length": measured("m cm km mm"), "dose": measured("mg ml g µg"),
    "rain": measured("mm cm inches"),
    "room": lambda rng, style, names: f"{('Room', 'Hall', 'Lab')[style % 3]} {rng.integers(1, 400)}",
    "street": lambda rng, style, names: f"{rng.integers(1, 200)} {draw(rng, LAST)} Street",
    "variable": lambda rng, style, names: f"{draw(rng, INVENTED)}_{draw(rng, MONTHS[:5])}".upper(),
    "release": lambda rng, style, names: f"version {version(rng, style, names)}",
    "account": lambda rng, style, names: f"{rng.integers(1000, 9999)}-{rng.integers(10, 99)}",
    "prize": lambda rng, style, names: f"{own_name(rng, style, names)} Prize",
    "year": lambda rng, style, names: str(rng.integers(800, 1990)),
    "platform": lambda rng, style, names: f"{rng.integers(1, 25)}{draw(rng, ('', '', 'a', 'b'))}",
    "line": lambda rng, style, names: f"{draw(rng, ('IC', 'RE', 'S', 'EC'))} {rng.integers(1, 999)}",
}  # fmt: skip


def version(rng: Random, style: int, names: Names) -> str:
    """Draw a version's number."""
    return f"{rng.integers(0, 12)}.{rng.integers(0, 20)}" + (f".{rng.integers(0, 9)}" if style % 2 else "")


def plan(rng: Random, style: int, names: Names) -> str:
    """Draw the name of a plan."""
    return draw(rng, WORDS["plans"]) + draw(rng, ("", "", "", f" {draw(rng, INVENTED)}"))


KEYS: dict[str, Value] = {
    "plan": plan, "name": person, "person": person, "version": version, "region": place, "destination": place,
    "product": lambda rng, style, names: f"{own_name(rng, style, names)} X{rng.integers(1, 900)}",
    "branch": lambda rng, style, names: f"{own_name(rng, style, names)} "
    + draw(rng, ("Library", "Museum", "Clinic", "Shop", "Pool", "Office")),
    "setting": lambda rng, style, names: draw(rng, WORDS["settings"]),
    "expense": lambda rng, style, names: draw(rng, WORDS["expenses"]),
    "year": lambda rng, style, names: str(rng.integers(1990, 2026)),
    "event": lambda rng, style, names: f"{own_name(rng, style, names)} "
    + draw(rng, ("Workshop", "Festival", "Lecture", "Concert", "Tour")),
    "invoice": lambda rng, style, names: f"{draw(rng, ('INV', 'R', 'PO', 'A'))}-{rng.integers(1000, 99999)}",
    "medicine": lambda rng, style, names: draw(rng, WORDS["medicines"]),
}  # fmt: skip


@dataclass(frozen=True)
class Column:
    """A column: its names, how a value is drawn, and questions for it, with {} for the record."""

    names: tuple[str, ...]
    value: Value
    questions: tuple[str, ...]


@dataclass(frozen=True)
class RecordKind:
    """Records of one kind: what one is called, how questions name it, titles of a table, and its columns."""

    thing: str
    forms: tuple[str, ...]
    titles: tuple[str, ...]
    columns: tuple[Column, ...]

    def of_key(self, key: str, rng: Random) -> str:
        """Return a record's key as a question names it."""
        return draw(rng, self.forms).format(key)


def step(rng: Random) -> str:
    """Make up a step that no task has in common: ``Turn the left handle twice``."""
    verb, thing = (draw(rng, WORDS[kind]) for kind in ("verbs of steps", "things of steps"))
    return f"{verb} the {thing}{draw(rng, STEP_ENDS)}"


def read_kinds(text: str) -> tuple[RecordKind, ...]:
    """Read kinds of records: name, how questions name a record, and titles of a table; then a column a line.

    Of a column its names, a noun first, how a value is drawn (of `VALUES`, or one of a list), and questions.
    """
    kinds = []
    for block in text.strip().replace("\n  ", " ").split("\n\n"):
        head, *lines = block.splitlines()
        thing, forms, titles = (tuple(part.split(", ")) for part in head.split("; "))
        kinds.append(RecordKind(thing[0], forms, titles, tuple(map(read_column, lines))))
    return tuple(kinds)


def read_column(line: str) -> Column:
    """Read a column from a line such as ``color, colour = [black, white]: What color is {}?``."""
    names, rest = line.split(" = ")
    values, questions = rest.split(": ", 1)
    choices = values.strip("[]").split(", ")
    value = VALUES[values] if values in VALUES else lambda rng, style, names: draw(rng, choices)
    name = names.split(", ")[0]
    asked = re.findall(r"\S[^?]*\?", questions)
    return Column(tuple(names.split(", ")), value, tuple(each.replace("{name}", name) for each in asked))


def read_tasks(text: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Read tasks, each with its steps in order."""
    lines = text.strip().replace("\n  ", "; ").splitlines()
    return tuple((task, tuple(steps.split("; "))) for task, steps in (line.split(": ", 1) for line in lines))


RECORD_KINDS = read_kinds(bundled("record_kinds.txt").read_text("utf-8"))
TASKS = read_tasks(bundled("tasks.txt").read_text("utf-8"))
