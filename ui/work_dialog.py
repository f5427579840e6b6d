"""The sidebar's line on what is kept of a session, and the dialog that saves, downloads and opens it."""

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine.errors import GlassboxError
from engine.storage.workspace import (
    Workspace,
    export_workspace,
    import_workspace,
    open_workspace,
    save_workspace,
)
from ui.chunk_settings import cut_in_use
from ui.corpus import index_documents
from ui.data_folder import data_folder, is_local, kept_folder
from ui.embedding import NotEmbeddedError
from ui.models import load_encoder
from ui.server_settings import limits, read_upload
from ui.session_work import apply_workspace, contents, keeping_words, session_work, switch_keeping
from ui.setting_values import settings_in_use
from ui.text import escape_markdown, show_error
from ui.widgets import download

SUFFIX = ".glassbox"


def show_keeping() -> DeltaGenerator:
    """Draw whether the session's work is kept, and the button that opens the dialog; return its row."""
    failure = st.session_state.get("keeping-failed")
    st.caption(f"Your work is {keeping_words()}.")
    buttons = st.container(horizontal=True, horizontal_alignment="distribute")
    buttons.button("Save or open", key="work", on_click=open_dialog, icon=":material/save:", type="tertiary")
    if failure:
        st.warning(escape_markdown(failure), icon=":material/cloud_off:")
    return buttons


def show_work_dialog() -> None:
    """Draw the dialog if it is open, and say what was opened or saved in it."""
    if st.session_state.get("work-dialog"):
        show_work()
    if opened := st.session_state.pop("work-opened", None):
        st.toast(escape_markdown(opened), icon=":material/check_circle:", duration="long")


def open_dialog() -> None:
    """Have the dialog drawn, until it is closed."""
    st.session_state["work-dialog"] = True


def close_dialog() -> None:
    """Have the dialog drawn no more."""
    st.session_state["work-dialog"] = False


@st.dialog("Your work", width="medium", on_dismiss=close_dialog)
def show_work() -> None:
    """Draw the switch, the workspaces on this machine, the download of a workspace, and the upload of one."""
    state, encoder = st.session_state, load_encoder()
    st.write(
        "A workspace holds your documents with their vectors, which of them are searched, your questions, "
        "the runs of experiments, and every setting."
    )
    if data_folder() is not None and is_local():
        show_switch()
    work = session_work()
    if work.documents:
        pooling = settings_in_use(encoder)["pooling"]
        try:
            index = index_documents(work.documents, encoder, cut_in_use(encoder), pooling)
            work = replace(work, index=index)
        except NotEmbeddedError:
            st.caption("The vectors are not all computed yet: a workspace that is saved now has none.")
    with st.container(border=True):
        name = f"{datetime.now():%Y-%m-%d}{SUFFIX}"
        download("Download the workspace", lambda: export_workspace(work), name)
        st.caption(f"{contents(work)}, and the settings.")
    with st.container(border=True):
        key = f"workspace-{state.setdefault('workspace-uploader', 0)}"
        st.file_uploader(
            "Open a workspace",
            type=[SUFFIX.lstrip(".")],
            key=key,
            max_upload_size=limits().workspace_mb,
            on_change=open_upload,
            args=(key,),
            help="Replaces the documents and settings of this session. Nothing in the file is executed.",
        )
    if (folder := kept_folder()) is not None:
        show_folder(work, folder)
    if error := state.pop("workspace-error", None):
        show_error(error)
    if "work-opened" in state:
        close_dialog()
        st.rerun()


def show_switch() -> None:
    """Draw the switch that keeps the work on this machine."""
    state = st.session_state
    state["keep-work"] = kept_folder() is not None
    st.toggle(
        "Keep my work on this computer",
        key="keep-work",
        on_change=lambda: switch_keeping(state["keep-work"]),
        help="Documents, questions, runs and settings are there again after a reload. Switched off, what was "
        "kept is deleted, and nothing outlives the tab but workspaces that you save.",
    )
    st.caption(f"In {escape_markdown(str(data_folder()))}.")


def show_folder(work: Workspace, folder: Path) -> None:
    """Draw the workspaces kept under a name in a folder of this machine."""
    with st.container(border=True):
        name, save = st.columns([3, 1], vertical_alignment="bottom")
        path: Path | None = st.session_state.get("workspace-path")  # where it was saved or opened
        former = path.stem if path else "my workspace"
        name.text_input("Save under a name", former, key="workspace-name", max_chars=80)
        save.button("Save", on_click=save_here, args=(work, folder), icon=":material/save:", width="stretch")
        kept = sorted(path.stem for path in folder.glob(f"*{SUFFIX}"))
        if kept:
            chosen, open_it = st.columns([3, 1], vertical_alignment="bottom")
            chosen.selectbox("Saved workspaces", kept, key="workspace-chosen")
            open_it.button(
                "Open", on_click=open_here, args=(folder,), icon=":material/folder_open:", width="stretch"
            )
        if not is_local():
            st.caption("Everybody who opens this app sees the saved workspaces.")


def open_upload(key: str) -> None:
    """Open an uploaded workspace."""
    state = st.session_state
    if (file := state[key]) is not None:
        apply(lambda: (read_upload(import_workspace, file.name, file.getvalue()), None))
        state["workspace-uploader"] += 1  # a fresh, empty uploader


def open_here(folder: Path) -> None:
    """Open a workspace that is kept on this machine."""
    path = path_of(folder, st.session_state["workspace-chosen"])
    apply(lambda: (open_workspace(path), path))


def apply(read: Callable[[], tuple[Workspace, Path | None]]) -> None:
    """Apply the workspace that is read; one that cannot be read leaves the session unchanged."""
    state = st.session_state
    try:
        workspace, state["workspace-path"] = read()
        apply_workspace(workspace)
        state["work-opened"] = f"Opened: {contents(workspace)}, and the settings."
    except GlassboxError as error:
        state["workspace-error"] = str(error)


def path_of(folder: Path, name: str) -> Path:
    """Return the path of a workspace: of its name, only letters, digits, blanks, dots and dashes."""
    safe = re.sub(r"[^\w .-]", "_", name.strip()).strip(".") or "workspace"
    return folder / f"{safe}{SUFFIX}"


def save_here(work: Workspace, folder: Path) -> None:
    """Save the session under its name on this machine."""
    state = st.session_state
    try:
        path = path_of(folder, state["workspace-name"])
        path.parent.mkdir(parents=True, exist_ok=True)
        # A file that another session saved under this name since is not overwritten.
        known = state.get("workspace-path") == path
        saved = save_workspace(path, work if known else replace(work, saved_as=""))
        state["workspace"], state["workspace-path"] = replace(saved, index=None), path
        state["work-opened"] = f"Saved as {path.stem}."
    except (GlassboxError, OSError) as error:
        state["workspace-error"] = str(error)
