"""The models of a grid: the app's own encoder, and another one that a user names."""

from collections.abc import Iterable

import streamlit as st

from engine.evaluation.library_model import Model, load_model
from ui.models import ENCODER, load_encoder


def models_named(names: Iterable[str]) -> dict[str, Model]:
    """Load models by the names that cells call them.

    Raises
    ------
    GlassboxError
        One cannot be found or read.
    """
    encoder = load_encoder()
    return {name: encoder if name == ENCODER else other_model(name) for name in names}


@st.cache_resource(max_entries=1, show_spinner="Loading the model…")
def other_model(name: str) -> Model:
    """Load a model by the engine, or by the library where the engine cannot."""
    return load_model(name)
