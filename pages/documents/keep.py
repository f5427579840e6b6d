"""The tab that keeps a session: as a file to download, or in a folder of this machine."""

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import streamlit as st

from engine import Encoder
from engine.documents.document import Document
from engine.errors import GlassboxError
from engine.storage.workspace import (
    Workspace,
    export_workspace,
    import_workspace,
    open_workspace,
    save_workspace,
)
from engine.wording import counted
from ui.chunk_settings import Cut
from ui.corpus import WORKSPACES, index_documents, session_vectors
from ui.documents import bundled_names, check_own, searched_files, session_files, uploads
from ui.models import load_encoder
from ui.settings import kept_settings, take_settings
from ui.settings_card import settings_in_use
from ui.text import escape_markdown

SUFFIX = ".glassbox"
MAX_UPLOAD_MB = 200


def show_keep(_documents: Sequence[Document], encoder: Encoder, cut: Cut) -> None:
    """Draw the download of the session's workspace, and the upload of one."""
    st.write(
        "Documents and settings are gone when you close this session. A workspace holds them in one file: "
        "your documents, which of them are searched, and every setting."
    )
    workspace = current_workspace(encoder, cut)
    take_away, bring_back = st.columns(2)
    with take_away.container(border=True, height="stretch"):
        st.markdown("**Take it away**")
        st.caption(f"{contents(len(uploads()), workspace)}, and the settings.")
        st.download_button(
            "Download the workspace",
            lambda: export_workspace(workspace),
            file_name=f"{datetime.now():%Y-%m-%d}{SUFFIX}",
            mime="application/octet-stream",
            icon=":material/download:",
            on_click="ignore",
        )
    with bring_back.container(border=True, height="stretch"):
        st.markdown("**Bring one back**")
        key = f"workspace-{st.session_state.setdefault('workspace-uploader', 0)}"
        st.file_uploader(
            "Open a workspace",
            type=[SUFFIX.lstrip(".")],
            key=key,
            max_upload_size=MAX_UPLOAD_MB,
            on_change=take_upload,
            args=(key,),
            help="Replaces the documents and settings of this session. Nothing in the file is executed.",
        )
    if error := st.session_state.pop("workspace-error", None):
        st.error(escape_markdown(error), icon=":material/error:")
    if opened := st.session_state.pop("workspace-opened", None):
        st.success(escape_markdown(opened), icon=":material/check_circle:")
    show_folder(workspace)


def show_folder(workspace: Workspace) -> None:
    """Draw the workspaces kept on this machine, if its owner has set a folder."""
    if WORKSPACES is None:
        st.caption(
            "To keep workspaces and embeddings on this machine, start the app with the environment variable "
            "GLASSBOX_WORKSPACES set to a folder. Without it nothing outlives the session."
        )
        return
    st.subheader("On this machine")
    st.caption(f"Everybody who opens this app sees the workspaces in {escape_markdown(str(WORKSPACES))}.")
    name, save = st.columns([3, 1], vertical_alignment="bottom")
    name.text_input("Name", "my workspace", key="workspace-name", max_chars=80)
    save.button("Save", on_click=save_here, args=(workspace,), icon=":material/save:", width="stretch")
    kept = sorted(path.stem for path in WORKSPACES.glob(f"*{SUFFIX}"))
    if kept:
        chosen, open_it = st.columns([3, 1], vertical_alignment="bottom")
        chosen.selectbox("Saved workspaces", kept, key="workspace-chosen")
        open_it.button("Open", on_click=open_here, icon=":material/folder_open:", width="stretch")


def current_workspace(encoder: Encoder, cut: Cut) -> Workspace:
    """Return the session's own documents and settings, with the index of the documents."""
    files, state = uploads(), st.session_state
    own = [document for documents in files.values() for document in documents]
    layout = {name: [document.name for document in documents] for name, documents in files.items()}
    settings = {
        "files": layout,
        "searched": searched_files(),
        "widgets": kept_settings(),
    }
    index = index_documents(own, encoder, cut, settings_in_use(encoder)["pooling"]) if own else None
    opened = state.get("workspace", Workspace())
    return replace(opened, documents=tuple(own), settings=settings, index=index)


def take_workspace(workspace: Workspace) -> None:
    """Replace the session's documents and settings by those of a workspace."""
    encoder = load_encoder()
    files = grouped(workspace)
    own, state = uploads(), st.session_state
    own.clear()
    own.update(files)
    names = {*own, *bundled_names()}
    searched = workspace.settings.get("searched")
    chosen = searched if isinstance(searched, list) else names
    state["searched"] = [name for name in session_files() if name in chosen and name in names]
    take_settings(workspace.settings.get("widgets"), encoder.config.max_positions)
    index = workspace.index
    if index is not None:
        session_vectors().put_many([chunk.text for chunk in index.chunks], index.vectors, index.spec)
    state["workspace"] = replace(workspace, index=None)
    state["workspace-opened"] = f"Opened: {contents(len(own), workspace)}, and the settings."


def contents(n_files: int, workspace: Workspace) -> str:
    """Return the contents of a workspace besides settings: ``"2 files of your own, 1 question set"``."""
    held = [f"{counted(n_files, 'file')} of your own"]
    for what, n in (("question set", len(workspace.question_sets)), ("run", len(workspace.runs))):
        if n:
            held.append(counted(n, what))
    return ", ".join(held)


def grouped(workspace: Workspace) -> dict[str, tuple[Document, ...]]:
    """Return a workspace's documents by file; one without a file is a file of its own.

    Raises
    ------
    DocumentError
        A document has the name of a bundled one.
    """
    layout = workspace.settings.get("files")
    file_of = {
        name: str(file)
        for file, names in (layout if isinstance(layout, dict) else {}).items()
        for name in (names if isinstance(names, list) else [])
        if isinstance(name, str)
    }
    files: dict[str, tuple[Document, ...]] = {}
    for document in workspace.documents:
        check_own(document.name)
        file = file_of.get(document.name, document.name)
        files[file] = (*files.get(file, ()), document)
    return files


def take_upload(key: str) -> None:
    """Open an uploaded workspace; one that cannot be read leaves the session unchanged."""
    state = st.session_state
    if (file := state[key]) is None:
        return
    try:
        take_workspace(import_workspace(file.name, file.getvalue()))
        state.pop("workspace-path", None)
    except GlassboxError as error:
        state["workspace-error"] = str(error)
    state["workspace-uploader"] += 1  # a fresh, empty uploader


def path_of(name: str) -> Path:
    """Return the path of a workspace: of its name, only letters, digits, blanks, dots and dashes."""
    safe = re.sub(r"[^\w .-]", "_", name.strip()).strip(".") or "workspace"
    assert WORKSPACES is not None
    return WORKSPACES / f"{safe}{SUFFIX}"


def save_here(workspace: Workspace) -> None:
    """Save the session under its name on this machine."""
    state = st.session_state
    try:
        path = path_of(state["workspace-name"])
        path.parent.mkdir(parents=True, exist_ok=True)
        # A file that another session saved under this name since is not overwritten.
        known = state.get("workspace-path") == path
        saved = save_workspace(path, workspace if known else replace(workspace, saved_as=""))
        state["workspace"], state["workspace-path"] = replace(saved, index=None), path
        state["workspace-opened"] = f"Saved as {path.stem}."
    except (GlassboxError, OSError) as error:
        state["workspace-error"] = str(error)


def open_here() -> None:
    """Open a workspace that is kept on this machine."""
    state = st.session_state
    try:
        path = path_of(state["workspace-chosen"])
        take_workspace(open_workspace(path))
        state["workspace-path"], state["workspace-name"] = path, path.stem
    except GlassboxError as error:
        state["workspace-error"] = str(error)
