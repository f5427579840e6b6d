"""How the reader of Ask was trained: its loss, its F1, and what it answered on the way."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import streamlit as st
from plotly.subplots import make_subplots
from pydantic import TypeAdapter

from engine.models.reader import READER_FILE
from ui.colours import BLUE, GREEN, ORANGE
from ui.export import show_figure
from ui.figures import LEGEND_ABOVE, add_line, styled
from ui.tables import show_table

HISTORY = READER_FILE.with_name("training.json")
HOVER = "%{x:,} examples<br>%{fullData.name} %{y:.3f}"


@dataclass(frozen=True)
class Answered:
    """A question about a passage, and the words that the reader found after some numbers of examples."""

    question: str
    passage: str
    words: Mapping[int, str]


@dataclass(frozen=True)
class Averaged:
    """The mean of the weights ``at`` two numbers of examples, and its figures on articles held out."""

    at: tuple[int, int]
    f1: float
    auc: float


@dataclass(frozen=True)
class ReaderTraining:
    """The figures of the reader's training, by the number of examples seen."""

    n_examples: int  # different ones
    hours: float
    processor: str
    loss: Mapping[int, float]  # mean cross-entropy of start and end, in nats
    f1: Mapping[int, float]  # of the words found in passages of articles that were held out
    # how often a question with an answer has a higher score over no answer than one without
    auc: Mapping[int, float]
    averaged: Averaged
    answers: tuple[Answered, ...]


@cache
def reader_training() -> ReaderTraining | None:
    """Return the stored figures; None where their file is missing."""
    if not HISTORY.is_file():
        return None
    return TypeAdapter(ReaderTraining).validate_json(HISTORY.read_bytes())


def show_reader_training() -> None:
    """Draw how the reader was trained, folded."""
    training = reader_training()
    if training is None:
        return
    with st.expander("How the reader of Ask was trained", icon=":material/menu_book:"):
        st.write(
            "The model that finds the words of an answer learnt by hand-written backward passes, too: "
            f"{max(training.loss):,} examples of {training.n_examples:,} different ones in "
            f"{training.hours:.1f} hours on {training.processor}. An example is a question and a passage, "
            "which in four of ten cases does not answer it."
        )
        first, last = training.averaged.at
        st.write(
            f"After {first:,} and after {last:,} examples the learning rate had fallen to 0. The reader in "
            f"use has the mean of the weights at both: its F1 is {training.averaged.f1:.3f}, above either's."
        )
        figure = make_subplots(rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.1)
        add_line(figure, training.loss, training.loss.values(), "loss", BLUE, HOVER, row=1, col=1)
        look = {"mode": "lines+markers", "row": 2, "col": 1}
        add_line(figure, training.f1, training.f1.values(), "F1", GREEN, HOVER, **look)
        add_line(figure, training.auc, training.auc.values(), "AUC", ORANGE, HOVER, **look)
        figure.update_yaxes(title="loss (nats)", row=1, col=1)
        figure.update_xaxes(title="examples seen", row=2, col=1)
        figure.update_layout(legend=LEGEND_ABOVE)
        show_figure(
            styled(figure, height=380),
            name="reader-training",
            alt="Loss of the reader over the examples seen, and below F1 and AUC on articles held out",
        )
        show_table(
            [
                {"question": each.question}
                | {f"after {n:,}": words or "no answer" for n, words in each.words.items()}
                for each in training.answers
            ],
            "What the reader answered after some numbers of examples",
        )
        for each in training.answers:
            st.caption(f"{each.question} · {each.passage}")
