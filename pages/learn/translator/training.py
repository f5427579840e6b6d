"""The page on which an encoder-decoder learns to translate: settings, buttons and progress."""

import numpy as np
import streamlit as st

from engine.models.seq2seq_params import n_parameters
from engine.training.language.seq2seq_loop import Training
from engine.training.language.tasks import Task, date_task, draw_pairs, number_task
from pages.learn.translator.progress import show_progress
from pages.learn.translator.session import TrainingSession, kept_name, load, reset, resume, start, trainings
from pages.learn.translator.settings import choose_recipe
from pages.learn.translator.translate import show_translate
from ui.tables import show_table
from ui.training import draw_live, show_training_buttons
from ui.widgets import choice

TASKS = {task.name: task for task in (number_task(), date_task())}
N_EXAMPLES = 5


def show_seq2seq() -> None:
    """Draw the choice of task and settings, the training, its samples, and the user's own translation."""
    st.write(
        "The encoder-decoder of [Attention Is All You Need](https://arxiv.org/abs/1706.03762), small enough "
        "to learn here in about a minute. It starts from random weights, learns from pairs that are "
        "generated on the way, and is tested on held-out ones. Forward, backward and Adam are NumPy."
    )
    reason = "".join(f"- {name}\n" for name in TASKS)
    reason += "\nEach has its own training; starting one pauses the other."
    names = list(TASKS)
    task = TASKS[
        choice("Task", names, "seq2seq-task", reason, format_func=lambda name: name.partition(":")[0])
    ]
    session = trainings().get(task.name)
    recipe = choose_recipe(locked=session is not None)
    show_training_buttons(
        session,
        "seq2seq",
        kept_name(task),
        train=lambda: start(task, recipe),
        resume=None if session is None or session.training.done else lambda: resume(task.name),
        reset=lambda: reset(task.name),
        load=lambda content: load(content, task),
    )
    if session is None:
        show_examples(task)
        return
    show_model(session.training)
    draw_live(session, lambda: show_training(session))


def show_training(session: TrainingSession) -> None:
    """Draw the progress of a training, and the user's own translation."""
    show_progress(session)
    st.divider()
    show_translate(session.training)


def show_examples(task: Task) -> None:
    """Draw some of the pairs that a training would learn from."""
    st.info(
        f"Nothing is trained yet. Press Train to watch it learn to translate “{task.example}”.",
        icon=":material/school:",
    )
    st.markdown(f"**{task.name}**")
    show_table(
        [
            {"it reads": pair.source, "and should write": pair.target}
            for pair in draw_pairs(task, np.random.default_rng(0), N_EXAMPLES)
        ],
        "Some pairs to learn from",
    )


def show_model(training: Training) -> None:
    """Draw the sizes of the model."""
    config, recipe = training.config, training.recipe
    st.caption(
        f"{n_parameters(config):,} parameters: an encoder and a decoder, {recipe.n_layers} × "
        f"{config.n_heads} heads each, width {config.d_model}; {recipe.batch_size} pairs a step."
    )
