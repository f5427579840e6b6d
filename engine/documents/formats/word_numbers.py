"""Numbers of lists and clauses that Word counts itself: "3.", "(b)", "2.1", "•"."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from .symbols import symbol

WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
N_LEVELS = 9
ROMAN = ((1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl"),
         (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"))  # fmt: skip
BULLET = "•"


class Place(NamedTuple):
    """A list (``w:numId``) and the level in it, which may be given only by the style (None)."""

    number_id: str
    level: int | None


@dataclass(frozen=True)
class Level:
    """A level of a list: its first number, the form of its numbers, the text around them (``"%1.%2"``)."""

    start: int
    form: str
    text: str
    restarts_after: int  # levels above this one's number start it anew
    is_legal: bool  # all numbers of it are decimal
    style: str


def attribute(element: Any, path: str, default: str = "") -> str:
    """Return the value of the property at a path below an element, the default where there is none."""
    found = (
        element.find("/".join(f"{WORD}{part}" for part in path.split("/"))) if element is not None else None
    )
    return str(found.get(f"{WORD}val", default)) if found is not None else default


def place_of(properties: Any) -> Place | None:
    """Return the list and level in the properties of a paragraph or style."""
    numbers = properties.find(f"{WORD}numPr") if properties is not None else None
    if numbers is None:
        return None
    level = attribute(numbers, "ilvl")
    return Place(attribute(numbers, "numId"), int(level) if level.isdecimal() else None)


def levels_below(element: Any) -> Iterator[tuple[int, Level]]:
    """Yield the levels that a list, or the change of one, defines."""
    for found in element.iter(f"{WORD}lvl"):
        number = int(found.get(f"{WORD}ilvl", "0"))
        form, text = attribute(found, "numFmt", "decimal"), attribute(found, "lvlText")
        if form == "bullet":
            font = found.find(f"{WORD}rPr/{WORD}rFonts")
            name = font.get(f"{WORD}ascii", "") if font is not None else ""
            text = "".join(symbol(ord(sign), name) or BULLET for sign in text[:1])
            text = BULLET if text in ("o", "·") else text
        legal = found.find(f"{WORD}isLgl") is not None
        start, restart = attribute(found, "start", "1"), attribute(found, "lvlRestart", str(number))
        yield number, Level(int(start), form, text, int(restart), legal, attribute(found, "pStyle"))


class Numbering:
    """The lists of a file, and the numbers that its paragraphs have reached."""

    def __init__(self, numbering: Any, style_places: Mapping[str, Place]) -> None:
        """Read the lists of ``numbering.xml`` (None without one); styles may name lists, too."""
        self.lists: dict[str, tuple[str, dict[int, Level]]] = {}  # by numId: the list counted in, its levels
        self.restarts: dict[str, dict[int, int]] = {}
        self.counts: dict[str, list[int | None]] = defaultdict(lambda: [None] * N_LEVELS)
        self.begun: set[str] = set()
        if numbering is None:
            return
        abstract = {each.get(f"{WORD}abstractNumId"): each for each in numbering.iter(f"{WORD}abstractNum")}
        numbers = {each.get(f"{WORD}numId"): each for each in numbering.iter(f"{WORD}num")}
        for number_id, number in numbers.items():
            key = attribute(number, "abstractNumId")
            link = attribute(abstract.get(key), "numStyleLink")
            if link in style_places:
                linked = numbers.get(style_places[link].number_id)
                key = attribute(linked, "abstractNumId", key)
            if key not in abstract:
                continue
            levels = dict(levels_below(abstract[key])) | dict(levels_below(number))
            self.lists[number_id] = key, levels
            self.restarts[number_id] = {
                int(each.get(f"{WORD}ilvl", "0")): int(attribute(each, "startOverride"))
                for each in number.iter(f"{WORD}lvlOverride")
                if attribute(each, "startOverride").isdecimal()
            }

    def next(self, place: Place | None, style: str) -> str:
        """Count a paragraph; return its number or bullet, empty outside a list."""
        if place is None or place.number_id not in self.lists:
            return ""
        key, levels = self.lists[place.number_id]
        level = place.level
        if level is None:
            level = next((number for number, each in levels.items() if each.style == style), 0)
        if level not in levels or not 0 <= level < N_LEVELS:
            return ""
        counts = self.counts[key]
        if place.number_id not in self.begun:
            self.begun.add(place.number_id)
            for number, start in self.restarts[place.number_id].items():
                if number < N_LEVELS:
                    counts[number] = start - 1
        reached = counts[level]
        counts[level] = levels[level].start if reached is None else reached + 1
        for below in range(level + 1, N_LEVELS):
            if below in levels and level < levels[below].restarts_after:
                counts[below] = None
        return self.written(levels, level, counts)

    @staticmethod
    def written(levels: Mapping[int, Level], level: int, counts: list[int | None]) -> str:
        """Return the text of a level with the numbers reached in place of ``%1`` to ``%9``."""
        about = levels[level]
        if about.form == "bullet":
            return about.text
        text = about.text
        for number in range(N_LEVELS):
            if f"%{number + 1}" in text and number in levels:
                reached = counts[number]
                value = levels[number].start if reached is None else reached
                counts[number] = value
                form = "decimal" if about.is_legal else levels[number].form
                text = text.replace(f"%{number + 1}", formatted(value, form))
        return text.strip()


def formatted(number: int, form: str) -> str:
    """Return a number as Word writes it in a format; unknown formats are written in digits."""
    match form:
        case "none":
            return ""
        case "lowerLetter" | "upperLetter" if number > 0:
            times, letter = divmod(number - 1, 26)
            written = chr(ord("a") + letter) * min(times + 1, 9)
        case "lowerRoman" | "upperRoman" if 0 < number < 4000:
            written = ""
            for value, sign in ROMAN:
                times, number = divmod(number, value)
                written += sign * times
        case "decimalZero":
            return f"{number:02}"
        case "ordinal":
            ending = "th" if number // 10 % 10 == 1 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
            return f"{number}{ending}"
        case _:
            return str(number)
    return written.upper() if form.startswith("upper") else written
