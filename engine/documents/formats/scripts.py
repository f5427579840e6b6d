"""What a reader sees by its place or a line through it, as text: powers, indexes, marks of notes."""

import re

from .equations import bracketed

ORDINALS = frozenset(
    ("st", "nd", "rd", "th", "er", "ère", "re", "e", "ème", "eme", "o", "a", "º", "ª", "os", "as", "tm", "sm",
     "do", "mo", "®", "™")
)  # fmt: skip
NOTE_MARK = re.compile(r"[\d,;\s*†‡§–-]{1,12}")
FORMULA = re.compile(r"(?:[)\]]|[A-Z][a-z]|[A-Z\d)\]][A-Z]|(?<![^\W_])[BCFHIKNOPSUVW])$")  # of chemists
FRACTION = "\u2044"


def scripted(text: str, before: str, place: str, is_struck: bool = False) -> str:
    """Return the text of a run that stands in a ``"superscript"`` or a ``"subscript"``, or is struck out."""
    core = written = text.strip()
    if core and place in ("superscript", "subscript") and not core.startswith("[^"):
        written = raised(core, before, False) if place == "superscript" else lowered(core, before, "")
    return text.replace(core, f"~~{written}~~" if is_struck else written, 1) if core else text


def raised(text: str, before: str, is_note: bool) -> str:
    """Return a superscript as text behind what is before it."""
    last = before[-1:]
    is_behind = re.search(r"(?:[.,:;!?”\"'’»]|[^\W\d_]{4,})$", before)
    if is_note or text.startswith("[") or (NOTE_MARK.fullmatch(text) and is_behind):
        return text if text.startswith(("[", "(")) or not text[0].isalnum() else f"[{text}]"
    if not last or last.isspace() or text.lower() in ORDINALS or text in ("*", "†", "‡", "®", "™", "°"):
        return text  # of an isotope, an ordinal or a mark
    return f"^{text}" if len(text) == 1 or text.strip("-−–+").replace(".", "").isalnum() else f"^({text})"


def lowered(text: str, before: str, after: str) -> str:
    """Return a subscript as text: numbers of atoms as chemists type them, others behind ``_``."""
    is_formula = text.isdigit() and FORMULA.search(before) and not after.isdigit()
    if is_formula or not before or before[-1].isspace() or before[-1] == FRACTION:
        return text
    return f"_{bracketed(text)}"
