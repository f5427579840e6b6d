"""Answers: questions with known short answers, asked in a background job and scored without a judge."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from statistics import fmean
from typing import Any

import streamlit as st
from pydantic import TypeAdapter, ValidationError

from engine import Encoder
from engine.documents.document import Document
from engine.errors import GlassboxError, InputError
from engine.evaluation.answers import (
    AnswerQuestion,
    AnswerRow,
    check_answers,
    load_answer_questions,
    measure_answers,
    parse_answer_questions,
)
from engine.evaluation.document_names import matched_names, renamed
from engine.evaluation.questions import names_for
from engine.generation.answer import Answer
from engine.generation.answering import ask
from engine.generation.sampling import RULES
from engine.generation.settings import AnswerSettings
from engine.generation.writer import Writer
from engine.storage.workspace import SavedRun
from engine.wording import counted, readable_time, shortened
from pages.improve.settings.experiments import running_job, session_runs
from ui.chunk_settings import Cut, cut_values
from ui.corpus import index_documents, null_scores_of_documents, warm_bm25
from ui.documents import session_documents
from ui.jobs import Job, follow_progress, start_job
from ui.models import decoder_name, load_decoder, load_reader
from ui.questions.kept import answer_sets, keep_answer_set, workspace
from ui.questions.names import show_names
from ui.setting_values import FORMER_NAMES, settings_in_use, settings_words
from ui.settings import answer_settings
from ui.text import escape_markdown, show_error
from ui.widgets import choice

BUNDLED = "Bundled"
MOST_QUESTIONS, MAX_MEGABYTES = 1000, 5
MAX_PROBLEMS_SHOWN = 5
ABOUT = (
    "Questions whose short answers are known are asked with the app's settings, those of this sidebar and of "
    "the page “Ask your documents”, and each answer is scored without a judge: it is right if it holds the "
    "known answer, word for word."
)
FORMAT = (
    "A CSV file whose first row names the columns `question` and `answer`; `document`, `start` and `end` may "
    "follow. In an answer, `|` divides spellings of which one has to occur (`1990|in the nineties`), and `&` "
    "divides parts that must all occur (`Vogel & Kross`). Leave the answer empty where the documents hold "
    "none: such a question is to be refused. `document` is a document's name; `start` and `end` are the "
    "place of the answer in it, in characters from 0, the end not included."
)
EXAMPLE = """question,answer,document,start,end
Who pulls the sea?,the moon|moon,tides.md,120,138
Which two bodies cause spring tides?,sun & moon,tides.md,,
Who discovered the tides of Mars?,,tides.md,,
"""
WRITE_HELP = (
    "On: the built-in model writes its text to each question, and it counts for the score, about a second a "
    "question; no server is asked, and nothing is drawn at random. Off: only the sentences that the app "
    "quotes count, a few tenths of a second a question."
)
KIND = "answers"  # marks the runs of a workspace that are these
MOST_RUNS = 6  # kept of these
QUOTES_S, WORDS_S = 0.2, 1.0  # a question takes about this long on two cores: quotes only, and with words


def show_answers(documents: Sequence[Document], encoder: Encoder, cut: Cut) -> None:
    """Draw the choice of questions, the button that asks them, the progress, and the results."""
    state = st.session_state
    st.write(ABOUT)
    name, given = question_choice()
    loaded = session_documents()
    every = renamed(given, matched_names(given, [document.name for document in loaded]))
    questions = about(every, documents)
    show_questions(name, every, questions, documents)
    show_names(given, loaded, "answers", lambda names: keep_answer_set(name, renamed(given, names)))
    nothing = "Stopped before the first question was answered: there is no result."
    now, is_started = running_job("answers", keep, nothing), False
    if questions:
        write = st.toggle(
            "With the model's words", True, key="answers-write", persist_state="session", help=WRITE_HELP
        )
        n = len(questions)
        with st.container(horizontal=True, vertical_alignment="center"):
            is_started = st.button(
                "Ask them",
                key="answers-ask",
                type="primary",
                icon=":material/play_arrow:",
                disabled=now is not None,
            )
            st.caption(
                f"{counted(n, 'question')}, about {readable_time(n * seconds_each(write))}",
                width="content",
            )
    if is_started:
        state.pop("answers-error", None)
        try:
            start(questions, name, documents, encoder, cut, write)
        except GlassboxError as error:
            state["answers-error"] = str(error)
        st.rerun()
    if problem := state.get("answers-error"):
        show_error(problem)
    if now is not None:
        follow_progress(
            now,
            "answers",
            "Ends the run. The questions answered so far are scored.",
            "Closing or reloading this page ends the run and deletes its results.",
        )


def question_choice() -> tuple[str, tuple[AnswerQuestion, ...]]:
    """Draw the choice of a question set and the upload of one; return its name and all its questions."""
    state = st.session_state
    sets = {BUNDLED: bundled_answers(), **answer_sets()}
    if state.get("answers-set") not in sets:
        state["answers-set"] = BUNDLED
    if len(sets) > 1:
        choice("Questions", list(sets), "answers-set", format_func=lambda name: shortened(name, 40))
    with st.expander("Upload questions with answers", icon=":material/upload_file:"):
        uploader = f"answers-file-{state.setdefault('answers-uploader', 0)}"
        st.file_uploader(
            "Questions with answers",
            type=["csv"],
            key=uploader,
            max_upload_size=MAX_MEGABYTES,
            on_change=store_answers,
            args=(uploader,),
            help=f"At most {MOST_QUESTIONS:,} questions.",
        )
        st.caption(FORMAT)
        st.code(EXAMPLE, language=None, wrap_lines=True)
    if error := state.get("answers-upload-error"):
        show_error(error)
    name: str = state["answers-set"]
    return name, sets[name]


@st.cache_data(show_spinner=False)
def bundled_answers() -> tuple[AnswerQuestion, ...]:
    """Return the questions that come with the app."""
    return tuple(load_answer_questions())


def store_answers(uploader: str) -> None:
    """Read an uploaded file into the session, and select it; one that cannot be read changes nothing."""
    state = st.session_state
    if (file := state[uploader]) is None:
        return
    state["answers-uploader"] += 1  # a fresh, empty uploader
    state["answers-upload-error"] = None
    try:
        questions = parse_answer_questions(file.name, file.getvalue())
        if len(questions) > MOST_QUESTIONS:
            raise InputError(
                f"{file.name} holds {len(questions):,} questions: give at most {MOST_QUESTIONS:,}"
            )
    except GlassboxError as error:
        state["answers-upload-error"] = str(error)
        return
    keep_answer_set(file.name, questions)
    state["answers-set"] = file.name


def about(questions: Sequence[AnswerQuestion], documents: Sequence[Document]) -> list[AnswerQuestion]:
    """Return the questions about the documents, and those that name none."""
    names = {name for document in documents for name in names_for(document.name)}
    return [each for each in questions if not each.about or each.about in names]


def show_questions(
    name: str, every: Sequence[AnswerQuestion], own: Sequence[AnswerQuestion], documents: Sequence[Document]
) -> None:
    """Draw how many questions of a set are about the documents, and what is wrong with them."""
    if name != BUNDLED and (problems := problems_of(every, documents)):
        lines = [
            f"- {escape_markdown(line[0].upper() + line[1:])}." for line in problems[:MAX_PROBLEMS_SHOWN]
        ]
        if len(problems) > MAX_PROBLEMS_SHOWN:
            lines.append(f"- And {len(problems) - MAX_PROBLEMS_SHOWN:,} more.")
        st.warning("\n".join(lines), icon=":material/warning:")
    if not own:
        st.info(
            "No question of this set is about the chosen documents. Choose other documents under “Search in” "
            "in the sidebar, or upload questions about these."
        )
        return
    n_elsewhere, n_empty = len(every) - len(own), sum(not each.answer for each in own)
    words = f"{escape_markdown(name)}: {counted(len(own) - n_empty, 'question')} with a known answer"
    if n_empty:
        words += f", {n_empty:,} that the documents do not answer and that are to be refused"
    if n_elsewhere:
        words += f"; {n_elsewhere:,} about other documents left out"
    st.caption(f"{words}.")


@st.cache_data(max_entries=4, show_spinner="Looking the answers up in the documents…", scope="session")
def problems_of(questions: Sequence[AnswerQuestion], documents: Sequence[Document]) -> list[str]:
    """Return what is wrong with questions about documents; cached."""
    return list(check_answers(questions, documents))


@dataclass(frozen=True)
class AnswerRun:
    """Questions asked with one choice of settings."""

    time: str  # when it began (ISO 8601), unique in the session
    asked: str  # name of the question set
    settings: Mapping[str, str]  # all settings in words, by their labels
    answers: AnswerSettings  # the settings of the answers among them
    n_questions: int  # how many questions were to be asked
    rows: tuple[AnswerRow, ...] = field(repr=False)  # the scored answers; fewer if the run was stopped

    @property
    def title(self) -> str:
        """Its time and questions, for a list."""
        part = "" if len(self.rows) == self.n_questions else f" of {self.n_questions:,}, stopped"
        return f"{self.time[11:]}, {self.asked}: {counted(len(self.rows), 'question')}{part}"

    def rows_of(self, questions: Sequence[AnswerQuestion]) -> list[AnswerRow]:
        """Return the rows of questions, in their order; an empty list where one was not asked."""
        own = {row.question: row for row in self.rows}
        return [own[question] for question in questions] if set(questions) <= set(own) else []


AS_JSON = TypeAdapter(AnswerRun)


def words_of_run(values: Mapping[str, Any], write: bool, names: Sequence[str]) -> dict[str, str]:
    """Return the settings of a run in words, and the names of the documents, by their labels."""
    # Nothing is drawn at random, and no question follows another.
    unused = {*RULES, "seed", "follow_ups", "write"}
    if not write:
        unused |= {"max_prompt_tokens", "max_new_tokens", "think", "context"}
    words = settings_words({key: value for key, value in values.items() if key not in unused})
    return words | {
        "Model's words": decoder_name() if write else "no",
        "Documents": ", ".join(names),
    }


def differing(runs: Sequence[AnswerRun]) -> list[str]:
    """Return the labels of the settings that are not the same in all runs."""
    labels = dict.fromkeys(label for run in runs for label in run.settings)
    return [label for label in labels if len({run.settings.get(label) for run in runs}) > 1]


def start(
    questions: Sequence[AnswerQuestion],
    asked: str,
    documents: Sequence[Document],
    encoder: Encoder,
    cut: Cut,
    write: bool,
) -> None:
    """Start to ask questions with the app's settings; documents without vectors are embedded first."""
    values = settings_in_use(encoder) | cut_values(cut) | {"write": write}
    settings = answer_settings(values)  # greedy
    index = index_documents(documents, encoder, cut, values["pooling"])
    null_scores = null_scores_of_documents(documents, encoder, cut, values["pooling"])
    warm_bm25(index, values["retriever"])
    reader, writer = load_reader()[0], Writer(load_decoder()) if write else None
    if writer:
        writer.check(settings)
    words = words_of_run(values, write, [document.name for document in documents])
    time = datetime.now().isoformat(timespec="seconds")
    run = AnswerRun(time, asked, words, settings, len(questions), ())

    def work(job: Job[None]) -> None:
        def answer(text: str) -> Answer:
            return ask(
                text,
                index,
                encoder,
                writer,
                settings,
                null_scores,
                stop=lambda: not job.take_turn(),
                reader=reader,
            )

        for question in questions:
            rows = measure_answers([question], answer)
            if not job.take_turn():
                return  # this last text may be cut off
            job.rows += rows
            job.report(len(job.rows), len(questions), f"{len(job.rows):,} of {len(questions):,} questions")

    start_job("answers", work, request=run, page="improve/settings")


def keep(run: AnswerRun) -> None:
    """Put a run into the session's workspace, and drop the oldest above `MOST_RUNS`."""
    content = {"kind": KIND, "run": AS_JSON.dump_python(run, mode="json")}
    dropped = session_runs(KIND)[: 1 - MOST_RUNS]
    left = [one for one in workspace().runs if one not in dropped]
    runs = (*left, SavedRun(run.asked, run.time, content))
    st.session_state["workspace"] = replace(workspace(), runs=runs)


def answer_runs() -> list[AnswerRun]:
    """Return the runs in the session's workspace, the newest first; damaged ones are left out."""
    runs = []
    for one in reversed(session_runs(KIND)):
        with suppress(ValidationError):
            runs.append(AS_JSON.validate_python(with_present_names(one.content.get("run"))))
    return runs


def with_present_names(run: Any) -> Any:
    """Return a saved run with the settings that there are now, by their present names."""
    if not isinstance(run, dict) or not all(
        isinstance(run.get(key), dict) for key in ("answers", "settings")
    ):
        return run
    answers = {FORMER_NAMES.get(name, name): value for name, value in run["answers"].items()}
    former = {"Question expanded": "no"}.items()  # a setting that was removed
    settings = {label: words for label, words in run["settings"].items() if (label, words) not in former}
    return {**run, "answers": answers, "settings": settings}


def seconds_each(write: bool) -> float:
    """Return how long a question takes: as in the last run with or without a text, else roughly."""
    for run in answer_runs():
        if run.answers.write == write:
            return fmean(row.seconds for row in run.rows)
    return WORDS_S if write else QUOTES_S
