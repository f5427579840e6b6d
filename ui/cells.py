"""Cells of a grid on pages: their settings in words, the choice of values to try, and taking one over."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import streamlit as st

from engine.documents.splitters import SPLITTERS
from engine.evaluation.grid import Cell
from engine.layers.pooling import POOLINGS
from engine.models.embedding_head import OWN
from engine.models.precision import PRECISIONS
from engine.models.prompts import PROMPT_USES
from engine.retrieval.retrievers import RETRIEVERS, usable_retrievers
from ui.models import load_encoder
from ui.settings import take_settings
from ui.text import help_list


@dataclass(frozen=True)
class Axis:
    """One setting of a cell.

    Attributes
    ----------
    label
        Its name in tables.
    plural
        What its values are called in the name of a run.
    argument
        Its name as an argument of `engine.evaluation.grid.grid`, and on the command line.
    title
        Of the widget that chooses the values to try.
    table
        The values by name, each with a label and a help text.
    numbers, help
        For settings without a table: the numbers to choose from, and what they are.
    """

    label: str
    plural: str
    argument: str
    title: str = ""
    table: Mapping[str, Any] = field(default_factory=dict)
    numbers: Sequence[int] = ()
    help: str = ""

    def words(self, value: object) -> str:
        """Return a value in words."""
        return self.table[value].label if isinstance(value, str) and value in self.table else str(value)


# By the fields of `Cell`.
AXES = {
    "splitter": Axis("Splitter", "splitters", "splitters", "Splitters", SPLITTERS),
    "chunk_tokens": Axis(
        "Chunk size",
        "sizes",
        "chunk_tokens",
        "Chunk sizes (tokens)",
        numbers=(32, 48, 64, 96, 128, 192, 256, 384, 512),
        help="Most tokens of a chunk.",
    ),
    "overlap": Axis(
        "Overlap",
        "overlaps",
        "overlaps",
        "Overlaps (tokens)",
        numbers=(0, 8, 16, 32, 64, 128),
        help="Most tokens that a chunk repeats of the one before. Sizes without room for it are left out.",
    ),
    "max_tokens": Axis(
        "Tokens read",
        "limits",
        "max_tokens",
        "Tokens read",
        numbers=(128, 256, 512),
        help="How many tokens of a chunk the encoder reads; the rest is dropped.",
    ),
    "pooling": Axis("Pooling", "poolings", "poolings", "Poolings", POOLINGS),
    "retriever": Axis("Retriever", "retrievers", "retrievers", "Retrievers", RETRIEVERS),
    "k": Axis(
        "Passages (k)",
        "counts of passages",
        "ks",
        "Passages (k)",
        numbers=(*range(1, 11), 20),
        help="How many chunks are retrieved: the k of all metrics but MRR.",
    ),
    "prompts": Axis("Prompts", "uses of prompts", "prompts", "Prompts of the model", PROMPT_USES),
    "precision": Axis("Precision", "precisions", "precisions", "Precisions", PRECISIONS),
    "model": Axis("Model", "models", "models"),
}


def choose_values(axis: str, key: str, default: Sequence[Any] | None = None, note: str = "") -> list[Any]:
    """Draw the choice of values of one of the `AXES`; ``note`` is added to the help."""
    shown = AXES[axis]
    names = usable_retrievers(load_encoder()) if axis == "retriever" else list(shown.table)
    lines = help_list(shown.table[name] for name in names)
    return st.multiselect(
        shown.title,
        names or shown.numbers,
        default,
        format_func=shown.words,
        key=key,
        persist_state="session",
        help=(lines or shown.help) + note,
    )


def value_words(cell: Cell, axis: str) -> str:
    """Return the value of one of the `AXES` in words."""
    value = getattr(cell, axis)
    if axis == "pooling" and value == OWN:
        return "its own"
    if axis == "max_tokens" and value is None:
        return "model's own"
    return AXES[axis].words(value)


def varied(cells: Iterable[Cell]) -> list[str]:
    """Return the axes along which cells differ."""
    cells = list(cells)
    return [axis for axis in AXES if len({getattr(cell, axis) for cell in cells}) > 1]


def cell_words(cell: Cell, axes: Iterable[str] = AXES) -> str:
    """``"Chunk size 128 · Pooling mean"``, of some axes."""
    words = (f"{AXES[axis].label} {value_words(cell, axis)}" for axis in axes)
    return " · ".join(words) or "the only setting"


def values_in_order(cells: Iterable[Cell], axis: str) -> list[str]:
    """Return the distinct values of an axis in words: numbers by size, others in the order of the cells."""
    values = list(dict.fromkeys(getattr(cell, axis) for cell in cells))
    if all(isinstance(value, int) or value is None for value in values):
        values.sort(key=lambda value: -1 if value is None else value)
    return [value_words(Cell(**{axis: value}), axis) for value in values]


def take_cell(cell: Cell) -> list[str]:
    """Set the app's own settings to those of a cell; return the axes that its widgets could take."""
    encoder = load_encoder()
    wanted = {axis: getattr(cell, axis) for axis in AXES if axis != "model"}
    if not encoder.prompts.in_search:
        del wanted["prompts"]
    if cell.max_tokens is None:
        wanted["max_tokens"] = encoder.token_limit(None)
    take_settings(wanted, encoder.config.max_positions)
    return [axis for axis, value in wanted.items() if st.session_state.get(axis) == value]
