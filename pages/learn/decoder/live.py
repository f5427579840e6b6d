"""Progress of a training: its figures, samples of the model's text, and its attention."""

from collections.abc import Sequence
from html import escape
from math import log
from statistics import median

import numpy as np
import plotly.graph_objects as go
import streamlit as st
from plotly.subplots import make_subplots

from engine.training.language.small_decoder_loop import UpdateReport
from engine.wording import readable_time
from pages.learn.decoder.session import PROMPT, Snapshot, TrainingSession, texts
from ui.colours import BLUE, GREEN, GREY, ORANGE
from ui.export import show_figure
from ui.figures import LEGEND_ABOVE, add_line, styled, weights_map
from ui.text import show_text

RECENT = 20  # steps whose median speed is shown
SMOOTHED = 0.7  # weight of the previous mean at each step
DRAWN_POINTS = 400  # most points of a line
HOVER = "step %{x}<br>%{fullData.name} %{y:.3f}"


def show_progress(session: TrainingSession) -> None:
    """Draw the progress of a training, the model's text, and its attention."""
    reports = [report for report in session.reports if report.diverged is None]
    _show_numbers(session, reports)
    if reports:
        show_figure(
            learning_figure(reports, session.state.config.vocab_size),
            name="decoder-learning",
            alt="Training and held-out loss over the steps, and the length of the gradients",
        )
        st.caption(
            "A nat is the loss of a choice among e = 2.7 equally likely tokens. The held-out text is the "
            "last tenth of the documents, never trained on: where its loss rises while the other falls, the "
            "model overfits."
        )
    seen = _choose_snapshot(session)
    st.markdown(f"**What it writes at step {seen.update:,}**")
    begun = session.tokenizer.decode(session.looked_at[:PROMPT].tolist())
    show_text(f"<b>{escape(begun)}</b>{escape(seen.sample.removeprefix(begun))}", height=170)
    st.caption("The bold beginning is held-out text, always the same; the model wrote the rest.")
    _show_attention(session, seen)


def _show_numbers(session: TrainingSession, reports: Sequence[UpdateReport]) -> None:
    step, n_steps = session.state.n_updates, session.settings.n_steps
    per_s = median(report.tokens_per_s for report in reports[-RECENT:]) if reports else 0.0
    doing = "learning" if session.running else "finished" if session.finished else "paused"
    if session.running and per_s:
        doing += f", about {readable_time((n_steps - step) * session.step_tokens / per_s)} left"
    st.progress(min(step / n_steps, 1.0), f"{step:,} of {n_steps:,} steps, {doing}")
    if not reports:
        return
    held_out = [report.held_out_loss for report in reports if report.held_out_loss is not None]
    with st.container(horizontal=True, gap="medium"):
        st.metric("Loss", f"{reports[-1].loss:.3f}", help="Of the newest step's batch, in nats per token.")
        st.metric("Held out", f"{held_out[-1]:.3f}" if held_out else "–", help="On text never trained on.")
        st.metric(
            "Tokens/s", f"{per_s:,.0f}", help=f"Tokens learnt from per second, median of {RECENT} steps."
        )
        norm = "Norm of all gradients together, before clipping."
        st.metric("Gradient", f"{reports[-1].grad_norm:.2f}", help=norm)


def learning_figure(reports: Sequence[UpdateReport], vocab_size: int) -> go.Figure:
    """Lines of the smoothed training loss and the held-out loss; below, the norm of the gradients."""
    every = max(len(reports) // DRAWN_POINTS, 1)
    shown = [*reports[::every], reports[-1]]
    steps = [report.update for report in shown]
    smooth = smoothed([report.loss for report in reports])
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.1, row_heights=[0.68, 0.32])
    add_line(figure, steps, [*smooth[::every], smooth[-1]], "training", BLUE, HOVER, row=1, col=1)
    held_out = {report.update: report.held_out_loss for report in reports if report.held_out_loss is not None}
    look = {"mode": "lines+markers", "row": 1, "col": 1}
    add_line(figure, held_out, held_out.values(), "held out", ORANGE, HOVER, **look)
    ends, guessing = [steps[0], steps[-1]], [log(vocab_size)] * 2
    add_line(figure, ends, guessing, "guessing", GREY, HOVER, line_dash="dot", row=1, col=1)
    gradients = [report.grad_norm for report in shown]
    add_line(figure, steps, gradients, "gradient length", GREEN, HOVER, row=2, col=1)
    figure.update_yaxes(title="loss (nats a token)", row=1, col=1)
    figure.update_yaxes(title="gradient", rangemode="tozero", row=2, col=1)
    figure.update_xaxes(title="step", row=2, col=1)
    figure.update_layout(legend=LEGEND_ABOVE)
    return styled(figure, height=420)


def smoothed(values: Sequence[float]) -> list[float]:
    """Return the exponential moving mean, bias-corrected as in Adam."""
    mean, result = 0.0, []
    for number, value in enumerate(values, start=1):
        mean = SMOOTHED * mean + (1 - SMOOTHED) * value
        result.append(mean / (1 - SMOOTHED**number))
    return result


def _choose_snapshot(session: TrainingSession) -> Snapshot:
    """Return the newest snapshot while the model learns; otherwise draw the choice of one."""
    snapshots = list(session.snapshots)
    if session.running or len(snapshots) == 1:
        return snapshots[-1]
    by_update = {snapshot.update: snapshot for snapshot in snapshots}
    step = st.select_slider(
        "Look back to step",
        list(by_update),
        snapshots[-1].update,
        format_func=lambda step: f"{step:,}",
        key=f"lab-decoder-look-{snapshots[-1].update}",
        help="The model's text and attention at that step.",
    )
    return by_update[step]


def _show_attention(session: TrainingSession, seen: Snapshot) -> None:
    st.markdown(f"**Where it looks at step {seen.update:,}**")
    n_layers, n_heads = seen.attention.shape[:2]
    left, right = st.columns(2)
    reason = "0 is the first after the tokens."
    layer = left.selectbox("Layer", range(n_layers), n_layers - 1, key="lab-decoder-layer", help=reason)
    reason = "One of the layer's attention patterns."
    head = right.selectbox("Head", range(n_heads), key="lab-decoder-head", help=reason)
    weights = seen.attention[layer, head].astype(np.float32)
    show_figure(
        weights_map(weights, texts(session, session.looked_at.tolist()), causal=True),
        name="decoder-attention",
        alt=f"Attention of head {head} of layer {layer} on a fixed held-out text at step {seen.update}",
    )
    st.caption("Always the same held-out text. A row is a token, bright where it attends.")
