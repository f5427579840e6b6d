"""The rank of a passage under other settings, measured on demand, and the smallest changes that find it."""

from collections.abc import Sequence
from dataclasses import replace
from html import escape
from time import monotonic
from typing import cast

import numpy as np
import streamlit as st
from streamlit.column_config import NumberColumn

from engine import Encoder
from engine.documents.document import Document
from engine.evaluation.questions import Question
from engine.evaluation.sweep import SweepInputs, sweep
from engine.evaluation.sweep_row import SweepRow
from engine.inspection.diagnosis.location import Location
from engine.inspection.diagnosis.setting_changes import (
    TRIED,
    Effect,
    changed_settings,
    effect_on_others,
    fixing_rows,
    nearby_configurations,
    other_questions,
    passage_question,
    passage_rank,
    values_to_try,
)
from engine.retrieval.retrievers import RETRIEVERS
from engine.settings import SETTINGS, Configuration
from engine.wording import TimeLeft, counted, readable_time
from pages.improve.diagnose.ask import Asked, vector_cache
from ui.configurations import apply_configuration, choose_values, value_words
from ui.models import token_seconds_here
from ui.questions.sets import LABEL_SOME
from ui.report import Report, element
from ui.search import Search
from ui.setting_values import configuration_of
from ui.text import Strong, joined, p_words
from ui.widgets import choice

OTHERS = "5 · Where would it rank under other settings?"
GIVEN = (
    "Other settings cut and embed the documents anew, and these chunks and vectors were uploaded. "
    "Another retriever can be chosen in the sidebar."
)
OTHERS_HIT = "Others' hit@k"
ROWS = "diagnose-rows"  # key of the session's state: questions and passage, and the rows measured for them
ANY = len(TRIED)  # settings differ at most
BUDGET_S = 60.0  # after which no further combination is begun
CHARACTERS_PER_TOKEN = 4  # of English, roughly
MAXSIM_NOTE = (
    "\n\nMaxSim reads every token of the best 50 chunks of every question again, which takes minutes where "
    "there are labelled questions: it comes last."
)
SMALLEST = "6 · What is the smallest change that finds it?"
NO_OTHERS = (
    "There are no other labelled questions about these documents, so the effect of this change on other "
    "questions is not known."
)
LOSES = "It loses more questions than it wins: try another change."
MAX_FIXES = 5  # listed


def show_other_settings(
    report: Report, asked: Asked, place: Location, search: Search, questions: Sequence[Question]
) -> tuple[str, ...]:
    """Draw the rank under other settings, measured on demand, and the smallest changes that find the passage.

    Returns the sentence about these changes, empty where nothing is measured yet.
    """
    report.header(OTHERS)
    if search.cut.uploaded:
        report.note(st.info, ":material/tune:", GIVEN)
        return ()
    encoder = search.model.as_encoder
    assert encoder is not None, "the model of documents that the app embeds"
    target = passage_question(asked.question, place, search.document(place.document))
    others = other_questions(target, questions, search.documents)
    current = current_configuration(search)
    configurations = wanted_configurations(current, encoder)
    rows = kept_rows((target, *others), (place.document, search.documents, search.model.name))
    known = {row.configuration for row in rows}
    missing = [each for each in configurations if each not in known]
    show_cost(missing, configurations, search)
    if st.button(
        "Try other settings",
        type="primary",
        disabled=not missing,
        icon=":material/tune:",
        help="Cuts and embeds the chosen documents anew for each way to cut; nothing is embedded twice. "
        "After a minute it shows what is measured, and goes on when pressed again.",
    ):
        measure_configurations([target, *others], configurations, rows, search)
        st.rerun()  # the caption above the button still counts them as missing
    measured = [row for row in rows if row.configuration in set(configurations)]
    now = next((row for row in measured if row.configuration == current), None)
    if now is None:
        report.note(st.info, ":material/tune:", "Nothing is measured yet for these settings.")
        return ()
    show_ranks(report, measured, now)
    can_widen = st.session_state["diagnose-changes"] < ANY
    return show_fixes(report, measured, now, others, can_widen)


def current_configuration(search: Search) -> Configuration:
    """Return the present settings."""
    if search.cut.uploaded:
        size, spec = search.cut.splitting, search.index.spec
        sizes = size.method, size.chunk_tokens, size.overlap
        return Configuration(
            *sizes, search.model.name, spec.max_tokens, spec.pooling, search.retriever, search.k
        )
    return replace(configuration_of(search.settings), model=search.model.name)


def measure_configurations(
    questions: Sequence[Question],
    configurations: Sequence[Configuration],
    rows: list[SweepRow],
    search: Search,
) -> None:
    """Measure the configurations that ``rows`` lack, appending each row at once, so that a stop loses none.

    Those that read tokens or pairs again come last, as each takes long; none is begun after `BUDGET_S`.
    """
    bar, stop, left = st.progress(0.0, "Measuring…"), st.empty(), TimeLeft()
    quick = [each for each in configurations if not reads_again(each)]
    end = monotonic() + BUDGET_S
    stop.button("Stop", icon=":material/stop_circle:", help="Keeps the combinations measured so far.")

    def show(done: float, total: int) -> None:
        share = min(done / total, 1.0)
        bar.progress(
            share,
            f"Measured {int(done):,} of {counted(total, 'combination')}, each by "
            f"{counted(len(questions), 'question')}{left(share)}",
        )

    cache = vector_cache(questions, search.documents)
    inputs = SweepInputs(search.documents, questions, (), {search.model.name: search.model})
    try:
        for wanted in (quick, configurations):
            for row in sweep(replace(inputs, configurations=wanted), cache, show, done=tuple(rows)):
                rows.append(row)
                if monotonic() > end:
                    return
    finally:
        bar.empty()
        stop.empty()


def reads_again(configuration: Configuration) -> bool:
    """Whether a retriever reads the best chunks of every question again, by a pass through a model."""
    retriever = RETRIEVERS[configuration.retriever]
    return retriever.needs_tokens or retriever.pairs > 0 or retriever.needs == "multi_vector"


def kept_rows(questions: tuple[Question, ...], of: tuple[str, list[Document], str]) -> list[SweepRow]:
    """Return the session's rows for these questions, the diagnosed one first; rows of others are dropped."""
    if ROWS not in st.session_state or st.session_state[ROWS][0] != (questions, of):
        st.session_state[ROWS] = ((questions, of), [])
    return cast(list[SweepRow], st.session_state[ROWS][1])


def wanted_configurations(current: Configuration, encoder: Encoder) -> list[Configuration]:
    """Draw the choice of settings to try; return the combinations, the nearest to the current one first."""
    most_changes = choice(
        "Settings that change at once",
        [1, 2, 3, ANY],
        "diagnose-changes",
        "More settings at once give more combinations, which take longer.",
        format_func={1: "one", 2: "up to two", 3: "up to three", ANY: "any"}.__getitem__,
    )
    values = values_to_try(encoder)
    longer = min(-(-current.chunk_tokens // 8) * 8, encoder.config.max_positions)
    values["max_tokens"] = [longer] if current.max_tokens is not None and longer > current.max_tokens else []
    with st.expander("Which settings", icon=":material/checklist:"):
        st.caption("The present value of each is always among them.")
        for key in ("splitter", "chunk_tokens", "overlap", "pooling", "retriever"):
            note = MAXSIM_NOTE if key == "retriever" else ""
            values[key] = choose_values(key, f"diagnose-{key}", values[key], note)
    return nearby_configurations(current, values, most_changes)


def show_cost(
    missing: Sequence[Configuration], configurations: Sequence[Configuration], search: Search
) -> None:
    """Show how many combinations are to be measured, and how long that takes at most."""
    if not missing:
        st.caption(f"All {len(configurations):,} combinations are measured.")
        return
    n_tokens = sum(len(document.text) for document in search.documents) / CHARACTERS_PER_TOKEN
    cuts = {(each.splitting, each.max_tokens, each.prompts, each.pooling == "idf") for each in missing}
    index = search.index
    a_token = token_seconds_here(index.encoder(search.model), index.chunks)
    seconds = n_tokens * len(cuts) * a_token + 0.1 * len(missing)
    st.caption(
        f"{len(missing):,} of {len(configurations):,} combinations are to be measured: at most "
        f"{readable_time(seconds)}, and about a minute at once."
    )
    if search.cut.parent_tokens:
        st.caption("Small to big is not used here: documents are cut into small chunks directly.")


def show_ranks(report: Report, rows: Sequence[SweepRow], now: SweepRow) -> None:
    """Draw the rank under every combination that was measured."""
    n_others, k = now.n_questions - 1, now.configuration.k
    n_found = Strong(f"{sum(map(finds, rows)):,} of {len(rows):,}")
    report.sentence("Under ", n_found, f" settings it is among the first {k}.")
    table = []
    for row in sorted(rows, key=lambda row: passage_rank(row) or row.n_chunks + 1):
        changed = changed_settings(now.configuration, row.configuration)
        names = joined([SETTINGS[key].name for key in changed], "and") if changed else "nothing (now)"
        entry: dict[str, object] = {"Rank": passage_rank(row), "Changed": names}
        entry |= {SETTINGS[key].label: value_words(row.configuration, key) for key in TRIED}
        entry["Chunks"] = row.n_chunks
        if row.n_questions > 1:
            entry[OTHERS_HIT] = 100 * float(np.mean(row.values["hit_rate@k"][1:]))
        table.append(entry)
    report.table(
        table,
        "The passage's rank under every setting that was measured, the best first",
        {
            "Rank": NumberColumn(help="Rank of the passage; chunks differ in size and number."),
            OTHERS_HIT: NumberColumn(
                format="%.1f%%",
                help=f"Share of the {n_others:,} other labelled questions that find an answer in {k}.",
            ),
        },
    )


def change_words(current: Configuration, configuration: Configuration) -> str:
    """``"chunk size 128 → 64 and retriever …"``."""
    return joined(
        [
            f"{SETTINGS[key].name} {value_words(current, key)} → {value_words(configuration, key)}"
            for key in changed_settings(current, configuration)
        ],
        "and",
    )


def finds(row: SweepRow) -> bool:
    """Whether the passage is among the first k under the settings of a row."""
    return (passage_rank(row) or row.configuration.k + 1) <= row.configuration.k


def show_fixes(
    report: Report, rows: Sequence[SweepRow], now: SweepRow, others: Sequence[Question], can_widen: bool
) -> tuple[str, ...]:
    """Draw the smallest changes that find the passage, and the effect of one on other questions.

    Returns the sentence about the smallest one. ``can_widen`` tells whether the user can allow more settings
    to change at once.
    """
    report.header(SMALLEST)
    found = [] if finds(now) else list(fixing_rows(now.configuration, rows))
    sentence: tuple[str, ...]
    if finds(now):
        sentence = ("None is needed: it is found now.",)
    elif not found:
        more = "Let more settings change at once, or ask" if can_widen else "Ask"
        sentence = Strong("None of the measured ones."), f" {more} in other words."
    else:
        words = change_words(now.configuration, found[0].configuration)
        smallest = Strong(words[0].upper() + words[1:])
        sentence = smallest, f" brings it to rank {passage_rank(found[0]):,}."
    report.sentence(*sentence)
    if not found:
        return sentence
    listed_fixes = found[:MAX_FIXES]
    changes = tuple(
        f"{change_words(now.configuration, row.configuration)} · rank {passage_rank(row):,}"
        for row in listed_fixes
    )
    number = st.selectbox(
        "Look at",
        range(len(listed_fixes)),
        format_func=changes.__getitem__,
        key="diagnose-fix",
        help="The smallest changes that find it: fewest settings first, then the nearest to the present "
        "values, then the best for all questions.",
    )
    number = min(number, len(listed_fixes) - 1)
    chosen = listed_fixes[number]
    report.parts.append(element("h3", escape(changes[number])))
    show_effect(report, effect_on_others(now, chosen), others, chosen.configuration.k)
    st.button(
        "Use these settings",
        on_click=use_settings,
        args=(chosen.configuration,),
        icon=":material/check:",
        help="Changes the settings in the sidebar, on all pages.",
    )
    return sentence


def show_effect(report: Report, effect: Effect | None, others: Sequence[Question], k: int) -> None:
    """Draw the effect of a change on the other labelled questions."""
    if effect is None:
        report.note(st.info, "", f"{NO_OTHERS} To see it, {LABEL_SOME}.")
        return
    report.sentence(Strong(f"Its effect on the other {len(others):,} labelled questions:"))
    mrr = effect.mrr
    figures: dict[str, tuple[str, str | None, str]] = {
        f"Found in the first {k}": (
            f"{effect.hits_after:.1%}",
            f"{100 * (effect.hits_after - effect.hits_before):+.1f} points",
            "Share of the other questions with an answer among the first k, after the change.",
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
    report.metrics(figures, "The effect of the change on the other labelled questions")
    if len(effect.lost) > len(effect.won):
        report.note(st.warning, ":material/warning:", LOSES)
    for name, numbers in {"won": effect.won, "lost": effect.lost}.items():
        if numbers:
            with report.expander(f"Questions {name}: {len(numbers):,}"):
                for number in numbers:
                    report.text(escape(others[number].text))


def use_settings(configuration: Configuration) -> None:
    """Set the app's own settings to those of a configuration."""
    apply_configuration(configuration)
