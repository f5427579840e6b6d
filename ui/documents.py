"""The documents of a session: bundled ones, uploaded ones, and the choice of those to search."""

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from functools import partial
from operator import attrgetter
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine.documents.document import Document, Failure, Loaded
from engine.documents.loaders import FORMATS, format_of, load_corpus, parse_limited, parse_together
from engine.errors import DocumentError
from engine.evaluation.answers import AnswerQuestion
from engine.evaluation.given_chunks import GivenDocument
from engine.evaluation.questions import Question, stem
from engine.installed import bundled
from engine.wording import TimeLeft, counted, without_directions
from ui.embedding import AT_ONCE
from ui.server_settings import limits
from ui.text import escape_markdown, listed, show_error
from ui.uploaded_vectors import searched_together, uploaded_vectors, vector_files

MOST_CHIPS = 30  # files that stand as chips; more are chosen in a table
FIRST_HELP = "The first four come with the app; data/README.md says where they are from."
MOST_SENT = 1000  # files at once: of some 1,400 on, Chromium refuses requests
MOST_AT_ONCE, BYTES_AT_ONCE = 200, 2_000_000  # small files that are read together
# Hash functions of Streamlit's caches, whose own takes milliseconds for each.
FINGERPRINTS: dict[str | type[Any], Callable[[Any], Any]] = {
    **dict.fromkeys((Document, GivenDocument), attrgetter("fingerprint")),
    **dict.fromkeys((Question, AnswerQuestion), repr),
}
OF_DOCUMENTS: dict[str, Any] = {"scope": "session", "hash_funcs": FINGERPRINTS}  # a session's own
SAMPLE_FILES = bundled("samples")  # a table, numbered steps, a PDF with a scanned page
bundled_documents = st.cache_resource(show_spinner=False)(load_corpus)


class NoDocumentError(Exception):
    """A page needs documents, and none is chosen that it can use."""

    def __init__(
        self, reason: str = "No document is chosen. Add one or pick some under “Search in” in the sidebar."
    ) -> None:
        super().__init__(reason)


def format_names() -> str:
    """Name the formats of files that are read."""
    return ", ".join(each.label for each in FORMATS.values())


def bundled_names() -> set[str]:
    """Return the names of the documents that come with the app, which all sessions share."""
    return {document.name for document in bundled_documents()}


def are_bundled(documents: Iterable[Document]) -> bool:
    """Whether all documents come with the app."""
    return bundled_names().issuperset(document.name for document in documents)


def uploads() -> dict[str, tuple[Document, ...]]:
    """Return the documents of each file that the user added in this session."""
    return st.session_state.setdefault("uploads", {})


def has_own_files() -> bool:
    """Whether the user has added a file, which may not be read yet."""
    return bool(uploads() or vector_files() or st.session_state.get("unread"))


def session_files() -> dict[str, tuple[Document, ...]]:
    """Return the documents of every file, the bundled ones first, those of uploaded vectors last."""
    of_vectors = {name: each.documents for name, each in vector_files().items()}
    return {document.name: (document,) for document in bundled_documents()} | uploads() | of_vectors


def session_documents() -> list[Document]:
    """Return the bundled documents and those that the user added."""
    return [document for documents in session_files().values() for document in documents]


def documents_called(name: str) -> list[Document]:
    """Return the session's documents whose name is ``name`` but for the ending, as labels name them."""
    return [document for document in session_documents() if stem(document.name) == name]


def searched_files() -> list[str]:
    """Return the names of the files to search: those picked in the sidebar, or all before any choice."""
    return searched_together(st.session_state.get("searched", list(session_files())))


def chosen_documents() -> list[Document]:
    """Return the documents to search, in the order of their files."""
    files, chosen = session_files(), set(searched_files())
    return [document for name in files if name in chosen for document in files[name]]


def document_picker(upload_place: DeltaGenerator | None = None) -> list[Document]:
    """Draw the upload box and the selection; return the documents to search, in order."""
    # Each has its place, drawn or not: where what is below them moves, open sections of the sidebar close.
    place = st.container()
    with upload_place or place:
        upload_box()
    files, state = session_files(), st.session_state
    # The selection is kept apart from the widget and set in every run: across a change of page Streamlit may
    # lose the value of a widget.
    state["searched"] = [name for name in searched_files() if name in files]
    if len(files) > MOST_CHIPS:
        st.caption(f"Search in {len(state['searched']):,} of {counted(len(files), 'file')}")
        if st.button("Choose files", key="choose-files", icon=":material/checklist:", width="stretch"):
            choose_files()
    else:
        state["search-picker"] = state["searched"]
        st.multiselect(
            "Search in", list(files), key="search-picker", on_change=apply_selection, help=FIRST_HELP
        )
    state["new_files"] = ()
    note, chosen = st.container(), chosen_documents()
    with note:
        if (uploaded := uploaded_vectors(chosen)) is not None:
            st.caption(f"{escape_markdown(uploaded.words)}. A file of vectors is searched by itself.")
        elif uploads() and not bundled_names() & {document.name for document in chosen}:
            st.caption("The samples are not searched; they can be added above.")
    return chosen


@st.dialog("Files to search", width="large")
def choose_files() -> None:
    """Draw a table of the files, in which those to search are ticked, and a box that finds some by name."""
    files = session_files()
    wanted = st.text_input("Find", key="files-find", placeholder="a part of the name or of the folder")
    shown = [name for name in files if wanted.strip().casefold() in name.casefold()]
    searched = set(searched_files())
    table = {
        "Searched": [name in searched for name in shown],
        "File": shown,
        "Characters": [sum(len(document.text) for document in files[name]) for name in shown],
    }
    edited: Any = st.data_editor(
        table, hide_index=True, disabled=("File", "Characters"), key=f"files-{wanted}"
    )
    ticked = {name for name, is_ticked in zip(shown, edited["Searched"], strict=True) if is_ticked}
    choices = {
        "Search the ticked": ticked | (searched - set(shown)),
        f"Search only these {len(shown):,}": set(shown),
        "Search all": set(files),
    }
    with st.container(horizontal=True):
        for number, (label, names) in enumerate(choices.items()):
            chosen = {"searched": [name for name in files if name in names]}
            key, choose = f"files-choice-{number}", st.session_state.update
            if st.button(label, key=key, disabled=not names, on_click=choose, args=(chosen,)):
                st.rerun()  # which closes the dialog


def apply_selection() -> None:
    """Search the files that were picked, and new ones that the browser had not drawn yet."""
    state = st.session_state
    picked = state["search-picker"]
    state["searched"] = [*picked, *(name for name in state.get("new_files", ()) if name not in picked)]


def upload_box() -> None:
    """Draw the upload box; read new files, and list those that cannot be read or are skipped."""
    state = st.session_state
    key = f"uploader-{state.setdefault('uploader', 0)}"
    st.file_uploader(
        "Add documents",
        accept_multiple_files=True,  # of any type: Streamlit's refusals would go with the emptied uploader
        key=key,
        max_upload_size=limits().document_mb,
        on_change=queue_uploads,
        args=(key,),
        help=f"{format_names()}, up to {limits().document_mb} MB a file. Give more than "
        f"{MOST_SENT:,} as one .zip file.",
    )
    if state.get("unread"):
        read_uploads()
    if (n_sent := state.get("upload_sent", 0)) > MOST_SENT:
        st.info(
            f"{n_sent:,} files arrived. A browser drops some of more than {MOST_SENT:,}: compare the number, "
            "and give more as one .zip file."
        )
    failures, skipped = state.get("upload_failures", []), state.get("upload_skipped", [])
    if not failures and not skipped:
        return
    said = f"{counted(len(failures) + len(skipped), 'file')} not read"
    # Folded, but for a single one, so that the settings below stay in sight.
    with st.expander(said, icon=":material/error:", expanded=len(failures) + len(skipped) == 1):
        show_failures(failures)
        if skipped:
            st.info(
                f"Skipped {counted(len(skipped), 'file')} of other formats: {listed(skipped)}. "
                "Those that are read are named next to “Add documents”."
            )
        st.button("Close", icon=":material/close:", type="tertiary", on_click=clear_messages)


def queue_uploads(key: str) -> None:
    """Queue uploaded files for the next run of the page, and empty the uploader."""
    state = st.session_state
    files = state[key]
    queue_files([(without_directions(file.name), file.getvalue()) for file in files])
    state["upload_sent"] = len(files)
    state["uploader"] += 1  # a fresh, empty uploader


def clear_messages() -> None:
    """Forget which files of the last upload were not read."""
    st.session_state["upload_failures"], st.session_state["upload_skipped"] = [], []


def queue_sample_files() -> None:
    """Queue the sample files for the next run of the page."""
    queue_files([(path.name, path.read_bytes()) for path in sorted(SAMPLE_FILES.iterdir())])


def queue_files(files: Sequence[tuple[str, bytes]]) -> None:
    """Queue files, each with its name and content; those of other formats are skipped."""
    state = st.session_state
    state["unread"] = [*state.get("unread", ()), *(file for file in files if format_of(file[0]))]
    clear_messages()
    state["upload_skipped"] = [name for name, _ in files if not format_of(name)]


def read_uploads() -> None:
    """Read queued files under a progress bar; an interrupted run goes on with the rest in the next."""
    state = st.session_state
    bar, left, n_files = st.progress(0.0), TimeLeft(), len(state["unread"])
    kept = "Ends the reading; the files that were read stay."
    st.button("Stop", key="stop-reading", icon=":material/stop_circle:", on_click=stop_reading, help=kept)
    while unread := state["unread"]:
        number, files = n_files - len(unread), read_at_once(unread)
        share, (name, content) = number / n_files, files[0]
        said = f"Reading {escape_markdown(name)} ({number + 1:,} of {n_files:,})"
        bar.progress(share, said + left(share))
        column = state.get("csv_column") or None
        if len(files) > 1:
            loaded = parse_together(files, column, limits().reading)
        else:
            on_page = partial(show_page, bar, left, number, n_files, said)
            loaded = [parse_limited(name, content, column, limits().reading, on_page)]
        by_name = dict(zip((name for name, _ in files), loaded, strict=True))
        state["upload_failures"] += add_files(by_name)
        state["upload_skipped"] += [name for each in loaded for name in each.skipped]
        state["unread"] = unread[len(files) :]
    st.rerun()  # the documents are kept before anything is done with them


def read_at_once(files: Sequence[tuple[str, bytes]]) -> Sequence[tuple[str, bytes]]:
    """Return the first of some files, and those after it that one child process reads with it."""
    n_bytes = 0
    for number, (name, content) in enumerate(files[:MOST_AT_ONCE]):
        n_bytes += len(content)
        found = format_of(name)
        if n_bytes > BYTES_AT_ONCE or found is None or found.is_packed:
            return files[: max(number, 1)]
    return files[:MOST_AT_ONCE]


def stop_reading() -> None:
    """Read no more of the queued files."""
    state = st.session_state
    st.toast(f"Stopped: {counted(len(state['unread']), 'file')} not read.", icon=":material/stop_circle:")
    state["unread"] = []


def show_page(
    bar: DeltaGenerator, left: TimeLeft, n_read: int, n_files: int, said: str, page: int, n_pages: int
) -> None:
    """Add the page whose picture is recognised to a bar, and the time that is left."""
    share = (n_read + (page - 1) / n_pages) / n_files
    bar.progress(share, f"{said}: recognising text on page {page} of {n_pages}{left(share)}")


def add_files(files: Mapping[str, Loaded]) -> list[Failure]:
    """Add files' documents to the session and to the search, replacing files of the same names.

    With the first file the bundled documents are no longer searched. Returns what was not added.
    """
    state, own, samples, failures = st.session_state, uploads(), bundled_names(), list[Failure]()
    added, n_characters = dict[str, tuple[Document, ...]](), count_characters(own.values())
    for name, loaded in files.items():
        before = added.get(name, own.get(name, ()))
        n_after = n_characters + count_characters([loaded.documents]) - count_characters([before])
        try:
            check_own(name, samples)
            check_count(n_after)
        except DocumentError as error:
            failures.append(Failure(name, str(error)))
            continue
        failures += loaded.failures
        if loaded.documents:
            added[name], n_characters = loaded.documents, n_after
    if added:
        searched = searched_files()
        others = [] if set(searched) == samples else [name for name in searched if name not in added]
        state["searched"] = [*others, *added]
        state["new_files"] = (*state.get("new_files", ()), *added)
        own.update(added)
        state[AT_ONCE] = "ask"  # whoever adds documents wants to search them
    return failures


def check_own(name: str, samples: Set[str] | None = None) -> None:
    """Raise `DocumentError` for the name of a bundled document: caches that sessions share rely on it."""
    if name in (samples or bundled_names()):
        raise DocumentError(f"{name} has the name of a bundled document: rename it")


def check_length(files: Mapping[str, Sequence[Document]]) -> None:
    """Raise `DocumentError` for files whose documents have more characters than a visitor may add."""
    check_count(count_characters(files.values()))


def count_characters(files: Iterable[Sequence[Document]]) -> int:
    """Return the number of characters of the documents of files."""
    return sum(len(document.text) for documents in files for document in documents)


def check_count(n_characters: int) -> None:
    """Raise `DocumentError` for more characters than a visitor may add."""
    if n_characters > (most := limits().characters):
        raise DocumentError(
            f"your documents would have {n_characters:,} characters, at most {most:,} are kept here: remove "
            "others first, or start Glassbox on a machine of your own"
        )


def show_failures(failures: Sequence[Failure]) -> None:
    """List the files that could not be read, each with the reason."""
    for failure in failures[:3]:
        show_error(failure.reason)
    if len(failures) > 3:
        with st.expander(f"{len(failures) - 3} more could not be read"):
            for failure in failures[3:]:
                st.text(failure.reason)
