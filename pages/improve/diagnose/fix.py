"""The smallest changes of settings that find a passage, and the effect of each on the other questions."""

from collections.abc import Sequence

import streamlit as st

from engine.evaluation.grid import Cell
from engine.evaluation.questions import Question
from engine.evaluation.sweep_row import SweepRow
from engine.inspection.diagnosis.setting_changes import (
    Effect,
    changed_settings,
    effect_on_others,
    fixing_rows,
    passage_rank,
)
from ui.cells import AXES, take_cell, value_words
from ui.questions.sets import LABEL_SOME
from ui.text import escape_markdown, joined, p_words

MOST_FIXES = 5


def changed_names(current: Cell, cell: Cell) -> list[str]:
    """Return the names of the settings that differ."""
    return [AXES[axis].label.lower() for axis in changed_settings(current, cell)]


def change_words(current: Cell, cell: Cell) -> str:
    """``"chunk size 128 → 64 and retriever …"``."""
    return joined(
        [
            f"{AXES[axis].label.lower()} {value_words(current, axis)} → {value_words(cell, axis)}"
            for axis in changed_settings(current, cell)
        ],
        "and",
    )


def show_fixes(rows: Sequence[SweepRow], now: SweepRow, others: Sequence[Question], can_widen: bool) -> None:
    """Draw the smallest changes that find the passage, and the effect of one on other questions.

    ``can_widen`` tells whether more settings may be let change at once.
    """
    st.header("6 · What is the smallest change that finds it?")
    if (passage_rank(now) or now.cell.k + 1) <= now.cell.k:
        st.write("None is needed: it is found now.")
        return
    found = list(fixing_rows(now.cell, rows))
    if not found:
        more = "Let more settings change at once, or ask" if can_widen else "Ask"
        st.write(f"**None of the measured ones.** {more} in other words.")
        return
    best = found[0]
    words = change_words(now.cell, best.cell)
    st.write(f"**{escape_markdown(words[0].upper() + words[1:])}** brings it to rank {passage_rank(best):,}.")
    listed_fixes = found[:MOST_FIXES]

    def label(number: int) -> str:
        row = listed_fixes[number]
        return f"{change_words(now.cell, row.cell)} · rank {passage_rank(row):,}"

    number = st.selectbox(
        "Look at",
        range(len(listed_fixes)),
        format_func=label,
        key="diagnose-fix",
        help="The smallest changes that find it: fewest settings first, then the nearest to the present "
        "values, then the best for all questions.",
    )
    chosen = listed_fixes[min(number, len(listed_fixes) - 1)]
    show_effect(effect_on_others(now, chosen), others, chosen.cell.k)
    st.button(
        "Use these settings",
        on_click=use_settings,
        args=(chosen.cell,),
        icon=":material/check:",
        help="Changes the settings in the sidebar, on all pages.",
    )


def show_effect(effect: Effect | None, others: Sequence[Question], k: int) -> None:
    """Draw the effect of a change on the other labelled questions."""
    if effect is None:
        st.info(
            "There are no other labelled questions about these documents, so the effect of this change on "
            f"other questions is not known. To see it, {LABEL_SOME}."
        )
        return
    mrr = effect.mrr
    st.write(f"**Its effect on the other {len(others):,} labelled questions:**")
    with st.container(horizontal=True):
        st.metric(
            f"Found in the first {k}",
            f"{effect.hits_after:.1%}",
            f"{100 * (effect.hits_after - effect.hits_before):+.1f} points",
            help="Share of the other questions with an answer among the first k, after the change.",
            width="content",
        )
        st.metric(
            "Mean reciprocal rank",
            f"{mrr.difference:+.3f}",
            help=f"After minus before; 95 % interval {mrr.low:+.3f} to {mrr.high:+.3f}, "
            f"{p_words(mrr.p_value)} by a paired randomisation test.",
            width="content",
        )
        st.metric("Won", f"{len(effect.won):,}", help="Found only after the change.", width="content")
        st.metric("Lost", f"{len(effect.lost):,}", help="Found only before the change.", width="content")
    if len(effect.lost) > len(effect.won):
        st.warning("It loses more questions than it wins: try another change.", icon=":material/warning:")
    for title, numbers in (("Questions won", effect.won), ("Questions lost", effect.lost)):
        if numbers:
            with st.expander(f"{title}: {len(numbers):,}"):
                for number in numbers:
                    st.text(others[number].text)


def use_settings(cell: Cell) -> None:
    """Set the app's own settings to those of a cell."""
    take_cell(cell)
