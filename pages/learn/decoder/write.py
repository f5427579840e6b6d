"""Generation with the trained model: its tokens with their attention."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from engine.errors import GlassboxError, InputError
from engine.generation.sampling import Sampling
from engine.generation.small import SmallToken, generate
from engine.layers.tracing import Array
from engine.models.parallel import single_threaded_blas
from engine.wording import counted
from pages.learn.decoder.session import PROMPT, TrainingSession, texts
from ui.export import show_figure
from ui.figures import heat_map, styled
from ui.text import show_error, show_text
from ui.tokens import token_axis, token_labels
from ui.widgets import check_typed, kept, slider

STOPS = 400  # most tokens in the list of stop tokens
MAX_PROMPT = 500  # characters


@dataclass(frozen=True)
class Written:
    """A text that the model generated after ``trained`` updates."""

    trained: int
    prompt: tuple[int, ...]
    steps: tuple[SmallToken, ...]

    @property
    def ids(self) -> list[int]:
        """The ids of the prompt and of the generated tokens."""
        return [*self.prompt, *(step.token_id for step in self.steps)]


def show_writing_on(session: TrainingSession) -> None:
    """Draw the prompt, the generated text, and the attention of its tokens."""
    st.header("Write on", anchor=False, divider="gray")
    if session.running:
        st.info("Pause the training to write with the current model.", icon=":material/pause:")
        return
    try:
        _generate(session)
        written: Written | None = st.session_state.get("lab-decoder-written")
        if written is not None:
            _show_written(session, written)
    except GlassboxError as error:
        show_error(error)


def _generate(session: TrainingSession) -> None:
    prompt = st.text_input(
        "Prompt",
        session.tokenizer.decode(session.looked_at[:PROMPT].tolist()),
        key="lab-decoder-prompt",
        help="The model writes on from here. Its vocabulary must have every character.",
    )
    left, middle, right = st.columns(3)
    temperature = left.slider(
        "Temperature",
        0.0,
        2.0,
        0.8,
        0.1,
        **kept("lab-decoder-temperature"),
        help="0 always takes the most probable token; higher values are more random.",
    )
    n_new = slider("New tokens", range(10, 501, 10), 120, "lab-decoder-new", "At most.", place=middle)
    names = texts(session, range(min(session.state.config.vocab_size, STOPS)))
    stops = right.multiselect(
        "Stop tokens",
        range(len(names)),
        format_func=lambda number: f"{names[number]} ({number})",
        key="lab-decoder-stops",
        placeholder="None",
        help="The text ends with the first of these. ␣ is a blank, ↵ the end of a line.",
    )
    reason = "Write on from the prompt."
    if st.button("Write", key="lab-decoder-write", icon=":material/edit:", type="primary", help=reason):
        ids = session.tokenizer.encode(check_typed(prompt, MAX_PROMPT)).ids
        if not ids:
            raise InputError("the prompt has no token: type at least one character")
        state, sampling = session.state, Sampling(temperature, seed=0)
        with st.spinner("Writing…", show_time=True), single_threaded_blas():
            steps = tuple(generate(state.params, state.config, ids, n_new, sampling, set(stops)))
        st.session_state["lab-decoder-written"] = Written(state.n_updates, tuple(ids), steps)


def _show_written(session: TrainingSession, written: Written) -> None:
    n_prompt, decode = len(written.prompt), session.tokenizer.decode
    whole, begun = decode(written.ids), decode(written.prompt)
    rest = whole.removeprefix(begun)
    show_text(f"<b>{escape(begun)}</b>{escape(rest)}", height=220)
    why = "a stop token" if written.steps[-1].finish_reason == "stop" else "the maximum"
    n_tokens = counted(len(written.steps), "token")
    st.caption(f"{n_tokens} by the model of step {written.trained:,}, ended by {why}.")
    names = texts(session, written.ids)
    number = st.select_slider(
        "Attention of token",
        range(len(written.steps)),
        format_func=lambda i: f"{i + 1} {names[n_prompt + i]}",
        key=f"lab-decoder-step-{len(written.steps)}",
        help="A generated token, and the attention of all heads for it.",
    )
    step = written.steps[number]
    show_figure(
        step_attention(step.attention, names[step.first_seen : n_prompt + number]),
        name="decoder-step-attention",
        alt=f"Attention of all heads for written token {number + 1}",
    )
    if step.first_seen:
        st.caption(f"The first {step.first_seen} tokens no longer fit into the context, and are dropped.")


def step_attention(attention: Array, tokens: Sequence[str]) -> go.Figure:
    """Heat map of the attention of all heads for one token, ``(n_layers, n_heads, n_seen)``."""
    n_layers, n_heads, n_seen = attention.shape
    rows = [f"layer {layer} head {head}" for layer in range(n_layers) for head in range(n_heads)]
    values, columns = attention.reshape(-1, n_seen), token_labels(tokens)
    highest = float(np.quantile(attention, 0.99))
    figure = heat_map(
        values, rows, columns, "%{y}<br>to %{x}<br>%{z:.4f}", ".2g", zmin=0, zmax=highest, colorbar_nticks=5
    )
    figure.update_yaxes(type="category", tickfont_size=11)
    token_axis(figure.update_xaxes, n_seen, tickangle=-60)
    return styled(figure, height=160 + 20 * len(rows))
