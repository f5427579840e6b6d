"""The choice of the model that writes a text on request: the built-in decoder, another one, or a server."""

import streamlit as st

from engine.errors import GlassboxError
from engine.generation.server import Server
from pages.ask.decoder_choice import decoder_picker
from ui.server_settings import check_source, is_public, offers_servers, operators_servers
from ui.text import escape_markdown
from ui.widgets import kept

DEFAULT_URL = "http://localhost:11434/v1"
BUILT_IN, ON_SERVER = "Built in (inspected)", "A server"


def model_picker() -> Server | None:
    """Draw the choice; return the server that writes the texts, None for the built-in decoder."""
    if offers_servers():
        writer = st.radio(
            "Who writes a text",
            (BUILT_IN, ON_SERVER),
            captions=("NumPy, on this machine, every step open", "Ollama, vLLM, llama-server and the like"),
            **kept("writer"),
            help="Both get the same passages and the same instructions. Only the built-in one can be "
            "inspected.",
        )
        if writer == ON_SERVER:
            return server_picker()
    decoder_picker()
    return None


def server_picker() -> Server:
    """Draw the address, key and model of a server."""
    default = operators_servers()[0] if is_public() else DEFAULT_URL
    url = st.text_input(
        "Address",
        default,
        **kept("server_url"),
        help="Any server with an OpenAI-compatible interface. Ollama's is http://localhost:11434/v1, vLLM's "
        "http://localhost:8000/v1, llama-server's http://localhost:8080/v1.",
    ).strip()
    check_source(url)
    api_key = st.text_input(
        "Key",
        type="password",
        **kept("server_key"),
        help="Only if the server needs one. It is sent to this address only and forgotten when this session "
        "ends.",
    ).strip()
    names, reason = server_models(url, api_key)
    model = st.selectbox(
        "Model",
        names,
        index=0 if names else None,
        accept_new_options=True,
        **kept(f"server_model-{url}"),
        placeholder="Name of a model",
    )
    if reason:
        st.error(escape_markdown(reason), icon=":material/cloud_off:")
    st.button("Look for models again", key="retry_server", on_click=server_models.clear)
    return Server(url, model or "", api_key)


@st.cache_data(scope="session", max_entries=8, show_spinner="Asking the server for its models…")
def server_models(url: str, api_key: str) -> tuple[list[str], str]:
    """Return the names of a server's models and an empty reason, or none and the reason; cached."""
    try:
        return Server(url, api_key=api_key).models(), ""
    except GlassboxError as error:
        return [], str(error)
