"""The smallest changes that find a passage, what each does to other questions, and how to take it over."""

from collections.abc import Sequence

import streamlit as st

from engine.evaluation.grid import Cell
from engine.evaluation.questions import Question
from engine.evaluation.sweep_row import SweepRow
from engine.inspection.diagnosis_settings import Effect, changes, effect_on_others, fixes, passage_rank
from ui import poolings, retrievers
from ui.answer import escape_markdown
from ui.chunk_settings import METHODS
from ui.health import listed

MOST_FIXES = 5
SETTING_NAMES = {
    "splitter": "splitter",
    "chunk_tokens": "chunk size",
    "overlap": "overlap",
    "max_tokens": "token limit",
    "pooling": "pooling",
    "retriever": "retriever",
}


def changed_names(current: Cell, cell: Cell) -> list[str]:
    """Return in words which settings differ."""
    return [SETTING_NAMES[name] for name in changes(current, cell)]


def in_words(current: Cell, cell: Cell) -> str:
    """Say a change: ``chunk size 128 → 64 and retriever …``."""
    names = {"splitter": METHODS, "pooling": poolings.LABELS, "retriever": retrievers.LABELS}

    def said(name: str, value: object) -> str:
        return names[name][str(value)] if name in names else str(value)

    return listed(
        [
            f"{SETTING_NAMES[name]} {said(name, getattr(current, name))} → {said(name, getattr(cell, name))}"
            for name in changes(current, cell)
        ],
        "and",
    )


def change(current: Cell, cell: Cell) -> str:
    """Return a change in words, escaped, as the beginning of a sentence."""
    said = in_words(current, cell)
    return escape_markdown(said[0].upper() + said[1:])


def show_fixes(rows: Sequence[SweepRow], now: SweepRow, others: Sequence[Question]) -> None:
    """Draw the smallest changes that find the passage, each with what it does to the other questions."""
    st.subheader("6 · What is the smallest change that finds it?")
    if (passage_rank(now) or now.cell.k + 1) <= now.cell.k:
        st.write("None is needed: it is found as things are.")
        return
    found = list(fixes(now.cell, rows))
    if not found:
        st.write("**None of those measured.** Let more settings change at once, or ask in other words.")
        return
    best = found[0]
    st.write(f"**{change(now.cell, best.cell)}** brings it to rank {passage_rank(best):,}.")
    listed_fixes = found[:MOST_FIXES]
    number = st.selectbox(
        "Look at",
        range(len(listed_fixes)),
        format_func=lambda number: (
            f"{in_words(now.cell, listed_fixes[number].cell)} · rank {passage_rank(listed_fixes[number]):,}"
        ),
        key="diagnose-fix",
        help="The smallest changes that find it: few settings first, and of these the ones nearest to the "
        "present, and best for all questions.",
    )
    chosen = listed_fixes[min(number, len(listed_fixes) - 1)]
    show_effect(effect_on_others(now, chosen), others, chosen.cell.k)
    offer(chosen.cell)


def show_effect(effect: Effect | None, others: Sequence[Question], k: int) -> None:
    """Draw what a change does to the other labelled questions."""
    if effect is None:
        st.info(
            "There are no other labelled questions about these documents, so nobody can say what this "
            "change does to them. Label some on the page “Experiments”, or upload them there, to see."
        )
        return
    mrr = effect.mrr
    st.write(f"**To the other {len(others):,} labelled questions** it does this:")
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
            help=f"After less before; 95 % interval {mrr.low:+.3f} to {mrr.high:+.3f}, p = {mrr.p_value:.3f} "
            "by a paired randomisation test.",
            width="content",
        )
        st.metric("Won", f"{len(effect.won):,}", help="Found only after the change.", width="content")
        st.metric("Lost", f"{len(effect.lost):,}", help="Found only before the change.", width="content")
    if len(effect.lost) > len(effect.won):
        st.warning("It breaks more than it mends: look for another way.", icon=":material/warning:")
    for title, numbers in (("Questions won", effect.won), ("Questions lost", effect.lost)):
        if numbers:
            with st.expander(f"{title}: {len(numbers):,}"):
                for number in numbers:
                    st.text(others[number].text)


def offer(cell: Cell) -> None:
    """Draw the button that takes a change over into the sidebar."""
    st.button(
        "Use these settings",
        on_click=use,
        args=(cell,),
        icon=":material/check:",
        help="Moves the sidebar's settings, on all pages. Back again by hand.",
    )


def use(cell: Cell) -> None:
    """Move the sidebar's settings to a combination."""
    st.session_state.update(
        splitter=cell.splitter,
        chunk_tokens=cell.chunk_tokens,
        overlap=cell.overlap,
        max_tokens=cell.max_tokens,
        pooling=cell.pooling,
        retriever=cell.retriever,
    )
