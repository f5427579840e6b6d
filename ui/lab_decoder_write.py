"""Writing on with the model that was trained: token by token with its attention, and what the cache saves."""

from dataclasses import dataclass
from html import escape
from time import perf_counter

import streamlit as st

from engine.errors import GlassboxError
from engine.generation.sampling import Sampling
from engine.generation.small import SmallStep, generate
from engine.layers.tracing import Array
from engine.models.parallel import single_threaded_blas
from ui.answer import escape_markdown
from ui.export import show_figure
from ui.figures import readable_seconds
from ui.lab_decoder_figures import step_attention
from ui.lab_decoder_run import Run, prompt_ids, texts
from ui.text import show_text

STOPS = 400  # more tokens to choose from are more than a list can show
TIMED_TOKENS = 150


@dataclass(frozen=True)
class Written:
    """A text that the model wrote at one step of its training."""

    trained: int
    prompt: tuple[int, ...]
    steps: tuple[SmallStep, ...]

    @property
    def ids(self) -> list[int]:
        """Prompt and what was written."""
        return [*self.prompt, *(step.token_id for step in self.steps)]


def show_writing_on(run: Run) -> None:
    """Draw the box to write in, the text, the attention of each of its tokens, and the cache's timing."""
    st.subheader("Write on", anchor=False, divider="gray")
    if run.running:
        st.info("Pause the training to write with the model as it is then.", icon=":material/pause:")
        return
    try:
        _ask(run)
        written: Written | None = st.session_state.get("lab-decoder-written")
        if written is not None:
            _show_written(run, written)
        _show_timing(run)
    except GlassboxError as error:
        st.error(escape_markdown(str(error)), icon=":material/error:")


def _ask(run: Run) -> None:
    prompt = st.text_input(
        "Prompt",
        run.tokenizer.decode(run.looked_at[:12].tolist()),
        max_chars=500,
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
        key="lab-decoder-temperature",
        persist_state="session",
        help="0 takes the most probable token every time; higher ones dare more.",
    )
    n_new = middle.slider(
        "New tokens",
        10,
        500,
        120,
        10,
        key="lab-decoder-new",
        persist_state="session",
        help="At the most.",
    )
    names = texts(run, range(min(run.trainee.config.vocab_size, STOPS)))
    stops = right.multiselect(
        "Stop tokens",
        range(len(names)),
        format_func=lambda number: f"{names[number]} ({number})",
        key="lab-decoder-stops",
        placeholder="None",
        help="The text ends with the first of these. ␣ is a blank, ⏎ the end of a line.",
    )
    reason = "Write on from the prompt."
    if st.button("Write", key="lab-decoder-write", icon=":material/edit:", type="primary", help=reason):
        ids, trainee = prompt_ids(run, prompt), run.trainee
        with st.spinner("Writing…", show_time=True), single_threaded_blas():
            steps = tuple(
                generate(trainee.params, trainee.config, ids, n_new, Sampling(temperature), set(stops))
            )
        st.session_state["lab-decoder-written"] = Written(trainee.step, tuple(ids), steps)


def _show_written(run: Run, written: Written) -> None:
    n_prompt, decode = len(written.prompt), run.tokenizer.decode
    whole, begun = decode(written.ids), decode(written.prompt)
    rest = whole.removeprefix(begun)
    show_text(f"<b>{escape(begun)}</b>{escape(rest)}", height=220)
    why = "a stop token" if written.steps[-1].finish_reason == "stop" else "the maximum"
    st.caption(f"{len(written.steps)} tokens by the model of step {written.trained:,}, ended by {why}.")
    names = texts(run, written.ids)
    number = st.select_slider(
        "Attention of token",
        range(len(written.steps)),
        format_func=lambda i: f"{i + 1} {names[n_prompt + i]}",
        key=f"lab-decoder-step-{len(written.steps)}",
        help="Every token that was written, with where all heads looked to write it.",
    )
    step = written.steps[number]
    seen: list[str] = names[step.first_seen : n_prompt + number]
    attention: Array = step.attention
    show_figure(
        step_attention(attention, seen),
        name="decoder-step-attention",
        arrays={"attention": attention},
        alt=f"Attention of all heads for written token {number + 1}",
    )
    if step.first_seen:
        st.caption(f"The first {step.first_seen} tokens no longer fit into the context, and are forgotten.")


def _show_timing(run: Run) -> None:
    st.markdown("**What the KV cache saves**")
    label = f"Write {TIMED_TOKENS} tokens with and without it"
    reason = "The same weights and the same draws, with keys and values kept, and with all computed anew."
    if st.button(label, key="lab-decoder-time", icon=":material/timer:", help=reason):
        with st.spinner("Measuring…", show_time=True), single_threaded_blas():
            st.session_state["lab-decoder-timing"] = _time(run)
    rows: list[tuple[str, float, list[int]]] | None = st.session_state.get("lab-decoder-timing")
    if rows is None:
        st.caption("Not measured yet.")
        return
    same = rows[0][2] == rows[1][2]
    st.dataframe(
        [
            {
                "": name,
                "Time": readable_seconds(seconds),
                "Tokens/s": f"{len(ids) / seconds:,.0f}",
                "Output": "identical" if same else "differs",
            }
            for name, seconds, ids in rows
        ],
        hide_index=True,
    )
    st.caption(
        f"{rows[1][1] / rows[0][1]:.1f} times faster with the cache, at a context of "
        f"{run.trainee.config.context} tokens; the longer the context, the more it saves."
    )


def _time(run: Run) -> list[tuple[str, float, list[int]]]:
    """Seconds and ids with the cache, and without it."""
    rows, trainee = [], run.trainee
    for name, kept in (("With the cache", True), ("Without it", False)):
        began = perf_counter()
        prompt = run.looked_at[:4].tolist()
        steps = generate(trainee.params, trainee.config, prompt, TIMED_TOKENS, Sampling(0.8), kv_cache=kept)
        ids = [step.token_id for step in steps]
        rows.append((name, perf_counter() - began, ids))
    return rows
