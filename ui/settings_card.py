"""The app's settings: their labels and defaults in one table, those in use, and the card that shows them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from engine import Encoder
from engine.documents.document import Document
from engine.documents.splitters import DEFAULT_SPLITTING, SPLITTERS
from engine.evaluation.grid import Cell
from engine.generation.sampling import RULES
from engine.generation.settings import CONTEXTS, DEFAULT_ANSWER, DEFAULT_SEARCH
from engine.layers.pooling import pooling_label
from engine.models.precision import PRECISIONS
from engine.models.prompts import PROMPT_USES
from engine.retrieval.index_kinds import AUTO, index_kind_label
from engine.retrieval.retrievers import RETRIEVERS
from engine.weights.catalog import DEFAULT_ENCODER
from engine.wording import counted
from ui.export_as_code import code_button, export_as_code
from ui.given_vectors import given_of
from ui.models import model_words
from ui.server_settings import ENCODER
from ui.text import escape_markdown


def value_words(value: object) -> str:
    """``1,024``, ``0.5``, ``on``, ``none``."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return "none" if value is None else f"{value:,g}"


@dataclass(frozen=True)
class Setting:
    """The label of a widget, the value that it has at first, and the function that puts values into words."""

    label: str
    default: Any
    words: Callable[[Any], str] = value_words

    @property
    def name(self) -> str:
        """The label within a sentence, without its unit: ``chunk size``."""
        return self.label[0].lower() + self.label[1:].partition(" (")[0]


# By the keys of the widgets, in their order in the sidebar.
SETTINGS = {
    "splitter": Setting("Splitter", DEFAULT_SPLITTING.method, lambda name: SPLITTERS[name].label),
    "chunk_tokens": Setting("Chunk size (tokens)", DEFAULT_SPLITTING.chunk_tokens),
    "overlap": Setting("Overlap (tokens)", DEFAULT_SPLITTING.overlap),
    "parent_tokens": Setting("Small to big (tokens)", 0),
    "max_tokens": Setting("Token limit of the encoder", None),  # the encoder's own
    "pooling": Setting("Pooling", "mean", pooling_label),
    "prompts": Setting("Prompts of the model", "own", lambda name: PROMPT_USES[name].label),
    "precision": Setting("Precision", "float32", lambda name: PRECISIONS[name].label),
    "retriever": Setting("Retriever", DEFAULT_SEARCH.retriever, lambda name: RETRIEVERS[name].label),
    "index_kind": Setting("Index", AUTO, index_kind_label),
    "k": Setting("Passages", DEFAULT_SEARCH.k),
    "min_relevance": Setting("Relevance threshold", round(DEFAULT_SEARCH.min_relevance)),
    "max_prompt_tokens": Setting("Prompt budget (tokens)", DEFAULT_ANSWER.max_prompt_tokens),
    "max_new_tokens": Setting("Longest answer (tokens)", DEFAULT_ANSWER.max_new_tokens),
    "think": Setting("Let the model think first", DEFAULT_ANSWER.think),
    "follow_ups": Setting("Follow-up questions", True),
    "context": Setting("The model reads", DEFAULT_ANSWER.context, CONTEXTS.__getitem__),
    "answer_at": Setting("Answered from (% sure)", round(100 * DEFAULT_ANSWER.answer_threshold)),
    "refuse_below": Setting("Refused below (% sure)", round(100 * DEFAULT_ANSWER.refuse_threshold)),
    **{name: Setting(rule.label, rule.off) for name, rule in RULES.items()},
    "seed": Setting("Seed", None),
}


def default_settings(encoder: Encoder) -> dict[str, Any]:
    """Return the default of every setting, within the positions of the encoder."""
    values = {key: setting.default for key, setting in SETTINGS.items()}
    values["chunk_tokens"] = min(values["chunk_tokens"], encoder.config.max_positions)
    if not encoder.prompts.in_search:
        del values["prompts"]
    return values | {"max_tokens": encoder.max_tokens, "pooling": encoder.pooling}


def settings_in_use(encoder: Encoder) -> dict[str, Any]:
    """Return the value of every setting, also of those that the page does not draw."""
    values = {key: st.session_state.get(key, value) for key, value in default_settings(encoder).items()}
    values["overlap"] = min(values["overlap"], values["chunk_tokens"] // 2)
    values["refuse_below"] = min(values["refuse_below"], values["answer_at"])
    return values


def settings_words(values: Mapping[str, Any]) -> dict[str, str]:
    """Return values in words, by the labels of their widgets."""
    return {SETTINGS[key].label: SETTINGS[key].words(values[key]) for key in SETTINGS if key in values}


def steps(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, str]:
    """Return the settings that differ in words: ``chunk size 64 → 192``."""
    return {
        key: f"{SETTINGS[key].name} {SETTINGS[key].words(old[key])} → {SETTINGS[key].words(value)}"
        for key, value in new.items()
        if old[key] != value
    }


def cell_of(values: Mapping[str, Any]) -> Cell:
    """Return the settings of a search from the values of the widgets, by their keys."""
    names = ("splitter", "chunk_tokens", "overlap", "max_tokens", "pooling", "retriever", "k", "precision")
    prompts = values.get("prompts", "own")  # most models have none
    return Cell(model=ENCODER, prompts=prompts, **{name: values[name] for name in names})


def change_button(label: str, now: Mapping[str, Any], wanted: Mapping[str, Any], icon: str) -> None:
    """Draw a button that sets the settings to the wanted ones; it is explained by what it changes."""
    changes = steps(now, wanted)
    st.button(
        label,
        on_click=st.session_state.update,
        args=({key: wanted[key] for key in changes},),
        help="\n".join(f"- {step}" for step in changes.values()),
        icon=icon,
        type="tertiary",
    )


def show_settings_card(documents: Sequence[Document], encoder: Encoder) -> None:
    """Draw the settings in use, those that are not the defaults, *Reset*, *Undo* and *Export as code*."""
    now, defaults, state = settings_in_use(encoder), default_settings(encoder), st.session_state
    if state.setdefault("settings-seen", now) != now:
        state["settings-before"], state["settings-seen"] = state["settings-seen"], now
    words = {key: SETTINGS[key].words(value) for key, value in now.items()}
    with st.container(border=True, gap="xxsmall", key="settings-card"):
        given = given_of(documents)
        chunks = f"{words['splitter']}, {words['chunk_tokens']} tokens · {words['pooling']}"
        if given is not None:
            chunks = f"{counted(len(given.index.chunks), 'chunk')} with their vectors"
        st.caption(
            f"{counted(len(documents), 'document')} · {chunks} · {words['retriever']} · "
            f"{counted(now['k'], 'passage')}"
        )
        if encoder.name != DEFAULT_ENCODER:
            st.caption(escape_markdown(model_words(encoder)))
        if changed := steps(defaults, now):
            st.caption(f"**{len(changed)} changed:** {', '.join(SETTINGS[key].name for key in changed)}")
        with st.container(horizontal=True, gap="xsmall"):
            if changed:
                change_button("Reset", now, defaults, ":material/restart_alt:")
            if undone := steps(now, before := state.get("settings-before", now)):
                label = f"{len(undone)} settings" if len(undone) > 1 else next(iter(undone.values()))
                change_button(f"Undo: {label}", now, before, ":material/undo:")
            if given is None and code_button("export-as-code"):
                large = now["parent_tokens"] if now["parent_tokens"] > now["chunk_tokens"] else 0
                export_as_code(cell_of(now), encoder, large)
