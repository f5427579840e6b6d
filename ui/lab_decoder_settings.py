"""What to train: tokens, positions, norm order, sizes and pace."""

from typing import get_args

import streamlit as st

from engine.models.small_decoder import Positions
from engine.training.loop import TrainingSettings
from engine.training.vocabulary import Kind
from ui.lab_decoder_run import Choice

KINDS: dict[str, Kind] = {"Characters": "characters", "BPE": "bpe", "WordPiece": "wordpiece"}
POSITIONS: dict[str, Positions] = dict(
    zip(("Sinusoidal", "Learned", "RoPE", "ALiBi"), get_args(Positions), strict=True)
)
NORMS = {"Before each part": True, "After each part": False}
RATES = (0.0003, 0.001, 0.002, 0.005, 0.02, 0.1, 1.0)


def choose(made: bool, running: bool) -> Choice:
    """Draw the controls; of a model that is ``made``, only how it goes on can be changed, while it rests."""
    left, middle, right = st.columns(3)
    kind = left.segmented_control(
        "Tokens",
        list(KINDS),
        default="Characters",
        required=True,
        key="lab-decoder-kind",
        persist_state="session",
        disabled=made,
        help="What the model reads and writes: single characters; byte pairs, whose merges are learnt from "
        "the documents here; or the most frequent pieces of the encoder's own vocabulary, in lower case.",
    )
    positions = middle.segmented_control(
        "Positions",
        list(POSITIONS),
        default="RoPE",
        required=True,
        key="lab-decoder-positions",
        persist_state="session",
        disabled=made,
        help="How the model knows the order of tokens: waves of fixed lengths or learned vectors added to "
        "the tokens, queries and keys turned by their place (RoPE), or far keys made weaker (ALiBi).",
    )
    norm = right.segmented_control(
        "Normalise",
        list(NORMS),
        default="Before each part",
        required=True,
        key="lab-decoder-norm",
        persist_state="session",
        disabled=made,
        help="Where layer norm stands: before attention and feed-forward (GPT-2; easier to train), or after "
        "each is added (the paper of 2017).",
    )
    with st.expander("Sizes and pace", icon=":material/tune:"):
        return _sizes(KINDS[kind], POSITIONS[positions], NORMS[norm], made, running)


def _sizes(kind: Kind, positions: Positions, norm_first: bool, made: bool, running: bool) -> Choice:
    left, middle, right = st.columns(3)
    with left:
        n_layers = _slider("Layers", (1, 2, 3, 4, 6), 3, "Attention and feed-forward, so many times.", made)
        n_heads = _slider("Heads", (1, 2, 4, 8), 4, "Attention patterns side by side in a layer.", made)
        d_model = _slider("Width", (32, 64, 96, 128, 192, 256), 128, "Numbers a token's vector has.", made)
    with middle:
        context = _slider("Context", (16, 32, 64, 128, 256), 64, "Tokens the model sees at once.", made)
        batch = _slider("Batch", (4, 8, 16, 24, 32, 64), 24, "Pieces of text that a step learns from.", made)
        reason = "Tokens of a BPE or WordPiece vocabulary; characters are as many as occur."
        vocab = _slider("Vocabulary", (300, 512, 1024, 2048), 512, reason, made or kind == "characters")
    with right:
        reason = "How often the weights are changed. The learning rate falls to 0 on the way."
        steps = _slider("Steps", (100, 200, 400, 600, 1000, 2000, 5000), 600, reason, running)
        reason = (
            "How far a step goes. Too far, and the loss flies off: training stops with the last good weights."
        )
        rate = _slider("Learning rate", RATES, 0.002, reason, running)
        reason = "Share of numbers set to 0 at random while training, against learning by heart."
        dropout = _slider("Dropout", (0.0, 0.1, 0.2, 0.3), 0.0, reason, made)
    keep_unknown = st.toggle(
        "Keep unknown characters",
        key="lab-decoder-keep-unknown",
        persist_state="session",
        disabled=made or kind != "characters",
        help="A prompt may then have characters that the documents lack: each is read as �. Otherwise such a "
        "prompt is refused, and the character named.",
    )
    sizes = {
        "d_model": int(d_model),
        "n_layers": int(n_layers),
        "n_heads": int(n_heads),
        "d_ff": 4 * int(d_model),
        "context": int(context),
        "positions": positions,
        "norm_first": norm_first,
        "dropout": dropout,
    }
    settings = TrainingSettings(n_steps=int(steps), learning_rate=rate)
    return Choice(kind, int(vocab), tuple(sizes.items()), int(batch), settings, keep_unknown)


def _slider(label: str, options: tuple[float, ...], default: float, reason: str, disabled: bool) -> float:
    return st.select_slider(
        label,
        options,
        default,
        format_func=lambda value: f"{value:g}",
        key=f"lab-decoder-{label.lower().replace(' ', '-')}",
        persist_state="session",
        disabled=disabled,
        help=reason,
    )
