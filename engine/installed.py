"""Where the engine stands, in its repository or in the installed package, and what depends on that."""

import csv
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent  # of the repository, or of the package `glassbox`
DISTRIBUTION = "glassbox-playground"  # the package's name for pip
IS_PACKAGE = __name__.startswith("glassbox.") or (ROOT / "__init__.py").exists()
PROGRAM = "glassbox" if IS_PACKAGE else "python -m engine"


def bundled(name: str) -> Path:
    """Return the path of a file or folder that comes with the engine, by its name below ``data/``."""
    return ROOT / "data" / name


def rows_of(name: str) -> list[dict[str, str]]:
    """Return the rows of a table in CSV that comes with the engine, by the names of its columns."""
    with bundled(name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def row_of(table: str, key: str, **numbers: str) -> dict[str, Any]:
    """Return the other columns of the row that begins with a key, with the numbers given filled in."""
    [(_, *row)] = (row.items() for row in rows_of(table) if key == next(iter(row.values())))
    return {name: text.format(**numbers) if numbers else text for name, text in row}


def install_command(extra: str) -> str:
    """Return how to install what one of the extras of pyproject.toml needs."""
    if IS_PACKAGE:
        return f"pip install '{DISTRIBUTION}[{extra}]'"
    own = f"requirements-{extra}.txt"
    return f"pip install -r {own if (ROOT / own).exists() else 'requirements.txt'}"
