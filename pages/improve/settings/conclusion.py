"""What an experiment taught, in one sentence, and the settings to take, with their cost."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import streamlit as st

from engine.evaluation.metrics import METRICS
from engine.evaluation.significance import critical_value, questions_needed
from engine.evaluation.sweep_row import SweepRow
from engine.inspection.diagnosis.setting_changes import changed_settings
from engine.settings import SETTINGS, Configuration
from engine.wording import counted, readable_bytes
from pages.improve.settings.cell import DIFFERENT, not_of_the_app, won_and_lost
from pages.improve.settings.runs import Experiment
from pages.improve.settings.verdicts import OTHER_K, Verdict, merit, summary
from ui.configurations import apply_configuration, configuration_words, value_words, varied
from ui.text import escape_markdown, joined, p_words, readable_seconds

HITS = "hit_rate@k"
MOST_NAMED = 2  # settings that are named one by one
MOST_QUESTIONS = 10_000  # more would not be labelled
SHORTEST = 1e-4  # seconds of a search that are told apart
INDEXED = ("splitter", "chunk_tokens", "overlap", "max_tokens", "pooling", "model")  # a change indexes anew


@dataclass(frozen=True)
class Conclusion:
    """The setting that an experiment speaks for.

    Attributes
    ----------
    place
        The best row of those better than the baseline beyond chance, else of those that are better in this
        run; 0, the baseline, where none is.
    is_sure
        Whether it is better beyond chance.
    n_more
        About how many more questions would show its difference; None where that is not open.
    """

    place: int
    is_sure: bool = False
    n_more: int | None = None

    @property
    def advised(self) -> int:
        """The row to take: the baseline unless another is better beyond chance."""
        return self.place if self.is_sure else 0


def conclude(rows: Sequence[SweepRow], judged: Sequence[Verdict], metric: str) -> Conclusion:
    """Return the conclusion from the rows of an experiment, the baseline first, and their verdicts."""
    sign = METRICS[metric].sign
    compared = [place for place in range(1, len(rows)) if judged[place].word != OTHER_K]
    sure = [place for place in compared if judged[place].word == "better"]
    ahead = [place for place in compared if sign * judged[place].comparison.difference > DIFFERENT]
    if not ahead:
        return Conclusion(0)
    best = max(sure or ahead, key=lambda place: merit(rows[place], metric))
    if sure:
        return Conclusion(best, is_sure=True)
    values = np.array([rows[place].values[metric] for place in (0, *compared)], np.float64)
    differences = (values[1:] - values[0]).T  # (n_questions, n_compared)
    needed = questions_needed(differences[:, compared.index(best)], critical_value(differences))
    return Conclusion(best, n_more=None if needed is None else max(1, needed - len(differences)))


def sentence(
    rows: Sequence[SweepRow], judged: Sequence[Verdict], metric: str, found: Conclusion, in_use: bool
) -> str:
    """Say what was learnt; ``in_use`` tells whether the baseline is still what the app has."""
    n_others = sum(one.word not in ("baseline", OTHER_K) for one in judged)
    if not n_others:
        return summary(judged)
    those = "those in use" if in_use else "those that were in use"
    if not found.place:
        others = f"None of {n_others:,} other settings is" if n_others > 1 else "The other setting is not"
        return f"{others} better than {those}, which {level(rows[0], metric)}."
    name = settings_words(rows[0].cell, rows[found.place].cell)
    gain = gain_words(rows[0], rows[found.place], metric, in_use)
    p = p_words(judged[found.place].p_value)
    if found.is_sure:
        return f"{name[0].upper()}{name[1:]} {gain}: more than chance explains ({p})."
    more = found.n_more or MOST_QUESTIONS
    settled = (
        f"about {rounded(more):,} more questions like these would settle it"
        if more < MOST_QUESTIONS
        else "no number of questions that one can label would settle it"
    )
    return (
        f"No setting is better than {those} beyond what chance explains: the best, {name}, {gain}; "
        f"the difference could be chance ({p}), and {settled}."
    )


def level(row: SweepRow, metric: str) -> str:
    """``"find the passage among the first 4 for 31 of 41 questions"``, of settings."""
    if metric == HITS:
        return f"find the passage {among(row.cell.k)} for {n_hits(row):,} of {questions(row)}"
    label = METRICS[metric].label
    return f"have a mean {label} of {row.metrics[metric]:.3f} over {questions(row)}"


def gain_words(before: SweepRow, after: SweepRow, metric: str, in_use: bool) -> str:
    """``"finds the passage … for 5 more of 41 questions than …, which is in use (36 instead of 31)"``."""
    base = settings_words(after.cell, before.cell)
    n_named = len(changed_settings(before.cell, after.cell))
    if n_named > MOST_NAMED:
        base = "the settings in use" if in_use else "the settings that were in use"
    elif n_named == 1:
        base += ", which is in use" if in_use else ", which was in use"
    else:
        base += ", which are in use" if in_use else ", which were in use"
    if metric == HITS:
        more = n_hits(after) - n_hits(before)
        return (
            f"finds the passage {among(after.cell.k)} for {more:,} more of {questions(after)} "
            f"than {base} ({n_hits(after):,} instead of {n_hits(before):,})"
        )
    counts = won_and_lost(before.values[metric], after.values[metric], metric)
    label = METRICS[metric].label
    return (
        f"has a better {label} for {len(counts['Won']):,} of {questions(after)} and a worse one for "
        f"{len(counts['Lost']):,}, compared with {base} (a mean of {after.metrics[metric]:.3f} instead of "
        f"{before.metrics[metric]:.3f})"
    )


def n_hits(row: SweepRow) -> int:
    """Return how many questions find an answer among the first k."""
    return round(sum(row.values[HITS]))


def among(k: int) -> str:
    """``"among the first 4"``."""
    return f"among the first {k:,}" if k > 1 else "at rank 1"


def questions(row: SweepRow) -> str:
    """``"41 questions"``."""
    return counted(row.n_questions, "question")


def settings_words(other: Configuration, cell: Configuration) -> str:
    """``"chunk size 256 and retriever “BM25 (words)”"``: the settings of a cell in which it differs."""
    named = []
    for axis in changed_settings(other, cell):
        value = value_words(cell, axis)
        named.append(f"{SETTINGS[axis].label.lower()} {value if value.isalnum() else f'“{value}”'}")
    return joined(named, "and")


def rounded(count: int) -> int:
    """Return a count with two digits that are not 0."""
    return int(float(f"{count:.2g}"))


def cost_words(before: SweepRow, after: SweepRow) -> str:
    """Say what settings cost, as the run measured it, and the baseline's cost where it differs."""

    def instead(now: str, was: str) -> str:
        return now if now == was else f"{now} instead of {was}"

    size = instead(readable_bytes(after.index_bytes), readable_bytes(before.index_bytes))
    chunks = instead(f"{after.n_chunks:,}", f"{before.n_chunks:,}")
    words = f"The index takes {size}, for {chunks} chunks"
    if before.search_seconds is not None and after.search_seconds is not None:
        took = instead(search_words(after.search_seconds), search_words(before.search_seconds))
        words += f"; a search takes {took}, without embedding the question"
    return f"{words}."


def search_words(seconds: float) -> str:
    """Return the time of a search in words."""
    return readable_seconds(seconds) if seconds >= SHORTEST else f"less than {readable_seconds(SHORTEST)}"


def show_conclusion(
    experiment: Experiment, judged: Sequence[Verdict], metric: str, found: Conclusion, current: Configuration
) -> None:
    """Draw the sentence, and the settings to take: those advised, or those of the row that is selected.

    ``current`` are the app's present settings.
    """
    rows = experiment.rows
    said = sentence(rows, judged, metric, found, rows[0].cell == current)
    prefix = "" if experiment.is_whole else "So far: "
    box = st.success if found.is_sure else st.info
    box(f"{prefix}{escape_markdown(said)}", icon=":material/lightbulb:")
    place = shown_place(experiment, found)
    cell = rows[place].cell
    with st.container(border=True, key="experiment-advice"):
        words, button = st.columns([4, 1], vertical_alignment="center")
        with words:
            what = "Selected" if place != found.advised else "Recommended"
            if place == found.advised == 0:
                what = "Recommended, keep" if cell == current else "Recommended, go back to"
            st.markdown(f"**{what}:** {escape_markdown(configuration_words(cell, varied(experiment.cells)))}")
            anew = set(changed_settings(current, cell)) & set(INDEXED)
            st.caption(
                escape_markdown(cost_words(rows[0], rows[place]))
                + (" All documents are indexed anew." if anew else "")
            )
            if left_out := not_of_the_app(cell):
                st.caption(escape_markdown(left_out))
        if cell == current:
            button.caption("In use now.")
        else:
            button.button(
                "Apply",
                key="experiment-use",
                type="primary",
                icon=":material/check:",
                on_click=use_settings,
                args=(cell,),
                width="stretch",
                help="Changes the app's own settings: splitter, chunk size, overlap, tokens read, pooling, "
                "retriever, passages. Every page then uses them.",
            )
        if used := st.session_state.pop("experiment-used", None):
            st.success(escape_markdown(used), icon=":material/check_circle:")


def shown_place(experiment: Experiment, found: Conclusion) -> int:
    """Return the place of the row that is selected, or else advised."""
    picked: int = st.session_state.get("experiment-cell", {}).get(experiment.key, found.advised)
    return picked if picked < len(experiment.rows) else found.advised


def use_settings(cell: Configuration) -> None:
    """Set the app's own settings to those of a cell, and keep a notice of what was set."""
    st.session_state["experiment-used"] = (
        f"The app now has {configuration_words(cell, apply_configuration(cell))}."
    )
