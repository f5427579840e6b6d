"""The smallest changes of settings that find a passage, and the effect of each on the other questions."""

from collections.abc import Sequence
from html import escape

import streamlit as st

from engine.evaluation.questions import Question
from engine.evaluation.sweep_row import SweepRow
from engine.inspection.diagnosis.setting_changes import (
    Effect,
    changed_settings,
    effect_on_others,
    fixing_rows,
    passage_rank,
)
from engine.settings import SETTINGS, Configuration
from ui.configurations import apply_configuration, value_words
from ui.questions.sets import LABEL_SOME
from ui.report import Report, element
from ui.text import Strong, joined, p_words

SMALLEST = "6 · What is the smallest change that finds it?"
NO_OTHERS = (
    "There are no other labelled questions about these documents, so the effect of this change on other "
    "questions is not known."
)
LOSES = "It loses more questions than it wins: try another change."
MAX_FIXES = 5  # listed


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
