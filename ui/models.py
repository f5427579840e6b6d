"""The models, loaded once for all sessions, with what is happening shown meanwhile.

The environment variables GLASSBOX_ENCODER and GLASSBOX_DECODER name others than the default ones: a
folder, a .gguf file or a Hugging Face id. A session may choose another decoder than that.
"""

import os
from typing import TYPE_CHECKING

import streamlit as st

from engine import Decoder, Encoder
from engine.verify import official_model
from engine.weights.catalog import DEFAULT_DECODER, DEFAULT_ENCODER, KNOWN_MODELS
from engine.weights.fetch import Progress, is_cached

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

ENCODER = os.environ.get("GLASSBOX_ENCODER", DEFAULT_ENCODER)
DECODER = os.environ.get("GLASSBOX_DECODER", DEFAULT_DECODER)


@st.cache_resource(show_spinner=False)
def load_encoder() -> Encoder:
    """Load the encoder, downloading it the first time."""
    with st.spinner(f"Loading the encoder {ENCODER}…"):
        return Encoder.load(ENCODER, on_progress=download_progress(ENCODER))


def decoder_name() -> str:
    """Return the name, path or Hugging Face id of the session's decoder."""
    return st.session_state.get("decoder", DECODER)


def load_decoder() -> Decoder:
    """Load the session's decoder, downloading it the first time."""
    return decoder_named(decoder_name())


def choose_decoder(name: str) -> None:
    """Load a decoder and make it the session's; where it cannot be loaded, the one before stays.

    Raises
    ------
    GlassboxError
        It cannot be found, read, or held in memory.
    """
    decoder_named(name)
    st.session_state["decoder"] = name


@st.cache_resource(max_entries=1, show_spinner=False)
def decoder_named(name: str) -> Decoder:
    """Load a decoder; it takes the place of another one in memory."""
    with st.spinner(f"Loading the decoder {name}…"):
        return Decoder.load(name, on_progress=download_progress(name))


@st.cache_resource(show_spinner="Loading the official model with sentence-transformers, once…")
def load_official() -> "SentenceTransformer":
    """Load the same encoder with sentence-transformers."""
    return official_model(load_encoder())


def download_progress(name: str) -> Progress | None:
    """Return a progress bar for a known model's download, or None where there is nothing to download."""
    if name not in KNOWN_MODELS or is_cached(name):
        return None
    size = KNOWN_MODELS[name].size / 1e6
    bar = st.progress(0.0, f"Downloading {name} ({size:.0f} MB), once…")

    def show(done: int, total: int) -> None:
        share = done / total if total else 0.0
        bar.progress(share, f"Downloading {name}, once: {done / 1e6:.0f} of {total / 1e6:.0f} MB")
        if done >= total:
            bar.empty()

    return show
