"""Configurations on pages: in words, the choice of values to try, and their use by the app."""

from collections.abc import Iterable, Sequence
from typing import Any

import streamlit as st

from engine.retrieval.retrievers import usable_retrievers
from engine.settings import SETTINGS, SWEPT, Configuration
from ui.models import load_encoder
from ui.setting_values import apply_settings
from ui.text import help_list


def choose_values(key: str, widget: str, default: Sequence[Any] | None = None, note: str = "") -> list[Any]:
    """Draw the choice of values of a setting; ``widget`` is the key, and ``note`` is added to the help."""
    setting = SETTINGS[key]
    title = setting.plural[0].upper() + setting.plural[1:]
    names = usable_retrievers(load_encoder()) if key == "retriever" else list(setting.choices)
    lines = help_list(setting.choices[name] for name in names)
    return st.multiselect(
        f"{title} ({setting.unit})" if setting.unit else title,
        names or setting.tried,
        default,
        format_func=setting.words,
        key=widget,
        persist_state="session",
        help=(lines or setting.help) + note,
    )


def value_words(configuration: Configuration, key: str) -> str:
    """Return the value of a setting in words."""
    return SETTINGS[key].words(getattr(configuration, key))


def varied(configurations: Iterable[Configuration]) -> list[str]:
    """Return the settings in which configurations differ."""
    configurations = list(configurations)
    return [key for key in SWEPT if len({getattr(one, key) for one in configurations}) > 1]


def configuration_words(configuration: Configuration, keys: Iterable[str] = SWEPT) -> str:
    """``"Chunk size 128 · Pooling mean"``, of some settings."""
    words = (f"{SETTINGS[key].label} {value_words(configuration, key)}" for key in keys)
    return " · ".join(words) or "the only setting"


def values_in_order(configurations: Iterable[Configuration], key: str) -> list[str]:
    """Return the distinct values of a setting in words: numbers by size, others in the order given."""
    values = list(dict.fromkeys(getattr(one, key) for one in configurations))
    if all(isinstance(value, int) or value is None for value in values):
        values.sort(key=lambda value: -1 if value is None else value)
    return [SETTINGS[key].words(value) for value in values]


def apply_configuration(configuration: Configuration) -> list[str]:
    """Set the app's own settings to a configuration; return the settings that its widgets could take."""
    encoder = load_encoder()
    wanted = {key: getattr(configuration, key) for key in SWEPT if SETTINGS[key].has_widget}
    if not encoder.prompts.in_search:
        del wanted["prompts"]
    if configuration.max_tokens is None:
        wanted["max_tokens"] = encoder.token_limit(None)
    apply_settings(wanted, encoder.config.max_positions)
    return [key for key, value in wanted.items() if st.session_state.get(key) == value]
