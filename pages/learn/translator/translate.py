"""Translation of the user's own text by a model in training, token by token, with its attention."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import streamlit as st

from engine.errors import InputError
from engine.layers.activation import softmax
from engine.layers.tracing import Array
from engine.models.seq2seq import Seq2SeqConfig, decode, encode, greedy_decode
from engine.trace import Trace
from engine.training.language.seq2seq_loop import Training
from engine.training.language.tasks import BOS, EOS, MAX_TOKENS, PAD, SPECIAL, Task, is_held_out
from engine.training.optimizers import Parameters
from pages.learn.translator.figures import alignment_map, chosen_weights
from ui.export import show_figure
from ui.tables import show_table
from ui.text import escape_markdown, show_error
from ui.widgets import choice

MEAN = "Mean of heads"
READABLE = {PAD: "(padding)", BOS: "(start)", EOS: "(end)"}


@dataclass(frozen=True)
class Decoded:
    """A translation with its probabilities and attention.

    Attributes
    ----------
    read, written
        Tokens of the source with its end, and of the translation.
    text
        The translation as text.
    probabilities
        Distribution over the vocabulary at each step, ``(n_written, vocab_size)``.
    attention
        Cross-attention of each decoder layer, ``(n_heads, n_written, n_read)``.
    """

    read: tuple[str, ...]
    written: tuple[str, ...]
    text: str
    probabilities: Array
    attention: tuple[Array, ...]


def translated(text: str, task: Task, params: Parameters, config: Seq2SeqConfig) -> Decoded:
    """Translate a text greedily; raise `InputError` if a word is not in the vocabulary."""
    source = np.array([*task.ids(text), SPECIAL.index(EOS)])
    written = greedy_decode(source, params, config, MAX_TOKENS - 1)  # (n_written,)
    trace = Trace(keep=["decoder.layers.*.cross_attention.weights"])
    read = np.array([config.bos_id, *written[:-1]])
    logits = decode(read, encode(source, params, config), source, params, config, trace)
    return Decoded(
        tuple(task.words[token] for token in source),
        tuple(task.words[token] for token in written),
        task.text(written.tolist()),
        softmax(logits),
        tuple(trace.values()),
    )


def show_translate(training: Training) -> None:
    """Draw the field for a text, its translation, the alignment and the steps."""
    task = training.task
    st.markdown("**Translate your own**")
    text = st.text_input(
        "Source",
        task.example,
        max_chars=200,
        key=f"seq2seq-source-{task.name}",
        persist_state="session",
        help="In words or digits, up to 999,999."
        if task.joiner
        else "A day from 1900 to 2099: March 5, 2024, or 5 Mar 2024, or 05/03/2024 with the day first.",
    )
    if not text.strip():
        st.info(f"Write something to translate, such as “{task.example}”.")
        return
    try:
        decoded = translated(text, task, training.good, training.config)
    except InputError as error:
        show_error(error)
        return
    st.markdown(
        f"## {escape_markdown(decoded.text) or '(nothing)'}", help="Greedy: each token the most probable."
    )
    st.write(correctness(text, decoded, task))
    show_alignment(decoded)
    show_steps(decoded, task.words)


def correctness(text: str, decoded: Decoded, task: Task) -> str:
    """Return in words whether a translation is right, and whether its source is held out."""
    key = task.key_of(text)
    if key is None:
        return "Unknown whether this is right: the task's rules do not generate this source."
    right = task.pair(key, np.random.default_rng()).target
    seen = (
        "It is held out: training never draws it."
        if is_held_out(key)
        else "It is not held out, so training may have drawn it."
    )
    if decoded.text == right:
        return f":green[:material/check: Right.] {seen}"
    return f":red[:material/close: Wrong], it should be “{escape_markdown(right)}”. {seen}"


def show_alignment(decoded: Decoded) -> None:
    """Draw the cross-attention of a chosen layer and head."""
    n_layers, n_heads = len(decoded.attention), len(decoded.attention[0])
    left, right = st.columns(2)
    layer = choice(
        "Decoder layer",
        range(n_layers),
        f"seq2seq-layer-{n_layers}",
        "Each layer of the decoder attends to the encoder's output once.",
        default=n_layers - 1,
        format_func=lambda number: f"{number + 1}",
        place=left,
    )
    heads = [MEAN, *(f"{number + 1}" for number in range(n_heads))]
    reason = "Heads attend to different tokens; the mean shows the layer as a whole."
    head = choice("Head", heads, f"seq2seq-head-{n_heads}", reason, place=right)
    weights = chosen_weights(decoded.attention, layer, None if head == MEAN else heads.index(head) - 1)
    show_figure(
        alignment_map(weights, readable(decoded.written), readable(decoded.read)),
        name="seq2seq-alignment",
        arrays={"weights": weights, "read": np.array(decoded.read), "written": np.array(decoded.written)},
        alt="Cross-attention: from each written token to the source tokens",
    )
    st.caption(
        "Each row is a written token, and shows the source tokens that the decoder attended to for it; a row "
        "sums to 1. The training pairs do not say which word belongs to which."
    )


def show_steps(decoded: Decoded, words: Sequence[str]) -> None:
    """Draw the table of steps, with the next most probable tokens."""
    rows = step_rows(decoded, words)
    show_table(
        rows,
        "Steps of the translation: each token, its probability, and the next best",
        {
            "probability": st.column_config.ProgressColumn(
                "probability", min_value=0.0, max_value=1.0, format="percent"
            )
        },
    )
    st.caption("Because of the smoothed targets, even certain tokens reach only about 90%.")


def step_rows(decoded: Decoded, words: Sequence[str]) -> list[dict[str, str | float]]:
    """Return a row for each written token: its text, its probability, and the next best tokens."""
    words = readable(words)
    return [
        {
            "writes": words[order[0]],
            "probability": float(row[order[0]]),
            "next best": ", ".join(f"{words[token]} {row[token]:.1%}" for token in order[1:4]),
        }
        for row, order in ((row, np.argsort(-row)) for row in decoded.probabilities)
    ]


def readable(tokens: Sequence[str]) -> list[str]:
    """Return the tokens with readable names for the special ones."""
    return [READABLE.get(token, token) for token in tokens]
