"""How documents are cut and embedded, and the widgets that set it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import streamlit as st

from engine import Encoder
from engine.documents.splitters import SPLITTERS, Splitting
from engine.models.precision import PRECISIONS, is_slower
from engine.models.prompts import Role
from engine.retrieval.embedding_model import Model
from engine.settings import SETTINGS, default
from engine.wording import counted
from ui.setting_values import default_settings, setting_widget, settings_in_use
from ui.text import escape_markdown

# Keys of the settings; the pooling is chosen for a search of the same chunks.
CHUNK_SETTINGS = tuple(
    key
    for key, setting in SETTINGS.items()
    if setting.stage in ("cut", "embedding") and setting.has_widget and key != "pooling"
)


@dataclass(frozen=True)
class Cut:
    """How documents are cut and embedded: the fields of `CHUNK_SETTINGS`."""

    splitter: str
    chunk_tokens: int  # of ``uploaded`` chunks the longest size
    overlap: int
    parent_tokens: int  # 0 where an answer gets the chunk itself, no larger one
    max_tokens: int
    context: str = default("context")
    prompts: str = default("prompts")
    precision: str = default("precision")
    uploaded: bool = False  # whether the chunks are

    @property
    def splitting(self) -> Splitting:
        """How the text of a document is cut."""
        return Splitting(self.splitter, self.chunk_tokens, self.overlap, self.context)

    def encoder(self, encoder: Encoder) -> Encoder:
        """Return the encoder with or without its prompts, in the precision."""
        return encoder.with_prompts(self.prompts).with_precision(self.precision)

    def text_limit(self, model: Model) -> int:
        """Return how many tokens of a chunk are read: the limit without the prompt before it."""
        return model.with_prompts(self.prompts).text_limit(self.max_tokens)


def chunk_settings(encoder: Encoder, suffix: str = "") -> Cut:
    """Draw the widgets; those without a ``suffix`` to their keys are shared by all pages."""
    positions, usual = encoder.config.max_positions, default_settings(encoder)
    splitter = setting_widget("splitter", suffix)
    size = setting_widget("chunk_tokens", suffix, default=usual["chunk_tokens"], high=positions)
    most, key = size // 2, f"overlap{suffix}"
    if st.session_state.get(key, 0) > most:  # a smaller chunk size leaves less room
        st.session_state[key] = most
    values = {"splitter": splitter, "chunk_tokens": size}
    values["overlap"] = setting_widget(
        "overlap",
        suffix,
        default=min(usual["overlap"], most),
        high=most,
        disabled=SPLITTERS[splitter].is_sliding,
    )
    values["context"] = setting_widget("context", suffix)
    values["parent_tokens"] = setting_widget("parent_tokens", suffix)
    values["max_tokens"] = setting_widget("max_tokens", suffix, default=usual["max_tokens"], high=positions)
    if encoder.prompts.in_search:
        values["prompts"] = setting_widget("prompts", suffix, note=prompts_note(encoder))
    slower = " and ".join(filter(is_slower, PRECISIONS))
    note = f" This processor has none: slower here than float32: {slower}." if slower else ""
    values["precision"] = setting_widget("precision", suffix, note=note)
    return cut_of(values)


def prompts_note(encoder: Encoder) -> str:
    """Say which prompts a model was trained with, and how many tokens they take."""
    names: dict[Role, str] = {"query": "questions", "document": "chunks"}
    texts = " and ".join(f"“{text}” before {names[role]}" for role, text in encoder.prompts.in_search.items())
    n_tokens = encoder.token_limit(None) - encoder.text_limit()
    return (
        f" It was trained with {escape_markdown(texts)}. They take {counted(n_tokens, 'token')} of the limit "
        "of each chunk."
    )


def cut_in_use(encoder: Encoder) -> Cut:
    """Return how the app cuts documents, also where the page does not draw it."""
    return cut_of(settings_in_use(encoder))


def cut_values(cut: Cut) -> dict[str, Any]:
    """Return the values of the widgets that give this cut, by their keys; none for chunks that are given."""
    return {} if cut.uploaded else {key: getattr(cut, key) for key in CHUNK_SETTINGS}


def cut_of(values: Mapping[str, Any]) -> Cut:
    """Return the cut of the values of the widgets, by their keys; most models have no prompts."""
    cut = Cut(**{key: values.get(key, default(key)) for key in CHUNK_SETTINGS})
    return cut if cut.parent_tokens > cut.chunk_tokens else replace(cut, parent_tokens=0)
