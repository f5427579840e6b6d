"""A training as it goes: its figures, what the model writes, and where it looks."""

from collections.abc import Sequence
from html import escape
from statistics import median

import numpy as np
import streamlit as st

from engine.training.loop import StepReport
from ui.experiment_words import readable_time
from ui.export import show_figure
from ui.lab_decoder_figures import learning_figure
from ui.lab_decoder_run import PROMPT, Run, Snapshot, texts
from ui.maps import weights_map
from ui.text import show_text

REDRAW_S = 2.0
RECENT = 20  # steps whose pace counts


def show_live(run: Run) -> None:
    """Draw all there is to see; while the model learns, again and again."""
    if run.running:
        st.fragment(_show, run_every=REDRAW_S)(run, live=True)
    else:
        _show(run, live=False)


def _show(run: Run, live: bool) -> None:
    if live and not run.running:
        st.rerun()
    reports = [report for report in run.reports if report.diverged is None]
    _show_progress(run, reports)
    if reports:
        _show_learning(run, reports)
    seen = _choose_snapshot(run, live)
    st.markdown(f"**What it writes at step {seen.step:,}**")
    begun = run.tokenizer.decode(run.looked_at[:PROMPT].tolist())
    show_text(f"<b>{escape(begun)}</b>{escape(seen.sample.removeprefix(begun))}", height=170)
    st.caption("The bold beginning is held-out text, and the same every time; the rest is the model's.")
    _show_attention(run, seen)


def _show_progress(run: Run, reports: Sequence[StepReport]) -> None:
    step, n_steps = run.trainee.step, run.settings.n_steps
    per_s = median(report.tokens_per_s for report in reports[-RECENT:]) if reports else 0.0
    state = "learning" if run.running else "finished" if run.finished else "paused"
    if run.running and per_s:
        state += f", about {readable_time((n_steps - step) * run.step_tokens / per_s)} left"
    st.progress(min(step / n_steps, 1.0), f"{step:,} of {n_steps:,} steps, {state}")
    if not reports:
        return
    held_out = [report.held_out_loss for report in reports if report.held_out_loss is not None]
    with st.container(horizontal=True, gap="medium"):
        st.metric("Loss", f"{reports[-1].loss:.3f}", help="Of the newest step's batch, in nats a token.")
        st.metric("Held out", f"{held_out[-1]:.3f}" if held_out else "–", help="On text never trained on.")
        st.metric("Tokens/s", f"{per_s:,.0f}", help=f"Learnt from, in the median of {RECENT} steps.")
        norm = "Length of all gradients together, before clipping."
        st.metric("Gradient", f"{reports[-1].grad_norm:.2f}", help=norm)


def _show_learning(run: Run, reports: Sequence[StepReport]) -> None:
    show_figure(
        learning_figure(reports, run.trainee.config.vocab_size),
        name="decoder-learning",
        arrays={
            "step": np.array([report.step for report in reports]),
            "loss": np.array([report.loss for report in reports]),
            "held_out_loss": np.array([report.held_out_loss or np.nan for report in reports]),
            "grad_norm": np.array([report.grad_norm for report in reports]),
            "tokens_per_s": np.array([report.tokens_per_s for report in reports]),
            "learning_rate": np.array([report.learning_rate for report in reports]),
        },
        alt="Training and held-out loss over the steps, and the length of the gradients",
    )
    st.caption(
        "A nat is the loss of a choice among e = 2.7 equally likely tokens. The held-out text is the last "
        "tenth of the documents, never trained on: where its loss rises while the other falls, the model "
        "learns by heart."
    )


def _choose_snapshot(run: Run, live: bool) -> Snapshot:
    """Newest while it learns; then any."""
    snapshots = list(run.snapshots)
    if live or len(snapshots) == 1:
        return snapshots[-1]
    by_step = {snapshot.step: snapshot for snapshot in snapshots}
    step = st.select_slider(
        "Look back to step",
        list(by_step),
        snapshots[-1].step,
        format_func=lambda step: f"{step:,}",
        key=f"lab-decoder-look-{snapshots[-1].step}",
        help="What the model wrote, and where it looked, at that step.",
    )
    return by_step[step]


def _show_attention(run: Run, seen: Snapshot) -> None:
    st.markdown(f"**Where it looks at step {seen.step:,}**")
    n_layers, n_heads = seen.attention.shape[:2]
    left, right = st.columns(2)
    reason = "0 is the first after the tokens."
    layer = left.selectbox("Layer", range(n_layers), n_layers - 1, key="lab-decoder-layer", help=reason)
    reason = "One of the layer's attention patterns."
    head = right.selectbox("Head", range(n_heads), key="lab-decoder-head", help=reason)
    weights = seen.attention[layer, head].astype(np.float32)
    show_figure(
        weights_map(weights, texts(run, run.looked_at.tolist()), causal=True),
        name="decoder-attention",
        arrays={"weights": weights, "ids": run.looked_at},
        alt=f"Attention of head {head} of layer {layer} on a fixed held-out text at step {seen.step}",
    )
    st.caption("The same held-out text every time. A row is a token, bright where it looks.")
