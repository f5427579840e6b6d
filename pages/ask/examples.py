"""Questions to try: written for the samples, or drafted from the user's own documents in the background."""

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from engine import Decoder
from engine.documents.document import Document
from engine.evaluation.drafts import draft_questions
from engine.evaluation.sweep import by_name
from engine.weights.fetch import is_here
from engine.wording import counted, readable_time
from ui.asking import has_asked, queue_question
from ui.documents import bundled_names, queue_sample_files
from ui.jobs import Job, current_job, foreseen, start_job
from ui.models import decoder_name, load_decoder, load_reader
from ui.text import escape_markdown
from ui.uploaded_vectors import uploaded_vectors
from ui.widgets import example_choice

EXAMPLES = (
    "What does the CarbFix project do with carbon dioxide?",
    "Who first described the plain maskray scientifically?",
    "What happens to text beyond the token limit?",
    "How do I bake sourdough bread?",
)
FILE_EXAMPLES = (
    "What does a family day ticket cost from May to September?",
    "What is step 4 of starting the fire pump?",
    "When is the crane repaired?",
)
JOB = "examples"
N_DRAFTED, MOST_FILES = 4, 40  # questions, and files that they are drafted from
DRAFTING_S = 10  # on two cores
MOST_READ = 20_000  # characters of each file, from its beginning
REDRAW_S = 1.0
LABEL = "Try one about your documents"


def show_examples(documents: Sequence[Document]) -> None:
    """Draw questions to try: about the user's own documents, or the bundled ones if there are no others."""
    samples = bundled_names()
    own = [document for document in documents if document.name not in samples and document.text]
    if own:
        show_drafted(own)
        return
    if (uploaded := uploaded_vectors(documents)) is not None:
        st.caption(f"None are drafted from the {counted(len(uploaded.index.documents), 'document')}.")
        return
    reason = "The bundled documents do not answer the last one: the app should say so."
    example_choice(EXAMPLES, "example", ask_example, "Try one about the samples", reason)
    example_choice(
        FILE_EXAMPLES,
        "file-example",
        ask_about_files,
        "Or one about a table, numbered steps and a half scanned PDF",
        "Adds three small files of an invented harbour, as if you had dropped them.",
    )


def show_drafted(documents: Sequence[Document]) -> None:
    """Draw the questions that are drafted from documents, as they come."""
    job = current_job(JOB, documents)
    if job is None:
        name = decoder_name()
        is_loaded, draft = is_here(name), f"Draft some · about {readable_time(foreseen(JOB, DRAFTING_S))}"
        if not is_loaded:
            st.caption(f"They are drafted by {escape_markdown(name)}, which is not on this machine yet.")
            draft = "Download it, and draft some"
        if not st.button(draft, key="draft-examples", icon=":material/edit_note:"):
            return
        if not is_loaded:
            load_decoder()  # under its progress bar
        job = draft_examples(documents)
    if questions := list(job.rows):
        reason = "Drafted by the language model, each about a sentence that the reader finds its answer in."
        example_choice(questions, "example", ask_example, LABEL, reason)
    if not job.done:
        st.caption("Questions about your documents are being drafted…")
        if not has_asked():
            follow_drafts(job, len(questions))
    elif not questions:
        st.caption(f"None: {job.error or 'no sentence of these documents gives a question that is fit'}.")


def draft_examples(documents: Sequence[Document]) -> Job[None]:
    """Start to draft a few questions from documents, or from some of many."""
    some = by_name(documents[:: -(-len(documents) // MOST_FILES)])
    some = [replace(each, text=each.text[:MOST_READ]) for each in some]
    reader, name = load_reader()[0], decoder_name()

    def work(job: Job[None]) -> None:
        if reader is None:
            return
        decoder = Decoder.load(name)  # until they are drafted, as most sessions never need it again
        made = draft_questions(
            some, N_DRAFTED, 0, decoder, reader, is_stopped=lambda: not job.take_turn(), strict=True
        )
        for draft in made:
            job.rows.append(draft.text)

    return start_job(JOB, work, request=documents, cost=(JOB, DRAFTING_S))


@st.fragment(run_every=REDRAW_S)
def follow_drafts(job: Job[None], n_shown: int) -> None:
    """Draw the page again when another question is drafted, or all are."""
    if job.done or len(job.rows) > n_shown:
        st.rerun()


def ask_example(question: str) -> None:
    """Copy a picked example into the box, to be answered."""
    st.session_state["question"] = question
    queue_question(question)


def ask_about_files(question: str) -> None:
    """Ask a picked example about the sample files, which are read first as uploads are."""
    queue_sample_files()
    ask_example(question)
