"""The cost of a grid before it is run, and the button that runs it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from hashlib import sha256

import streamlit as st

from engine.documents.document import Document
from engine.evaluation.grid import reason_left_out, resolved
from engine.evaluation.questions import Question
from engine.evaluation.sweep import by_name
from engine.evaluation.sweep_cost import Cost, estimate
from engine.models.embedding_head import OWN
from engine.retrieval.embedding_model import Model
from engine.settings import SETTINGS, SWEPT, Configuration
from engine.wording import readable_time
from pages.improve.settings.running import running_experiment, start
from pages.improve.settings.runs import Experiment, digest
from ui.models import reranker_name
from ui.text import escape_markdown
from ui.widgets import more_options

MANY_CELLS, MANY_SECONDS = 200, 600  # a larger grid has to be confirmed
TIME_HELP = "Estimated for this machine. Texts embedded before in this session take no time."


def show_cost(
    documents: Sequence[Document],
    cells: tuple[Configuration, ...],
    models: Mapping[str, Model],
    questions: Sequence[Question],
) -> Cost:
    """Draw the estimated cost of a grid."""
    wanted = sha256(repr((cells, questions, reranker_name())).encode()).hexdigest() + digest(documents)
    cost = cost_of(wanted, documents, questions, cells, models)
    about = "" if cost.is_exact else "about "
    shown = {
        "Cells": (f"{len(cells):,}", "Combinations to measure, with the baseline."),
        "Questions": (f"{len(questions):,}", "Each is asked in every cell."),
        "Chunks": (f"{about}{cost.n_chunks:,}", f"In {cost.n_splittings:,} ways to cut the documents."),
        "Tokens to read": (f"{about}{cost.n_tokens:,}", "Each text once, for any number of chunks."),
        "Time": (f"about {readable_time(cost.seconds)}", TIME_HELP),
    }
    with st.container(horizontal=True):
        for name, (value, words) in shown.items():
            st.metric(name, value, help=words, border=True, width="content")
    for line in (*unmeasured(cells, models), *exhausted(cost)):
        st.warning(escape_markdown(line), icon=":material/warning:")
    return cost


def unmeasured(cells: Sequence[Configuration], models: Mapping[str, Model]) -> list[str]:
    """Return a sentence for each model without cells, with the reason."""
    lines = []
    for name in set(models) - {cell.model for cell in cells}:
        model = models[name]
        tried = [replace(cell, model=name) for cell in cells[1:] or cells]
        if model.as_encoder is None:
            tried = [resolved(replace(cell, pooling=OWN), model) for cell in tried]
        reason = next(filter(None, (reason_left_out(cell, model) for cell in tried)), "no value suits it")
        reason = reason.replace("max_tokens", f"“{SETTINGS['max_tokens'].label}”")  # as the page calls it
        lines.append(f"{name} is not measured at all: {reason}. Change the grid, or remove the model.")
    return sorted(lines)


def exhausted(cost: Cost) -> list[str]:
    """Return a sentence on the cells that retrieve all chunks, if there are any."""
    if not cost.n_exhausted:
        return []
    about, s = "" if cost.is_exact else "about ", "" if cost.n_exhausted == 1 else "s"
    return [
        f"In {about}{cost.n_exhausted:,} cell{s} all chunks are retrieved: k is their number or more (the "
        f"fewest are {cost.fewest_chunks:,}). Recall@k and Hit@k are 1 there for any search: take fewer "
        "passages, smaller chunks or more documents."
    ]


@st.cache_resource(max_entries=64, show_spinner="Counting what this costs…")
def cost_of(
    wanted: str,
    _documents: Sequence[Document],
    _questions: Sequence[Question],
    _cells: tuple[Configuration, ...],
    _models: Mapping[str, Model],
) -> Cost:
    """Estimate the cost of a grid.

    All sessions share the cache, whose key ``wanted`` is a hash of all that the cost depends on.
    """
    return estimate(_documents, _questions, _cells, _models)


def show_start(
    documents: Sequence[Document],
    cells: tuple[Configuration, ...],
    questions: Sequence[Question],
    models: Mapping[str, Model],
    cost: Cost,
) -> None:
    """Draw the button that runs the grid; a large one has to be confirmed."""
    is_running = running_experiment() is not None
    is_large = len(cells) > MANY_CELLS or cost.seconds > MANY_SECONDS
    more, button = st.columns([3, 1], vertical_alignment="bottom")
    with more, more_options():
        st.text_input(
            "Name of the run",
            key="grid-name",
            persist_state="session",
            max_chars=80,
            placeholder=default_name(cells),
            help="Names it under Runs, and in a saved workspace.",
        )
    confirmed = not is_large or st.checkbox(
        f"Run all {len(cells):,} cells, which takes about {readable_time(cost.seconds)}: it can be stopped "
        "and resumed",
        key="grid-meant",
    )
    button.button(
        "Run the grid",
        key="grid-run",
        type="primary",
        icon=":material/play_arrow:",
        disabled=is_running or not confirmed,
        on_click=run_grid,
        args=(documents, cells, questions, models, cost.seconds),
        width="stretch",
    )
    if is_running:
        st.caption("Another run is in progress: stop it, or wait for it to end.")


def default_name(cells: tuple[Configuration, ...]) -> str:
    """``"3 sizes × 2 poolings"``, without values of the baseline alone, or a model's own."""
    counts = {axis: len({getattr(cell, axis) for cell in cells[1:]} - {OWN, None}) for axis in SWEPT}
    return " × ".join(f"{n} {SETTINGS[axis].plural}" for axis, n in counts.items() if n > 1) or "one setting"


def run_grid(
    documents: Sequence[Document],
    cells: tuple[Configuration, ...],
    questions: Sequence[Question],
    models: Mapping[str, Model],
    expected: float | None = None,
) -> None:
    """Start to measure a grid, which was estimated to take ``expected`` seconds."""
    name = st.session_state["grid-name"].strip() or default_name(cells)
    documents = by_name(documents)
    names = tuple(document.name for document in documents)
    time = datetime.now().isoformat(timespec="seconds")
    experiment = Experiment(name, time, names, digest(documents), tuple(questions), cells)
    start(experiment, documents, models, expected)
