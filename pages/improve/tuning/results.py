"""The results of a tuning: whether it helps, metrics before and after, figures, and the tuned model."""

import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import streamlit as st
from streamlit.column_config import NumberColumn, TextColumn

from engine.errors import ModelFileError
from engine.evaluation.metrics import METRICS
from engine.evaluation.significance import Comparison
from engine.layers.tracing import Array
from engine.training.search.cross_validation import DEPTH, JUDGED_BY, MAIN, is_better, is_worse
from engine.training.search.folds import LabelledTexts
from engine.training.search.tuned_model import CARD, tuned_zip
from engine.training.search.tuning import Tuned
from engine.wording import counted
from pages.improve.tuning.figures import gain_figure, loss_figure
from ui.data_folder import model_file
from ui.export import show_figure
from ui.tables import show_table
from ui.text import escape_markdown, p_words
from ui.widgets import download

MAX_QUESTIONS_SHOWN = 8  # questions with the largest gains, and with the largest losses
METRIC_COLUMNS: Mapping[str, Any] = {
    "metric": TextColumn(
        help=f"For the first {DEPTH} chunks. "
        + " ".join(f"{METRICS[name].label}: {METRICS[name].help}" for name in JUDGED_BY)
    ),
    "tested on": TextColumn(
        help="Questions that were left out of training; or questions whose documents were left out, too."
    ),
    "difference": TextColumn(
        help="Mean of after minus before. The interval holds the mean of 95 % of resamples of the questions; "
        "p is how often chance alone would give a mean as large."
    ),
} | {
    name: NumberColumn(format="%.3f", help="Mean over the questions; 1 is best.")
    for name in ("before", "after")
}
KEPT_NAME = "tuned"  # of the model of the last tuning


@dataclass(frozen=True)
class Outcome:
    """A tuning, the texts it learnt from, and why the tuned model could not be kept, if so."""

    labelled: LabelledTexts
    tuned: Tuned
    not_kept: str = ""


def show_results(found: Outcome) -> None:
    """Draw the results of a tuning."""
    tuned = found.tuned
    change = tuned.question_metrics[0]
    show_verdict(f"{outcome(tuned)} {document_outcome(tuned)}", tuned.keep, change.comparison)
    show_metrics(tuned)
    show_questions(found.labelled.questions, change.before, change.after, MAIN)
    st.markdown(
        "**The loss by epoch**",
        help="A line a fold. Training stops where the questions held out within it, which are not those "
        "of the test, do best.",
    )
    show_figure(
        loss_figure(tuned.by_question),
        "tuning-loss",
        "Loss by epoch of each fold, on the questions trained on and on those held out.",
    )
    st.caption(
        f"The model below is trained on all {len(found.labelled.questions):,} questions "
        f"({counted(tuned.n_epochs, 'epoch')}). On these questions it would look too good; the figures above "
        "are of models tested on questions that they had not seen."
    )
    if found.not_kept:
        words = f"The tuned model {found.not_kept}: download it below."
        st.warning(escape_markdown(words), icon=":material/cloud_off:")
    show_download(lambda: model_zip(tuned), tuned.keep)


def show_verdict(text: str, is_kept: bool, found: Comparison) -> None:
    """Draw whether a training helps, and its model is kept, does harm, or neither beyond noise."""
    if is_kept:
        st.success(text, icon=":material/verified:")
    elif is_worse(found):
        st.error(text, icon=":material/block:")
    else:
        st.warning(text, icon=":material/balance:")


def show_metrics(tuned: Tuned) -> None:
    """Draw every metric before and after, on new questions and on new documents."""
    rows = [("new questions", one) for one in tuned.question_metrics]
    rows += [("new documents", one) for one in tuned.document_metrics]
    labelled = [(f"{one.metric}, {where}", one) for where, one in rows]
    show_figure(gain_figure(labelled), "tuning-gain", "Difference of each metric with its 95 % interval.")
    show_table(
        [
            {
                "metric": one.metric,
                "tested on": where,
                "before": one.before.mean(),
                "after": one.after.mean(),
                "difference": interval(one.comparison),
            }
            for where, one in rows
        ],
        "Every metric before and after training, on new questions and on new documents",
        METRIC_COLUMNS,
    )


def show_questions(questions: Sequence[str], before: Array, after: Array, metric: str) -> None:
    """Draw how many questions were won and lost by a metric, and list those that changed most."""
    change = after - before
    won, lost = int((change > 0).sum()), int((change < 0).sum())
    with st.container(horizontal=True, gap="medium"):
        for label, number in {"Won": won, "Lost": lost, "The same": len(change) - won - lost}.items():
            st.metric(label, f"{number:,}", help=f"Questions by their {metric} before and after.")
    with st.expander("Questions that changed most"):
        order = np.argsort(-change, kind="stable")
        shown = dict.fromkeys([*order[:MAX_QUESTIONS_SHOWN].tolist(), *order[-MAX_QUESTIONS_SHOWN:].tolist()])
        numbers = [number for number in shown if change[number]]
        show_table(
            [
                {
                    "question": questions[number],
                    "before": before[number],
                    "after": after[number],
                    "change": change[number],
                }
                for number in numbers
            ],
            f"The questions that changed most, with their {metric} before and after",
            {name: NumberColumn(format="%.3f") for name in ("before", "after", "change")},
        )


def outcome(tuned: Tuned) -> str:
    """Return the effect of tuning on new questions in words, and which model is kept."""
    found = tuned.question_metrics[0]
    numbers = (
        f"{MAIN} of questions that were not trained on goes from {found.before.mean():.3f} to "
        f"{found.after.mean():.3f} ({interval(found.comparison)})"
    )
    if tuned.keep:
        return f"**It helps beyond noise.** {numbers}."
    if is_better(found.comparison):
        return f"**It helps on new questions, and harms on new documents: the original is kept.** {numbers}."
    if is_worse(found.comparison):
        return f"**It harms: the original is kept.** {numbers}."
    return f"**No gain beyond noise: the original is kept.** {numbers}."


def document_outcome(tuned: Tuned) -> str:
    """Return the effect of tuning on documents left out of training, in words."""
    if not tuned.document_metrics:
        return "Whether it helps on new documents is unknown: all questions are about the same ones."
    found = tuned.document_metrics[0].comparison
    numbers = f"({interval(found)})"
    if is_better(found):
        return f"It helps on documents that training never saw, too {numbers}."
    if is_worse(found):
        return f"On documents that training never saw, it harms {numbers}."
    return (
        f"On documents that training never saw, it makes no difference beyond noise {numbers}: tune again "
        "when documents are added."
    )


def interval(found: Comparison) -> str:
    """Return a difference with its interval and p-value, in words."""
    ends = f"95 % interval {found.low:+.3f} to {found.high:+.3f}"
    return f"{found.difference:+.3f}, {ends}, {p_words(found.p_value)}"


def model_zip(tuned: Tuned) -> bytes:
    """Return the tuned model as a .zip file, with its outcome as its card."""
    return tuned_zip(tuned.encoder, f"{outcome(tuned)} {document_outcome(tuned)}")


def show_kept() -> None:
    """Draw the outcome of the last tuning of an earlier session, and the download of its model, if kept."""
    file = model_file(KEPT_NAME, ".zip")
    if file is None or not file.is_file():
        return
    try:
        with zipfile.ZipFile(file) as archive:
            card = archive.read(CARD).decode()
    except (OSError, zipfile.BadZipFile, KeyError, ValueError) as error:
        raise ModelFileError(f"the model kept in {file} cannot be read ({error}): train again") from error
    with st.container(border=True):
        st.caption("The last tuning, kept on this computer:")
        st.write(card)
        show_download(file.read_bytes)


def show_download(read: Callable[[], bytes], is_better: bool = False) -> None:
    """Draw the download of a tuned model, whose .zip file is read when it is asked for."""
    download(
        "Download the tuned model (.zip)",
        read,
        "tuned-model.zip",
        "A folder that sentence-transformers loads; about 90 MB.",
        type="primary" if is_better else "secondary",
    )
