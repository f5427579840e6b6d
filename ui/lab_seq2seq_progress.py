"""How far a training of the encoder-decoder is: its numbers, lines and held-out samples."""

from collections.abc import Sequence

import numpy as np
import streamlit as st

from engine.training.seq2seq_loop import Report, Translation, least_loss
from ui.answer import escape_markdown
from ui.experiment_words import readable_time
from ui.export import show_figure
from ui.lab_seq2seq_figures import progress_figure
from ui.lab_seq2seq_running import Running

N_SAMPLES = 6


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
    show_numbers(last)
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
        "A nat is the loss of a choice among e = 2.7 equally likely tokens. "
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


def show_numbers(last: Report) -> None:
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
