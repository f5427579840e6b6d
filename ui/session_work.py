"""The work of a session as a workspace: taken from one, given as one, and kept on the user's own machine."""

import shutil
from dataclasses import replace
from pathlib import Path

import streamlit as st

from engine.documents.document import Document
from engine.errors import GlassboxError
from engine.retrieval.vector_cache import WHOLE_FILE
from engine.storage.workspace import Workspace, merged, open_workspace, save_workspace
from engine.wording import counted
from ui.corpus import session_vectors
from ui.data_folder import EXPERIMENTS, MODELS, SWITCHED_OFF, VECTORS, data_folder, own_folder
from ui.documents import bundled_names, check_length, check_own, searched_files, session_files, uploads
from ui.models import load_encoder
from ui.questions.kept import answer_sets_json, apply_answer_sets, workspace
from ui.setting_values import apply_settings, kept_settings
from ui.uploaded_vectors import vector_files

SESSION_FILE = "session.sqlite3"


def session_work() -> Workspace:
    """Return the session's own documents, questions, runs and settings, without an index."""
    files = uploads()
    settings = {
        "files": {name: [document.name for document in documents] for name, documents in files.items()},
        "searched": searched_files(),
        "widgets": kept_settings(),
        "answer_questions": answer_sets_json(),
    }
    own = tuple(document for documents in files.values() for document in documents)
    return replace(workspace(), documents=own, settings=settings, index=None)


def apply_workspace(workspace: Workspace) -> None:
    """Replace the session's work by a workspace's."""
    encoder, files = load_encoder(), grouped(workspace)
    check_length(files)
    own, state = uploads(), st.session_state
    own.clear()
    own.update(files)
    vector_files().clear()
    names = {*own, *bundled_names()}
    searched = workspace.settings.get("searched")
    chosen = searched if isinstance(searched, list) else names
    found = [name for name in session_files() if name in chosen and name in names]
    state["searched"] = found or list(own or names)  # files of vectors that were searched are not kept
    apply_settings(workspace.settings.get("widgets"), encoder.config.max_positions)
    apply_answer_sets(workspace.settings.get("answer_questions"))
    index = workspace.index
    if index is not None:
        session_vectors().put_many(index.texts, index.vectors, index.spec)
    state["workspace"] = replace(workspace, index=None)


def grouped(workspace: Workspace) -> dict[str, tuple[Document, ...]]:
    """Return a workspace's documents by file; one without a file is a file of its own."""
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


def contents(workspace: Workspace) -> str:
    """Return the contents of a workspace besides settings: ``"2 files of your own, 1 question set"``."""
    parts = [f"{counted(len(grouped(workspace)), 'file')} of your own"]
    for what, n in (("question set", len(workspace.question_sets)), ("run", len(workspace.runs))):
        if n:
            parts.append(counted(n, what))
    return ", ".join(parts)


def session_file() -> Path | None:
    """Return the file in which this session's work is kept, None where it is not."""
    folder = own_folder()
    return None if folder is None else folder / SESSION_FILE


def keeping_words() -> str:
    """Say whether this session's work outlives it."""
    is_kept = session_file() is not None and not st.session_state.get("keeping-failed")
    return "kept on this computer" if is_kept else "gone when this tab closes"


def open_kept_work() -> None:
    """At the start of a session, take the work that was kept; where that fails, none is kept either."""
    state, path = st.session_state, session_file()
    if "kept-work" in state or path is None:
        return
    state["kept-work"] = Workspace()
    if path.is_file():
        try:
            apply_workspace(open_workspace(path))
            state["kept-work"] = session_work()
        except GlassboxError as error:
            state["kept-work"] = None
            state["keeping-failed"] = f"The kept work could not be opened, and nothing is kept now: {error}."


def keep_only_changes() -> None:
    """Keep only what changes from now on: what a link has set is not kept."""
    if st.session_state.get("kept-work") is not None:
        st.session_state["kept-work"] = session_work()


def keep_work() -> None:
    """Keep the session's work if it has changed, with what other sessions kept meanwhile."""
    state, path = st.session_state, session_file()
    if path is None or state.get("kept-work") is None:
        return
    work = session_work()
    if work == state["kept-work"]:
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        theirs = open_workspace(path) if path.is_file() else Workspace()
        save_workspace(path, merged(state["kept-work"], work, theirs))
        state["kept-work"], state["keeping-failed"] = work, ""
    except (GlassboxError, OSError) as error:  # the next run tries again
        state["keeping-failed"] = f"Your work cannot be kept: {error}."


def switch_keeping(on: bool) -> None:
    """Keep the work on this machine from now on, or delete what is kept and keep nothing."""
    folder, state = data_folder(), st.session_state
    assert folder is not None
    try:
        if on:
            (folder / SWITCHED_OFF).unlink(missing_ok=True)
            state["kept-work"], state["keeping-failed"] = Workspace(), ""
            return
        folder.mkdir(parents=True, exist_ok=True)
        (folder / SWITCHED_OFF).touch()  # first, so that no training keeps another checkpoint
        session_vectors().close()
        for name in (SESSION_FILE, VECTORS):
            for suffix in WHOLE_FILE:
                (folder / f"{name}{suffix}").unlink(missing_ok=True)
        for part in (MODELS, EXPERIMENTS):
            shutil.rmtree(folder / part, ignore_errors=True)
    except OSError as error:
        state["keeping-failed"] = f"The folder {folder} cannot be changed: {error.strerror}."
