"""Poolings compared with people: whether cosines order pairs of sentences as people's scores do."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from textwrap import wrap

import numpy as np
import plotly.graph_objects as go
import streamlit as st
from scipy.stats import rankdata
from streamlit.column_config import NumberColumn, TextColumn

from engine import Encoder
from engine.errors import GlassboxError, InputError
from engine.evaluation.bootstrap import Interval
from engine.evaluation.sts import (
    BUNDLED_PAIRS,
    Pair,
    StrategyCorrelation,
    correlations,
    parse_pairs,
    sts_scores,
)
from engine.layers.pooling import pooling_label
from engine.layers.tracing import Array
from engine.wording import shortened
from pages.improve.poolings.similarity_figures import in_lines
from ui.colours import BLUE, GREEN, GREY, ORANGE
from ui.export import show_figure
from ui.figures import legend_below, styled
from ui.progress import counting
from ui.server_settings import read_upload
from ui.tables import show_table
from ui.text import escape_plotly, show_error, show_text
from ui.widgets import chapters, choice, fragment

MAX_PAIRS, MAX_MEGABYTES = 20_000, 10
FEW_PAIRS = 300  # with fewer, differences of two or three points stay within chance
MAX_PAIRS_SHOWN = 8
CORRELATIONS, PAIRS, MOST_WRONG = "Correlations", "Pair by pair", "Where it is most wrong"
EXAMPLE = """sentence1,sentence2,score
A cat sleeps.,A feline is asleep.,4.5
"It rained, and it rained.",It snowed.,2
A boy flies a kite.,The printer is broken.,0
"""
FORMAT = (
    "A CSV file whose first row names the columns `sentence1`, `sentence2` and `score`, in any order; others "
    "are ignored. Scores may be on any scale, as only their order counts: higher is more alike. Put "
    "sentences with commas in quotes. Files with tabs between the columns are read too, and so are the files "
    "of the STS benchmark (`sts-dev.csv`, `sts-test.csv`), unchanged."
)
BASELINE = "mean"
# Name, colour and symbol of the strategies by `better_than_mean`.
KINDS = {
    "yes": ("better than the mean", GREEN, "triangle-up"),
    "no": ("worse", ORANGE, "triangle-down"),
    "the same": ("the mean, or the same", BLUE, "circle"),
    "not sure": ("not sure", GREY, "diamond"),
}
SAME = 0.0005  # a smaller difference of correlations does not show in a table with one decimal


@dataclass(frozen=True)
class StsResults:
    """Pairs with people's scores, and every strategy's cosines ``(n_pairs,)``."""

    pairs: tuple[Pair, ...]
    cosines: dict[str, Array]
    found: tuple[StrategyCorrelation, ...]  # best first


@fragment
def show_sts(encoder: Encoder, max_tokens: int) -> None:
    """Draw how well every strategy's cosines agree with people's scores, and where they disagree."""
    result = st.container()
    results = pair_results(encoder, max_tokens)
    if results is None:
        return
    with result:
        st.markdown(f"**{summary(results.found)}**")
        chapter = chapters((CORRELATIONS, PAIRS, MOST_WRONG), "sts-chapter")
        if chapter == CORRELATIONS:
            show_correlations(results)
        else:
            show_strategy(results, chapter)


def pair_results(encoder: Encoder, max_tokens: int) -> StsResults | None:
    """Draw the choice of a file; return the results on it, or None where it cannot be read."""
    file = st.file_uploader(
        "Scored pairs of your own (optional)",
        type=["csv", "tsv", "txt"],
        key="sts-file",
        max_upload_size=MAX_MEGABYTES,
        help="Stays in this session. Without a file, the bundled pairs are used.",
    )
    with st.expander("What such a file looks like", icon=":material/table:"):
        st.markdown(FORMAT)
        st.code(EXAMPLE, language=None, wrap_lines=True)
    if file:
        name, content = file.name, file.getvalue()
    else:
        st.caption(
            "These pairs come with the app and were written and scored for it. Many are traps: "
            "negations, swapped roles, changed numbers, rare words. So figures are lower than on the STS "
            "benchmark."
        )
        name, content = BUNDLED_PAIRS.name, BUNDLED_PAIRS.read_bytes()
    try:
        pairs = read_upload(parse_pairs, name, content)
        if len(pairs) > MAX_PAIRS:
            raise InputError(f"{name} holds {len(pairs):,} pairs: give at most {MAX_PAIRS:,} at a time")
        return correlated(hashlib.sha256(content).hexdigest(), max_tokens, pairs, encoder)
    except GlassboxError as error:
        show_error(error)
        return None


@st.cache_data(show_spinner=False, max_entries=4, scope="session")
def correlated(content: str, max_tokens: int, _pairs: Sequence[Pair], _encoder: Encoder) -> StsResults:
    """Embed the sentences and correlate cosines with scores; cached by ``content``, the file's hash."""
    with counting("Embedding under every strategy", "sentences") as show:
        cosines = sts_scores(_encoder, _pairs, max_tokens=max_tokens, on_progress=show)
    with st.spinner("Resampling the pairs, for the intervals…"):
        found = correlations(_pairs, cosines, BASELINE)
    return StsResults(tuple(_pairs), cosines, tuple(found))


def show_correlations(results: StsResults) -> None:
    """Draw the correlation of every strategy with its interval, as a figure and as a table."""
    found, n_pairs = results.found, len(results.pairs)
    st.write(
        "People scored how much two sentences mean the same. The closer the order of a strategy's cosines "
        "comes to the order of these scores, the better: Spearman's correlation, 100 for the same order, "
        "0 for none."
    )
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
    show_table(
        [correlation_row(one) for one in found],
        "Correlations, intervals, and differences to the mean",
        {
            "Spearman × 100": NumberColumn(format="%.1f"),
            "Better than the mean?": TextColumn(
                help="By resamples of the pairs, the same for both strategies: yes or no where 95 % of the "
                "differences lie on one side of 0."
            ),
        },
    )
    few = (
        f" {n_pairs} pairs are few: small differences need some thousand to show."
        if n_pairs < FEW_PAIRS
        else ""
    )
    st.caption(
        f"{n_pairs:,} pairs. Intervals of 95 %: the pairs are drawn with replacement 2,000 times. The "
        "difference to the mean is often clearer than two overlapping intervals suggest, since a hard pair "
        f"is hard for both.{few}"
    )


def show_strategy(results: StsResults, chapter: str) -> None:
    """Draw every pair under one strategy, or the pairs with the largest errors."""
    strategy = choice(
        "Strategy",
        [one.strategy for one in results.found],
        "sts-strategy",
        "The strategy whose cosines are drawn, the best first.",
        BASELINE,
        pooling_label,
        as_list=True,
    )
    cosines, gold = results.cosines[strategy], np.array([pair.score for pair in results.pairs])
    if chapter == PAIRS:
        show_figure(
            pair_figure(results.pairs, gold, cosines),
            "sts-pairs",
            {"score": gold, "cosine": cosines},
            alt=f"{len(cosines)} pairs: people's score against the cosine of {strategy}",
        )
        return
    gold_ranks, ranks = rankdata(-gold), rankdata(-cosines)  # (n_pairs,), 1 is the most alike
    st.caption("Place 1 is the most alike of all pairs. Pairs that share a score share the middle place.")
    away = np.abs(gold_ranks - ranks)
    for row in np.argsort(-away, kind="stable")[:MAX_PAIRS_SHOWN].tolist():
        pair = results.pairs[row]
        too = "too alike" if ranks[row] < gold_ranks[row] else "too far apart"
        with st.container(border=True):
            st.caption(
                f"**{too}** · people: score {pair.score:g}, place {gold_ranks[row]:,.0f} of "
                f"{len(away):,} · cosine {cosines[row]:.3f}, place {ranks[row]:,.0f}"
            )
            show_text(f"{escape(shortened(pair.first, 300))}\n{escape(shortened(pair.second, 300))}")


def correlation_figure(found: Sequence[StrategyCorrelation]) -> go.Figure:
    """A point with its interval for each strategy, best on top; a dotted line at the mean's correlation."""
    figure = go.Figure()
    for kind, (name, colour, symbol) in KINDS.items():
        own = [one for one in found if better_than_mean(one) == kind and not np.isnan(one.spearman.estimate)]
        if not own:
            continue
        at = [100 * one.spearman.estimate for one in own]
        figure.add_trace(
            go.Scatter(
                x=at,
                y=[in_lines(pooling_label(one.strategy)) for one in own],
                mode="markers",
                name=name,
                marker={"size": 11, "color": colour, "symbol": symbol},
                error_x={
                    "array": [100 * one.spearman.high - x for one, x in zip(own, at, strict=True)],
                    "arrayminus": [x - 100 * one.spearman.low for one, x in zip(own, at, strict=True)],
                    "thickness": 2,
                    "width": 5,
                },
                customdata=[(ends(one.spearman, ".1f"), difference(one.gain)) for one in own],
                hovertemplate="%{y}: %{x:.1f}<br>95 %: %{customdata[0]}<br>to the mean: %{customdata[1]}"
                "<extra></extra>",
            )
        )
    [mean] = [one.spearman.estimate for one in found if one.strategy == BASELINE]
    figure.add_vline(x=100 * mean, line_dash="dot", line_color=BLUE, line_width=1)
    order = [in_lines(pooling_label(one.strategy)) for one in found if not np.isnan(one.spearman.estimate)]
    figure.update_yaxes(categoryorder="array", categoryarray=order[::-1], automargin=True)
    figure.update_xaxes(title="Spearman × 100")
    figure.update_layout(legend=legend_below(0.14))
    return styled(figure, height=120 + 38 * len(order))


def pair_figure(pairs: Sequence[Pair], gold: Array, cosines: Array) -> go.Figure:
    """A point for each pair: people's score ``gold (n_pairs,)`` against the cosine ``(n_pairs,)``."""
    kind = go.Scattergl if len(pairs) > 1500 else go.Scatter
    figure = go.Figure(
        kind(
            x=gold,
            y=cosines,
            mode="markers",
            marker={"size": 8, "color": BLUE, "opacity": 0.55, "line": {"width": 0.7, "color": GREY}},
            hovertext=[hover(pair, 160) for pair in pairs],
            hovertemplate="%{hovertext}<br>score %{x:.2f}, cosine %{y:.3f}<extra></extra>",
        )
    )
    figure.update_xaxes(title="people's score")
    figure.update_yaxes(title="cosine")
    figure.update_layout(hoverlabel={"align": "left"}, showlegend=False)
    return styled(figure, height=420)


def hover(pair: Pair, characters: int) -> str:
    """Return both sentences, wrapped and escaped for Plotly."""
    both = [
        "<br>".join(escape_plotly(line) for line in wrap(shortened(text, characters), 42))
        for text in (pair.first, pair.second)
    ]
    return "<br>– ".join(["– " + both[0], both[1]])


def summary(found: Sequence[StrategyCorrelation]) -> str:
    """Count the strategies that are better and worse than the mean, in a sentence."""
    answers = [better_than_mean(one) for one in found]
    better, worse = answers.count("yes"), answers.count("no")
    if not better and not worse:
        return "On these pairs no strategy is better or worse than the plain mean beyond chance."
    counts = [f"{n} are" if n > 1 else f"{n or 'none'} is" for n in (better, worse)]
    return f"Against the plain mean, beyond chance: {counts[0]} better, {counts[1]} worse."


def better_than_mean(one: StrategyCorrelation) -> str:
    """Whether a strategy is better than the mean: "yes", "no", "the same" or "not sure"."""
    gain = one.gain
    if one.strategy == BASELINE or max(abs(gain.low), abs(gain.high)) < SAME:
        return "the same"
    if gain.low > 0:
        return "yes"
    return "no" if gain.high < 0 else "not sure"


def correlation_row(one: StrategyCorrelation) -> dict[str, object]:
    """Return a strategy as a row of the table."""
    return {
        "Strategy": pooling_label(one.strategy),
        "Spearman × 100": 100 * one.spearman.estimate,
        "Better than the mean?": better_than_mean(one),
        "95 % interval": ends(one.spearman, ".1f"),
        "Difference to the mean": "" if better_than_mean(one) == "the same" else difference(one.gain),
    }


def ends(interval: Interval, form: str) -> str:
    """Return the ends of an interval in points of 100."""
    return f"{100 * interval.low:{form}} to {100 * interval.high:{form}}"


def difference(gain: Interval) -> str:
    """Return a difference in points of 100, with its interval."""
    return f"{100 * gain.estimate:+.1f} ({ends(gain, '+.1f')})"
