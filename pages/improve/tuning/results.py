"""The results of a tuning: whether it helps, metrics before and after, figures, and the tuned model."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import streamlit as st

from engine.evaluation.metrics import METRICS
from engine.training.search.cross_validation import DEPTH, JUDGED_BY, MAIN, MetricChange, is_worse
from engine.training.search.folds import LabelledTexts
from engine.training.search.tuning import Tuned
from pages.improve.tuning.figures import (
    gain_figure,
    loss_figure,
    spread_array,
    spread_figure,
)
from pages.improve.tuning.outcome import document_outcome, interval, model_zip, outcome, show_download
from pages.improve.tuning.running import Outcome
from ui.export import show_figure
from ui.tables import show_table
from ui.text import escape_markdown

MAX_QUESTIONS_SHOWN = 8  # questions with the largest gains, and with the largest losses
METRIC_COLUMNS: Mapping[str, Any] = {
    "metric": st.column_config.TextColumn(
        help=f"For the first {DEPTH} chunks. "
        + " ".join(f"{METRICS[name].label}: {METRICS[name].help}" for name in JUDGED_BY)
    ),
    "tested on": st.column_config.TextColumn(
        help="Questions that were left out of training; or questions whose documents were left out, too."
    ),
    "difference": st.column_config.TextColumn(
        help="Mean of after minus before. The interval holds the mean of 95 % of resamples of the questions; "
        "p is how often chance alone would give a mean as large."
    ),
} | {
    name: st.column_config.NumberColumn(format="%.3f", help="Mean over the questions; 1 is best.")
    for name in ("before", "after")
}


def show_results(found: Outcome) -> None:
    """Draw the results of a tuning."""
    tuned = found.tuned
    text = f"{outcome(tuned)} {document_outcome(tuned)}"
    if tuned.keep:
        st.success(text, icon=":material/verified:")
    elif is_worse(tuned.question_metrics[0].comparison):
        st.error(text, icon=":material/block:")
    else:
        st.warning(text, icon=":material/balance:")
    show_metrics(tuned)
    show_questions(found.labelled, tuned.question_metrics[0])
    left, right = st.columns(2)
    with left:
        st.markdown(
            "**Where the questions lie**",
            help="Alignment: mean squared distance of questions and chunks that answer them. Uniformity: how "
            "evenly the questions spread over the sphere. Less is better for both (Wang and Isola 2020). A "
            "line joins a fold's test questions before and after.",
        )
        show_figure(
            spread_figure(tuned.by_question),
            "tuning-spread",
            {"alignment_uniformity": spread_array(tuned.by_question)},
            "Alignment and uniformity of each fold's test questions before and after tuning.",
        )
    with right:
        st.markdown(
            "**The loss by epoch**",
            help="A line a fold. Training stops where the questions held out within it, which are not those "
            "of the test, do best.",
        )
        show_figure(
            loss_figure(tuned.by_question),
            "tuning-loss",
            {
                f"fold_{fold}_{name}": np.array(curve)
                for fold, curves in enumerate(tuned.by_question.losses, start=1)
                for name, curve in zip(("trained_on", "held_out"), curves, strict=True)
            },
            "Loss by epoch of each fold, on the questions trained on and on those held out.",
        )
    st.caption(
        f"The model below is trained on all {len(found.labelled.questions):,} questions ({tuned.choice}). "
        "On these questions it would look too good; the figures above are of models tested on questions that "
        "they had not seen."
    )
    if found.not_kept:
        words = f"The tuned model {found.not_kept}: download it below."
        st.warning(escape_markdown(words), icon=":material/cloud_off:")
    show_download(lambda: model_zip(tuned), tuned.keep)


def show_metrics(tuned: Tuned) -> None:
    """Draw every metric before and after, on new questions and on new documents."""
    rows = [("new questions", one) for one in tuned.question_metrics]
    rows += [("new documents", one) for one in tuned.document_metrics]
    labelled = [(f"{one.metric}, {where}", one) for where, one in rows]
    show_figure(
        gain_figure(labelled),
        "tuning-gain",
        {
            "difference_low_high": np.array(
                [[one.comparison.difference, one.comparison.low, one.comparison.high] for _, one in rows]
            )
        },
        "Difference of each metric with its 95 % interval.",
    )
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


def show_questions(labelled: LabelledTexts, found: MetricChange) -> None:
    """Draw how many questions were won and lost, and list those that changed most."""
    change = found.after - found.before
    won, lost = int((change > 0).sum()), int((change < 0).sum())
    with st.container(horizontal=True, gap="medium"):
        for label, number in {"Won": won, "Lost": lost, "The same": len(change) - won - lost}.items():
            st.metric(label, f"{number:,}", help=f"Questions by their {MAIN} before and after.")
    with st.expander("Questions that changed most"):
        order = np.argsort(-change, kind="stable")
        shown = dict.fromkeys([*order[:MAX_QUESTIONS_SHOWN].tolist(), *order[-MAX_QUESTIONS_SHOWN:].tolist()])
        numbers = [number for number in shown if change[number]]
        show_table(
            [
                {
                    "question": labelled.questions[number],
                    "before": found.before[number],
                    "after": found.after[number],
                    "change": change[number],
                }
                for number in numbers
            ],
            f"The questions that changed most, with their {MAIN} before and after",
            {name: st.column_config.NumberColumn(format="%.3f") for name in ("before", "after", "change")},
        )
