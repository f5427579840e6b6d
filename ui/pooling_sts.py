"""Poolings measured against people: whether cosines order pairs of sentences as people do."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
import streamlit as st
from scipy.stats import rankdata

from engine import Encoder
from engine.errors import GlassboxError, InputError
from engine.evaluation.sts import BUNDLED_PAIRS, Correlation, Pair, correlations, parse_pairs, sts_scores
from engine.layers.tracing import Array
from ui.answer import escape_markdown
from ui.export import show_figure
from ui.map_figures import shortened
from ui.pooling_sts_figures import correlation_figure, pair_figure
from ui.pooling_sts_words import BASELINE, correlation_row, summary
from ui.poolings import LABELS
from ui.text import show_text

MAX_PAIRS, MAX_MEGABYTES = 20_000, 10
FEW_PAIRS = 300  # below these, differences of two or three points stay within chance
LISTED = 8
EXAMPLE = """sentence1,sentence2,score
A cat sleeps.,A feline is asleep.,4.5
"It rained, and it rained.",It snowed.,2
A boy flies a kite.,The printer is broken.,0
"""
FORMAT = (
    "A CSV file whose first row names the columns `sentence1`, `sentence2` and `score`; others are passed "
    "over, and their order is free. Scores may be on any scale, as only their order counts: the higher, the "
    "more alike. Sentences with commas are put in quotes. Files with tabs between the columns are read "
    "too, and the files of the STS benchmark (`sts-dev.csv`, `sts-test.csv`) as they are."
)


@dataclass(frozen=True)
class Measured:
    """Pairs with people's scores ``gold (n_pairs,)``, and every strategy's cosines ``(n_pairs,)``."""

    pairs: tuple[Pair, ...]
    gold: Array
    cosines: dict[str, Array]
    found: tuple[Correlation, ...]  # best first


@st.fragment
def show_sts(encoder: Encoder, max_tokens: int) -> None:
    """Draw how well every strategy's cosines agree with people's scores, and where they do not.

    Parameters
    ----------
    encoder
        The encoder.
    max_tokens
        What it reads of a sentence.
    """
    st.write(
        "People scored how much two sentences mean the same. The closer the order of a strategy's cosines "
        "comes to the order of these scores, the better: Spearman's correlation, 100 for the same order, "
        "0 for none."
    )
    measured = measured_pairs(encoder, max_tokens)
    if measured is None:
        return
    show_correlations(measured)
    show_strategy(measured)


def measured_pairs(encoder: Encoder, max_tokens: int) -> Measured | None:
    """Draw the choice of a file; return what was measured on it, or None where it cannot be read."""
    file = st.file_uploader(
        "Scored pairs of your own (optional)",
        type=["csv", "tsv", "txt"],
        key="sts-file",
        max_upload_size=MAX_MEGABYTES,
        help="Stays in this session. Without a file, the pairs that come with the app are used.",
    )
    with st.expander("What such a file looks like", icon=":material/table:"):
        st.markdown(FORMAT)
        st.code(EXAMPLE, language=None, wrap_lines=True)
    if not file:
        st.caption(
            "These pairs come with the app and were written and scored for it. Many are traps: "
            "negations, swapped roles, changed numbers, rare words. So figures are lower than on the STS "
            "benchmark."
        )
    name, content = (file.name, file.getvalue()) if file else (BUNDLED_PAIRS.name, bundled_content())
    try:
        pairs = parse_pairs(name, content)
        if len(pairs) > MAX_PAIRS:
            raise InputError(f"{name} holds {len(pairs):,} pairs: give at most {MAX_PAIRS:,} at a time")
        return measure(hashlib.sha256(content).hexdigest(), max_tokens, pairs, encoder)
    except GlassboxError as error:
        st.error(escape_markdown(str(error)), icon=":material/error:")
        return None


@st.cache_data(show_spinner=False)
def bundled_content() -> bytes:
    """Return the file that comes with the app."""
    return BUNDLED_PAIRS.read_bytes()


@st.cache_data(show_spinner=False, max_entries=4, scope="session")
def measure(content: str, max_tokens: int, _pairs: Sequence[Pair], _encoder: Encoder) -> Measured:
    """Embed the sentences and correlate, once; ``content`` is the file's hash."""
    bar = st.progress(0.0, "Embedding the sentences…")

    def show(done: int, total: int) -> None:
        bar.progress(done / total, f"Embedding under every strategy: {done:,} of {total:,} sentences")

    try:
        cosines = sts_scores(_encoder, _pairs, max_tokens=max_tokens, on_progress=show)
        bar.progress(1.0, "Drawing the pairs again and again, for the intervals…")
        found = correlations(_pairs, cosines, BASELINE)
        return Measured(tuple(_pairs), np.array([pair.score for pair in _pairs]), cosines, tuple(found))
    finally:
        bar.empty()


def show_correlations(measured: Measured) -> None:
    """Draw the correlation of every strategy with its interval, as a figure and as a table."""
    found, n_pairs = measured.found, len(measured.pairs)
    st.markdown(f"**{summary(found)}**")
    show_figure(
        correlation_figure(found),
        "sts-spearman",
        {
            "strategy": np.array([one.strategy for one in found]),
            "spearman": np.array([one.spearman.estimate for one in found]),
            "low": np.array([one.spearman.low for one in found]),
            "high": np.array([one.spearman.high for one in found]),
        },
        alt=f"Spearman's correlation of {len(found)} strategies on {n_pairs} pairs with 95 % intervals",
    )
    st.dataframe(
        [correlation_row(one) for one in found],
        hide_index=True,
        height="content",
        column_config={
            "Spearman × 100": st.column_config.NumberColumn(format="%.1f"),
            "Better than the mean?": st.column_config.TextColumn(
                help="By resamples of the pairs, the same for both strategies: yes or no where 95 % of the "
                "differences lie on one side of 0."
            ),
        },
        alt="Correlations, intervals, and differences to the mean",
    )
    few = (
        f" {n_pairs} pairs are few: small differences need some thousand to show."
        if n_pairs < FEW_PAIRS
        else ""
    )
    st.caption(
        f"{n_pairs:,} pairs. Intervals of 95 %: the pairs are drawn again with replacement, 2,000 times. "
        "The difference to the mean is often surer than two intervals that overlap make it look, since what "
        f"is hard in a pair is hard for both.{few}"
    )


def show_strategy(measured: Measured) -> None:
    """Draw every pair under one strategy, and those it is most wrong about."""
    st.subheader("Pair by pair")
    strategy = st.selectbox(
        "Strategy",
        [one.strategy for one in measured.found],
        index=[one.strategy for one in measured.found].index(BASELINE),
        format_func=lambda name: LABELS.get(name, name),
        key="sts-strategy",
        persist_state="session",
        help="Whose cosines are drawn, best strategy first.",
    )
    cosines = measured.cosines[strategy]
    show_figure(
        pair_figure(measured.pairs, measured.gold, cosines),
        "sts-pairs",
        {"score": measured.gold, "cosine": cosines},
        alt=f"{len(cosines)} pairs: people's score against the cosine of {strategy}",
    )
    gold_ranks, ranks = rankdata(-measured.gold), rankdata(-cosines)  # (n_pairs,), 1 is the most alike
    show_most_wrong(measured, cosines, gold_ranks, ranks)


def show_most_wrong(measured: Measured, cosines: Array, gold_ranks: Array, ranks: Array) -> None:
    """List the pairs whose place by cosine is farthest from their place by score."""
    st.markdown("**Where it is most wrong**")
    st.caption("Place 1 is the most alike of all pairs. Pairs that share a score share the middle place.")
    away = np.abs(gold_ranks - ranks)
    for row in np.argsort(-away, kind="stable")[:LISTED].tolist():
        pair = measured.pairs[row]
        too = "too alike" if ranks[row] < gold_ranks[row] else "too far apart"
        with st.container(border=True):
            st.caption(
                f"**{too}** · people: score {pair.score:g}, place {gold_ranks[row]:,.0f} of "
                f"{len(away):,} · cosine {cosines[row]:.3f}, place {ranks[row]:,.0f}"
            )
            show_text(f"{escape(shortened(pair.first, 300))}\n{escape(shortened(pair.second, 300))}")
