"""Glassbox engine: retrieval-augmented generation written out in NumPy, every step open to view."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .generation.decoder import Decoder
    from .models.encoder import Encoder

__all__ = ["Decoder", "Encoder"]


def __getattr__(name: str) -> Any:
    """Import the models when they are named: the process that reads files starts without them."""
    if name in __all__:
        module = ".generation.decoder" if name == "Decoder" else ".models.encoder"
        return getattr(import_module(module, __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
