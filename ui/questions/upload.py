"""Upload of question files into the session."""

from pathlib import PurePath

import streamlit as st

from engine.documents.document import Loaded
from engine.errors import GlassboxError, InputError
from engine.evaluation.question_files import parse_beir_zip
from engine.evaluation.questions import parse_questions
from ui.documents import add_file
from ui.questions.kept import keep_questions, name_for, uploaded_names
from ui.server_settings import limits
from ui.text import escape_markdown, show_error

MAX_QUESTIONS = 5000
CHOSEN_SET = "questions"  # the key of the name of the chosen set
FORMAT = (
    "CSV, in each row a question and the passage that answers it, in the words of a document, as below; a "
    "third column, `document`, names it where several hold the passage. JSONL of the same keys. What the "
    "page “Questions” downloads, with places. Or a BEIR folder as a .zip file (`corpus.jsonl`, "
    "`queries.jsonl`, `qrels/test.tsv`): its texts become one document, a section each, and the splitter "
    "“Headings” keeps them apart."
)
EXAMPLE = 'question,passage\nWho pulls the sea?,The moon.\n"When, and where?","At noon, by the harbour."'


def show_upload(name: str) -> None:
    """Draw the upload of a question file, and the removal of an uploaded set."""
    state = st.session_state
    with st.expander("Upload questions", icon=":material/upload_file:"):
        uploader = f"questions-file-{state.setdefault('questions-uploader', 0)}"
        st.file_uploader(
            "Labelled questions",
            type=["csv", "jsonl", "zip"],
            key=uploader,
            max_upload_size=limits().document_mb,
            on_change=queue_upload,
            args=(uploader,),
            help="Stays in this session, and in the workspaces that you save from it.",
        )
        st.caption(FORMAT)
        st.code(EXAMPLE, language=None, wrap_lines=True)
    if error := state.get("questions-error"):
        show_error(error)
    if name in uploaded_names():
        st.button(
            "Remove this set",
            key="questions-remove",
            type="tertiary",
            icon=":material/delete:",
            on_click=keep_questions,
            args=(name, []),
            help="Removes these questions. Documents stay.",
        )


def queue_upload(uploader: str) -> None:
    """Keep an uploaded file to be read in the next run of the page, and empty the uploader."""
    state = st.session_state
    if (file := state[uploader]) is not None:
        state["questions-unread"], state["questions-error"] = (file.name, file.getvalue()), None
        state["questions-uploader"] += 1  # a fresh, empty uploader


def read_queued() -> None:
    """Read an uploaded file into the session, and select it; one that cannot be read changes nothing."""
    state = st.session_state
    if (unread := state.get("questions-unread")) is None:
        return
    has_documents = False
    try:
        with st.spinner(f"Reading {escape_markdown(unread[0])}…", show_time=True):
            state[CHOSEN_SET], has_documents = add_question_file(*unread)
    except GlassboxError as error:
        state["questions-error"] = str(error)
    del state["questions-unread"]
    if has_documents:
        st.rerun()  # the document picker above was drawn without them


def add_question_file(name: str, content: bytes) -> tuple[str, bool]:
    """Add a file's questions to the session; return the name of the set, and whether it has documents."""
    is_collection = PurePath(name).suffix.lower() == ".zip"
    collection = parse_beir_zip(name, content) if is_collection else None
    questions = collection.questions if collection else parse_questions(name, content)
    if len(questions) > MAX_QUESTIONS:
        raise InputError(f"{name} holds {len(questions):,} questions: give at most {MAX_QUESTIONS:,}")
    if collection:
        add_file(name, Loaded((collection.document,)))
    name = name_for(name, questions)
    keep_questions(name, questions)
    return name, is_collection
