"""The settings of the server, and what they allow its visitors.

Each is an environment variable, or an entry of Streamlit's secrets where there is no such variable.
`docs/deployment.md` lists them. On a public server, GLASSBOX_PUBLIC, visitors use only the models and servers
of its operator, nothing is kept on disk, and files are smaller.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import streamlit as st
from streamlit import config
from streamlit.errors import StreamlitSecretNotFoundError

from engine.documents.loaders import MAX_BYTES
from engine.errors import InputError
from engine.limited_process import Limits
from engine.limited_program import memory_in_use
from engine.limited_reader import read_limited
from engine.models.second_models import SECOND_MODELS
from engine.weights.catalog import DEFAULT_DECODER, DEFAULT_ENCODER
from ui.text import joined

T = TypeVar("T")

PUBLIC, SERVERS, WORKSPACES = "GLASSBOX_PUBLIC", "GLASSBOX_SERVERS", "GLASSBOX_WORKSPACES"
OFF = "off"
NO = ("", "0", "false", "no", OFF)


def server_setting(name: str, default: str = "") -> str:
    """Return a setting of the server, ``default`` where it is not set or empty."""
    value: object = os.environ.get(name)
    if value is None:
        try:
            value = st.secrets.get(name, "")
        except StreamlitSecretNotFoundError:  # there is no file of secrets
            value = ""
    return str(value).strip() or default


ENCODER = server_setting("GLASSBOX_ENCODER", DEFAULT_ENCODER)
DECODER = server_setting("GLASSBOX_DECODER", DEFAULT_DECODER)
SECOND = {kind: server_setting(f"GLASSBOX_{kind.upper()}") for kind in SECOND_MODELS}


@dataclass(frozen=True)
class VisitorLimits:
    """The most that a visitor may use."""

    document_mb: int  # of files
    workspace_mb: int
    characters: int  # of documents together
    cells: int  # of a grid
    kept_mb: int  # of keys and values that all visitors' last prompts keep together
    reading: Limits  # of one file


OWN_LIMITS = VisitorLimits(MAX_BYTES // 1024**2, 200, 1_000_000_000, 10_000, 2000, Limits(90, 2000))
PUBLIC_LIMITS = VisitorLimits(5, 20, 2_000_000, 50, 20, Limits(20, 170, first=Limits(4, 50)))
CROWDED, CROWDED_MB = 400_000_000, 120  # bytes of the app with many visitors, and what a file has then


def is_public() -> bool:
    """Whether the server is public; any value but those of `NO` says so."""
    return server_setting(PUBLIC).lower() not in NO


def limits() -> VisitorLimits:
    """Return the limits of this server's visitors: of files, no more than Streamlit's server takes."""
    own, taken = PUBLIC_LIMITS if is_public() else OWN_LIMITS, int(st.get_option("server.maxUploadSize"))
    if is_public() and memory_in_use(os.getpid()) > CROWDED:
        own = replace(own, reading=replace(own.reading, megabytes=CROWDED_MB))
    return replace(own, document_mb=min(own.document_mb, taken), workspace_mb=min(own.workspace_mb, taken))


def read_upload(read: Callable[[str, bytes], T], name: str, content: bytes) -> T:
    """Read an uploaded file by a function of the engine, in a child process with this server's limits."""
    return read_limited(read, name, content, limits=limits().reading)


def bound_uploads() -> None:
    """Have the server itself take no larger file than a box offers."""
    config.set_option("server.maxUploadSize", limits().workspace_mb)


def operators_servers() -> tuple[str, ...]:
    """Return the addresses of servers of models that visitors of a public server may use."""
    return tuple(server_setting(SERVERS).replace(",", " ").split())


def offers_servers() -> bool:
    """Whether a visitor may use any server of models."""
    return not is_public() or bool(operators_servers())


def check_source(source: str) -> None:
    """Raise `InputError`, the same for all, for a model that a public server's visitor may not use."""
    models, servers = [name for name in (ENCODER, DECODER, *SECOND.values()) if name], operators_servers()
    is_named = source in models or base_address(source) in map(base_address, servers)
    if is_public() and not is_named:
        named = joined([*(Path(model).name for model in models), *servers], "and")
        raise InputError(
            f"this public server uses no models but {named}: start Glassbox on a machine of your own to use "
            "others"
        )


def base_address(address: str) -> str:
    """Return the address of a server without the name of a model and the path ``/v1``."""
    return address.partition("#")[0].strip().rstrip("/").removesuffix("/v1")
