"""The settings of a grid in words for people."""

from collections.abc import Iterable, Sequence

from engine.evaluation.grid import Cell
from engine.evaluation.library_model import OWN
from ui import poolings, retrievers
from ui.chunk_settings import METHODS
from ui.experiment_verdicts import Verdict, p_words

AXES = {
    "splitter": "Splitter",
    "chunk_tokens": "Chunk size",
    "overlap": "Overlap",
    "max_tokens": "Tokens read",
    "pooling": "Pooling",
    "retriever": "Retriever",
    "k": "Passages (k)",
    "model": "Model",
}


def value_words(cell: Cell, axis: str) -> str:
    """Return the value of one of the `AXES` in words."""
    value = getattr(cell, axis)
    match axis:
        case "splitter":
            return METHODS[value]
        case "pooling":
            return "its own" if value == OWN else poolings.LABELS.get(value, str(value))
        case "retriever":
            return retrievers.LABELS[value]
        case "max_tokens":
            return "model's own" if value is None else str(value)
    return str(value)


def varied(cells: Iterable[Cell]) -> list[str]:
    """Return the axes along which cells differ."""
    cells = list(cells)
    return [axis for axis in AXES if len({getattr(cell, axis) for cell in cells}) > 1]


def cell_words(cell: Cell, axes: Sequence[str] = tuple(AXES)) -> str:
    """``"Chunk size 128 · Pooling mean"``, of the axes that matter."""
    return " · ".join(f"{AXES[axis]} {value_words(cell, axis)}" for axis in axes) or "the only setting"


def in_order(cells: Iterable[Cell], axis: str) -> list[str]:
    """Return the values of an axis that occur, in words: numbers by size, the rest as they come."""
    values = list(dict.fromkeys(getattr(cell, axis) for cell in cells))
    if all(isinstance(value, int) or value is None for value in values):
        values.sort(key=lambda value: -1 if value is None else value)
    return [value_words(Cell(**{axis: value}), axis) for value in values]


def p_cell(verdict: Verdict) -> str:
    """``"0.012"`` or ``"< 0.001"`` for a table, nothing for the baseline."""
    return (
        "" if verdict.word == "baseline" else p_words(verdict.p_value).removeprefix("p ").removeprefix("= ")
    )


def readable_time(seconds: float) -> str:
    """``7.6 -> "8 s"``, ``400 -> "6 min 40 s"``, ``9000 -> "2 h 30 min"``."""
    whole = max(1, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def readable_bytes(n_bytes: float) -> str:
    """``1234567 -> "1.2 MB"``."""
    for unit in ("B", "kB", "MB"):
        if n_bytes < 1000:
            return f"{n_bytes:.0f} {unit}" if unit == "B" else f"{n_bytes:.1f} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:.1f} GB"
