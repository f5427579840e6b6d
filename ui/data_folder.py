"""The folder in which the app keeps what outlives a session, if it may."""

from collections.abc import Callable
from ipaddress import IPv6Address, ip_address
from pathlib import Path
from urllib.parse import urlsplit

import streamlit as st
from platformdirs import user_data_path
from streamlit import runtime

from engine.atomic_write import write_atomically
from ui.server_settings import OFF, WORKSPACES, is_public, server_setting

VECTORS = "vectors.sqlite3"  # a file in it
MODELS, EXPERIMENTS = "models", "experiments"  # folders in it
SWITCHED_OFF = "keep_nothing"  # a file in the folder
LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")


def data_folder() -> Path | None:
    """Return the folder for files that outlive a session, None where there may be none.

    The setting GLASSBOX_WORKSPACES names it, or is ``off``. Without it, visitors on the app's own machine
    have the data folder of its user, and all others none. A public server keeps nothing.
    """
    if is_public():
        return None
    if folder := server_setting(WORKSPACES):
        return None if folder == OFF else Path(folder).expanduser()
    return user_data_path("glassbox", appauthor=False) if is_local() else None


def kept_folder() -> Path | None:
    """Return the `data_folder`, None where the user has switched it off."""
    folder = data_folder()
    return None if folder is None or (folder / SWITCHED_OFF).exists() else folder


def own_folder() -> Path | None:
    """Return the `kept_folder` for what one user works with, None for visitors who may share it."""
    return kept_folder() if is_local() else None


def model_file(name: str, suffix: str = ".safetensors") -> Path | None:
    """Return the file in which a model trained here is kept, None where it is not."""
    folder = own_folder()
    return None if folder is None else folder / MODELS / f"{name}{suffix}"


def write_model(file: Path | None, content: Callable[[], bytes]) -> str:
    """Write a model's file whole, if work is kept; return "cannot be kept in …", or ""."""
    if file is None or (file.parents[1] / SWITCHED_OFF).exists():
        return ""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, content())
    except OSError as error:
        return f"cannot be kept in {file.parent} ({error.strerror})"
    return ""


def is_local() -> bool:
    """Whether the browser runs on the app's own machine: no other name and no proxy between them."""
    if not runtime.exists() or (url := st.context.url) is None:
        return False
    is_direct = is_loopback(st.context.ip_address) and "X-Forwarded-For" not in st.context.headers
    return is_direct and urlsplit(url).hostname in LOCAL_HOSTS


def is_loopback(address: str | None) -> bool:
    """Whether an address is the machine's own, for which Streamlit says None, too.

    A server that listens for IPv4 and IPv6 at once, as Streamlit does by default, sees ``::ffff:127.0.0.1``.
    """
    if address is None:
        return True
    try:
        seen = ip_address(address)
    except ValueError:
        return False
    mapped = seen.ipv4_mapped if isinstance(seen, IPv6Address) else None
    return (mapped or seen).is_loopback
