"""The KV cache: the time it saves on this machine, and its size."""

import plotly.graph_objects as go
import streamlit as st

from engine.generation.answer import WritingTimes, Written
from engine.generation.cache_cost import CacheCost, cache_bytes, measure_cache
from engine.wording import counted
from ui.asking import session_prefix_cache
from ui.background import forget, in_background
from ui.colours import BLUE, ORANGE
from ui.export import show_figure
from ui.figures import LEGEND_ABOVE, add_line, styled
from ui.models import load_decoder, reading_seconds
from ui.text import readable_seconds

LENGTHS = (16, 64, 128, 256, 512, 1024)  # longer ones take too long without the cache


def show_cache(written: Written, times: WritingTimes) -> None:
    """Draw the cost of a token with and without the cache, and the cache's size."""
    decoder = load_decoder()
    ids = (*written.read_ids, *written.ids)
    lengths = measured_lengths(len(written.prompt.ids))
    cost = in_background(
        "cache",
        "Measure one more token with and without the cache",
        (decoder.name, ids),
        reading_seconds(decoder, sum(lengths)),
        "inside/cache",
        lambda on_progress: measure_cache(decoder, ids, lengths, on_progress),
    )
    if cost is not None:
        st.markdown(f"**{headline(cost)}**")
        show_figure(
            cache_figure(cost),
            name="kv-cache",
            alt="Milliseconds for one more token with and without the KV cache, over the tokens before it",
        )
        st.caption(answer_words(cost, len(written.ids)))
        if st.button("Measure again", key="measure-cache", icon=":material/refresh:", type="tertiary"):
            forget("cache")
            st.rerun()
    st.markdown("**Why it grows**")
    st.write(
        "Without the cache, the token behind n others costs a pass over all n of them, so the time grows "
        "with n, and that of a whole answer with its square. With the cache, only the newest token goes "
        "through the layers: its query meets n keys that are there already, which is little next to the "
        "layers' matrices, so the line is almost flat. Both generate the same tokens."
    )
    show_size(written, times)


def measured_lengths(n_prompt: int) -> tuple[int, ...]:
    """Return the lengths to measure; the last is the prompt's own length, unless that is too long."""
    longest = min(n_prompt, LENGTHS[-1])
    return (*(length for length in LENGTHS if length < 0.9 * longest), longest)


def headline(cost: CacheCost) -> str:
    """Say in a sentence how much faster the cache makes the token behind the longest text measured."""
    cached, uncached = cost.cached_s[-1], cost.uncached_s[-1]
    gain = (
        f"makes it {float(f'{uncached / cached:.2g}'):g} times as fast"
        if uncached >= 1.05 * cached
        else "saves no time"
    )
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
    n_each = decoder.new_cache(0).keys.itemsize
    st.latex(rf"2 \cdot n_{{layers}} \cdot n_{{kv}} \cdot d_{{head}} \cdot {n_each} \cdot n_{{tokens}}")
    factors = (2, config.n_layers, config.n_kv_heads, config.d_head, n_each, n_tokens)
    st.latex("= " + r" \cdot ".join(map(str, factors)) + f" = {n_bytes:,}".replace(",", r"\,"))
    said = (
        "Bytes: 2 for keys and values, the layers, the heads of keys and values, the dimensions of a head, "
        f"{n_each} for a float{8 * n_each}, and the tokens."
    )
    if config.n_kv_heads < config.n_heads:
        said += (
            f" The {config.n_heads} query heads share {config.n_kv_heads} heads of keys and values, so the "
            f"cache has {config.n_kv_heads}/{config.n_heads} of the size it would have otherwise."
        )
    st.caption(said)


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
