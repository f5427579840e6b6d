"""Progress of a training of the encoder-decoder: its numbers, lines and held-out samples."""

from collections.abc import Sequence

import numpy as np
import streamlit as st

from engine.training.language.seq2seq_loop import ExamReport, Translation, least_loss
from engine.wording import readable_time
from pages.learn.translator.figures import progress_figure
from pages.learn.translator.session import TrainingSession
from ui.export import arrays_of, show_figure
from ui.tables import show_table
from ui.text import show_error

N_SAMPLES = 6


def show_progress(session: TrainingSession) -> None:
    """Draw a training's progress bar, lines and samples."""
    training = session.training
    reports = tuple(training.reports)  # the job's thread still appends to them
    st.progress(
        (reports[-1].n_updates if reports else 0) / training.recipe.n_steps, progress_words(session, reports)
    )
    if error := session.error:
        show_error(f"{error[0].upper()}{error[1:]}.")
    if not reports:
        st.caption("The first report follows in a moment.")
        return
    last = reports[-1]
    show_numbers(last)
    updates = np.array([report.n_updates for report in reports])
    least = least_loss(training.recipe.label_smoothing, training.config.vocab_size)
    show_figure(
        progress_figure(reports, training.recipe.n_steps, least),
        name="seq2seq-progress",
        arrays={"step": updates, **arrays_of(reports, "loss", "exact")},
        alt="The loss, and the share of held-out translations that are right, by step",
    )
    st.caption(
        "A nat is the loss of a choice among e = 2.7 equally likely tokens. "
        f"The targets are smoothed ({training.recipe.label_smoothing:.0%} of each is spread over all "
        f"tokens), so even a model without errors has a loss of {least:.2f}: the dotted line."
    )
    show_samples(last.exam)


def progress_words(session: TrainingSession, reports: Sequence[ExamReport]) -> str:
    """Return the progress and the remaining time in words."""
    n_steps = session.training.recipe.n_steps
    made, seconds = (reports[-1].n_updates, reports[-1].seconds) if reports else (0, 0.0)
    if session.training.failure is not None:
        return f"step {made:,} of {n_steps:,}, ended early"
    if made == n_steps:
        return f"all {n_steps:,} steps, in {readable_time(seconds)}"
    left = f", about {readable_time(seconds / made * (n_steps - made))} left" if made else ""
    how = "" if session.running else ", paused"
    return f"step {made:,} of {n_steps:,}{how or left}"


def show_numbers(last: ExamReport) -> None:
    """Draw the numbers of the last report."""
    with st.container(horizontal=True, key="seq2seq-numbers"):
        st.metric(
            "Held-out right",
            f"{last.exact:.0%}",
            help=f"Of {len(last.exam)} pairs that training never draws; every token must be right.",
        )
        st.metric("Loss", f"{last.loss:.3f}", help="Mean since the previous report, in nats per token.")
        st.metric("Learning rate", f"{last.learning_rate:.2g}", help="Of the last step.")
        st.metric("Gradient", f"{last.gradient_norm:.2g}", help="Its length, before it is clipped to 1.")


def show_samples(exam: Sequence[Translation]) -> None:
    """Draw some held-out pairs with the model's translations, wrong ones first."""
    n_wrong = sum(not one.right for one in exam)
    each_once = {one.pair.source: one for one in exam}
    shown = sorted(each_once.values(), key=lambda one: one.right)[:N_SAMPLES]
    st.markdown("**Held-out samples**")
    show_table(
        [
            {
                "Right": "✓ yes" if one.right else "✗ no",
                "source": one.pair.source,
                "output": one.output,
                "correct": one.pair.target if not one.right else "the same",
            }
            for one in shown
        ],
        "Held-out sources, their translations, and the right ones",
    )
    st.caption(f"{n_wrong} of {len(exam)} are wrong; {len(shown)} are shown, wrong ones first.")
