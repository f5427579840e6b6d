"""The effect of transforming vectors on a search: a table, quality against size, and the lessons."""

from collections.abc import Sequence
from dataclasses import astuple

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from engine.evaluation.bootstrap import Interval, means, resampled
from engine.evaluation.metrics import METRICS
from engine.inspection.vectors.geometry import TOP, GeometryRow
from engine.wording import counted
from ui.colours import BLUE, GREEN, GREY, ORANGE, PURPLE
from ui.export import show_figure
from ui.figures import legend_below, styled
from ui.questions.sets import LABEL_SOME
from ui.tables import show_table
from ui.text import signed_interval

OVERLAP = f"Same first {TOP}"
# By their names on the page.
METRIC_HELP = {
    "MRR": METRICS["mrr"].help,
    "Recall@5": METRICS["recall@k"].help,
    "nDCG@10": METRICS["ndcg@k"].help,
    OVERLAP: f"Share of the first {TOP} that is among those by plain cosine too.",
}
# The transforms that make vectors smaller, with colour and shape.
SMALLER = {
    "first dimensions": (ORANGE, "square"),
    "principal components": (BLUE, "circle"),
    "int8": (GREEN, "diamond"),
    "binary": (PURPLE, "triangle-up"),
}


def show_changes(rows: Sequence[GeometryRow], n_chunks: int) -> None:
    """Draw the effect of each transform on a search; the first row is plain cosine."""
    st.header("What changes do to a search")
    show_questions(rows, n_chunks)
    differences = mrr_differences(rows) if rows[0].mrr is not None else {}
    show_changes_table(rows, differences)
    st.markdown("**What to learn from these numbers**")
    st.markdown("\n".join(f"- {lesson}" for lesson in lessons(rows, differences, n_chunks)))
    if n_chunks <= TOP:
        st.caption(f"With no more than {TOP} chunks, the first {TOP} are all there are, in any ranking.")


def show_smaller(rows: Sequence[GeometryRow], n_chunks: int) -> None:
    """Draw the quality of a search against the size of its vectors."""
    st.header("What smaller vectors cost")
    show_questions(rows, n_chunks)
    show_sizes(rows, chosen_metric() if rows[0].mrr is not None else OVERLAP)


def show_questions(rows: Sequence[GeometryRow], n_chunks: int) -> None:
    """Say with which questions the transforms were measured."""
    n_questions = len(rows[0].overlap)
    if rows[0].mrr is not None:
        st.write(
            f"{counted(n_chunks, 'chunk')}, searched with {counted(n_questions, 'labelled question')} about "
            "the chosen documents. Each change is fitted on the chunks, and applied to chunks "
            "and questions; unless stated otherwise, vectors have length 1 before and after."
        )
    else:
        st.info(
            "No labelled question is about the chosen documents, so this shows only how much a ranking "
            f"changes, not which is better: {n_questions:,} sentences of the documents stand in for "
            f"questions. To see quality, {LABEL_SOME}.",
            icon=":material/label_off:",
        )


def mrr_differences(rows: Sequence[GeometryRow]) -> dict[str, Interval]:
    """Return the difference of each row's MRR to that of the first row, with its interval."""
    ranks = np.stack([row.reciprocal_ranks for row in rows if row.reciprocal_ranks is not None], axis=1)
    found = resampled(means(ranks), len(ranks))  # ranks are (n_questions, n_rows)
    return {row.name: found.difference_interval(number, 0) for number, row in enumerate(rows)}


def show_changes_table(rows: Sequence[GeometryRow], differences: dict[str, Interval]) -> None:
    """Draw all rows, with their quality where questions are labelled."""
    table = [
        {"Vectors": row.name, "Bytes": row.bytes_per_vector}
        | (
            {"MRR": row.mrr, "± cosine": signed_interval(*astuple(differences[row.name]))}
            if differences
            else {}
        )
        | ({"Recall@5": row.recall_at_5, "nDCG@10": row.ndcg_at_10} if differences else {})
        | {OVERLAP: row.overlap.mean(), "Mean cosine": row.mean_cosine}
        for row in rows
    ]
    number = st.column_config.NumberColumn
    show_table(
        table,
        "Every change of the vectors with its size and the quality of a search",
        {
            "Vectors": st.column_config.TextColumn(
                pinned=True,
                width="medium",
                help="Top: the principal components with the largest variance. Question as it is: only the "
                "chunks are rounded. The rest is explained below the table.",
            ),
            "Bytes": number(format="localized", help="Size of one chunk's vector."),
            "± cosine": st.column_config.TextColumn(
                help="MRR minus that of plain cosine. In brackets the 95 % interval, by resampling the "
                "questions 2,000 times: where it contains 0, the difference may be due to these questions "
                "alone."
            ),
            "Mean cosine": number(format="%.3f", help="Of two different chunks, with the change of the row."),
        }
        | {name: number(format="%.3f", help=words) for name, words in METRIC_HELP.items()},
    )


def chosen_metric() -> str:
    """Draw the choice of the metric that is drawn against size."""
    chosen = st.segmented_control(
        "Metric",
        list(METRIC_HELP),
        default="MRR",
        required=True,
        key="geometry-measure",
        persist_state="session",
        help="\n".join(f"- **{name}**: {words}" for name, words in METRIC_HELP.items()),
    )
    return str(chosen)


def value_of(row: GeometryRow, metric: str) -> float:
    """Return a metric of a row by its name on the page."""
    if metric == OVERLAP:
        return float(row.overlap.mean())
    value = {"MRR": row.mrr, "Recall@5": row.recall_at_5, "nDCG@10": row.ndcg_at_10}[metric]
    assert value is not None, "asked for only where questions are labelled"
    return value


def show_sizes(rows: Sequence[GeometryRow], metric: str) -> None:
    """Draw a metric against the bytes of a vector, for the transforms that make it smaller."""
    smaller = [row for row in rows if row.kind in SMALLER]
    words = "; ".join(
        f"{row.name}: {row.bytes_per_vector} bytes, {value_of(row, metric):.3f}" for row in smaller
    )
    cosine = value_of(rows[0], metric)
    arrays = {
        "name": np.array([row.name for row in rows]),
        "bytes_per_vector": np.array([row.bytes_per_vector for row in rows]),
        metric: np.array([value_of(row, metric) for row in rows]),
    }
    alt = f"{metric} against bytes of a vector. Plain cosine: {cosine:.3f}; {words}."
    show_figure(size_figure(rows, metric), f"geometry-{metric}".replace(" ", "-"), arrays, alt)


def size_figure(rows: Sequence[GeometryRow], metric: str) -> go.Figure:
    """A metric against bytes on a logarithmic axis, with a horizontal line for plain cosine."""
    figure = go.Figure()
    for kind, (colour, shape) in SMALLER.items():
        members = [row for row in rows if row.kind == kind]
        figure.add_trace(
            go.Scatter(
                x=[row.bytes_per_vector for row in members],
                y=[value_of(row, metric) for row in members],
                mode="lines+markers" if len(members) > 2 else "markers",
                name=kind,
                marker={"color": colour, "symbol": shape, "size": 11},
                line={"color": colour, "width": 1.5},
                hovertext=[row.name for row in members],
                hovertemplate="%{hovertext}<br>%{x} bytes<br>" + metric + " %{y:.3f}<extra></extra>",
            )
        )
    figure.add_hline(
        y=value_of(rows[0], metric),
        line={"dash": "dot", "color": GREY},
        annotation_text=f"cosine, {rows[0].bytes_per_vector:,} bytes",
        annotation_position="top left",
    )
    sizes = sorted({row.bytes_per_vector for row in rows if row.kind in SMALLER})
    figure.update_xaxes(title="bytes of a vector (logarithmic)", type="log", tickvals=sizes, ticktext=sizes)
    figure.update_yaxes(title=metric)
    figure.update_layout(legend=legend_below(0.25))
    return styled(figure, height=360)


def lessons(rows: Sequence[GeometryRow], differences: dict[str, Interval], n_chunks: int) -> list[str]:
    """Return, as Markdown, the purpose of each transform and its measured effect."""
    cosine = rows[0]

    def worth(row: GeometryRow) -> str:
        if row.mrr is None:
            return f"{row.overlap.mean():.0%} of the first {TOP} stay"
        return f"MRR {row.mrr:.3f} ({clear_difference(differences[row.name])})"

    def each(kind: str) -> str:
        return "; ".join(f"{row.name}, {worth(row)}" for row in rows if row.kind == kind)

    centred, d_model = next(row for row in rows if row.kind == "centred"), cosine.bytes_per_vector // 4
    by_length = next(row for row in rows if row.kind == "not normalised")
    reference = "" if cosine.mrr is None else f", where plain cosine has {cosine.mrr:.3f}"
    return [
        "**Length**: without normalisation, the inner product multiplies the cosine by the chunk's length: "
        f"{worth(by_length)}{reference}.",
        "**Centring** removes what all chunks share: the mean and, if wanted, the directions in which they "
        f"vary most (top). The mean cosine goes from {cosine.mean_cosine:.3f} to "
        f"{centred.mean_cosine:.3f}; the effect on the ranking is another matter: {each('centred')}.",
        "**Whitening** gives every direction the same variance, also those that vary by little but chance. "
        f"The variances have to be estimated, here from {n_chunks:,} chunks for {d_model:,} dimensions, and "
        "shrinking (Ledoit and Wolf) moves a poor estimate towards equal variances: "
        f"{each('whitened')}.",
        f"**Fewer dimensions**: {dimension_words(rows)} Only in a model trained for it (“Matryoshka”) are "
        "the first dimensions meant to carry more than the others.",
        f"**Fewer bits**: int8 takes a quarter of the bytes: {each('int8')}. Binary takes a 32nd: "
        f"{each('binary')}.",
    ]


def clear_difference(difference: Interval) -> str:
    """Return in words whether the interval of a difference excludes 0, and its sign."""
    if difference.low <= 0 <= difference.high:
        return "no clear difference"
    return f"clearly {'higher' if difference.estimate > 0 else 'lower'}"


def dimension_words(rows: Sequence[GeometryRow]) -> str:
    """Compare, at every size, the first dimensions with as many principal components."""
    metric = OVERLAP if rows[0].mrr is None else "MRR"
    cuts = [row for row in rows if row.kind == "first dimensions"]
    components = [row for row in rows if row.kind == "principal components"]
    pairs = [(value_of(a, metric), value_of(b, metric)) for a, b in zip(cuts, components, strict=True)]
    if not pairs:
        return "this model's vectors have too few to cut."
    listed = "; ".join(
        f"{row.bytes_per_vector // 4}: {first:.3f} and {component:.3f}"
        for row, (first, component) in zip(cuts, pairs, strict=True)
    )
    ahead = sum(component > first for first, component in pairs)
    lead = "are ahead" if metric == "MRR" else "keep more of the hits"
    return (
        f"{metric} of the first dimensions, and of as many principal components, is, at "
        f"{listed}. The components {lead} at {ahead} of {len(pairs)} sizes."
    )
