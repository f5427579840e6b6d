"""What changing vectors does to a search: a table, quality against size, and what to learn from it."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from engine.evaluation.bootstrap import Interval, means, resampled
from engine.inspection.geometry import TOP, GeometryRow
from ui.export import show_figure
from ui.figures import BLUE, GREEN, GREY, ORANGE, styled

OVERLAP = f"Same first {TOP}"
MEASURES = {
    "MRR": "1 over the place of the first relevant chunk, on average over questions.",
    "Recall@5": "Share of the relevant chunks that is among the first 5.",
    "nDCG@10": "How early the relevant chunks come among the first 10; 1 is the best there could be.",
    OVERLAP: f"Share of the first {TOP} that is among those by plain cosine too.",
}
# The changes that make vectors smaller, with colour and shape.
SMALLER = {
    "first dimensions": (ORANGE, "square"),
    "principal components": (BLUE, "circle"),
    "int8": (GREEN, "diamond"),
    "binary": ("#CC79A7", "triangle-up"),
}


def show_changes(rows: Sequence[GeometryRow], n_chunks: int) -> None:
    """Draw what each change does to a search; plain cosine comes first among the rows."""
    st.subheader("What changes do to a search")
    n_questions, labelled = len(rows[0].overlap), rows[0].mrr is not None
    differences = mrr_differences(rows) if labelled else {}
    if labelled:
        st.write(
            f"{n_chunks:,} chunks, searched with the {n_questions:,} labelled questions about the chosen "
            "documents that come with the app. Each change is fitted on the chunks, and made to chunks and "
            "questions alike; unless it says otherwise, vectors have length 1 before and after."
        )
    else:
        st.info(
            "No labelled question is about the chosen documents, so nothing here says which ranking is "
            f"better, only how much it changes: {n_questions:,} sentences of the documents stand in for "
            "questions. Choose a document that comes with the app to see quality.",
            icon=":material/label_off:",
        )
    show_table(rows, differences)
    show_sizes(rows, chosen_measure() if labelled else OVERLAP)
    st.markdown("**What to learn from these numbers**")
    st.markdown("\n".join(f"- {lesson}" for lesson in lessons(rows, differences, n_chunks)))
    if n_chunks <= TOP:
        st.caption(f"With no more than {TOP} chunks, the first {TOP} are all there are, in any ranking.")


def mrr_differences(rows: Sequence[GeometryRow]) -> dict[str, Interval]:
    """Return each row's MRR minus that of the first, with the interval of that difference."""
    ranks = np.stack([row.reciprocal_ranks for row in rows if row.reciprocal_ranks is not None], axis=1)
    found = resampled(means(ranks), len(ranks))  # ranks are (n_questions, n_rows)
    return {row.name: found.difference_interval(number, 0) for number, row in enumerate(rows)}


def show_table(rows: Sequence[GeometryRow], differences: dict[str, Interval]) -> None:
    """Draw all rows; quality only where it is known."""
    table = [
        {"Vectors": row.name, "Bytes": row.bytes_per_vector}
        | ({"MRR": row.mrr, "± cosine": signed(differences[row.name])} if differences else {})
        | ({"Recall@5": row.recall_at_5, "nDCG@10": row.ndcg_at_10} if differences else {})
        | {OVERLAP: row.overlap.mean(), "Mean cosine": row.mean_cosine}
        for row in rows
    ]
    number = st.column_config.NumberColumn
    st.dataframe(
        table,
        hide_index=True,
        height="content",
        column_config={
            "Vectors": st.column_config.TextColumn(
                pinned=True,
                width="medium",
                help="Top: the principal components that vary most. Question as it is: only the chunks are "
                "rounded. The rest is said below the figure.",
            ),
            "Bytes": number(format="localized", help="What the vector of one chunk takes."),
            "± cosine": st.column_config.TextColumn(
                help="MRR minus that of plain cosine. In brackets the 95 % interval, by drawing the "
                "questions again 2,000 times: where it holds 0, the difference may be one of these questions "
                "alone."
            ),
            "Mean cosine": number(format="%.3f", help="Of two different chunks, changed as the row says."),
        }
        | {name: number(format="%.3f", help=words) for name, words in MEASURES.items()},
        alt="Every change of the vectors with its size and what a search by it is worth",
    )


def signed(difference: Interval) -> str:
    """``+0.006 [-0.010, +0.021]``."""
    return f"{difference.estimate:+.3f} [{difference.low:+.3f}, {difference.high:+.3f}]"


def chosen_measure() -> str:
    """Draw the choice of what is drawn against size."""
    chosen = st.segmented_control(
        "Measure",
        list(MEASURES),
        default="MRR",
        required=True,
        key="geometry-measure",
        persist_state="session",
        help="\n".join(f"- **{name}**: {words}" for name, words in MEASURES.items()),
    )
    return str(chosen)


def value_of(row: GeometryRow, measure: str) -> float:
    """Return a measure of a row by the name it has on the page."""
    if measure == OVERLAP:
        return float(row.overlap.mean())
    value = {"MRR": row.mrr, "Recall@5": row.recall_at_5, "nDCG@10": row.ndcg_at_10}[measure]
    assert value is not None, "asked for only where questions are labelled"
    return value


def show_sizes(rows: Sequence[GeometryRow], measure: str) -> None:
    """Draw a measure against the bytes of a vector, for the changes that make it smaller."""
    smaller = [row for row in rows if row.kind in SMALLER]
    words = "; ".join(
        f"{row.name}: {row.bytes_per_vector} bytes, {value_of(row, measure):.3f}" for row in smaller
    )
    cosine = value_of(rows[0], measure)
    arrays = {
        "name": np.array([row.name for row in rows]),
        "bytes_per_vector": np.array([row.bytes_per_vector for row in rows]),
        measure: np.array([value_of(row, measure) for row in rows]),
    }
    alt = f"{measure} against bytes of a vector. Plain cosine: {cosine:.3f}; {words}."
    show_figure(size_figure(rows, measure), f"geometry-{measure}".replace(" ", "-"), arrays, alt)


def size_figure(rows: Sequence[GeometryRow], measure: str) -> go.Figure:
    """A measure against bytes on a logarithmic axis, plain cosine as a line across."""
    figure = go.Figure()
    for kind, (colour, shape) in SMALLER.items():
        members = [row for row in rows if row.kind == kind]
        figure.add_trace(
            go.Scatter(
                x=[row.bytes_per_vector for row in members],
                y=[value_of(row, measure) for row in members],
                mode="lines+markers" if len(members) > 2 else "markers",
                name=kind,
                marker={"color": colour, "symbol": shape, "size": 11},
                line={"color": colour, "width": 1.5},
                hovertext=[row.name for row in members],
                hovertemplate="%{hovertext}<br>%{x} bytes<br>" + measure + " %{y:.3f}<extra></extra>",
            )
        )
    figure.add_hline(
        y=value_of(rows[0], measure),
        line={"dash": "dot", "color": GREY},
        annotation={"text": f"cosine, {rows[0].bytes_per_vector:,} bytes", "font_color": GREY},
        annotation_position="top left",
    )
    sizes = sorted({row.bytes_per_vector for row in rows if row.kind in SMALLER})
    figure.update_xaxes(title="bytes of a vector (logarithmic)", type="log", tickvals=sizes, ticktext=sizes)
    figure.update_yaxes(title=measure)
    figure.update_layout(legend={"orientation": "h", "y": -0.25, "yanchor": "top", "x": 0})
    return styled(figure, height=360)


def lessons(rows: Sequence[GeometryRow], differences: dict[str, Interval], n_chunks: int) -> list[str]:
    """Say what each change is for, and what it was measured to do."""
    cosine = rows[0]

    def worth(row: GeometryRow) -> str:
        if row.mrr is None:
            return f"{row.overlap.mean():.0%} of the first {TOP} stay"
        return f"MRR {row.mrr:.3f} ({verdict(differences[row.name])})"

    def each(kind: str) -> str:
        return "; ".join(f"{row.name}, {worth(row)}" for row in rows if row.kind == kind)

    centred, d_model = next(row for row in rows if row.kind == "centred"), cosine.bytes_per_vector // 4
    by_length = next(row for row in rows if row.kind == "not normalised")
    reference = "" if cosine.mrr is None else f", where plain cosine has {cosine.mrr:.3f}"
    return [
        "**Length**: without normalisation, the inner product multiplies the cosine by the chunk's length: "
        f"{worth(by_length)}{reference}.",
        "**Centring** takes away what all chunks share, the mean and, if wanted, the directions in which "
        f"they vary most (top). The mean cosine goes from {cosine.mean_cosine:.3f} to "
        f"{centred.mean_cosine:.3f}; what becomes of the ranking is another matter: {each('centred')}.",
        "**Whitening** makes every direction vary alike, also those that vary by little but chance. How much "
        f"each varies has to be estimated, here from {n_chunks:,} chunks for {d_model:,} dimensions, and "
        "shrinking (Ledoit and Wolf) moves a poor estimate towards variances that are all the same: "
        f"{each('whitened')}.",
        f"**Fewer dimensions**: {dimension_words(rows)} Only in a model trained for it (“Matryoshka”) are "
        "the first dimensions meant to say more than the others.",
        f"**Fewer bits**: int8 takes a quarter of the bytes: {each('int8')}. Binary takes a 32nd: "
        f"{each('binary')}.",
    ]


def verdict(difference: Interval) -> str:
    """Say whether a difference of MRR is clear: its interval holds 0 or not."""
    if difference.low <= 0 <= difference.high:
        return "no clear difference"
    return f"clearly {'higher' if difference.estimate > 0 else 'lower'}"


def dimension_words(rows: Sequence[GeometryRow]) -> str:
    """Compare the first dimensions with as many principal components, at every size."""
    measure = OVERLAP if rows[0].mrr is None else "MRR"
    cuts = [row for row in rows if row.kind == "first dimensions"]
    components = [row for row in rows if row.kind == "principal components"]
    pairs = [(value_of(a, measure), value_of(b, measure)) for a, b in zip(cuts, components, strict=True)]
    if not pairs:
        return "this model's vectors have too few to cut."
    listed = "; ".join(
        f"{row.bytes_per_vector // 4}: {first:.3f} and {component:.3f}"
        for row, (first, component) in zip(cuts, pairs, strict=True)
    )
    ahead = sum(component > first for first, component in pairs)
    lead = "are ahead" if measure == "MRR" else "keep more of the hits"
    return (
        f"{measure} of the first dimensions as they are, and of as many principal components, is, at "
        f"{listed}. The components {lead} at {ahead} of {len(pairs)} sizes."
    )
