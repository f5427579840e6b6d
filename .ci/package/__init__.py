"""Glassbox: search and ask your documents, with every step open to view."""

from typing import TYPE_CHECKING, Any

from . import engine
from .engine import __all__, __version__  # noqa: F401

if TYPE_CHECKING:
    from .engine import *  # noqa: F403


def __getattr__(name: str) -> Any:
    """Return a public name of the engine, imported when it is named."""
    return getattr(engine, name)


def __dir__() -> list[str]:
    """List the public names."""
    return [*__all__, "__version__"]
