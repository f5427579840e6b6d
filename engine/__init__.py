"""Glassbox engine: retrieval-augmented generation written out in NumPy, every step open to view."""

from engine.generation.decoder import Decoder
from engine.models.encoder import Encoder

__all__ = ["Decoder", "Encoder"]
