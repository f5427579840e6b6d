"""Translation of the user's own text by a model in training, token by token, with what it looked at."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import streamlit as st

from engine.errors import InputError
from engine.layers.activation import softmax
from engine.layers.tracing import Array
from engine.models.seq2seq import Seq2SeqConfig, decode, encode, greedy_decode
from engine.trace import Trace
from engine.training.optimizers import Parameters
from engine.training.seq2seq_loop import Training
from engine.training.tasks import BOS, EOS, MAX_TOKENS, PAD, SPECIAL, Task, is_held_out
from ui.answer import escape_markdown
from ui.export import show_figure
from ui.lab_seq2seq_figures import alignment_map, chosen_weights

MEAN = "Mean of heads"
READABLE = {PAD: "(padding)", BOS: "(start)", EOS: "(end)"}


@dataclass(frozen=True)
class Decoded:
    """A translation and how it came about.

    Attributes
    ----------
    read, written
        Tokens of the source, its end included, and those that were written.
    text
        What was written, as text.
    probabilities
        Of every token of the vocabulary at each step, ``(n_written, vocab_size)``.
    attention
        Cross-attention of each decoder layer, ``(n_heads, n_written, n_read)``.
    """

    read: tuple[str, ...]
    written: tuple[str, ...]
    text: str
    probabilities: Array
    attention: tuple[Array, ...]


def translated(text: str, task: Task, params: Parameters, config: Seq2SeqConfig) -> Decoded:
    """Translate a text greedily; raise `InputError` where it cannot be read."""
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
        st.error(escape_markdown(str(error)), icon=":material/error:")
        return
    st.markdown(
        f"### {escape_markdown(decoded.text) or '(nothing)'}", help="Greedy: each token the most probable."
    )
    st.write(verdict(text, decoded, task))
    show_alignment(decoded)
    show_steps(decoded, task.words)


def verdict(text: str, decoded: Decoded, task: Task) -> str:
    """Say whether a translation is right, and whether training could have drawn its source."""
    key = task.key_of(text)
    if key is None:
        return "Nothing tells whether this is right: it is no source that the task's rules would write."
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
    """Draw the cross-attention of the layer and head looked at."""
    n_layers, n_heads = len(decoded.attention), len(decoded.attention[0])
    left, right = st.columns(2)
    layer = left.segmented_control(
        "Decoder layer",
        range(n_layers),
        default=n_layers - 1,
        required=True,
        format_func=lambda number: f"{number + 1}",
        key=f"seq2seq-layer-{n_layers}",
        persist_state="session",
        help="Each layer of the decoder looks at the encoder's output once.",
    )
    heads = [MEAN, *(f"{number + 1}" for number in range(n_heads))]
    head = right.segmented_control(
        "Head",
        heads,
        default=MEAN,
        required=True,
        key=f"seq2seq-head-{n_heads}",
        persist_state="session",
        help="Each head looks in its own way; the mean shows where the layer looks as a whole.",
    )
    weights = chosen_weights(decoded.attention, layer, None if head == MEAN else heads.index(head) - 1)
    show_figure(
        alignment_map(weights, readable(decoded.written), readable(decoded.read)),
        name="seq2seq-alignment",
        arrays={"weights": weights, "read": np.array(decoded.read), "written": np.array(decoded.written)},
        alt="Cross-attention: from each token written to those of the source that it looks at",
    )
    st.caption(
        "Each row is a token being written, and shows where the decoder looks in the source while it writes "
        "it: rows add up to 1. Nobody told the model which word belongs to which."
    )


def show_steps(decoded: Decoded, words: Sequence[str]) -> None:
    """Draw the table of steps, with the tokens that came next in probability."""
    rows = steps_of(decoded, words)
    st.dataframe(
        rows,
        hide_index=True,
        column_config={
            "probability": st.column_config.ProgressColumn(
                "probability", min_value=0.0, max_value=1.0, format="percent"
            )
        },
        alt="Steps of the translation: each token, its probability, and the next best",
    )
    st.caption("Smoothed targets teach it to be about 90% sure and no more, however right it is.")


def steps_of(decoded: Decoded, words: Sequence[str]) -> list[dict[str, str | float]]:
    """Return a row for each token written: what it is, its probability, and what came next to it."""
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
    """Name the special tokens in words."""
    return [READABLE.get(token, token) for token in tokens]
