"""The box that opens and writes an index in a folder of the user's own machine."""

from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path

import streamlit as st

from engine import Encoder
from engine.documents.splitters import DEFAULT_SPLITTING, GIVEN
from engine.errors import GlassboxError, InputError
from engine.evaluation.given_chunks import GivenDocument, given_documents
from engine.installed import PROGRAM
from engine.models.embedding_head import MODEL_DEFAULT
from engine.retrieval.embedding_model import Model
from engine.retrieval.stored.index_folder import MANIFEST, IndexSettings, StoredIndex, as_indexed, open_index
from engine.retrieval.stored.index_update import save_given, update_index
from engine.retrieval.stored.milvus_store import release
from engine.settings import SETTINGS
from engine.weights.download import file_sha256
from engine.wording import counted, readable_time
from ui.chunk_settings import cut_in_use
from ui.corpus import session_vectors
from ui.data_folder import is_local
from ui.documents import check_length, check_own, chosen_documents, show_failures, uploads
from ui.jobs import MACHINE, foreseen
from ui.models import embedding_seconds, load_encoder
from ui.progress import counting
from ui.server_settings import ENCODER, is_public
from ui.setting_values import apply_settings, settings_in_use
from ui.text import escape_markdown, show_error
from ui.uploaded_vectors import UploadedVectors, named_model, uploaded_vectors, vector_files

CHARACTERS_PER_TOKEN, MOST_COUNTED = 4, 10_000  # of English text; files whose sizes are added up
MOST_CHUNKS = 100_000  # of an index that is taken into the session; a larger one is searched in its folder


def is_offered() -> bool:
    """Whether the visitor may open folders: only on a machine of their own, whose files they may read."""
    return is_local() and not is_public()


def show_index_folder() -> None:
    """Draw the box, where folders may be opened."""
    if not is_offered():
        return
    state = st.session_state
    with st.expander("An index on this computer", icon=":material/database:"):
        st.write(
            f"A folder that keeps documents, chunks and vectors; `{PROGRAM} index` writes the same. An "
            "opened one brings its documents and settings, and nothing is embedded again."
        )
        folder = st.text_input(
            "Folder of the index", key="index-folder", placeholder="~/my_index", max_chars=1000
        )
        corpus = st.text_input(
            "Files to index",
            key="index-corpus",
            placeholder="~/my_notes, a file or a folder",
            max_chars=1000,
            help="Left empty, those that the index was made of.",
        )
        left, right = st.columns(2)
        left.button(
            "Open",
            key="index-open",
            on_click=open_folder,
            icon=":material/folder_open:",
            disabled=not folder.strip(),
            width="stretch",
        )
        is_wanted = right.button(
            "Write or update",
            key="index-write",
            icon=":material/save:",
            disabled=not folder.strip(),
            width="stretch",
            help="Reads and embeds new and changed files, and takes out those that are gone. A new index is "
            "made with the settings of the sidebar; one that is there keeps its own.",
        )
        st.caption(price(corpus))
        if is_wanted:
            write_folder(folder, corpus)
        if error := state.pop("index-error", None):
            show_error(error)
        if done := state.pop("index-done", None):
            st.success(escape_markdown(done), icon=":material/check_circle:")
        show_failures(state.pop("index-failures", ()))


def price(corpus: str) -> str:
    """Say how long files take to be embedded, all of which are new in a new index."""
    megabyte = foreseen(MACHINE, embedding_seconds(load_encoder(), 1_000_000 // CHARACTERS_PER_TOKEN))
    with suppress(InputError, OSError):
        path = path_of(corpus)
        files = (path, *path.rglob("*")) if corpus.strip() else ()
        if n_bytes := sum(file.stat().st_size for file in islice(files, MOST_COUNTED) if file.is_file()):
            return f"All of it takes about {readable_time(megabyte * n_bytes / 1e6)}, if it is text and new."
    return f"A megabyte of new text takes about {readable_time(megabyte)}."


def path_of(text: str) -> Path:
    """Return the path that the user typed, ``~`` for their home; raise `InputError` for none."""
    try:
        if "\0" in text:
            raise RuntimeError("a null character")
        path = Path(text.strip()).expanduser()
        path.exists()  # which raises for a name that is too long
    except (RuntimeError, OSError) as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(f"{text!r:.80} is no path ({why}): give one on this computer") from error
    return path


def open_folder() -> None:
    """Take what a folder holds into the session; one that cannot be opened changes nothing."""
    state = st.session_state
    try:
        if not is_offered():
            raise InputError("folders are opened only in a browser on the app's own machine")
        folder = path_of(state["index-folder"])
        stored = open_index(folder)
        try:
            search_stored(stored, folder, load_encoder())
        finally:
            release(stored.settings.uri)  # so that other programs may open its file
        n_files, n_chunks = len(stored.files), len(stored.index.chunks)
        state["index-done"] = (
            f"Opened: {counted(n_files, 'file')} in {counted(n_chunks, 'chunk')}, and their settings."
        )
    except GlassboxError as error:
        state["index-error"] = str(error)


def search_vectors(stored: StoredIndex, folder: Path, model: Model) -> None:
    """Search an index as it is: of given vectors, or so large that it stays in its folder."""
    index, name = stored.index, folder.resolve().name
    if index.is_mapped:
        documents: tuple[GivenDocument, ...] = (
            GivenDocument(name, "", digest=file_sha256(folder / MANIFEST)),
        )
    else:
        index, documents = given_documents(index)
    vector_files()[name] = UploadedVectors(
        name, index, model, documents, stored.settings.model, stored.unrelated
    )
    st.session_state["searched"] = [name]


def search_stored(stored: StoredIndex, folder: Path, encoder: Encoder) -> None:
    """Search the documents of an index, cut and embedded as it says."""
    settings, index = stored.settings, stored.index
    stays = settings.splitting.method == GIVEN or (index.is_mapped and len(index.chunks) > MOST_CHUNKS)
    base = named_model(settings.model) if stays else encoder
    model = as_indexed(stored, base.with_prompts(settings.prompts).with_precision(settings.precision), folder)
    if stays:
        search_vectors(stored, folder, model)
        return
    values = settings.options | {
        "pooling": encoder.pooling if settings.pooling == MODEL_DEFAULT else settings.pooling,
        "index_kind": settings.index_kind,
    }
    if not encoder.prompts.in_search:  # the sidebar has no such setting
        del values["prompts"]
    if settings.max_tokens is None:  # the model's own limit may be above the range of saved settings
        del values["max_tokens"]
    for key, value in values.items():
        setting = SETTINGS[key]
        low, high = setting.low, values["chunk_tokens"] // 2 if key == "overlap" else setting.high
        if high is not None and not low <= value <= high:
            raise InputError(
                f"{folder} was made with {setting.name} {value}, the app has {low} to {high}: "
                f"search it with {PROGRAM} ask --index"
            )
    files = {file.name: file.documents for file in stored.files}
    for document in stored.documents:
        check_own(document.name)
    check_length(uploads() | files)
    uploads().update(files)
    st.session_state["searched"] = list(files)
    st.session_state["max_tokens"] = index.spec.max_tokens
    apply_settings(values, encoder.config.max_positions)
    texts = model.prompts.before("document", index.texts)
    session_vectors().put_many(texts, index.vectors, index.spec)


def write_folder(folder_text: str, corpus_text: str) -> None:
    """Write an index, or bring one up to date, under a progress bar."""
    state = st.session_state
    try:
        folder, encoder = path_of(folder_text), load_encoder()
        in_use, given = settings_in_use(encoder), uploaded_vectors(chosen_documents())
        if given is not None and not corpus_text.strip():
            write_vectors(folder, given, in_use["index_kind"])
            return
        old = open_index(folder) if (folder / MANIFEST).exists() else None
        if old is not None:
            release(old.settings.uri)
        corpus = corpus_text.strip() or (old.corpus if old else "")
        if not corpus:
            raise InputError("no files are named: give the path of a file or a folder on this computer")
        cut = cut_in_use(encoder)
        settings = IndexSettings(
            ENCODER,
            cut.splitting,
            cut.parent_tokens,
            MODEL_DEFAULT if in_use["pooling"] == encoder.pooling else in_use["pooling"],
            cut.prompts,
            cut.precision,
            None if cut.max_tokens == encoder.max_tokens else cut.max_tokens,
        )
        settings = replace(old.settings if old else settings, index_kind=in_use["index_kind"])
        model = encoder.with_prompts(settings.prompts).with_precision(settings.precision)
        with counting("Reading and embedding", "chunks") as show:
            done = update_index(path_of(corpus), folder, model, settings, session_vectors(), on_progress=show)
        state["index-done"] = (
            f"Written: {counted(len(done.stored.index.chunks), 'chunk')}, "
            f"{done.embedded_chunks:,} embedded now; files: {done.words}. Open it to search it."
        )
        state["index-failures"] = done.failures
    except GlassboxError as error:
        state["index-error"] = str(error)


def write_vectors(folder: Path, given: UploadedVectors, index_kind: str) -> None:
    """Write the uploaded vectors that are searched to a folder."""
    spec, prompts = given.index.spec, "own" if given.model.prompts.in_search else "none"
    settings = IndexSettings(given.source, DEFAULT_SPLITTING, 0, spec.pooling, prompts, index_kind=index_kind)
    with st.spinner("Writing the index…", show_time=True):
        save_given(folder, given.index, given.name, given.model, settings)
    st.session_state["index-done"] = (
        f"Written: {counted(len(given.index.chunks), 'chunk')} with their vectors of {given.name}."
    )
