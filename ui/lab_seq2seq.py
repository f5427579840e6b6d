"""An encoder-decoder that learns to translate while one watches."""

from collections.abc import Sequence

import numpy as np
import streamlit as st

from engine.models.seq2seq_params import n_parameters
from engine.training.seq2seq_loop import Recipe, Report, Training, Translation, least_loss, weights_file
from engine.training.tasks import Task, date_task, number_task
from ui.answer import escape_markdown
from ui.experiment_words import readable_time
from ui.export import show_figure
from ui.lab_seq2seq_figures import progress_figure
from ui.lab_seq2seq_running import Running, reset, resume, start, trainings
from ui.lab_seq2seq_translate import show_translate

TASKS = {task.name: task for task in (number_task(), date_task())}
REDRAW_S = 1.0
N_SAMPLES = 10
DEFAULT = Recipe()
LEARNING_RATES = [1e-4, 3e-4, 1e-3, 2e-3, 5e-3, 1e-2, 0.1, 1.0]


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
            default=next(iter(TASKS)),
            required=True,
            key="seq2seq-task",
            persist_state="session",
            help="Each task has a training of its own; starting one pauses the other.",
        )
    ]
    running = trainings().get(task.name)
    recipe = choose_recipe(locked=running is not None)
    show_buttons(task, recipe, running)
    if running is None:
        st.info(
            f"Nothing is trained yet. Press Train, and watch it learn to translate “{task.example}”.",
            icon=":material/school:",
        )
        return
    if running.moving:
        st.fragment(follow_progress, run_every=REDRAW_S)(running)
    else:
        show_progress(running)
    st.divider()
    show_translate(running.training)
    st.download_button(
        "Checkpoint (.safetensors)",
        lambda: weights_file(running.training),
        file_name="seq2seq.safetensors",
        mime="application/octet-stream",
        icon=":material/download:",
        on_click="ignore",
        key="seq2seq-checkpoint",
        help="The weights of the last report; the file's header has sizes and vocabulary.",
    )


def choose_recipe(locked: bool) -> Recipe:
    """Draw the settings; while there is a training they cannot be changed."""
    with st.expander("Settings", icon=":material/tune:", key="seq2seq-settings"):
        if locked:
            st.caption("Reset the training to change these.")
        left, right = st.columns(2, gap="medium")
        n_steps = left.slider(
            "Steps",
            100,
            3000,
            DEFAULT.n_steps,
            100,
            disabled=locked,
            key="seq2seq-steps",
            persist_state="session",
            help="How many batches it learns from.",
        )
        rate = right.select_slider(
            "Highest learning rate",
            LEARNING_RATES,
            DEFAULT.learning_rate,
            format_func=lambda value: f"{value:g}",
            disabled=locked,
            key="seq2seq-rate",
            persist_state="session",
            help="It rises to this in the first 100 steps, then falls. Far too high, the loss runs off.",
        )
        d_model = left.select_slider(
            "Width",
            [32, 64, 96, 128],
            DEFAULT.d_model,
            disabled=locked,
            key="seq2seq-width",
            persist_state="session",
            help="Numbers a token (d_model), in 4 heads; the feed-forward network has four times as many.",
        )
        n_layers = right.slider(
            "Layers",
            1,
            3,
            DEFAULT.n_layers,
            disabled=locked,
            key="seq2seq-layers",
            persist_state="session",
            help="Of the encoder, and as many of the decoder.",
        )
        batch_size = left.select_slider(
            "Batch",
            [16, 32, 64, 128],
            DEFAULT.batch_size,
            disabled=locked,
            key="seq2seq-batch",
            persist_state="session",
            help="Pairs a step.",
        )
        seed = right.number_input(
            "Seed",
            0,
            2**31 - 1,
            DEFAULT.seed,
            disabled=locked,
            key="seq2seq-seed",
            persist_state="session",
            help="Of the first weights and of the pairs; the same seed gives the same training.",
        )
    return Recipe(
        seed=seed,
        d_model=d_model,
        d_ff=4 * d_model,
        n_layers=n_layers,
        batch_size=batch_size,
        n_steps=n_steps,
        learning_rate=rate,
    )


def show_buttons(task: Task, recipe: Recipe, running: Running | None) -> None:
    """Draw what starts, pauses, goes on with and forgets the training."""
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
            return
        if running.moving:
            st.button(
                "Pausing…" if running.pausing else "Pause",
                icon=":material/pause:",
                disabled=running.pausing,
                on_click=running.job.stop,
                key="seq2seq-pause",
                help="Ends after the steps up to the next report; nothing is lost.",
            )
        elif not running.training.done:
            st.button(
                "Resume",
                type="primary",
                icon=":material/resume:",
                on_click=resume,
                args=(task.name,),
                key="seq2seq-resume",
                help="Goes on where it was paused, to the same end as without a pause.",
            )
        st.button(
            "Reset",
            icon=":material/restart_alt:",
            on_click=reset,
            args=(task.name,),
            key="seq2seq-reset",
            help="Forgets this training, so that another can begin.",
        )


def follow_progress(running: Running) -> None:
    """Draw a training that moves; runs the page again when it has ended or paused."""
    if not running.moving:
        st.rerun()
    show_progress(running)


def show_progress(running: Running) -> None:
    """Draw how far a training is, its lines and samples."""
    training = running.training
    reports = tuple(training.reports)  # the job's thread goes on adding to them
    st.progress(
        (reports[-1].step if reports else 0) / training.recipe.n_steps, progress_words(running, reports)
    )
    if error := running.error:
        st.error(escape_markdown(error[0].upper() + error[1:]) + ".", icon=":material/error:")
    if not reports:
        st.caption("The first report comes in a moment.")
        return
    last = reports[-1]
    show_numbers(training, last)
    least = least_loss(training.recipe.label_smoothing, training.config.vocab_size)
    show_figure(
        progress_figure(reports, training.recipe.n_steps, least),
        name="seq2seq-progress",
        arrays={
            "step": np.array([report.step for report in reports]),
            "loss": np.array([report.loss for report in reports]),
            "exact": np.array([report.exact for report in reports]),
        },
        alt="The loss, and the share of held-out translations that are right, by step",
    )
    st.caption(
        f"The targets are smoothed ({training.recipe.label_smoothing:.0%} of each is spread over all "
        f"tokens), so even a model that is never wrong has a loss of {least:.2f}: the dotted line."
    )
    show_samples(last.exam)


def progress_words(running: Running, reports: Sequence[Report]) -> str:
    """Say how far a training is and how long the rest takes."""
    n_steps = running.training.recipe.n_steps
    made, seconds = (reports[-1].step, reports[-1].seconds) if reports else (0, 0.0)
    if running.training.failure is not None:
        return f"step {made:,} of {n_steps:,}, ended early"
    if made == n_steps:
        return f"all {n_steps:,} steps, in {readable_time(seconds)}"
    left = f", about {readable_time(seconds / made * (n_steps - made))} left" if made else ""
    how = "" if running.moving else ", paused"
    return f"step {made:,} of {n_steps:,}{how or left}"


def show_numbers(training: Training, last: Report) -> None:
    """Draw the numbers of the last report."""
    with st.container(horizontal=True, key="seq2seq-numbers"):
        st.metric(
            "Held-out right",
            f"{last.exact:.0%}",
            help=f"Of {len(last.exam)} pairs that training never draws; the whole must be right.",
        )
        st.metric("Loss", f"{last.loss:.3f}", help="Mean since the report before, in nats a token.")
        st.metric("Learning rate", f"{last.learning_rate:.2g}", help="Of the last step.")
        st.metric("Gradient", f"{last.gradient_norm:.2g}", help="Its length, before it is clipped to 1.")
        st.metric("Parameters", f"{n_parameters(training.config):,}", help="Numbers that are learnt.")


def show_samples(exam: Sequence[Translation]) -> None:
    """Draw some held-out pairs with what the model makes of them, those it gets wrong first."""
    n_wrong = sum(not one.right for one in exam)
    each_once = {one.pair.source: one for one in exam}
    shown = sorted(each_once.values(), key=lambda one: one.right)[:N_SAMPLES]
    st.markdown("**Held-out samples**")
    st.table(
        [
            {
                "": ":green[✓]" if one.right else ":red[✗]",
                "source": escape_markdown(one.pair.source),
                "it writes": escape_markdown(one.output),
                "right is": escape_markdown(one.pair.target) if not one.right else "the same",
            }
            for one in shown
        ],
        border="horizontal",
        hide_index=True,
        alt="Held-out sources, their translations, and the right ones",
    )
    st.caption(f"{n_wrong} of {len(exam)} are wrong; {len(shown)} are shown, wrong ones first.")
