"""An encoder-decoder that learns to translate while one watches."""

import numpy as np
import streamlit as st

from engine.errors import GlassboxError
from engine.models.seq2seq_params import n_parameters
from engine.training.seq2seq_checkpoint import training_bytes
from engine.training.seq2seq_loop import Recipe, Training
from engine.training.tasks import Task, date_task, draw_pairs, number_task
from ui.answer import escape_markdown
from ui.lab_seq2seq_progress import show_progress
from ui.lab_seq2seq_running import Running, load, reset, resume, start, trainings
from ui.lab_seq2seq_settings import choose_recipe
from ui.lab_seq2seq_translate import show_translate

TASKS = {task.name: task for task in (number_task(), date_task())}
REDRAW_S = 2.0
N_EXAMPLES = 5


def show_seq2seq() -> None:
    """Draw the choice of task and settings, the training, its samples, and the user's own translation."""
    st.write(
        "The encoder-decoder of [Attention Is All You Need](https://arxiv.org/abs/1706.03762), small enough "
        "to learn here in about a minute. It starts from random weights, sees pairs that are made as it "
        "goes, and is examined on ones it is never shown. Forward, backward and Adam are NumPy."
    )
    task = TASKS[
        st.segmented_control(
            "Task",
            list(TASKS),
            format_func=lambda name: name.partition(":")[0],
            default=next(iter(TASKS)),
            required=True,
            key="seq2seq-task",
            persist_state="session",
            help="".join(f"- {name}\n" for name in TASKS)
            + "\nEach has a training of its own; starting one pauses the other.",
        )
    ]
    running = trainings().get(task.name)
    recipe = choose_recipe(locked=running is not None)
    show_buttons(task, recipe, running)
    if running is None:
        show_examples(task)
        return
    show_model(running.training)
    if running.moving:
        st.fragment(show_training, run_every=REDRAW_S)(running, live=True)
    else:
        show_training(running, live=False)


def show_training(running: Running, live: bool) -> None:
    """Draw what a model has learnt; while it is ``live``, run the page again when it has ended or paused."""
    if live and not running.moving:
        st.rerun()
    show_progress(running)
    st.divider()
    show_translate(running.training)


def show_examples(task: Task) -> None:
    """Draw some of the pairs that a training would learn from."""
    st.info(
        f"Nothing is trained yet. Press Train, and watch it learn to translate “{task.example}”.",
        icon=":material/school:",
    )
    st.markdown(f"**{task.name}**")
    st.table(
        [
            {"it reads": escape_markdown(pair.source), "and should write": escape_markdown(pair.target)}
            for pair in draw_pairs(task, np.random.default_rng(0), N_EXAMPLES)
        ],
        border="horizontal",
        hide_index=True,
        alt="Some pairs to learn from",
    )


def show_model(training: Training) -> None:
    """Say how large the model is."""
    config, recipe = training.config, training.recipe
    st.caption(
        f"{n_parameters(config):,} parameters: an encoder and a decoder, {recipe.n_layers} × "
        f"{config.n_heads} heads each, width {config.d_model}; {recipe.batch_size} pairs a step."
    )


def show_buttons(task: Task, recipe: Recipe, running: Running | None) -> None:
    """Draw what starts, pauses, goes on with, saves, loads and forgets the training."""
    with st.container(horizontal=True, key="seq2seq-buttons"):
        if running is None:
            # Not as a callback: that would get the settings of the run before, not one changed just now.
            if st.button(
                "Train",
                type="primary",
                icon=":material/play_arrow:",
                key="seq2seq-train",
                help="Starts from random weights.",
            ):
                start(task, recipe)
                st.rerun()
        elif running.moving:
            show_pause(running)
        else:
            show_paused_buttons(task, running)
        if running is not None:
            st.button(
                "Reset",
                icon=":material/restart_alt:",
                on_click=reset,
                args=(task.name,),
                key="seq2seq-reset",
                help="Forgets this training, so that another can begin.",
            )
        learns = running is not None and running.moving
        with st.popover("Load a checkpoint", icon=":material/upload:", disabled=learns):
            show_upload(task)


def show_pause(running: Running) -> None:
    """Draw the button that ends the steps for now."""
    st.button(
        "Pausing…" if running.pausing else "Pause",
        icon=":material/pause:",
        disabled=running.pausing,
        on_click=running.stop,
        key="seq2seq-pause",
        help="Ends after the steps up to the next report; nothing is lost.",
    )


def show_paused_buttons(task: Task, running: Running) -> None:
    """Draw what goes on with a training that rests, and what saves it."""
    if not running.training.done:
        st.button(
            "Resume",
            type="primary",
            icon=":material/resume:",
            on_click=resume,
            args=(task.name,),
            key="seq2seq-resume",
            help="Goes on where it was paused, to the same end as without a pause.",
        )
    st.download_button(
        "Checkpoint",
        lambda: training_bytes(running.training),
        file_name=f"seq2seq-step-{running.training.moments.step}.safetensors",
        mime="application/octet-stream",
        icon=":material/download:",
        on_click="ignore",
        key="seq2seq-checkpoint",
        help="Weights, what Adam remembers, sizes, words and reports, in one file.",
    )


def show_upload(task: Task) -> None:
    """Draw the place to give a checkpoint back; take it in, or say why it cannot be."""
    file = st.file_uploader(
        "Checkpoint",
        type="safetensors",
        key="seq2seq-file",
        help="A file saved here, of this task. Its sizes come with it; where a model is there already, they "
        "must be the same.",
    )
    pressed = st.button("Load", key="seq2seq-load", disabled=file is None, help="Go on from this checkpoint.")
    if pressed and file is not None:
        try:
            load(file.getvalue(), task)
        except GlassboxError as error:
            st.error(escape_markdown(str(error)), icon=":material/error:")
            return
        st.rerun()
