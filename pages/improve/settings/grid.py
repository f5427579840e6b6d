"""The tab of the grid: values of every setting, another model, what it costs, and the start of a run."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from hashlib import sha256
from math import prod
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine import Encoder
from engine.documents.document import Document
from engine.errors import GlassboxError, InputError
from engine.evaluation.answers import AnswerQuestion
from engine.evaluation.embedding_server import FORM, is_server
from engine.evaluation.grid import Grid, fitting, grid, reason_left_out, resolved
from engine.evaluation.library_model import LibraryModel
from engine.evaluation.questions import Question
from engine.evaluation.sample import Sample, about_documents, rank_by_words, sample_of, some_questions
from engine.evaluation.sweep import SweepInputs, by_name
from engine.evaluation.sweep_answers import MOST_ANSWERED, Answering
from engine.evaluation.sweep_cost import sweep_seconds
from engine.layers.pooling import POOLINGS
from engine.models.embedding_head import MODEL_DEFAULT
from engine.models.encoder_families import FAMILIES
from engine.retrieval.embedding_model import Model
from engine.retrieval.index import bm25_of
from engine.retrieval.retrievers import usable_retrievers
from engine.retrieval.vector_cache import VectorCache
from engine.settings import SETTINGS, SWEPT, Configuration, answer_settings, default
from engine.wording import counted, model_name, readable_time
from pages.improve.settings.conclusion import ACROSS_K
from pages.improve.settings.experiments import (
    Experiment,
    configuration_words,
    digest,
    models_named,
    running_experiment,
    server_key,
    start,
)
from ui.chunk_settings import Cut, cut_values
from ui.corpus import all_chunks, vectors_of
from ui.documents import OF_DOCUMENTS
from ui.models import load_encoder, load_reader, second_names, token_seconds_here
from ui.server_settings import ENCODER, limits
from ui.setting_values import configuration_of, settings_in_use
from ui.text import escape_markdown, help_list
from ui.widgets import kept, more_options, show_metrics

# Values by the keys of the settings.
FIRST_LOOK: dict[str, list[Any]] = {
    "splitter": [default("splitter")],
    "chunk_tokens": [96, 192, 256],
    "overlap": [default("overlap")],
    "pooling": ["mean", "idf"],
    "retriever": ["dense", default("retriever")],
    "precision": [default("precision")],
    "context": [default("context")],
}
ONE_SETTING = FIRST_LOOK | {key: [default(key)] for key in ("chunk_tokens", "pooling", "retriever")}
PRESETS: dict[str, dict[str, list[Any]]] = {
    "A first look": FIRST_LOOK,
    "Chunk sizes": ONE_SETTING | {"chunk_tokens": [32, 64, 96, 128, 192, 256], "overlap": [0, 16]},
    **{
        f"Every {SETTINGS[key].name}": ONE_SETTING | {key: list(SETTINGS[key].choices)}
        for key in ("splitter", "context", "pooling", "retriever", "precision")
    },
}
PRESET_HELP = "Fills in the grid below. Change anything afterwards."
ALL_HELP = (
    "Takes every question and every document. A sample is drawn by a seed; a search among fewer documents is "
    "easier, so compare settings within one sample."
)
MANY, MANY_SECONDS = 200, 600  # a larger grid has to be confirmed
TIME_HELP = (
    "Estimated from a sample that is embedded, searched and answered here. Texts whose vectors are kept take "
    "no time."
)
ANSWERED_HELP = (
    "They are drawn by a seed, and asked with the app's settings of this sidebar and of the page “Ask your "
    "documents”. An answer is right if what is shown holds the known one, word for word; where only the "
    "passage is known, if the words found are of it. 0 measures only the search."
)
WRITE_HELP = (
    "The built-in model writes its text to each question, too, and it counts for the score, about a second a "
    "question; no server is asked, and nothing is drawn at random."
)
WORDS_S = 1.0  # a text takes about this long on two cores


def show_grid(
    documents: Sequence[Document],
    encoder: Encoder,
    cut: Cut,
    questions: Sequence[Question],
    to_answer: Sequence[AnswerQuestion],
) -> None:
    """Draw the choice of a grid, its cost, and the button that runs it."""
    st.pills("Start from", list(PRESETS), key="grid-preset", on_change=apply_preset, help=PRESET_HELP)
    values = grid_widgets(settings_in_use(encoder)["k"])
    models = model_box(encoder)
    baseline = baseline_configuration(encoder, cut)
    chosen = configurations_of(values, models, baseline)
    st.caption(f"The baseline, always measured: the app's settings now. {configuration_words(baseline)}.")
    if cut.parent_tokens:
        st.caption(
            f"Small to big ({cut.parent_tokens:,} tokens) is left out here, of the baseline too: documents "
            "are cut into small chunks directly, and these are searched."
        )
    if len({one.k for one in chosen.configurations}) > 1:
        st.caption(ACROSS_K)
    show_left_out(chosen)
    if not questions:
        return
    sample = sampled(documents, questions, cut)
    searched = by_name(sample.documents)
    answering = answering_choice(about_documents(to_answer, searched), searched, encoder)
    show_start(SweepInputs(searched, sample.questions, chosen.configurations, models, answering))


def answering_choice(
    to_answer: Sequence[AnswerQuestion], documents: Sequence[Document], encoder: Encoder
) -> Answering | None:
    """Draw how many questions are answered in every configuration, and whether a text is written, too."""
    if not to_answer:
        st.caption("No question of this set can be answered, so that only the search is measured.")
        return None
    key, most = "grid-answered", len(to_answer)
    if st.session_state.get(key, 0) > most:
        st.session_state[key] = most
    with st.expander("Answers", icon=":material/question_answer:"):
        left, right = st.columns(2, vertical_alignment="bottom")
    n = left.number_input(
        f"Questions answered in each configuration, of {most:,}",
        0,
        most,
        min(most, MOST_ANSWERED),
        **kept(key),
        help=ANSWERED_HELP,
    )
    write = right.toggle("With the model's words", **kept("grid-write"), help=WRITE_HELP)
    if not n:
        return None
    settings = answer_settings(settings_in_use(encoder) | {"write": write})
    return Answering(some_questions(to_answer, n), documents, load_reader()[0], settings)


def sampled(documents: Sequence[Document], questions: Sequence[Question], cut: Cut) -> Sample[Question]:
    """Return a sample of many questions and documents, or all of them where the user chooses so."""
    sample = sample_of(documents, questions)
    if sample.is_whole:
        return sample
    if st.toggle("Measure on all", **kept("grid-all"), help=ALL_HELP):
        return Sample(tuple(documents), tuple(questions), len(documents), len(questions))
    words = f"Measured on a sample: {sample.words}."
    if len(sample.documents) < len(documents):
        whole, part = ranks_by_words(tuple(documents), sample, cut)
        words += f" By words only, mean reciprocal rank {part:.2f} there and {whole:.2f} among all."
    st.caption(words)
    return sample


@st.cache_data(max_entries=4, show_spinner="Comparing the sample with all…", **OF_DOCUMENTS)
def ranks_by_words(documents: Sequence[Document], _sample: Sample[Question], cut: Cut) -> tuple[float, float]:
    """Return how well BM25 ranks the questions of a sample among all documents, and among its own."""
    all_of, own = all_chunks(documents, cut), all_chunks(_sample.documents, cut)
    whole, part = (rank_by_words(_sample.questions, each, bm25_of(each)) for each in (all_of, own))
    return whole, part


def apply_preset() -> None:
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


def choose_values(key: str) -> list[Any]:
    """Draw the choice of values of a setting."""
    setting = SETTINGS[key]
    title = setting.plural[0].upper() + setting.plural[1:]
    names = usable_retrievers(load_encoder()) if key == "retriever" else list(setting.choices)
    lines = help_list(setting.choices[name] for name in names)
    return st.multiselect(
        f"{title} ({setting.unit})" if setting.unit else title,
        names or setting.tried,
        format_func=setting.words,
        **kept(f"grid-{key}"),
        help=lines or setting.help,
    )


def grid_widgets(k: int) -> dict[str, list[Any]]:
    """Draw the choice of values for every setting; return them by the keys of the settings.

    ``k`` is the app's number of passages.
    """
    for key, first in (FIRST_LOOK | {"max_tokens": [256]}).items():
        st.session_state.setdefault(f"grid-{key}", of_model(key, first, load_encoder()))
    state, values = st.session_state, {}
    if state.get("grid-k", [k]) in ([k], [state.get("grid-k-followed")]):  # the user chose no others
        state["grid-k"], state["grid-k-followed"] = [k], k

    def draw(column: DeltaGenerator, *keys: str) -> None:
        for key in keys:
            with column:
                values[key] = choose_values(key)

    left, right = st.columns(2)
    draw(left, "chunk_tokens", "pooling")
    draw(right, "retriever", "splitter")
    with st.expander("Overlap, context, token limit, passages, precision", icon=":material/tune:"):
        left, right = st.columns(2)
        draw(left, "overlap", "k")
        draw(right, "max_tokens", "context", "precision")
    return values


def model_box(encoder: Encoder) -> dict[str, Model]:
    """Draw the choice of another model; return all models by their names."""
    with st.expander("Another model", icon=":material/smart_toy:"):
        name = st.text_input(
            "Compare with",
            **kept("grid-model"),
            placeholder=f"a folder, a Hugging Face id, or {FORM}",
            help=f"The engine runs encoders of the families {', '.join(FAMILIES)}, with every pooling; "
            "sentence-transformers runs others, with the model's own pooling, and so does a server that "
            "speaks OpenAI's protocol (Ollama, vLLM, llama-server).",
        ).strip()
        if is_server(name):
            st.text_input(
                "Key",
                type="password",
                **kept(server_key(name)),
                help="Only if the server needs one. It is sent to this address only and forgotten when this "
                "session ends. The texts of all chunks and questions are sent, too.",
            )
        models: dict[str, Model] = {ENCODER: encoder}
        if name and name != ENCODER:
            try:
                models |= models_named([name])
            except GlassboxError as error:
                st.error(f"{escape_markdown(str(error))}. The grid uses only {escape_markdown(ENCODER)}.")
    return models


def baseline_configuration(encoder: Encoder, cut: Cut) -> Configuration:
    """Return the app's present settings."""
    return configuration_of(settings_in_use(encoder) | cut_values(cut))


def configurations_of(
    values: Mapping[str, list[Any]], models: Mapping[str, Model], baseline: Configuration
) -> Grid:
    """Return the baseline and every combination that can be measured, each once."""
    for key, chosen in values.items():
        if not chosen:
            raise InputError(f"nothing is chosen for the {SETTINGS[key].name}: choose one value or more")
    n_combined = prod(map(len, values.values())) * len(models)
    if n_combined > (most := limits().cells):
        raise InputError(
            f"the grid has {n_combined:,} configurations, and at most {most:,} are measured here: choose "
            "fewer values"
        )
    poolings = list(values["pooling"])
    if any(model.pooling == MODEL_DEFAULT for model in models.values()):
        poolings.append(MODEL_DEFAULT)
    whole = grid(**{**values, "pooling": poolings, "model": list(models)})
    others = [one for one in whole.configurations if one != baseline]
    found = fitting(Grid((baseline, *others)), models)
    if not found.configurations or found.configurations[0] != baseline:
        raise InputError(f"the app's settings now cannot be measured: {found.left_out[0].why}")
    return Grid(found.configurations, whole.left_out + found.left_out)


def show_left_out(chosen: Grid) -> None:
    """Draw the combinations that are not measured, with the reasons."""
    if not chosen.left_out:
        return
    with st.expander(f"{counted(len(chosen.left_out), 'combination')} left out", icon=":material/block:"):
        for why, n in Counter(one.why for one in chosen.left_out).most_common(20):
            st.write(f"{n:,} × {escape_markdown(why)}")


def unmeasured(configurations: Sequence[Configuration], models: Mapping[str, Model]) -> list[str]:
    """Return a sentence for each model that is not measured, with the reason."""
    lines = []
    for name in set(models) - {one.model for one in configurations}:
        model = models[name]
        tried = [replace(one, model=name) for one in configurations[1:] or configurations]
        if model.as_encoder is None:
            tried = [resolved(replace(one, pooling=MODEL_DEFAULT), model) for one in tried]
        reason = next(filter(None, (reason_left_out(one, model) for one in tried)), "no value suits it")
        reason = reason.replace("max_tokens", f"“{SETTINGS['max_tokens'].label}”")  # as the page calls it
        lines.append(f"{name} is not measured at all: {reason}. Change the grid, or remove the model.")
    return sorted(lines)


def run_by_library(models: Mapping[str, Model]) -> list[str]:
    """Return a sentence for each model that the engine does not run, with the reason."""
    return [
        f"{model_name(name)} is run by sentence-transformers, since the engine does not: {model.reason}"
        for name, model in models.items()
        if isinstance(model, LibraryModel)
    ]


@st.cache_resource(max_entries=64, show_spinner="Timing a sample…")
def seconds_of(wanted: str, n_vectors: int, _inputs: SweepInputs, _cache: VectorCache) -> float:
    """Estimate the time of a grid.

    All sessions share it by its key ``wanted``, a hash of all that the time depends on, and the number of
    vectors that are kept.
    """
    return sweep_seconds(_inputs, _cache, token_seconds_here)


def show_start(inputs: SweepInputs) -> None:
    """Draw what a grid costs, and the button that runs it; a large one has to be confirmed."""
    configurations, questions = inputs.configurations, inputs.questions
    n_answered = 0 if inputs.answering is None else len(inputs.answering.questions)
    key = sha256(repr((configurations, questions, second_names(), n_answered)).encode()).hexdigest()
    cache = vectors_of(inputs.documents)
    seconds = seconds_of(key + digest(inputs.documents), cache.n_vectors, inputs, cache)
    if inputs.answering is not None and inputs.answering.settings.write:
        seconds += WORDS_S * n_answered * len(configurations)
    shown = {
        "Configurations": (f"{len(configurations):,}", None, "Combinations to measure, with the baseline."),
        "Questions": (f"{len(questions):,}", None, "Each is asked in every configuration."),
        "Time": (f"about {readable_time(seconds)}", None, TIME_HELP),
    }
    show_metrics(shown, border=True)
    for line in unmeasured(configurations, inputs.models):
        st.warning(escape_markdown(line), icon=":material/warning:")
    for line in run_by_library(inputs.models):
        st.info(escape_markdown(line), icon=":material/info:")
    is_running = running_experiment() is not None
    is_large = len(configurations) > MANY or seconds > MANY_SECONDS
    more, button = st.columns([3, 1], vertical_alignment="bottom")
    with more, more_options():
        st.text_input(
            "Name of the run",
            **kept("grid-name"),
            max_chars=80,
            placeholder=default_name(configurations),
            help="Names it under Runs, and in a saved workspace.",
        )
    confirmed = not is_large or st.checkbox(
        f"Run all {len(configurations):,} configurations, which takes about {readable_time(seconds)}: it can "
        "be stopped and resumed",
        key="grid-meant",
    )
    button.button(
        "Run the grid",
        key="grid-run",
        type="primary",
        icon=":material/play_arrow:",
        disabled=is_running or not confirmed,
        on_click=run_grid,
        args=(inputs,),
        width="stretch",
    )
    if is_running:
        st.caption("Another run is in progress: stop it, or wait for it to end.")


def default_name(configurations: Sequence[Configuration]) -> str:
    """``"3 chunk sizes × 2 poolings"``, without values that only the baseline has, or a model's own."""
    counts = {
        key: len({getattr(one, key) for one in configurations[1:]} - {MODEL_DEFAULT, None}) for key in SWEPT
    }
    return " × ".join(f"{n} {SETTINGS[key].plural}" for key, n in counts.items() if n > 1) or "one setting"


def run_grid(inputs: SweepInputs) -> None:
    """Start to measure a grid."""
    configurations = tuple(inputs.configurations)
    name = st.session_state["grid-name"].strip() or default_name(configurations)
    names = tuple(document.name for document in inputs.documents)
    time, corpus = datetime.now().isoformat(timespec="seconds"), digest(inputs.documents)
    begun = Experiment(name, time, names, corpus, tuple(inputs.questions), configurations)
    if (asked := inputs.answering) is not None:
        begun = replace(begun, answered=tuple(asked.questions), answer_settings=asked.settings)
    try:
        start(begun, inputs)
    except GlassboxError as error:
        st.session_state["experiment-error"] = str(error)
