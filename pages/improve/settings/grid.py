"""The choice of a grid: values of every setting, another model, and the baseline."""

from collections import Counter
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine import Encoder
from engine.documents.document import Document
from engine.errors import GlassboxError, InputError
from engine.evaluation.embedding_server import FORM, is_server
from engine.evaluation.grid import Grid, fitting, grid
from engine.evaluation.questions import Question
from engine.layers.pooling import POOLINGS
from engine.models.embedding_head import OWN
from engine.models.encoder_families import FAMILIES
from engine.retrieval.embedding_model import Model
from engine.retrieval.retrievers import usable_retrievers
from engine.settings import SETTINGS, Configuration, default
from engine.wording import counted
from pages.improve.settings.cost import show_cost, show_start
from pages.improve.settings.running import models_named, server_key
from pages.improve.settings.verdicts import ACROSS_K
from ui.chunk_settings import Cut, cut_values
from ui.configurations import choose_values, configuration_words
from ui.models import load_encoder
from ui.server_settings import ENCODER, limits
from ui.setting_values import configuration_of, settings_in_use
from ui.text import escape_markdown

# Values by the keys of the settings.
FIRST_LOOK: dict[str, list[Any]] = {
    "splitter": [default("splitter")],
    "chunk_tokens": [96, 192, 256],
    "overlap": [default("overlap")],
    "pooling": ["mean", "idf"],
    "retriever": ["dense", default("retriever")],
    "precision": [default("precision")],
}
ONE_SETTING = FIRST_LOOK | {key: [default(key)] for key in ("chunk_tokens", "pooling", "retriever")}
SMALL, LARGE = 32, 256  # chunk sizes of the preset
PRESETS: dict[str, dict[str, list[Any]]] = {
    "A first look": FIRST_LOOK,
    "Chunk sizes": ONE_SETTING
    | {
        "chunk_tokens": [size for size in SETTINGS["chunk_tokens"].tried if SMALL <= size <= LARGE],
        "overlap": [0, 16],
    },
    **{
        f"Every {SETTINGS[key].name}": ONE_SETTING | {key: list(SETTINGS[key].choices)}
        for key in ("splitter", "pooling", "retriever", "precision")
    },
}
PRESET_HELP = "Fills in the grid below. Change anything afterwards."


def show_grid(
    documents: Sequence[Document], encoder: Encoder, cut: Cut, questions: Sequence[Question]
) -> None:
    """Draw the choice of a grid, its cost, and the button that runs it."""
    st.pills("Start from", list(PRESETS), key="grid-preset", on_change=take_preset, help=PRESET_HELP)
    values = grid_widgets(settings_in_use(encoder)["k"])
    models = model_box(encoder)
    baseline = baseline_cell(encoder, cut)
    chosen = cells_of(values, models, baseline)
    st.caption(f"The baseline, always measured: the app's settings now. {configuration_words(baseline)}.")
    if cut.parent_tokens:
        st.caption(
            f"Small to big ({cut.parent_tokens:,} tokens) is left out here, of the baseline too: all cells "
            "cut documents into small chunks directly, and search these."
        )
    if len({cell.k for cell in chosen.cells}) > 1:
        st.caption(ACROSS_K)
    show_left_out(chosen)
    if not questions:
        st.info("Choose questions about the chosen documents: without them there is nothing to measure.")
        return
    cost = show_cost(documents, chosen.cells, models, questions)
    show_start(documents, chosen.cells, questions, models, cost)


def take_preset() -> None:
    """Set the grid's widgets to the chosen preset."""
    if preset := st.session_state["grid-preset"]:
        for key, values in PRESETS[preset].items():
            st.session_state[f"grid-{key}"] = of_model(key, values, load_encoder())


def of_model(key: str, values: Sequence[Any], encoder: Encoder) -> list[Any]:
    """Return a preset's values for a model: its own pooling for the mean, and retrievers that it can do."""
    if key == "pooling" and encoder.pooling in POOLINGS:
        return list(dict.fromkeys(encoder.pooling if value == "mean" else value for value in values))
    if key == "retriever":
        return [value for value in values if value in usable_retrievers(encoder)]
    return list(values)


def grid_widgets(k: int) -> dict[str, list[Any]]:
    """Draw the choice of values for every setting; return them by the keys of the settings.

    ``k`` is the app's number of passages.
    """
    for key, first in (FIRST_LOOK | {"max_tokens": [256]}).items():
        st.session_state.setdefault(f"grid-{key}", of_model(key, first, load_encoder()))
    follow_k(k)
    values = {}

    def draw(column: DeltaGenerator, *keys: str) -> None:
        for key in keys:
            with column:
                values[key] = choose_values(key, f"grid-{key}")

    left, right = st.columns(2)
    draw(left, "chunk_tokens", "pooling")
    draw(right, "retriever", "splitter")
    with st.expander("Overlap, token limit, passages, precision", icon=":material/tune:"):
        left, right = st.columns(2)
        draw(left, "overlap", "k")
        draw(right, "max_tokens", "precision")
    return values


def follow_k(k: int) -> None:
    """Set the grid's k to the app's, unless the user has chosen others."""
    state = st.session_state
    if state.get("grid-k", [k]) in ([k], [state.get("grid-k-followed")]):
        state["grid-k"], state["grid-k-followed"] = [k], k


def model_box(encoder: Encoder) -> dict[str, Model]:
    """Draw the choice of another model; return all models by their names."""
    with st.expander("Another model", icon=":material/smart_toy:"):
        name = st.text_input(
            "Compare with",
            key="grid-model",
            persist_state="session",
            placeholder=f"a folder, a Hugging Face id, or {FORM}",
            help=f"The engine runs encoders of the families {', '.join(FAMILIES)}, with every pooling; "
            "sentence-transformers runs others, with the model's own pooling, and so does a server that "
            "speaks OpenAI's protocol (Ollama, vLLM, llama-server).",
        ).strip()
        if is_server(name):
            st.text_input(
                "Key",
                type="password",
                key=server_key(name),
                persist_state="session",
                help="Only if the server needs one. It is sent to this address only and forgotten when this "
                "session ends. The texts of all chunks and questions are sent, too.",
            )
        models: dict[str, Model] = {ENCODER: encoder}
        if name and name != ENCODER:
            try:
                models |= models_named([name])
            except GlassboxError as error:
                st.error(f"{escape_markdown(str(error))}. The grid uses {escape_markdown(ENCODER)} alone.")
    return models


def baseline_cell(encoder: Encoder, cut: Cut) -> Configuration:
    """Return the app's present settings."""
    return configuration_of(settings_in_use(encoder) | cut_values(cut))


def cells_of(values: Mapping[str, list[Any]], models: Mapping[str, Model], baseline: Configuration) -> Grid:
    """Return the baseline and every combination that can be measured, each once."""
    for key, chosen in values.items():
        if not chosen:
            raise InputError(f"nothing is chosen for the {SETTINGS[key].name}: choose one value or more")
    n_cells = prod(map(len, values.values())) * len(models)
    if n_cells > (most := limits().cells):
        raise InputError(
            f"the grid has {n_cells:,} configurations, and at most {most:,} are measured here: choose fewer "
            "values"
        )
    poolings = list(values["pooling"])
    if any(model.pooling == OWN for model in models.values()):
        poolings.append(OWN)
    whole = grid(**{**values, "pooling": poolings, "model": list(models)})
    cells = fitting(Grid((baseline, *(cell for cell in whole.cells if cell != baseline))), models)
    if not cells.cells or cells.cells[0] != baseline:
        raise InputError(f"the app's settings now cannot be measured: {cells.left_out[0].why}")
    return Grid(cells.cells, whole.left_out + cells.left_out)


def show_left_out(chosen: Grid) -> None:
    """Draw the combinations that are not measured, with the reasons."""
    if not chosen.left_out:
        return
    n_left_out = len(chosen.left_out)
    with st.expander(f"{counted(n_left_out, 'combination')} left out", icon=":material/block:"):
        for why, n_cells in Counter(one.why for one in chosen.left_out).most_common(20):
            st.write(f"{n_cells:,} × {escape_markdown(why)}")
