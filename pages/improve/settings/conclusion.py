"""What an experiment taught: verdicts beyond chance, and the settings to take with their cost."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from math import comb
from typing import Any

import numpy as np
import streamlit as st

from engine.evaluation.metrics import READ_TOKENS
from engine.evaluation.questions import DRAFTED, Question
from engine.evaluation.setting_order import expected_of, setting_orders
from engine.evaluation.significance import (
    LEVEL,
    Comparison,
    compare_all,
    critical_value,
    held_out,
    questions_needed,
)
from engine.evaluation.sweep_answers import limit_of
from engine.evaluation.sweep_row import MEASURES, RIGHT, SweepRow
from engine.inspection.diagnosis.setting_changes import changed_settings
from engine.settings import SETTINGS, Configuration
from engine.wording import counted, readable_bytes
from pages.improve.settings.experiments import Experiment, apply_configuration, value_words
from ui.current import open_diagnosis
from ui.questions.drafts import ENOUGH, status_words
from ui.report import Report
from ui.server_settings import ENCODER
from ui.text import escape_markdown, joined, p_words, readable_seconds, signed_interval

HITS, EQUAL_READING = "hit_rate@k", "found_at_equal_reading"
SHARES = (HITS, EQUAL_READING, RIGHT)  # of questions, shown as numbers of them
MOST_NAMED = 2  # settings that are named one by one
MOST_QUESTIONS = 10_000  # more would not be labelled
SHORTEST = 1e-4  # the shortest time of a search that is shown
FEWEST_HELD_OUT = 10  # questions; half of them choose a setting for the others
HELD_OUT_HELP = (
    "The questions are divided in two halves. On each half, the setting counts that was best on the other: "
    "those questions had no part in its choice, so this is the gain to expect of new ones."
)
ACROSS_K = (
    "The number of passages (k) differs. With more of them, any search finds more, and less of it is right: "
    "hit, recall, precision and all other metrics “@k” are not compared across k, only MRR is."
)
OTHER_K = "another k"
ELSEWHERE, EXPECTED = "On other corpora", "To be expected here"
# The words of verdicts by questions that nobody has read.
DRAFT_WORDS = {"worse": "clearly worse", "better": "the app's is clearly worse"}
DIFFERENT = 1e-9


@dataclass(frozen=True)
class Verdict:
    """A row compared with the baseline, the p-value corrected for the number of rows, and that in a word."""

    comparison: Comparison
    word: str


def verdicts(rows: Sequence[SweepRow], metric: str, questions: Sequence[Question] = ()) -> list[Verdict]:
    """Compare every row with the first, the baseline, whose own verdict is "baseline".

    A difference counts where its p-value, corrected for the number of rows, is below 0.05. Metrics at
    different k are not compared. Where a question is an unread draft, other corpora count as well.
    """
    values = np.array([row.values[metric] for row in rows], np.float64)  # (n_rows, n_questions)
    is_moved = metric in setting_orders() and any(each.status == DRAFTED for each in questions)
    found = expected_of(rows, questions, metric) if is_moved else compare_all(values[0], values)
    words = [
        OTHER_K if is_across_k(rows[0].configuration, row.configuration, metric) else word(one)
        for row, one in zip(rows, found, strict=True)
    ]
    return [Verdict(*each) for each in zip(found, ["baseline", *words[1:]], strict=True)]


def word(found: Comparison) -> str:
    """Say in a word whether a difference is more than chance, and which way it goes."""
    if found.low == found.high == found.difference == 0:
        return "the same"
    if found.p_value >= LEVEL:
        return "not sure"
    return "better" if found.difference > 0 else "worse"


def is_across_k(first: Configuration, second: Configuration, metric: str) -> bool:
    """Whether a metric depends on k, and two configurations differ in it: they are not comparable."""
    return MEASURES[metric].at_k and first.k != second.k


def summary(judged: Sequence[Verdict]) -> str:
    """Count the settings better and worse than the baseline, in a sentence."""
    counts = {name: sum(one.word == name for one in judged) for name in ("better", "worse")}
    n_others = sum(one.word not in ("baseline", OTHER_K) for one in judged)
    if not n_others:
        return "Nothing was measured that can be compared with the app's settings."
    if not any(counts.values()):
        return f"No other setting, of {n_others:,}, is better or worse beyond what chance explains."
    better, worse = (f"{n:,} {'is' if n == 1 else 'are'}" for n in counts.values())
    return (
        f"Of {counted(n_others, 'other setting')} {better} better than the app's and {worse} "
        "worse, beyond what chance explains."
    )


def difference_words(found: Comparison) -> str:
    """``"+0.021 [+0.004, +0.040]"``."""
    return signed_interval(found.difference, found.low, found.high)


def best_first(rows: Sequence[SweepRow], metric: str) -> list[int]:
    """Return the places of rows, the best first."""
    return sorted(range(len(rows)), key=lambda place: merit(rows[place], metric), reverse=True)


def merit(row: SweepRow, metric: str) -> tuple[float, float, int]:
    """Return a key that is greater for better rows: of those alike by their MRR, then the smaller index."""
    return row.metrics[metric], row.metrics["mrr"], -row.index_bytes


def table_row(row: SweepRow, verdict: Verdict, metric: str, keys: Sequence[str]) -> dict[str, Any]:
    """Return a row as a line of the table; the baseline has no difference and no p-value."""
    low, high = row.intervals[metric]
    difference = p = ""
    if verdict.word != "baseline":
        difference = difference_words(verdict.comparison)
        p = p_words(verdict.comparison.p_value).removeprefix("p ").removeprefix("= ")  # "0.012", "< 0.001"
    return (
        {"Value": row.metrics[metric]}
        | {SETTINGS[key].label: value_words(row.configuration, key) for key in keys}
        | {
            "95 % interval": f"{low:.3f} – {high:.3f}",
            "Against the app's": verdict.word,
            "Difference": difference,
            "p": p,
        }
        | {
            MEASURES[name].label: row.metrics[name]
            for name in (RIGHT, EQUAL_READING, HITS, "mrr", "ndcg@k")
            if name != metric and name in row.metrics
        }
        | {
            "Chunks": row.n_chunks,
            "Index": readable_bytes(row.index_bytes),
            "Search (ms)": None if row.search_seconds is None else 1000 * row.search_seconds,
            "Seconds": row.seconds,
        }
    )


def won_and_lost(before: Sequence[float], after: Sequence[float]) -> dict[str, list[int]]:
    """Return the places of the questions won, lost and unchanged, the largest changes first."""
    gains = np.subtract(after, before)
    order = np.argsort(-np.abs(gains), kind="stable").tolist()
    return {
        "Won": [place for place in order if gains[place] > DIFFERENT],
        "Lost": [place for place in order if gains[place] < -DIFFERENT],
        "Alike": [place for place in order if abs(gains[place]) <= DIFFERENT],
    }


@dataclass(frozen=True)
class Conclusion:
    """The setting that an experiment speaks for."""

    # the best row of those better than the baseline beyond chance, else of those that are better in this run;
    # 0, the baseline, where none is
    place: int
    is_sure: bool = False  # whether it is better beyond chance
    # about how many more questions would show its difference; None where that is not open
    n_more: int | None = None

    @property
    def advised(self) -> int:
        """The row to take: the baseline unless another is better beyond chance."""
        return self.place if self.is_sure else 0


def conclude(rows: Sequence[SweepRow], judged: Sequence[Verdict], metric: str) -> Conclusion:
    """Return the conclusion from the rows of an experiment, the baseline first, and their verdicts."""
    compared = [place for place in range(1, len(rows)) if judged[place].word != OTHER_K]
    sure = [place for place in compared if judged[place].word == "better"]
    ahead = [place for place in compared if judged[place].comparison.difference > DIFFERENT]
    if not ahead:
        return Conclusion(0)
    best = max(sure or ahead, key=lambda place: merit(rows[place], metric))
    if sure:
        return Conclusion(best, is_sure=True)
    values = np.array([rows[place].values[metric] for place in (0, *compared)], np.float64)
    differences = (values[1:] - values[0]).T  # (n_questions, n_compared)
    needed = questions_needed(differences[:, compared.index(best)], critical_value(differences))
    return Conclusion(best, n_more=None if needed is None else max(1, needed - len(differences)))


def draft_sentence(judged: Sequence[Verdict], drafted: str, metric: str) -> str:
    """Say what drafts can tell: which settings are clearly worse than which, never which is best.

    ``drafted`` are the questions in words.
    """
    words = [one.word for one in judged]
    n_others, worse, better = len(words) - 1 - words.count(OTHER_K), *map(words.count, ("worse", "better"))
    if not n_others:
        return summary(judged)
    n_worse = f"{worse:,}" if worse else "none"
    said = f"{n_worse} of {n_others:,} {'are' if worse > 1 else 'is'} clearly worse than the app's settings"
    if better:
        said += f", which are clearly worse than {better:,}"
    by, more = f"By {drafted}", ""
    if metric in setting_orders():
        by = f"By what {setting_orders()[metric].n_corpora} labelled corpora say, moved by {drafted}"
        more = f" What those corpora say alone, “{ELSEWHERE}” below, does most of the work."
    return (
        f"{by}: {said}. Which one is best, that does not tell: keep questions, towards {ENOUGH}, to "
        f"learn it.{more}"
    )


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
    name = difference_in_words(rows[0].configuration, rows[found.place].configuration)
    gain = gain_words(rows[0], rows[found.place], metric, in_use)
    p = p_words(judged[found.place].comparison.p_value)
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


def sign_p(n_won: int, n_lost: int) -> float:
    """Return the p-value of a sign test of questions won and lost, on both sides."""
    n = n_won + n_lost
    return min(1.0, sum(comb(n, k) for k in range(max(n_won, n_lost), n + 1)) / 2 ** (n - 1)) if n else 1.0


def change(rows: Sequence[SweepRow], metric: str, found: Conclusion) -> str:
    """Say what would have to be true for the ranking to change; empty where there is one row."""
    n_others = len(rows) - 1
    if not n_others:
        return ""
    before, after = rows[0].values[metric], rows[found.place].values[metric]
    counts = won_and_lost(before, after)
    n_won, n_lost = len(counts["Won"]), len(counts["Lost"])
    if found.is_sure:
        n = next(n for n in range(n_won + 1) if sign_p(n_won - n, n_lost) * n_others >= LEVEL)
        return (
            f"It would be open again if {n:,} of the {n_won:,} questions that it wins came out alike."
            if n
            else ""
        )
    if metric not in SHARES:
        return "It would change with more questions on which one is better, and none on which it is worse."
    least = next(n for n in count(1) if sign_p(n, 0) * n_others < LEVEL)
    missed = len(before) - n_found(rows[0], metric)
    needed = f"at least {least:,} questions more, without losing one,"
    done = "answered rightly" if metric == RIGHT else "found"
    if missed < least:
        now = f"{missed:,} of {len(before):,} are" if missed else "none is"
        return (
            f"To change that, another setting would need {needed} and {now} not {done} now: these questions "
            f"cannot show a better one. Add such as are not {done}."
        )
    return f"It would change if another setting got {needed} of the {missed:,} that are not {done} now."


def level(row: SweepRow, metric: str) -> str:
    """``"find the passage among the first 4 for 31 of 41 questions"``, of settings."""
    if metric == RIGHT:
        return f"answer {n_found(row, metric):,} of {questions(row, metric)} rightly"
    if metric in SHARES:
        return (
            f"find the passage {among(row, metric)} for {n_found(row, metric):,} of {questions(row, metric)}"
        )
    label = MEASURES[metric].label
    return f"have a mean {label} of {row.metrics[metric]:.3f} over {questions(row, metric)}"


def gain_words(before: SweepRow, after: SweepRow, metric: str, in_use: bool) -> str:
    """``"finds the passage … for 5 more of 41 questions than …, which is in use (36 instead of 31)"``."""
    base = difference_in_words(after.configuration, before.configuration)
    n_named = len(changed_settings(before.configuration, after.configuration))
    if n_named > MOST_NAMED:
        base = "the settings in use" if in_use else "the settings that were in use"
    elif n_named == 1:
        base += ", which is in use" if in_use else ", which was in use"
    else:
        base += ", which are in use" if in_use else ", which were in use"
    if metric in SHARES:
        was, now = n_found(before, metric), n_found(after, metric)
        does = f"finds the passage {among(after, metric)} for {now - was:,} more of"
        if metric == RIGHT:
            does = f"answers {now - was:,} more rightly of"
        return f"{does} {questions(after, metric)} than {base} ({now:,} instead of {was:,})"
    counts = won_and_lost(before.values[metric], after.values[metric])
    label = MEASURES[metric].label
    return (
        f"has a better {label} for {len(counts['Won']):,} of {questions(after, metric)} and a worse one for "
        f"{len(counts['Lost']):,}, compared with {base} (a mean of {after.metrics[metric]:.3f} instead of "
        f"{before.metrics[metric]:.3f})"
    )


def n_found(row: SweepRow, metric: str) -> int:
    """Return how many questions find an answer, by one of `SHARES`."""
    return round(sum(row.values[metric]))


def among(row: SweepRow, metric: str) -> str:
    """``"among the first 4"``."""
    if metric == EQUAL_READING:
        return f"within {READ_TOKENS:,} tokens"
    k = row.configuration.k
    return f"among the first {k:,}" if k > 1 else "at rank 1"


def questions(row: SweepRow, metric: str) -> str:
    """``"41 questions"``, that a metric is of."""
    return counted(len(row.values[metric]), "question")


def difference_in_words(other: Configuration, configuration: Configuration) -> str:
    """``"chunk size 256 and retriever “BM25 (words)”"``: the settings in which one differs from another."""
    named = []
    for key in changed_settings(other, configuration):
        value = value_words(configuration, key)
        named.append(f"{SETTINGS[key].name} {value if value.isalnum() else f'“{value}”'}")
    return joined(named, "and")


def rounded(count: int) -> int:
    """Return a count with two digits that are not 0."""
    return int(float(f"{count:.2g}"))


def cost_words(before: SweepRow, after: SweepRow) -> str:
    """Say what settings cost, as the run measured it, and the baseline's cost where it differs."""

    def instead(now: str, was: str) -> str:
        return now if now == was else f"{now} instead of {was}"

    def in_words(seconds: float) -> str:
        is_long = seconds >= SHORTEST
        return readable_seconds(seconds) if is_long else f"less than {readable_seconds(SHORTEST)}"

    size = instead(readable_bytes(after.index_bytes), readable_bytes(before.index_bytes))
    chunks = instead(f"{after.n_chunks:,}", f"{before.n_chunks:,}")
    words = f"The index takes {size}, for {chunks} chunks"
    if before.search_seconds is not None and after.search_seconds is not None:
        took = instead(in_words(after.search_seconds), in_words(before.search_seconds))
        words += f"; a search takes {took}, without embedding the question"
    return f"{words}."


def held_out_words(rows: Sequence[SweepRow], judged: Sequence[Verdict], metric: str) -> str:
    """Say what a choice of the best settings gains on questions that had no part in it; empty for few."""
    if rows[0].n_questions < FEWEST_HELD_OUT:
        return ""
    compared = [row for row, one in zip(rows, judged, strict=True) if one.word != OTHER_K]
    found = held_out(np.array([row.values[metric] for row in compared], np.float64))
    return f"On held-out questions the best gains {difference_words(found)} of {MEASURES[metric].label}."


def not_of_the_app(configuration: Configuration) -> str:
    """Return in words the settings that the app has no widget for; empty where it has one for all."""
    missing = []
    if configuration.model != ENCODER:
        missing.append(
            f"the model {configuration.model}: start the app with the environment variable GLASSBOX_ENCODER "
            "set to it"
        )
    k = SETTINGS["k"]
    if not k.allows(configuration.k):
        missing.append(f"{configuration.k} passages: it takes {k.low} to {k.high}")
    return "" if not missing else "The app has no setting yet for " + "; nor for ".join(missing) + "."


def show_conclusion(
    report: Report,
    experiment: Experiment,
    judged: Sequence[Verdict],
    metric: str,
    found: Conclusion,
    current: Configuration,
) -> None:
    """Draw the sentence, and the settings to take: those advised, or those of the row that is selected.

    ``current`` are the app's present settings.
    """
    rows = experiment.rows
    said = sentence(rows, judged, metric, found, rows[0].configuration == current)
    if experiment.n_drafted:
        said = draft_sentence(judged, status_words(experiment.questions), metric)
    elif is_enough(experiment):
        said = f"{said} {change(rows, metric, found)}".strip()
    else:
        every = counted(len(experiment.configurations), "configuration")
        said = f"{len(rows):,} of {every} measured: nothing is recommended before half of them are."
    prefix = "" if experiment.is_whole else "So far: "
    report.note(st.success if found.is_sure else st.info, ":material/lightbulb:", prefix, said)
    place = shown_place(experiment, found)
    show_limit(report, rows[place])
    if not is_enough(experiment) and place == 0:
        return
    configuration = rows[place].configuration
    with st.container(border=True, key="experiment-advice"):
        left, button = st.columns([4, 1], vertical_alignment="center")
        with left:
            what = "Selected" if place != found.advised else "Recommended"
            if place == found.advised == 0:
                what = "Nothing else is recommended. In use" + (" then" if configuration != current else "")
            st.markdown(f"**{what}:** {escape_markdown(experiment.words(configuration))}")
            stages = {SETTINGS[key].stage for key in changed_settings(current, configuration)}
            anew = stages & {"cut", "embedding"}
            st.caption(
                escape_markdown(cost_words(rows[0], rows[place]))
                + (" All documents are indexed anew." if anew else "")
            )
            if place and (words := held_out_words(rows, judged, metric)):
                st.caption(words, help=HELD_OUT_HELP)
            if left_out := not_of_the_app(configuration):
                st.caption(escape_markdown(left_out))
        if configuration == current:
            button.caption("In use now.")
        else:
            button.button(
                "Apply",
                key="experiment-use",
                type="primary",
                icon=":material/check:",
                on_click=use_settings,
                args=(configuration,),
                width="stretch",
                help="Changes the app's own settings. Every page then uses them.",
            )
        if used := st.session_state.pop("experiment-used", None):
            st.success(escape_markdown(used), icon=":material/check_circle:")


def is_enough(experiment: Experiment) -> bool:
    """Whether enough is measured to recommend a setting: half of the configurations."""
    return 2 * len(experiment.rows) >= len(experiment.configurations)


def show_limit(report: Report, row: SweepRow) -> None:
    """Draw what limits the settings that are shown, search or answer, and the ways to what mends it."""
    limit = limit_of(row.answers)
    if limit is None:
        return
    report.note(st.info, ":material/filter_alt:", "", limit.words)
    if not limit.by:
        return
    lost = [
        each.question.text
        for each in row.answers
        if each.question.is_answerable and not each.right and (limit.by == "answer") == each.found
    ]
    with st.container(horizontal=True):
        if lost and st.button("Diagnose one that is lost", icon=":material/troubleshoot:", help=lost[0]):
            open_diagnosis(lost[0])
        of = "reader" if limit.by == "answer" else "search"
        if st.button(f"Tune the {of}", icon=":material/model_training:", key="experiment-tune"):
            st.switch_page("pages/improve/tuning/page.py")


def shown_place(experiment: Experiment, found: Conclusion) -> int:
    """Return the place of the row that is selected, or else advised."""
    picked: int = st.session_state.get("experiment-cell", {}).get(experiment.key, found.advised)
    return picked if picked < len(experiment.rows) else found.advised


def use_settings(configuration: Configuration) -> None:
    """Set the app's own settings to those of a configuration, and keep a notice of what was set."""
    st.session_state["experiment-used"] = f"The app now has {apply_configuration(configuration)}."
