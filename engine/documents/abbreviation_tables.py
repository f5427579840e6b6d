"""Tables of abbreviations with a full stop, and of words that begin sentences (``data/abbreviations.csv``).

One table serves all languages: a text need not say which is its own, and may mix several. An entry in lower
case stands for either case ("fig", "Fig"), one with a capital for that alone ("Gen. Hart", "a gen. rule").
Left out is what also ends sentences as a word of some language ("ill", "ten", "mind").
"""

import csv
import textwrap

from ..installed import bundled

with bundled("abbreviations.csv").open(encoding="utf-8", newline="") as file:
    ROWS = list(csv.DictReader(file))


def entries(table: str) -> frozenset[str]:
    """Return the words of a table."""
    return frozenset(" ".join(row["words"] for row in ROWS if row["table"] == table).split())


# Titles before names, and abbreviations that introduce what follows: no sentence ends after them.
NEVER_LAST = entries("NEVER_LAST")
# Months, days, and words of which some end sentences too: abbreviations only before a number.
BEFORE_NUMBERS = entries("BEFORE_NUMBERS")
# A sentence ends after these only before one of the words that begin sentences.
ABBREVIATIONS = entries("ABBREVIATIONS")
# Words that often begin sentences, and are hardly ever names.
OPENERS = entries("OPENERS")
# Of these, those that begin family names too, after an initial: "E. Le Roy", "J. De Witt".
PARTICLES = entries("PARTICLES")
# German ordinals are numbers with a full stop: "im 2. Stock", "der 1. Preis", "am 3. Oktober".
BEFORE_ORDINALS = entries("BEFORE_ORDINALS")
MONTHS_AFTER_ORDINALS = entries("MONTHS_AFTER_ORDINALS")


def as_source() -> str:
    """Return the tables as Python, for exported scripts."""
    tables = dict.fromkeys((row["table"] for row in ROWS), "")
    for row in ROWS:
        lines = textwrap.wrap(row["words"], 100, break_long_words=False, break_on_hyphens=False)
        tables[row["table"]] += "".join(f'    "{line} "\n' for line in lines)
    return "\n".join(f"{name} = frozenset(\n    (\n{words}    ).split()\n)" for name, words in tables.items())
