"""The encoder-decoder at the sizes of 2017: its cost, and a forward pass."""

from dataclasses import dataclass
from time import perf_counter

import numpy as np
import streamlit as st

from engine.layers.tracing import Array
from engine.models.seq2seq import BASE_2017, decode, encode
from engine.models.seq2seq_params import RandomParams, n_parameters, part_sizes
from ui.tables import show_table
from ui.text import readable_seconds
from ui.widgets import kept

TOKENS, MAX_TOKENS = 10, 128
SPECIAL_TOKENS = 3  # padding, start and end: the first rows of the vocabulary


@dataclass(frozen=True)
class PassResult:
    """Seconds of a forward pass, the shape of its logits, and the largest probability of the last row."""

    encode_s: float
    decode_s: float
    shape: tuple[int, ...]
    largest_probability: float


def show_sizes() -> None:
    """Draw the parameters and FLOPs of each part, and a button that runs a forward pass."""
    with st.container(horizontal=True):
        n_source = token_count("Source tokens", "worked-source")
        n_target = token_count("Target tokens", "worked-target")
    parts = part_sizes(BASE_2017, n_source, n_target)
    flops, total = sum(part.flops for part in parts), n_parameters(BASE_2017)
    with st.container(horizontal=True):
        st.metric(
            "Parameters", f"{total / 1e6:.1f} M", help=f"{total:,} numbers; the paper's table 3 has 65 M."
        )
        st.metric("As float32", f"{total * 4 / 1e6:,.0f} MB", help="Four bytes a number.")
        st.metric(
            "One pass",
            f"{flops / 1e9:.2f} GFLOP",
            help="Billions of multiplications and additions in the matrix products.",
        )
    show_table(
        [
            {
                "part": part.name,
                "parameters": f"{part.n_parameters:,}",
                "share": f"{part.n_parameters / total:.1%}",
                "MFLOP": f"{part.flops / 1e6:,.1f}",
                "share of FLOP": f"{part.flops / flops:.1%}",
            }
            for part in parts
        ],
        "Parameters and FLOPs of each part of the base model of 2017",
    )
    st.write(
        f"A vocabulary of {BASE_2017.vocab_size:,} takes {parts[0].n_parameters / total:.0%} of the "
        "parameters; a token looks up a single row, but the logits are products with all of "
        "them. The heads split the same 512 numbers, so eight of them cost no more than one."
    )
    show_pass(n_source, n_target, flops)


def token_count(label: str, key: str) -> int:
    """Draw the box for a number of tokens."""
    reason = f"Up to {MAX_TOKENS}. The table and the pass follow."
    return st.number_input(label, 1, MAX_TOKENS, TOKENS, **kept(key), width=160, help=reason)


def show_pass(n_source: int, n_target: int, flops: int) -> None:
    """Draw the button for a pass, and the result of the last one."""
    kept: dict[tuple[int, int], PassResult] = st.session_state.setdefault("worked-passes", {})
    if st.button(
        "Run a forward pass",
        icon=":material/play_arrow:",
        key="worked-run",
        help="With random weights, one matrix at a time: the whole model is never in memory, only its "
        "largest matrix (76 MB).",
    ):
        kept[n_source, n_target] = run_pass(n_source, n_target)
    done = kept.get((n_source, n_target))
    if done is None:
        st.caption("Takes one to three seconds; nothing is downloaded.")
        return
    with st.container(horizontal=True):
        reason = "Six layers, drawing their weights included."
        st.metric("Encoder", readable_seconds(done.encode_s), help=reason)
        st.metric("Decoder and logits", readable_seconds(done.decode_s), help="The same, for the decoder.")
        rate = flops / (done.encode_s + done.decode_s) / 1e9
        st.metric("Rate", f"{rate:.2f} GFLOP/s", help="Most of the time goes into drawing the weights.")
    st.write(
        f"The logits are {done.shape[0]} × {done.shape[1]:,}: a number for each target token and word. "
        f"Nothing is learned yet, so the most probable word has {done.largest_probability:.3%}."
    )


def run_pass(n_source: int, n_target: int) -> PassResult:
    """Pass random ids through the model of 2017, under a progress bar of its layers."""
    rng = np.random.default_rng(0)
    source, target = (
        rng.integers(SPECIAL_TOKENS, BASE_2017.vocab_size, n_tokens) for n_tokens in (n_source, n_target)
    )
    n_layers = BASE_2017.n_encoder_layers + BASE_2017.n_decoder_layers
    bar, params, done = st.progress(0.0, "Layers"), RandomParams(BASE_2017, 0), 0

    def watch(name: str, value: Array) -> Array:
        nonlocal done
        if ".layers." in name and name.split(".")[3:] == ["output"]:
            done += 1
            bar.progress(done / n_layers, f"Layer {done} of {n_layers}")
        return value

    start = perf_counter()
    memory = encode(source, params, BASE_2017, watch)
    middle = perf_counter()
    logits = decode(target, memory, params, BASE_2017, watch)
    end = perf_counter()
    bar.empty()
    last = logits[-1]
    largest = float(1 / np.exp(last - last.max()).sum())
    return PassResult(middle - start, end - middle, logits.shape, largest)
