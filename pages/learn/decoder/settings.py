"""Settings of a training: tokens, positions, norm order, sizes and pace."""

from typing import Any, get_args

import streamlit as st

from engine.models.small_decoder import Positions
from engine.training.language.small_decoder_loop import TrainingSettings
from engine.training.language.vocabulary import Kind
from pages.learn.decoder.session import Choice
from ui.widgets import choice, kept, slider

KINDS: dict[str, Kind] = {"Characters": "characters", "BPE": "bpe"}
POSITIONS: dict[str, Positions] = dict(
    zip(("Sinusoidal", "Learned", "RoPE", "ALiBi"), get_args(Positions), strict=True)
)
NORMS = {"Before each part": True, "After each part": False}
RATES = (0.0003, 0.001, 0.002, 0.005, 0.02, 0.1, 1.0)


def choose(made: bool, running: bool) -> Choice:
    """Draw the settings; once a model is ``made``, only those of a resumed training can change."""
    left, middle, right = st.columns(3)
    kind_name = choice(
        "Tokens",
        list(KINDS),
        "lab-decoder-kind",
        "What the model reads and writes: single characters, or byte pairs, whose merges are learnt from the "
        "documents.",
        disabled=made,
        place=left,
    )
    positions = choice(
        "Positions",
        list(POSITIONS),
        "lab-decoder-positions",
        "How the model knows the order of tokens: waves of fixed lengths or learned vectors added to "
        "the tokens, queries and keys rotated by their position (RoPE), or lower scores for distant keys "
        "(ALiBi).",
        default="RoPE",
        disabled=made,
        place=middle,
    )
    norm = choice(
        "Normalise",
        list(NORMS),
        "lab-decoder-norm",
        "The place of layer norm: before attention and feed-forward (GPT-2; easier to train), or after "
        "each is added (the paper of 2017).",
        disabled=made,
        place=right,
    )
    kind, sizes_and_pace = KINDS[kind_name], st.expander("Sizes and pace", icon=":material/tune:")
    left, middle, right = sizes_and_pace.columns(3)
    with left:
        reason = "Number of layers, each with attention and feed-forward."
        n_layers = _slider("Layers", (1, 2, 3, 4, 6), 3, reason, made)
        n_heads = _slider("Heads", (1, 2, 4, 8), 4, "Attention patterns side by side in a layer.", made)
        d_model = _slider("Width", (32, 64, 96, 128, 192, 256), 128, "Numbers in a token's vector.", made)
    with middle:
        context = _slider("Context", (16, 32, 64, 128, 256), 64, "Tokens the model sees at once.", made)
        batch = _slider("Batch", (4, 8, 16, 24, 32, 64), 24, "Pieces of text per step.", made)
        reason = "Tokens of a BPE vocabulary; with characters, one for each that occurs."
        vocab = _slider("Vocabulary", (300, 512, 1024, 2048), 512, reason, made or kind == "characters")
    with right:
        reason = "Number of weight updates, during which the learning rate falls to 0."
        steps = _slider("Steps", (100, 200, 400, 600, 1000, 2000, 5000), 600, reason, running)
        reason = "Size of a step. If too high, the loss diverges: training stops with the last good weights."
        rate = _slider("Learning rate", RATES, 0.002, reason, running)
        reason = "Share of numbers set to 0 at random while training, against overfitting."
        dropout = _slider("Dropout", (0.0, 0.1, 0.2, 0.3), 0.0, reason, made)
    keep_unknown = sizes_and_pace.toggle(
        "Keep unknown characters",
        **kept("lab-decoder-keep-unknown"),
        disabled=made or kind != "characters",
        help="A prompt may then have characters that the documents lack: each is read as �. Otherwise such a "
        "prompt is an error that names the character.",
    )
    sizes = {
        "d_model": d_model,
        "n_layers": n_layers,
        "n_heads": n_heads,
        "d_ff": 4 * d_model,
        "context": context,
        "positions": POSITIONS[positions],
        "norm_first": NORMS[norm],
        "dropout": dropout,
    }
    settings = TrainingSettings(n_steps=steps, learning_rate=rate)
    return Choice(kind, vocab, sizes, batch, settings, keep_unknown)


def _slider(label: str, options: tuple[float, ...], default: float, reason: str, disabled: bool) -> Any:
    key = f"lab-decoder-{label.lower().replace(' ', '-')}"
    return slider(label, options, default, key, reason, disabled)
