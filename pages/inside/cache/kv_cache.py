"""The KV cache: the time it saves on this machine, its size, and what 8 bits cost."""

import plotly.graph_objects as go
import streamlit as st

from engine.generation.answer import WritingTimes, Written
from engine.generation.cache_cost import (
    CacheCost,
    CachePrecision,
    cache_bytes,
    measure_cache,
    measure_precision,
)
from engine.generation.decoder import Decoder
from engine.wording import counted
from ui.asking import session_prefix_cache
from ui.colours import BLUE, ORANGE
from ui.export import show_figure
from ui.figures import LEGEND_ABOVE, add_line, styled
from ui.models import load_decoder
from ui.progress import counting
from ui.tables import show_table
from ui.text import readable_seconds

N_COMPARED = 256  # tokens whose distributions are compared
LENGTHS = (16, 64, 128, 256, 512, 1024)  # longer ones take too long without the cache


@st.cache_resource(max_entries=4, show_spinner=False, scope="session")
def measured(model: str, kv_bits: int, ids: tuple[int, ...], lengths: tuple[int, ...]) -> CacheCost:
    """Measure a token with and without the cache, under a progress bar; cached for the session."""
    with counting("Measuring one more token with and without the cache", "lengths") as show:
        return measure_cache(load_decoder(), ids, lengths, on_progress=show)


@st.cache_resource(max_entries=4, show_spinner=False, scope="session")
def measured_precision(model: str, ids: tuple[int, ...]) -> tuple[CachePrecision, ...]:
    """Measure the cache in 16 and in 8 bits, under a progress bar; cached for the session."""
    with counting("Reading the prompt with a cache of 16 and of 8 bits", "tokens") as show:
        return measure_precision(load_decoder(), ids, N_COMPARED, on_progress=show)


def show_cache(written: Written, times: WritingTimes) -> None:
    """Draw the cost of a token with and without the cache, and the cache's size."""
    decoder = load_decoder()
    ids = (*written.read_ids, *written.ids)
    lengths = measured_lengths(len(written.prompt.ids))
    cost = measured(decoder.name, decoder.kv_bits, ids, lengths)
    st.markdown(f"**{finding(cost)}**")
    show_figure(
        cache_figure(cost),
        name="kv-cache",
        alt="Milliseconds for one more token with and without the KV cache, over the tokens before it",
    )
    st.caption(answer_words(cost, len(written.ids)))
    if st.button("Measure again", key="measure-cache", icon=":material/refresh:", type="tertiary"):
        measured.clear()
        measured_precision.clear()
        st.rerun()
    st.markdown("**Why it grows**")
    st.write(
        "Without the cache, the token behind n others costs a pass over all n of them, so the time grows "
        "with n, and that of a whole answer with its square. With the cache, only the newest token goes "
        "through the layers: its query meets n keys that are there already, which is little next to the "
        "layers' matrices, so the line is almost flat. Both generate the same tokens."
    )
    show_size(written, times)
    show_precision(ids[: lengths[-1]])


def measured_lengths(n_prompt: int) -> tuple[int, ...]:
    """Return the lengths to measure; the last is the prompt's own length, unless that is too long."""
    longest = min(n_prompt, LENGTHS[-1])
    return (*(length for length in LENGTHS if length < 0.9 * longest), longest)


def finding(cost: CacheCost) -> str:
    """Say in a sentence how much faster the cache makes the token behind the longest text measured."""
    cached, uncached = cost.cached_s[-1], cost.uncached_s[-1]
    ratio = f"{uncached / cached:,.1f}" if uncached < 10 * cached else f"{uncached / cached:,.0f}"
    gain = f"makes it {ratio} times as fast" if uncached >= 1.05 * cached else "saves no time"
    return (
        f"Behind {counted(cost.lengths[-1], 'token')} of the last question's prompt, one more token takes "
        f"{readable_seconds(uncached)} without the cache and {readable_seconds(cached)} with it: on this "
        f"machine the cache {gain}."
    )


def answer_words(cost: CacheCost, n_tokens: int) -> str:
    """Say how long an answer of ``n_tokens`` takes with and without the cache, from the time of one token."""
    cached, uncached = cost.cached_s[-1] * n_tokens, cost.uncached_s[-1] * n_tokens
    return (
        f"At that rate the {counted(n_tokens, 'token')} of this answer "
        f"{'takes' if n_tokens == 1 else 'take'} {readable_seconds(cached)} with the cache and "
        f"{readable_seconds(uncached)} without it."
    )


def show_size(written: Written, times: WritingTimes) -> None:
    """Draw the size of the cache by its formula, and the prompt tokens that were not read again."""
    decoder, kept = load_decoder(), session_prefix_cache()
    config = decoder.config
    n_tokens = len(written.read_ids) + len(written.ids)
    n_bytes = cache_bytes(decoder, n_tokens)
    st.markdown("**What it holds**")
    tokens, size, spared = st.columns(3)
    tokens.metric(
        "Tokens",
        f"{n_tokens:,}",
        help=f"Prompt and answer. The session's cache now holds {len(kept):,} tokens in "
        f"{kept.n_bytes / 1e6:,.1f} MB, room for tokens to come included.",
    )
    size.metric("Keys and values", f"{n_bytes / 1e6:,.1f} MB")
    spared.metric(
        "Prompt tokens spared",
        f"{times.reused_tokens:,} of {times.prompt_tokens:,}",
        help="Tokens at the beginning of the last question's prompt that the cache had from the one "
        "before: the same instructions, and the same passages where they come first.",
    )
    vector, numbers, words = vector_bytes(decoder)
    st.latex(rf"2 \cdot n_{{layers}} \cdot n_{{kv}} \cdot {vector} \cdot n_{{tokens}}")
    factors = (2, config.n_layers, config.n_kv_heads, numbers, n_tokens)
    st.latex("= " + r" \cdot ".join(map(str, factors)) + f" = {n_bytes:,}".replace(",", r"\,"))
    said = f"Bytes: 2 for keys and values, the layers, the heads of keys and values, {words}, and the tokens."
    if config.n_kv_heads < config.n_heads:
        said += (
            f" The {config.n_heads} query heads share {config.n_kv_heads} heads of keys and values, so the "
            f"cache has {config.n_kv_heads}/{config.n_heads} of the size it would have otherwise."
        )
    st.caption(said)


def vector_bytes(decoder: Decoder) -> tuple[str, str, str]:
    """Return the bytes of one key or value as a formula, in numbers and in words."""
    d_head, n_bytes = decoder.config.d_head, decoder.new_cache(0).keys.itemsize
    if decoder.kv_bits == 8:
        words = "a byte for each dimension of a head and 4 for the scale of each key and value"
        return r"(d_{head} + 4)", f"({d_head} + 4)", words
    words = f"the dimensions of a head, {n_bytes} for a float{8 * n_bytes}"
    return rf"d_{{head}} \cdot {n_bytes}", rf"{d_head} \cdot {n_bytes}", words


def show_precision(ids: tuple[int, ...]) -> None:
    """Draw what a cache of 8 bits saves on a text, and how far it moves the next tokens."""
    decoder = load_decoder()
    st.markdown("**In 8 bits**")
    full, small = found = measured_precision(decoder.name, ids)
    st.write(
        f"With 8 bits a number the cache of this prompt takes {small.n_bytes / full.n_bytes:.0%} of the "
        f"memory, and one more token {small.token_s / full.token_s:.0%} of the time. Behind "
        f"{small.same_greedy:.1%} of the tokens compared the most probable next one is the same."
    )
    help_of = {
        "Bits": "Of a number. 16 is full precision, which is 32 where NumPy computes.",
        "One more token": "Median of several, behind all tokens of the prompt, in turns.",
        "Divergence, nats": "Kullback-Leibler divergence of next tokens from those of 16 bits: the mean over "
        f"the last {N_COMPARED} tokens of the prompt, or as many as it has.",
        "Same greedy token": "Share of those tokens behind which the most probable one is the same.",
    }
    rows = [
        {
            "Bits": f"{own.kv_bits}{' (in use)' if own.kv_bits == decoder.kv_bits else ''}",
            "Keys and values": f"{own.n_bytes / 1e6:,.1f} MB",
            "One more token": readable_seconds(own.token_s),
            "Divergence, nats": f"{own.divergence:.2g}",
            "Same greedy token": f"{own.same_greedy:.1%}",
        }
        for own in found
    ]
    show_table(
        rows,
        alt="Memory, time and effect on the next tokens of a KV cache of 16 and of 8 bits",
        columns={name: st.column_config.Column(help=text) for name, text in help_of.items()},
    )
    st.caption(
        "In 8 bits, each key and each value of a head is whole numbers from −127 to 127 and one scale, its "
        "largest absolute value divided by 127. “Model” on the page “Ask your documents” chooses."
    )


def cache_figure(cost: CacheCost) -> go.Figure:
    """Lines of the milliseconds that one more token takes, with and without the cache, over the length."""
    figure = go.Figure()
    parts = (
        ("without the cache", ORANGE, "dash", cost.uncached_s),
        ("with the cache", BLUE, "solid", cost.cached_s),
    )
    for name, colour, dash, seconds in parts:
        hover = f"{name}<br>%{{x}} tokens before it<br>%{{y:,.0f}} ms"
        ms, look = [1000 * second for second in seconds], {"mode": "lines+markers", "line_dash": dash}
        add_line(figure, cost.lengths, ms, name, colour, hover, **look)
    figure.update_xaxes(title="tokens before it", rangemode="tozero")
    figure.update_yaxes(title="ms for one more token", rangemode="tozero")
    figure.update_layout(legend=LEGEND_ABOVE)
    return styled(figure, height=320)
