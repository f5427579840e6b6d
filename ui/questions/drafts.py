"""Drafts of questions: their writing in the background, and what a person decides about each.

Unread drafts are the set `DRAFTS`; one that is kept moves to the questions labelled here, and stays marked.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import streamlit as st

from engine.documents.document import Document
from engine.evaluation.drafts import draft_questions
from engine.evaluation.questions import DRAFTED, KEPT, Question
from engine.evaluation.sweep import by_name
from engine.wording import counted, readable_time
from ui.documents import count_characters
from ui.jobs import Job, current_job, drop_job, follow_progress, foreseen, start_job
from ui.models import load_decoder, load_reader
from ui.questions.kept import DRAFTS, LABELLED, keep_questions, kept_questions
from ui.text import show_error

JOB = "drafts"
N_DRAFTS = 60
ENOUGH = 40  # questions kept by a person, from which on a gain of a few hundredths of MRR is seen
SECONDS_EACH = 0.8  # of a draft, where estimates were measured
CHARACTERS = 120  # of a short document that gives a draft, at least
HELP = (
    "Sentences are drawn from all documents, the language model writes questions about each, and the reader "
    "has to find its answer there. One of six asks what the documents do not say. Drafts can be read, and "
    "results be seen, while others are still written."
)


@dataclass(frozen=True)
class Drawing:
    """Drafts to make: how many in all, the seed, and those made before a stop."""

    n: int
    seed: int
    n_possible: int  # by the length of the documents
    done: tuple[Question, ...] = ()

    @property
    def seconds(self) -> float:
        """Seconds of those that are left on the machine that estimates were measured on."""
        return max(1, min(self.n, self.n_possible) - len(self.done)) * SECONDS_EACH


@dataclass(frozen=True)
class Decision:
    """What was decided about a draft: the question that it became, None where it was struck."""

    draft: Question
    place: int  # among the drafts, where it was
    kept: Question | None


def drafts() -> list[Question]:
    """Return the drafts that nobody has read."""
    return kept_questions(DRAFTS)[0]


def labelled_here() -> list[Question]:
    """Return the questions that were labelled or kept in the app."""
    return kept_questions(LABELLED)[0]


def status_words(questions: Sequence[Question]) -> str:
    """``"46 drafts that nobody has read and 14 drafts that you kept"``; empty for neither."""
    counts = {
        words: sum(each.status == status for each in questions)
        for status, words in ((DRAFTED, "that nobody has read"), (KEPT, "that you kept"))
    }
    return " and ".join(f"{counted(n, 'draft')} {words}" for words, n in counts.items() if n)


def collect_drafts() -> Job[None] | None:
    """Take the drafts that are ready into the session; return the job while it runs."""
    state, job = st.session_state, current_job(JOB)
    if job is None:
        return None
    is_done = job.done  # before its rows are taken
    n_taken = state.get("drafts-taken", 0)
    if fresh := job.rows[n_taken:]:
        state["drafts-taken"] = n_taken + len(fresh)
        keep_questions(DRAFTS, [*drafts(), *fresh])
    if not is_done:
        return job
    state["drafts-drawing"] = replace(job.request, done=tuple(job.rows))
    state["drafts-error"] = job.error
    if not job.error and not job.stopped and len(job.rows) < job.request.n:
        state["drafts-error"] = (
            f"{counted(len(job.rows), 'draft')} of {job.request.n}: no other sentence that was drawn gives a "
            "question that is fit. Draft more, from other sentences, or add documents."
        )
    drop_job(JOB)
    return None


def show_drafting(documents: Sequence[Document], is_offer: bool = False) -> None:
    """Draw the button that drafts questions, or its progress, and what went wrong."""
    state, job = st.session_state, collect_drafts()
    if job is not None:
        stop_help = "Ends the drafting. Drafts made so far stay, and it can be gone on with."
        follow_progress(job, JOB, stop_help, is_awaited=not drafts())
        return
    if problem := state.get("drafts-error"):
        show_error(problem)
    last: Drawing | None = state.get("drafts-drawing")
    is_open = last is not None and len(last.done) < last.n and not problem
    if is_open and last is not None:
        drawing, label = last, f"Go on drafting: {len(last.done):,} of {last.n:,} are made"
    else:
        seeds = [each.seed for each in (*drafts(), *labelled_here()) if each.seed is not None]
        drawing = Drawing(N_DRAFTS, max(seeds, default=-1) + 1, count_characters([documents]) // CHARACTERS)
        label = f"Draft {N_DRAFTS} {'more' if seeds else 'from your documents'}"
        if is_offer and not seeds:
            st.info(
                f"You have no questions yet: draft {N_DRAFTS} from your documents.",
                icon=":material/edit_note:",
            )
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            label,
            key="drafts-start",
            type="primary" if is_offer else "secondary",
            icon=":material/edit_note:",
            on_click=start,
            args=(tuple(documents), drawing),
            help=HELP,
        )
        price = readable_time(foreseen(JOB, drawing.seconds))
        st.caption(f"about {price}, in the background", width="content")


def start(documents: Sequence[Document], drawing: Drawing) -> None:
    """Start to draft."""
    state = st.session_state
    state["drafts-error"], state["drafts-taken"] = "", len(drawing.done)
    if state.get("unread"):  # the button was drawn with the documents before them
        state["drafts-error"] = "Your files were still being read: draft again, about them."
        return
    reader, reason = load_reader()
    if reader is None:
        state["drafts-error"] = f"Drafts need the reader, which is not there: {reason}"
        return
    decoder = load_decoder()

    def work(job: Job[None]) -> None:
        def report(done: int, n: int) -> None:
            job.report(done, n, f"{done:,} of {n:,} questions drafted")

        asked = by_name(documents), drawing.n, drawing.seed, decoder, reader, drawing.done
        made = draft_questions(*asked, report, lambda: not job.take_turn())
        for draft in made:
            job.rows.append(draft)

    cost = JOB, drawing.seconds
    start_job(JOB, work, request=drawing, page="improve/questions", rows=drawing.done, cost=cost)


def decide(draft: Question, kept: Question | None) -> None:
    """Move a draft to the questions labelled here, as it is or edited; strike it where ``kept`` is None."""
    own = drafts()
    if draft not in own:
        return  # a second click
    place = own.index(draft)
    keep_questions(DRAFTS, own[:place] + own[place + 1 :])
    if kept is not None:
        kept = replace(kept, status=KEPT)
        keep_questions(LABELLED, [*labelled_here(), kept])
    st.session_state.setdefault("drafts-decided", []).append(Decision(draft, place, kept))


def undo() -> None:
    """Take the last decision back."""
    decision: Decision = st.session_state["drafts-decided"].pop()
    own = drafts()
    keep_questions(DRAFTS, [*own[: decision.place], decision.draft, *own[decision.place :]])
    if decision.kept is not None:
        keep_questions(LABELLED, [each for each in labelled_here() if each != decision.kept])
