"""Glassbox: search and ask your documents, with every step open to view."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

HERE = Path(__file__).parent
if not (HERE / "engine").exists():  # it is installed by `pip install -e .`, and stands in the repository
    __path__.append(str(HERE.parents[2]))

from . import engine  # noqa: E402
from .engine import __all__, __version__  # noqa: E402, F401

if TYPE_CHECKING:
    from .engine import *  # noqa: F403


def __getattr__(name: str) -> Any:
    """Return a public name of the engine, imported when it is named."""
    return getattr(engine, name)


def __dir__() -> list[str]:
    """List the public names."""
    return [*__all__, "__version__"]
