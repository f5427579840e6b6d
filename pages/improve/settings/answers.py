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
from engine.errors import GlassboxError
from engine.evaluation.answers import (
    AnswerQuestion,
    AnswerRow,
    measure_answers,
)
from engine.generation.answer import Answer
from engine.generation.answering import ask
from engine.generation.sampling import RULES
from engine.generation.settings import AnswerSettings
from engine.generation.writer import Writer
from engine.settings import answer_settings
from engine.storage.workspace import SavedRun
from engine.wording import counted, readable_time
from pages.improve.settings.experiments import running_job, session_runs
from ui.chunk_settings import Cut, cut_values
from ui.corpus import index_to_ask
from ui.jobs import Job, follow_progress, start_job
from ui.models import decoder_name, load_decoder, load_reader
from ui.questions.answers import answer_set_picker
from ui.questions.kept import workspace
from ui.setting_values import present_name, settings_in_use, settings_words
from ui.text import show_error

ABOUT = (
    "Questions whose short answers are known are asked with the app's settings, those of this sidebar and of "
    "the page “Ask your documents”, and each answer is scored without a judge: it is right if it holds the "
    "known answer, word for word."
)
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
    name, questions = answer_set_picker(documents)
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
        unused |= {"max_prompt_tokens", "max_new_tokens", "think", "reads"}
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
    index, null_scores = index_to_ask(documents, encoder, cut, values["pooling"], values["retriever"])
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
    answers = {present_name(name, value): value for name, value in run["answers"].items()}
    former = {"Question expanded": "no"}.items()  # a setting that was removed
    settings = {label: words for label, words in run["settings"].items() if (label, words) not in former}
    return {**run, "answers": answers, "settings": settings}


def seconds_each(write: bool) -> float:
    """Return how long a question takes: as in the last run with or without a text, else roughly."""
    for run in answer_runs():
        if run.answers.write == write:
            return fmean(row.seconds for row in run.rows)
    return WORDS_S if write else QUOTES_S
