"""The card of the app's settings: those in use, those that are not the defaults, *Reset* and *Undo*."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import streamlit as st

from engine import Encoder
from engine.documents.document import Document
from engine.settings import SETTINGS, changes_in_words
from engine.weights.catalog import DEFAULT_ENCODER
from engine.wording import counted
from ui.export_as_code import code_button, export_as_code
from ui.models import model_words
from ui.setting_values import configuration_of, default_settings, set_values, settings_in_use
from ui.text import escape_markdown
from ui.uploaded_vectors import uploaded_vectors

# Keys of the session: the settings last drawn, those that the last change was of, and those of earlier steps.
SEEN, CHANGED, UNDO, REDO = "settings-seen", "settings-changed", "settings-undo", "settings-redo"
MOST_STEPS = 20


def note_change(now: Mapping[str, Any]) -> None:
    """Keep the settings before a change, to be undone; changes of the same settings in a row are one step."""
    state = st.session_state
    seen = state.setdefault(SEEN, now)
    changed = list(changes_in_words(seen, now))
    if not changed:
        return
    if changed != state.get(CHANGED):
        state[UNDO] = [*state.get(UNDO, [])[1 - MOST_STEPS :], seen]
    if state[UNDO][-1] == now:  # back where the step began
        state[UNDO], changed = state[UNDO][:-1], []
    state[SEEN], state[CHANGED], state[REDO] = now, changed, []


def go_back(now: Mapping[str, Any], taken: str, kept: str) -> None:
    """Set the last settings of one list of steps, and keep those of now in the other: undo, or redo."""
    state = st.session_state
    *state[taken], wanted = state[taken]
    state[kept] = [*state.get(kept, []), now]
    state[SEEN], state[CHANGED] = wanted, None
    set_values({key: wanted[key] for key in changes_in_words(now, wanted)})


def step_button(name: str, now: Mapping[str, Any], taken: str, kept: str, icon: str) -> None:
    """Draw the button that undoes a step, or does it again; it is explained by what it changes."""
    if not (steps := st.session_state.get(taken)):
        return
    changes = list(changes_in_words(now, steps[-1]).values())
    label = f"{len(changes)} settings" if len(changes) > 1 else "".join(changes)
    st.button(
        f"{name}: {label}",
        on_click=go_back,
        args=(now, taken, kept),
        help=as_list(changes),
        icon=icon,
        type="tertiary",
    )


def as_list(changes: Iterable[str]) -> str:
    """Return changes as a list in Markdown."""
    return "\n".join(f"- {change}" for change in changes)


def show_settings_card(documents: Sequence[Document], encoder: Encoder) -> None:
    """Draw the settings in use, those that are not the defaults, and buttons that change or export them."""
    now, defaults = settings_in_use(encoder), default_settings(encoder)
    note_change(now)
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
        if changed := changes_in_words(defaults, now):
            st.caption(f"**{len(changed)} changed:** {', '.join(SETTINGS[key].name for key in changed)}")
        with st.container(horizontal=True, gap="xsmall"):
            if changed:
                st.button(
                    "Reset",
                    on_click=set_values,
                    args=({key: defaults[key] for key in changed},),
                    help=as_list(changes_in_words(now, defaults).values()),
                    icon=":material/restart_alt:",
                    type="tertiary",
                )
            step_button("Undo", now, UNDO, REDO, ":material/undo:")
            step_button("Redo", now, REDO, UNDO, ":material/redo:")
            if uploaded is None and code_button("export-as-code"):
                large = now["parent_tokens"] if now["parent_tokens"] > now["chunk_tokens"] else 0
                export_as_code(configuration_of(now), encoder, large, now)
