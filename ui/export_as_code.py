"""Settings exported as code: the choice of a library, the script, its download, and what it leaves out."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import streamlit as st

from engine.errors import GlassboxError
from engine.export.libraries import LIBRARIES
from engine.export.script import export
from engine.installed import PROGRAM
from engine.retrieval.embedding_model import Model
from engine.settings import Configuration
from ui.text import escape_markdown, show_error
from ui.widgets import choice, download

FILE_NAME, SETTINGS_FILE = "search.py", "settings.json"


def code_button(key: str) -> bool:
    """Draw the button that opens `export_as_code`; return whether it was pressed."""
    return st.button(
        "Export as code",
        key=key,
        help="A Python script for sentence-transformers, LangChain, LlamaIndex or Haystack.",
        icon=":material/code:",
        type="tertiary",
    )


def settings_file(configuration: Configuration, parent_tokens: int, others: Mapping[str, Any]) -> str:
    """Return the content of a file of settings, which the command line takes, too."""
    values = {**others, **asdict(configuration), "parent_tokens": parent_tokens}
    return json.dumps(values, indent=2)


@st.dialog("Export as code", width="large")
def export_as_code(
    configuration: Configuration, model: Model, parent_tokens: int, others: Mapping[str, Any] | None = None
) -> None:
    """Draw the choice of a library, the script that finds the same passages, and the settings."""
    st.caption(
        "A Python script that cuts your documents into the same chunks and finds the same passages, without "
        "this app."
    )
    names = list(LIBRARIES)
    to = choice("Library", names, "export-as-code-library", format_func=lambda name: LIBRARIES[name].label)
    try:
        exported = export(configuration, model, to, parent_tokens)
    except GlassboxError as error:
        show_error(error)
        return
    if exported.left_out:
        lines = "\n".join(f"- {escape_markdown(words)}" for words in exported.left_out)
        st.warning(f"Not carried over:\n{lines}", icon=":material/content_cut:")
    with st.container(horizontal=True):
        download("Download the script", exported.script, FILE_NAME)
        taken_by = f"For the command line: `{PROGRAM} ask … --settings {SETTINGS_FILE}`."
        settings = settings_file(configuration, parent_tokens, others or {})
        download("Download the settings", settings, SETTINGS_FILE, taken_by)
    st.caption(
        "It reads Markdown and text files. Answers, their checks and the relevance threshold stay here: the "
        "script finds passages."
    )
    st.code(f'python {FILE_NAME} my_notes/ "What do I want to know?"', language="bash", wrap_lines=True)
    st.code(exported.script, language="python", wrap_lines=True)
