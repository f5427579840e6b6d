"""The values of the app's settings: in use, by default, kept in links and files; and the widget of each."""

from collections.abc import Mapping, Sequence
from time import monotonic
from typing import Any

import streamlit as st

from engine import Encoder
from engine.models.embedding_head import MODEL_DEFAULT
from engine.settings import SETTINGS, SWEPT, Configuration
from ui.server_settings import ENCODER
from ui.text import escape_markdown, help_list, joined
from ui.widgets import choice, kept, slider

# Settings of earlier versions, which files and links may have: the labels of those removed, and new names.
REMOVED = {"expand": "Expand the question"}
FORMER_NAMES = {"answer_at": "answer_threshold", "refuse_below": "refuse_threshold", "context": "reads"}
SET, CONFIRMED_S = "just-set", 1.5  # key of what a button set, and seconds until a browser has drawn it
BUTTONS_WIDTH = 24  # characters of labels, up to which choices are drawn as buttons


def widget_keys() -> list[str]:
    """Return the keys of the settings that have a widget."""
    return [key for key, setting in SETTINGS.items() if setting.has_widget]


def default_settings(encoder: Encoder) -> dict[str, Any]:
    """Return the default of every setting, within the positions of the encoder."""
    values = {key: SETTINGS[key].default for key in widget_keys()}
    values["chunk_tokens"] = min(values["chunk_tokens"], encoder.config.max_positions)
    if not encoder.prompts.in_search:
        del values["prompts"]
    return values | {"max_tokens": encoder.max_tokens, "pooling": encoder.pooling}


def settings_in_use(encoder: Encoder) -> dict[str, Any]:
    """Return the value of every setting, also of those that the page does not draw."""
    values = {key: st.session_state.get(key, value) for key, value in default_settings(encoder).items()}
    values["overlap"] = min(values["overlap"], values["chunk_tokens"] // 2)
    values["refuse_threshold"] = min(values["refuse_threshold"], values["answer_threshold"])
    return values


def kept_settings() -> dict[str, Any]:
    """Return the values of the widgets that a workspace and a link keep."""
    state = st.session_state
    return {key: state[key] for key in widget_keys() if key in state and SETTINGS[key].allows(state[key])}


def set_values(values: Mapping[str, Any]) -> None:
    """Set widgets by a button. A second click may still send their former values: see `keep_set`."""
    state = st.session_state
    state[SET] = monotonic(), {key: (state.get(key), value) for key, value in values.items()}
    state.update(values)


def keep_set() -> None:
    """Set again what a button set just now, where the browser had not drawn it when it sent another click."""
    state, (set_at, values) = st.session_state, st.session_state.get(SET, (0.0, {}))
    if monotonic() - set_at < CONFIRMED_S:
        state.update({key: new for key, (old, new) in values.items() if key in state and state[key] == old})


def apply_settings(values: object, max_positions: int) -> None:
    """Set the widgets to values from a file or a link, leaving out what the settings do not allow."""
    given = values if isinstance(values, dict) else {}
    given = {present_name(key, value): value for key, value in given.items()}
    allowed = {key: given[key] for key in widget_keys() if key in given and SETTINGS[key].allows(given[key])}
    for key in {"chunk_tokens", "max_tokens"} & {*allowed, *st.session_state}:
        allowed[key] = min(allowed.get(key) or st.session_state[key], max_positions)
    set_values(allowed)
    gone = [label for key, label in REMOVED.items() if given.get(key)]
    gone += [
        f"{SETTINGS[key].label} {value}"
        for key, value in given.items()
        if key in widget_keys() and SETTINGS[key].choices and not SETTINGS[key].allows(value)
    ]
    if gone:
        st.toast(
            f"Left out, as this version does not have it: {escape_markdown(joined(gone, 'and'))}.",
            duration="long",
        )


def present_name(key: str, value: object) -> str:
    """Return the key that a setting of an earlier version has now, unless its value is one of that key's."""
    return key if key in SETTINGS and SETTINGS[key].allows(value) else FORMER_NAMES.get(key, key)


def settings_words(values: Mapping[str, Any]) -> dict[str, str]:
    """Return values in words, by the titles of their widgets."""
    return {SETTINGS[key].title: SETTINGS[key].words(values[key]) for key in widget_keys() if key in values}


def configuration_of(values: Mapping[str, Any]) -> Configuration:
    """Return the settings of a search from the values of the widgets, by their keys."""
    own = {key: values[key] for key in SWEPT if key in values}  # most models have no prompts
    return Configuration(**{**own, "model": ENCODER})


def setting_widget(
    key: str,
    suffix: str = "",
    *,
    names: Sequence[str] = (),
    default: Any = None,
    high: int | None = None,
    note: str = "",
    disabled: bool = False,
) -> Any:
    """Draw the widget of a setting, and return its value.

    A second widget of a setting has a ``suffix`` to its key. ``names`` are some of its choices, all if empty.
    The ``default`` is the model's own value, which comes in place of the setting's and is marked among
    choices; ``high`` is the largest number, if it is not that of the setting; ``note`` is added to the help.
    """
    setting = SETTINGS[key]
    first = setting.default if default is None else default
    names = list(names or setting.choices)
    entries = [setting.choices[name] for name in names if name in setting.choices]
    lines = help_list(each for each in entries if each.help)
    text = "\n".join(filter(None, (f"{setting.help} {setting.details}".strip() + note, lines)))
    if isinstance(setting.default, bool):
        return st.toggle(setting.title, first, **kept(f"{key}{suffix}"), help=text)
    if not names:
        most = setting.high if high is None else high
        assert most is not None, "sliders have a range"
        options = range(int(setting.low), int(most) + 1, int(setting.step))
        return slider(setting.title, options, first, f"{key}{suffix}", text, disabled)

    def words(name: str) -> str:
        return setting.words(name) + (" · the model's own" if name == default != MODEL_DEFAULT else "")

    if sum(len(words(name)) for name in names) <= BUTTONS_WIDTH:
        return choice(setting.title, names, f"{key}{suffix}", text, first, words)
    return st.selectbox(
        setting.title, names, names.index(first), format_func=words, **kept(f"{key}{suffix}"), help=text
    )
