"""Poolings measured against people: whether cosines order pairs of sentences as people do."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from textwrap import wrap

import numpy as np
import plotly.graph_objects as go
import streamlit as st
from scipy.stats import rankdata

from engine import Encoder
from engine.errors import GlassboxError, InputError
from engine.evaluation.bootstrap import Interval
from engine.evaluation.sts import BUNDLED_PAIRS, Correlation, Pair, correlations, parse_pairs, sts_scores
from engine.layers.tracing import Array
from ui.answer import escape_markdown
from ui.export import show_figure
from ui.figures import BLUE, GREEN, GREY, ORANGE, styled
from ui.map_figures import shortened
from ui.maps import plain
from ui.poolings import LABELS
from ui.text import show_text

BASELINE = "mean"
MAX_PAIRS, MAX_MEGABYTES = 20_000, 10
FEW_PAIRS = 300  # below these, differences of two or three points stay within chance
LISTED = 8
SAME = 0.0005  # of a correlation: nothing that a table with one decimal shows
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


def summary(found: Sequence[Correlation]) -> str:
    """Say in a sentence what can be told apart."""
    verdicts = [verdict(one) for one in found]
    better, worse = verdicts.count("yes"), verdicts.count("no")
    if not better and not worse:
        return "On these pairs no strategy is better or worse than the plain mean beyond chance."
    return f"Against the plain mean, beyond chance: {number_of(better)} better, {number_of(worse)} worse."


def number_of(n: int) -> str:
    """``0 -> "none is", 1 -> "1 is", 2 -> "2 are"``."""
    return f"{n} are" if n > 1 else f"{n or 'none'} is"


def verdict(one: Correlation) -> str:
    """Say whether a strategy is better than the baseline: yes, no, the same, or not sure."""
    gain = one.gain
    if one.strategy == BASELINE or max(abs(gain.low), abs(gain.high)) < SAME:
        return "the same"
    if gain.low > 0:
        return "yes"
    return "no" if gain.high < 0 else "not sure"


def correlation_row(one: Correlation) -> dict[str, object]:
    """Return a strategy as a row of the table."""
    return {
        "Strategy": LABELS.get(one.strategy, one.strategy),
        "Spearman × 100": 100 * one.spearman.estimate,
        "Better than the mean?": verdict(one),
        "95 % interval": ends(one.spearman, ".1f"),
        "Difference to the mean": "" if verdict(one) == "the same" else difference(one.gain),
    }


def ends(interval: Interval, form: str) -> str:
    """Return the ends of an interval in points of 100."""
    return f"{100 * interval.low:{form}} to {100 * interval.high:{form}}"


def difference(gain: Interval) -> str:
    """Return a difference in points of 100, with its interval."""
    return f"{100 * gain.estimate:+.1f} ({ends(gain, '+.1f')})"


def correlation_figure(found: Sequence[Correlation]) -> go.Figure:
    """A point a strategy with its interval, best on top; the mean's own is carried down as a line."""
    colours = {"yes": GREEN, "no": ORANGE, "the same": BLUE, "not sure": GREY}
    names = {
        "yes": "better than the mean",
        "no": "worse",
        "the same": "the mean, or the same",
        "not sure": "not sure",
    }
    shapes = {"yes": "triangle-up", "no": "triangle-down", "the same": "circle", "not sure": "diamond"}
    figure = go.Figure()
    for kind, colour in colours.items():
        own = [one for one in found if verdict(one) == kind and not np.isnan(one.spearman.estimate)]
        if not own:
            continue
        at = [100 * one.spearman.estimate for one in own]
        figure.add_trace(
            go.Scatter(
                x=at,
                y=[axis_label(one.strategy) for one in own],
                mode="markers",
                name=names[kind],
                marker={"size": 11, "color": colour, "symbol": shapes[kind]},
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
    order = [axis_label(one.strategy) for one in found if not np.isnan(one.spearman.estimate)]
    figure.update_yaxes(categoryorder="array", categoryarray=order[::-1], automargin=True)
    figure.update_xaxes(title="Spearman × 100")
    figure.update_layout(legend={"orientation": "h", "y": -0.14, "yanchor": "top", "x": 0})
    return styled(figure, height=120 + 38 * len(order))


def axis_label(strategy: str) -> str:
    """Return a strategy's label on lines short enough for a narrow screen."""
    return "<br>".join(wrap(LABELS.get(strategy, strategy), 18))


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
        pair_figure(measured, strategy),
        "sts-pairs",
        {"score": measured.gold, "cosine": cosines},
        alt=f"{len(cosines)} pairs: people's score against the cosine of {strategy}",
    )
    gold_ranks, ranks = rankdata(-measured.gold), rankdata(-cosines)  # (n_pairs,), 1 is the most alike
    show_most_wrong(measured, cosines, gold_ranks, ranks)


def pair_figure(measured: Measured, strategy: str) -> go.Figure:
    """People's score against the cosine, a point a pair."""
    kind = go.Scattergl if len(measured.pairs) > 1500 else go.Scatter
    figure = go.Figure(
        kind(
            x=measured.gold,
            y=measured.cosines[strategy],
            mode="markers",
            marker={"size": 8, "color": BLUE, "opacity": 0.55, "line": {"width": 0.7, "color": GREY}},
            hovertext=[hover(pair, 160) for pair in measured.pairs],
            hovertemplate="%{hovertext}<br>score %{x:.2f}, cosine %{y:.3f}<extra></extra>",
        )
    )
    figure.update_xaxes(title="people's score")
    figure.update_yaxes(title="cosine")
    figure.update_layout(hoverlabel={"align": "left"}, showlegend=False)
    return styled(figure, height=420)


def hover(pair: Pair, characters: int) -> str:
    """Return both sentences, wrapped and escaped, for Plotly's little HTML."""
    both = [
        "<br>".join(plain(line) for line in wrap(shortened(text, characters), 42))
        for text in (pair.first, pair.second)
    ]
    return "<br>– ".join(["– " + both[0], both[1]])


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
