"""Glassbox engine: retrieval-augmented generation written out in NumPy, every step open to view."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .api import Index
    from .documents.document import Document
    from .errors import GlassboxError
    from .generation.answer import Answer
    from .generation.decoder import Decoder
    from .models.encoder import Encoder
    from .models.reader import Reader
    from .models.reranker import Reranker
    from .retrieval.index import Hit

__version__ = "0.2.0"  # the only place that says it
__all__ = ["Answer", "Decoder", "Document", "Encoder", "GlassboxError", "Hit", "Index", "Reader", "Reranker"]

# The module of each name, imported when it is named: the process that reads files starts without models.
PLACES = {
    "Answer": ".generation.answer",
    "Decoder": ".generation.decoder",
    "Document": ".documents.document",
    "Encoder": ".models.encoder",
    "GlassboxError": ".errors",
    "Hit": ".retrieval.index",
    "Index": ".api",
    "Reader": ".models.reader",
    "Reranker": ".models.reranker",
}


def __getattr__(name: str) -> Any:
    """Return a public name."""
    if name in PLACES:
        return getattr(import_module(PLACES[name], __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
