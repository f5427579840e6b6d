"""The card of the app's settings: those in use, those that are not the defaults, *Reset* and *Undo*."""

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from engine import Encoder
from engine.documents.document import Document
from engine.settings import SETTINGS
from engine.weights.catalog import DEFAULT_ENCODER
from engine.wording import counted
from ui.export_as_code import code_button, export_as_code
from ui.models import model_words
from ui.setting_values import configuration_of, default_settings, settings_in_use
from ui.text import escape_markdown
from ui.uploaded_vectors import uploaded_vectors


def changed_settings(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, str]:
    """Return the settings that differ in words: ``chunk size 64 → 192``."""
    return {
        key: f"{SETTINGS[key].name} {SETTINGS[key].words(old[key])} → {SETTINGS[key].words(value)}"
        for key, value in new.items()
        if old[key] != value
    }


def change_button(label: str, now: Mapping[str, Any], wanted: Mapping[str, Any], icon: str) -> None:
    """Draw a button that sets the settings to the wanted ones; it is explained by what it changes."""
    changes = changed_settings(now, wanted)
    st.button(
        label,
        on_click=st.session_state.update,
        args=({key: wanted[key] for key in changes},),
        help="\n".join(f"- {change}" for change in changes.values()),
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
        uploaded = uploaded_vectors(documents)
        chunks = f"{words['splitter']}, {words['chunk_tokens']} tokens · {words['pooling']}"
        if uploaded is not None:
            chunks = f"{counted(len(uploaded.index.chunks), 'chunk')} with their vectors"
        st.caption(
            f"{counted(len(documents), 'document')} · {chunks} · {words['retriever']} · "
            f"{counted(now['k'], 'passage')}"
        )
        if encoder.name != DEFAULT_ENCODER:
            st.caption(escape_markdown(model_words(encoder)))
        if changed := changed_settings(defaults, now):
            st.caption(f"**{len(changed)} changed:** {', '.join(SETTINGS[key].name for key in changed)}")
        with st.container(horizontal=True, gap="xsmall"):
            if changed:
                change_button("Reset", now, defaults, ":material/restart_alt:")
            if undone := changed_settings(now, before := state.get("settings-before", now)):
                label = f"{len(undone)} settings" if len(undone) > 1 else next(iter(undone.values()))
                change_button(f"Undo: {label}", now, before, ":material/undo:")
            if uploaded is None and code_button("export-as-code"):
                large = now["parent_tokens"] if now["parent_tokens"] > now["chunk_tokens"] else 0
                export_as_code(configuration_of(now), encoder, large)
