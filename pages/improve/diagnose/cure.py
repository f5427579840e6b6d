"""The cure of a wrong answer: tried, applied by a button, undone, with its effect on labelled questions."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import count
from time import monotonic
from typing import Any

import streamlit as st

from engine.evaluation.answers import ShortAnswer
from engine.evaluation.questions import Question
from engine.evaluation.sweep import SweepInputs, sweep
from engine.generation.answer import Answer
from engine.generation.conversation import Turn
from engine.inspection.diagnosis.asking import CUTTING, Searched
from engine.inspection.diagnosis.diagnose import Diagnosis, Trial, diagnose
from engine.inspection.diagnosis.setting_changes import (
    Effect,
    effect_on_others,
    other_questions,
    passage_question,
)
from engine.retrieval.retrievers import RETRIEVERS
from engine.settings import SETTINGS, SWEPT
from engine.weights.fetch import Progress
from engine.wording import counted, shortened
from pages.improve.diagnose.ask import ABOUT, Asked, vector_cache
from ui.asking import end_topic, last_asked
from ui.background import computed, in_background
from ui.corpus import null_scores_of_documents
from ui.current import PASSAGE, PASTED, set_passage, set_question
from ui.models import load_encoder, load_reader, token_seconds_here
from ui.questions.sets import LABEL_SOME
from ui.report import Report
from ui.search import Search
from ui.setting_values import apply_settings, configuration_of, set_values, settings_in_use
from ui.text import Strong, p_words, readable_seconds

CURE = "The cure"
APPLIED = "diagnose-applied"  # key of the session's state: the cure in use
STANDALONE = "diagnose-standalone"  # the question that follows on nothing, although one was asked before
MORE = "cures"  # the work on all cures, also those that take long
AT_ONCE_S = 4.0  # after which no further cure is begun, unless that is asked for
N_CUTS, N_CURES = 3, 60  # ways to cut that are tried, and cures, roughly
ANSWER_CHARACTERS = 400
ONE_QUESTION = "It changes only this question."
NO_RANKS = "It changes which answers are shown, of all questions, and no ranks."
NO_OTHERS = (
    "There are no other labelled questions about these documents, so the effect of this change on other "
    f"questions is not known. To see it, {LABEL_SOME}."
)
LOSES = "It loses more questions than it wins: try another change."
NOT_MEASURED = (
    "It reads passages again for every question, so its effect on others is measured in “Best settings”."
)


@dataclass(frozen=True)
class Applied:
    """A cure in use: what it is, the answers without and with it, and the state to restore."""

    words: str
    before: str
    after: str
    state: Mapping[str, Any]


def diagnosed(asked: Asked, search: Search) -> Diagnosis:
    """Diagnose under the settings in use; cures that take long are tried only where that was asked for."""
    wanted, values = wanted_of(asked), settings_in_use(load_encoder()) | search.settings
    found: Diagnosis | None = computed(MORE, key_of(wanted, search))
    return found or diagnosis_of(wanted, values, search)


def wanted_of(asked: Asked) -> tuple[Any, ...]:
    """Return the question, the passage, the answer if one is known, its place, and the turns before."""
    question, turns = asked.question, turns_before(asked.question)
    if turns and (last := last_asked()):
        question = last.typed
    return question, asked.passage, asked.answer, asked.place, turns


def key_of(wanted: tuple[Any, ...], search: Search) -> object:
    """Return what a diagnosis depends on."""
    _, *rest = search.ranked
    texts = tuple((document.name, document.text) for document in search.documents)
    return wanted, texts, *rest, search.k, tuple(settings_in_use(load_encoder()).items())


@st.cache_resource(
    max_entries=8,
    show_spinner="Following the passage, and trying cures…",
    scope="session",
    hash_funcs={Search: lambda search: (*search.ranked, search.k)},
)
def diagnosis_of(wanted: tuple[Any, ...], values: dict[str, Any], search: Search) -> Diagnosis:
    """Diagnose what is wanted, by the cures that are tried in a few seconds."""
    begun: list[float] = []  # when the first cure was tried

    def is_over() -> bool:
        begun.append(monotonic())
        return begun[-1] - begun[0] > AT_ONCE_S

    return diagnosis(wanted, searched_of(search, values), seconds_to_cut(search) < AT_ONCE_S, is_over)


def diagnosis(
    wanted: tuple[Any, ...], searched: Searched, may_cut: bool, stop: Callable[[], bool]
) -> Diagnosis:
    """Diagnose what `wanted_of` returns."""
    question, passage, answer, place, turns = wanted
    return diagnose(
        question, passage, searched, ShortAnswer.parse(answer), turns, place, may_cut=may_cut, stop=stop
    )


def try_all(asked: Asked, search: Search) -> None:
    """Draw the button that tries all cures, with its price, or how far they are."""
    wanted, n_tried = wanted_of(asked), count()
    searched = searched_of(search, settings_in_use(load_encoder()) | search.settings)

    def work(report: Progress) -> Diagnosis:
        def next_cure() -> bool:
            report(min(next(n_tried), N_CURES - 1), N_CURES)
            return False

        return diagnosis(wanted, searched, True, next_cure)

    key, seconds = key_of(wanted, search), seconds_to_cut(search) + AT_ONCE_S
    if in_background(MORE, "Try the other cures", key, seconds, "improve/diagnose", work):
        st.rerun()  # with what was found


def searched_of(search: Search, values: Mapping[str, Any]) -> Searched:
    """Return what is searched, for the engine to ask again."""
    null_scores = null_scores_of_documents(search.documents, search.model, search.cut, search.pooling)
    documents = () if search.cut.uploaded else tuple(search.documents)
    cache = vector_cache((), search.documents)
    reader, _ = load_reader()
    return Searched(search.index, search.model, reader, values, null_scores, documents, cache)


def turns_before(question: str) -> tuple[Turn, ...]:
    """Return the turns that a question of the session follows on, unless it is asked as a new topic."""
    asked = last_asked()
    if (
        asked is None
        or question not in (asked.typed, asked.question)
        or st.session_state.get(STANDALONE) == asked.typed
    ):
        return ()
    return asked.turns


def seconds_to_cut(search: Search) -> float:
    """Return about how long it takes to cut and embed the documents in several ways; 0 for given chunks."""
    if search.cut.uploaded:
        return 0.0
    index = search.index
    n_tokens = sum(chunk.n_tokens for chunk in index.chunks)
    return N_CUTS * n_tokens * token_seconds_here(index.encoder(search.model), index.chunks)


def show_applied(report: Report, found: Diagnosis) -> None:
    """Draw the cure that was applied last, with the answers before and after, and its Undo."""
    applied: Applied | None = st.session_state.get(APPLIED)
    if applied is None:
        return
    report.note(st.info, ":material/healing:", Strong("Applied:"), f" {applied.words}")
    show_answers(report, applied.before, answer_words(found.before))
    st.button("Undo", key="diagnose-undo", icon=":material/undo:", on_click=undo)


def show_cure(
    report: Report, found: Diagnosis, asked: Asked, search: Search, questions: Sequence[Question]
) -> None:
    """Draw the cure, the answers without and with it, what it costs and does to others, and its button."""
    if found.cause == "none":
        return
    report.header(CURE)
    report.sentence(found.cure_words)
    trial = found.trial
    if trial is not None:
        show_answers(report, answer_words(found.before), answer_words(trial.answer))
        report.caption(cost_words(found, trial))
        show_effect(report, trial.cure.settings, found, search, questions)
        st.button(
            "Apply it and ask again",
            key="diagnose-apply",
            type="primary" if trial.is_right else "secondary",
            icon=":material/healing:",
            on_click=apply,
            args=(found, trial),
            help="Changes the question, or the settings on all pages. One click undoes it.",
        )
    if found.is_unfinished and not (trial and trial.is_right):
        try_all(asked, search)


def show_answers(report: Report, before: str, after: str) -> None:
    """Draw two answers side by side."""
    for column, title, words in zip(st.columns(2), ("Before", "After"), (before, after), strict=True):
        with column.container(border=True):
            report.caption(title)
            report.text(escape(words))


def answer_words(answer: Answer) -> str:
    """Return what is shown of an answer: the reader's words, or else the quotes."""
    if answer.judged.status == "refused":
        return "Refused."
    words = answer.reading.text if answer.reading else "\n".join(f"“{quote.text}”" for quote in answer.quotes)
    return (
        f"{shortened(words, ANSWER_CHARACTERS)}\n{answer.judged.status}, {answer.judged.confidence:.0%} sure"
    )


def cost_words(found: Diagnosis, trial: Trial) -> str:
    """Say what a cure costs."""
    words = f"The answer took {readable_seconds(trial.seconds)}"
    if any(key in trial.cure.settings for key in CUTTING):
        chunks = f"{counted(found.n_chunks, 'chunk')} before, {trial.n_chunks:,} after"
        words += f", with cutting and embedding the documents anew: {chunks}"
    return f"{words}."


def show_effect(
    report: Report,
    changes: Mapping[str, Any],
    found: Diagnosis,
    search: Search,
    questions: Sequence[Question],
) -> None:
    """Draw the effect of changed settings on the other labelled questions."""
    swept = {key: value for key, value in changes.items() if key in SWEPT}
    if not swept or found.place is None:
        report.caption(NO_RANKS if changes.keys() - {"follow_ups", *SWEPT} else ONE_QUESTION)
        return
    # Whether it reads the best chunks of every question again, by a pass through a model.
    used = RETRIEVERS[swept.get("retriever", search.retriever)]
    if used.needs_tokens or used.pairs > 0 or used.needs == "multi_vector":
        report.caption(NOT_MEASURED)
        return
    target = passage_question(found.question, found.place, search.document(found.place.document))
    others = other_questions(target, questions, search.documents)
    effect = effect_of((target, *others), swept, search) if others else None
    if effect is None:
        report.caption(NO_OTHERS)
        return
    mrr = effect.mrr
    figures: dict[str, tuple[str, str | None, str]] = {
        "Found": (
            f"{effect.hits_after:.1%}",
            f"{100 * (effect.hits_after - effect.hits_before):+.1f} points",
            "Share of the other questions with an answer among the passages that are read, after the change.",
        ),
        "Mean reciprocal rank": (
            f"{mrr.difference:+.3f}",
            None,
            f"After minus before; 95 % interval {mrr.low:+.3f} to {mrr.high:+.3f}, "
            f"{p_words(mrr.p_value)} by a paired randomisation test.",
        ),
        "Won": (f"{len(effect.won):,}", None, "Found only after the change."),
        "Lost": (f"{len(effect.lost):,}", None, "Found only before the change."),
    }
    report.sentence(f"Its effect on the other {counted(len(others), 'labelled question')}:")
    report.metrics(figures, "The effect of the change on the other labelled questions")
    if len(effect.lost) > len(effect.won):
        report.note(st.warning, ":material/warning:", LOSES)
    for name, numbers in {"won": effect.won, "lost": effect.lost}.items():
        if numbers:
            with report.expander(f"Questions {name}: {len(numbers):,}"):
                for number in numbers:
                    report.text(escape(others[number].text))


@st.cache_resource(
    max_entries=8,
    show_spinner="Asking the labelled questions…",
    scope="session",
    hash_funcs={Search: lambda search: (*search.ranked, search.k)},
)
def effect_of(questions: tuple[Question, ...], changes: dict[str, Any], search: Search) -> Effect | None:
    """Measure changed settings on labelled questions; the first is the one that is diagnosed."""
    now = replace(configuration_of(search.settings), model=search.model.name)
    then = replace(now, **changes)
    if now == then:
        return None
    inputs = SweepInputs(search.documents, questions, (now, then), {search.model.name: search.model})
    rows = {row.configuration: row for row in sweep(inputs, vector_cache(questions, search.documents))}
    return effect_on_others(rows[now], rows[then])


def apply(found: Diagnosis, trial: Trial) -> None:
    """Take a cure over, and keep what it changes, for `undo`."""
    state, cure = st.session_state, trial.cure
    values = settings_in_use(load_encoder())
    ways = [f"diagnose-way-{has_labels}" for has_labels in (True, False)]
    kept = {key: values[key] for key in cure.settings if SETTINGS[key].has_widget and key != "follow_ups"}
    kept |= {key: state.get(key) for key in (*ways, ABOUT, STANDALONE, APPLIED, PASSAGE)} | {
        "question": found.question
    }
    changes = {key: value for key, value in cure.settings.items() if key != "follow_ups"}
    apply_settings(changes, load_encoder().config.max_positions)
    if len(changes) < len(cure.settings):
        end_topic()
        state[STANDALONE] = found.question
    if cure.question:
        state.update(dict.fromkeys(ways, PASTED) | {ABOUT: cure.question})
        set_question(cure.question)
    if found.place is not None:
        set_passage(found.place.document, found.place.start, found.place.end)
    words = cure.words(found.settings)
    state[APPLIED] = Applied(words, answer_words(found.before), answer_words(trial.answer), kept)


def undo() -> None:
    """Restore what was there before the cure that was applied last."""
    applied: Applied = st.session_state.pop(APPLIED)
    kept = dict(applied.state)
    set_question(kept.pop("question"))
    for key in [key for key, value in kept.items() if value is None]:
        del kept[key]
        st.session_state.pop(key, None)
    set_values(kept)
