"""The address of a page: it names the question, the settings and the documents, and opens them again."""

import json
from typing import Any
from urllib.parse import urlencode, urlsplit

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine.settings import SETTINGS
from ui.asking import last_asked, queue_question
from ui.current import current_question, set_question
from ui.documents import MOST_CHIPS, searched_files, session_files
from ui.models import load_encoder
from ui.server_settings import server_setting
from ui.session_work import keep_only_changes
from ui.setting_values import FORMER_NAMES, REMOVED, apply_settings, default_settings, kept_settings
from ui.text import listed

QUESTION, DOCUMENTS = "question", "search"
# What an address says of a page, and the widget that holds it.
PARTS = {
    "documents": {"tab": "documents-tab", "document": "chunks-document"},
    "diagnose": {"way": "diagnose-way-True"},  # the widget where questions are labelled
    "poolings": {"tab": "pooling-tab"},
    "questions": {"tab": "questions-tab"},
    "answer": {"tab": "inside-answer-tab"},
    "matches": {"tab": "matches-tab"},
    "chunk": {
        "input": "source-encoder",
        "document": "inside-document",
        "chunk": "inside-chunk",
        "tab": "inside-tab",
    },
}
MANY = "many files"  # in an address, in place of their names: those that are searched stay
LINK_KEY = "copy-link"  # of the button
ANSWERING = ("", "answer")  # the addresses of pages that answer the question


def open_address(address: str) -> None:
    """At the start of a session, take the server's settings and what the address of a page says.

    Unknown names and values are ignored. A setting that the address does not name has its default, as in the
    session that made the address. Kept work stays as it is until something is changed.
    """
    state, given = st.session_state, st.query_params
    if "address-opened" in state:
        return
    state["address-opened"] = True
    if kept := server_setting("GLASSBOX_SETTINGS"):
        apply_settings(value_of(kept), load_encoder().config.max_positions)
    parts = PARTS.get(address, {})
    if not set(given) & {QUESTION, DOCUMENTS, *parts, *SETTINGS, *REMOVED, *FORMER_NAMES}:
        return
    encoder = load_encoder()
    values = {name: value_of(text) for name, text in given.items()}
    apply_settings(default_settings(encoder) | values, encoder.config.max_positions)
    for name in set(given) & set(parts):
        state[parts[name]] = values[name] if name == "chunk" else given[name]
    names, files = given.get_all(DOCUMENTS), session_files()
    if MANY not in names:
        state["searched"] = [name for name in names if name in files] or list(files)
        state["address-documents"] = names
    keep_only_changes()
    question = given.get(QUESTION, "")
    set_question(question)
    if address in ANSWERING and question:
        queue_question(question)


def show_missing_documents() -> None:
    """Say which documents the address named that are not here."""
    names = st.session_state.get("address-documents", ())
    if missing := [name for name in names if name not in session_files()]:
        words = f"The link names documents that are not here: {listed(missing)}. Add them in the sidebar."
        st.warning(words, icon=":material/link_off:")


def address_query(address: str) -> str:
    """Return what the address of a page says after its ``?``: what differs from the first visit."""
    state = st.session_state
    parts: dict[str, Any] = {}
    asked = last_asked()
    if question := asked.typed if asked and address in ANSWERING else current_question():
        parts[QUESTION] = question
    parts |= {name: state[key] for name, key in PARTS.get(address, {}).items() if state.get(key)}
    if kept := kept_settings():
        defaults = default_settings(load_encoder())
        parts |= {key: text_of(value) for key, value in kept.items() if value != defaults[key]}
    if (searched := searched_files()) != list(session_files()):
        parts[DOCUMENTS] = searched if len(searched) <= MOST_CHIPS else MANY
    return urlencode(parts, doseq=True)


def show_address(address: str, link_place: DeltaGenerator) -> None:
    """Set the address in the browser, and draw the button that copies it as a link, and shows it.

    The browser's history gets no entry for every change of a setting. The browser may run the script again
    when its Back button has just led to another page, whose address stays then.
    """
    query = address_query(address)
    said = f"?{query}" if query else ""
    base = (st.context.url or "").partition("?")[0].rstrip("/")
    link = f"{base}{'' if address else '/'}{said}"
    path, target = json.dumps(urlsplit(base).path), json.dumps(f"{address or '.'}{said}")
    with link_place.popover("Copy link", icon=":material/link:", type="tertiary", key=LINK_KEY):
        st.caption(
            "Copied, if your browser allows it. The link names page, question, settings and documents, and "
            "holds no text of the documents."
        )
        st.code(link, language=None, wrap_lines=True)
    st.html(
        f"<script>if (location.pathname.replace(/\\/+$/, '') === {path}) "
        f"history.replaceState(history.state, '', {target});"
        f"document.querySelector('.st-key-{LINK_KEY} button').onclick = "
        f"() => navigator.clipboard?.writeText({json.dumps(link)})</script>",
        unsafe_allow_javascript=True,
    )


def text_of(value: Any) -> str:
    """Return a setting as text of an address: numbers and ``true`` as in JSON, names as they are."""
    return value if isinstance(value, str) else json.dumps(value)


def value_of(text: str) -> object:
    """Return the setting that `text_of` wrote."""
    try:
        return json.loads(text)
    except ValueError:
        return text
