"""Settings as a script in another library: its choice, the script, its download, and what it leaves out."""

import streamlit as st

from engine.errors import GlassboxError
from engine.evaluation.grid import Cell
from engine.export.libraries import LIBRARIES
from engine.export.script import export
from engine.retrieval.embedding_model import Model
from ui.text import escape_markdown, show_error
from ui.widgets import choice

FILE_NAME = "search.py"


@st.dialog("Take it home", width="large")
def take_home(cell: Cell, model: Model, parent_tokens: int) -> None:
    """Draw the choice of a library, and the script that finds the same passages with it.

    The arguments are those of `export`.
    """
    st.caption(
        "A Python script that cuts your documents into the same chunks and finds the same passages, without "
        "this app."
    )
    names = list(LIBRARIES)
    to = choice("Library", names, "take-home-library", format_func=lambda name: LIBRARIES[name].label)
    try:
        exported = export(cell, model, to, parent_tokens)
    except GlassboxError as error:
        show_error(error)
        return
    if exported.left_out:
        lines = "\n".join(f"- {escape_markdown(words)}" for words in exported.left_out)
        st.warning(f"Not carried over:\n{lines}", icon=":material/content_cut:")
    st.download_button(
        "Download the script",
        exported.script,
        FILE_NAME,
        "text/x-python",
        key="take-home-save",
        icon=":material/download:",
        on_click="ignore",
    )
    st.caption(
        "It reads Markdown and text files. Answers, their checks and the relevance threshold stay here: the "
        "script finds passages."
    )
    st.code(f'python {FILE_NAME} my_notes/ "What do I want to know?"', language="bash", wrap_lines=True)
    st.code(exported.script, language="python", wrap_lines=True)
