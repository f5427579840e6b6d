"""The effect of pooling mistakes: stop words, padding, special tokens and lengths handled wrongly."""

from collections.abc import Sequence

import numpy as np
import streamlit as st
from streamlit.column_config import NumberColumn

from engine import Encoder
from engine.evaluation.metrics import METRICS
from engine.evaluation.questions import Question, relevance
from engine.inspection.pooling.mistakes import (
    MISTAKES,
    MistakeReport,
    mistake_report,
    mistaken_vectors,
    possible_mistakes,
)
from engine.layers.norm import l2_normalize
from engine.layers.tracing import Array
from engine.wording import counted
from pages.improve.poolings.examples import sentence_input, show_cut_notes
from pages.improve.poolings.pooled_chunks import DIGESTS, PooledChunks
from pages.improve.poolings.sentences import show_matrices, show_numbered
from pages.improve.poolings.similarity_figures import turned_map
from ui.export import show_figure
from ui.progress import counting
from ui.questions.sets import LABEL_SOME, labelled_questions
from ui.tables import show_table
from ui.text import escape_markdown, help_list
from ui.widgets import choice

RIGHT = "done right"
MRR = METRICS["mrr"].label


def label_of(mistake: str | None) -> str:
    """Return the name of a mistake, or of none."""
    return RIGHT if mistake is None else MISTAKES[mistake].label


def show_mistakes(pooled: PooledChunks) -> None:
    """Draw the effect of each mistake on a few sentences, and on a search of the documents."""
    mistakes = possible_mistakes(pooled.encoder)
    st.write(
        "Mean pooling is one line of code, and there are many ways to get it slightly wrong. None raises an "
        "error; searches just get worse, or happen not to."
    )
    with st.expander("The mistakes"):
        st.markdown(help_list(MISTAKES[name] for name in mistakes))
        if len(mistakes) < len(MISTAKES):
            st.caption("Mistakes with the padding can be made only with models of BERT.")
    sentences, _ = sentence_input("pooling-mistakes")
    if len(sentences) < 2:
        st.info("Write two or more sentences, one a line, to compare them.", icon=":material/notes:")
    else:
        show_sentence_mistakes(sentences, mistakes, pooled.encoder, pooled.max_tokens)
    st.header("What it costs a search")
    show_search_cost(pooled)


def show_sentence_mistakes(
    sentences: Sequence[str], mistakes: Sequence[str], encoder: Encoder, max_tokens: int
) -> None:
    """Draw how far each mistake turns the sentences' vectors, and the matrices of one mistake and of none."""
    show_numbered(sentences)
    show_cut_notes(sentences, encoder, max_tokens)
    right, *wrong = vectors_of(sentences, encoder, max_tokens)
    turned = np.stack(
        [(l2_normalize(each) * right).sum(axis=1) for each in wrong]
    )  # (n_mistakes, n_sentences)
    st.markdown("**How far each vector is turned** (cosine with the right one; 1 is not at all)")
    show_figure(
        turned_map(turned, [label_of(name) for name in mistakes]),
        "pooling-mistakes-turned",
        {"mistakes": np.array(mistakes), "cosines": turned},
        "Mean cosine of mistaken and right vectors. "
        + "; ".join(
            f"{label_of(name)}: {row.mean():.3f}" for name, row in zip(mistakes, turned, strict=True)
        ),
    )
    mistake = choice(
        "Mistake",
        mistakes,
        "pooling-mistakes-shown",
        "Its similarity matrix is drawn next to the right one.",
        format_func=label_of,
        as_list=True,
    )
    made = wrong[mistakes.index(mistake)]
    matrices = {RIGHT: right @ right.T, label_of(mistake): made @ made.T}
    st.markdown(ranking_change(*matrices.values()))
    show_matrices(matrices, "pooling-mistakes")


@st.cache_data(
    max_entries=32,
    show_spinner="Embedding with every mistake…",
    show_time=True,
    scope="session",
    hash_funcs=DIGESTS,
)
def vectors_of(texts: Sequence[str], encoder: Encoder, max_tokens: int) -> list[Array]:
    """Return the vectors of texts done right and with every mistake, in order."""
    mistakes = (None, *possible_mistakes(encoder))
    return [mistaken_vectors(encoder, texts, mistake, max_tokens) for mistake in mistakes]


def ranking_change(right: Array, wrong: Array) -> str:
    """Count the sentences for which the order of the others changes, from scores ``(n, n)``; as Markdown."""
    others = ~np.eye(len(right), dtype=bool)
    orders = [
        [np.argsort(-scores[row][others[row]], kind="stable").tolist() for row in range(len(scores))]
        for scores in (right, wrong)
    ]
    moved = [number for number, (before, after) in enumerate(zip(*orders, strict=True), 1) if before != after]
    if not moved:
        return "The order is the same: seen from every sentence, the others rank as they should."
    return (
        f"**The order changes** seen from {len(moved)} of {len(right)} sentences: "
        f"{', '.join(map(str, moved))}."
    )


def show_search_cost(pooled: PooledChunks) -> None:
    """Draw, on demand, how well each mistake finds the answers to the labelled questions."""
    questions = answerable(pooled)
    if not questions:
        st.info(
            f"No labelled question is about these documents. To see what each mistake costs, {LABEL_SOME}.",
            icon=":material/quiz:",
        )
        return
    st.write(
        f"{counted(len(questions), 'labelled question')}, answered in "
        f"{counted(len(pooled.chunks), 'chunk')}: each mistake embeds all of them again, which takes a "
        "minute or two in all."
    )
    measured = pooled.digest, questions
    if st.button("Measure", key="pooling-mistakes-measure", icon=":material/speed:"):
        st.session_state["pooling-mistakes-measured"] = measured
    if st.session_state.get("pooling-mistakes-measured") == measured:
        show_reports(reports_of(pooled, questions))


def answerable(pooled: PooledChunks) -> tuple[Question, ...]:
    """Return the labelled questions that chunks answer, except those that fit another document."""
    questions, relevant = labelled_questions(pooled.documents, pooled.chunks)
    is_clear = (relevance(questions, pooled.chunks) == relevant).all(axis=1)
    return tuple(question for question, yes in zip(questions, is_clear, strict=True) if yes)


def reports_of(pooled: PooledChunks, questions: Sequence[Question]) -> list[MistakeReport]:
    """Search without a mistake and with every one; each report is cached."""
    mistakes = (None, *possible_mistakes(pooled.encoder))
    return [
        report_of(mistake, pooled, questions, f"{number} of {len(mistakes)}")
        for number, mistake in enumerate(mistakes, 1)
    ]


@st.cache_data(max_entries=28, show_spinner=False, scope="session", hash_funcs=DIGESTS)
def report_of(
    mistake: str | None, pooled: PooledChunks, questions: Sequence[Question], _place: str
) -> MistakeReport:
    """Search with a mistake, under a bar drawn within: Streamlit repeats what cached functions draw."""
    right, limit = pooled.vectors["mean"], pooled.max_tokens
    with counting(f"{_place}, {label_of(mistake)}", "texts") as show:
        return mistake_report(pooled.encoder, pooled.chunks, right, questions, mistake, limit, show)


def show_reports(reports: Sequence[MistakeReport]) -> None:
    """Draw a row for each mistake, done right first, and name the costliest."""
    right = reports[0]
    show_table(
        [
            {
                "Mistake": label_of(report.mistake),
                MRR: report.mrr,
                "Against right": report.mrr - right.mrr,
                "Better": int((report.reciprocal_ranks > right.reciprocal_ranks).sum()),
                "Worse": int((report.reciprocal_ranks < right.reciprocal_ranks).sum()),
                "Other first hit": float((report.best_chunks != right.best_chunks).mean()),
                "Cosine": report.mean_cosine,
            }
            for report in reports
        ],
        "What each mistake costs: "
        + "; ".join(f"{label_of(report.mistake)} {MRR} {report.mrr:.3f}" for report in reports),
        {
            MRR: NumberColumn(format="%.3f", help=METRICS["mrr"].help),
            "Against right": NumberColumn(format="%+.3f"),
            "Better": NumberColumn(help="Questions whose answer is found earlier than right."),
            "Worse": NumberColumn(help="Questions whose answer is found later than right."),
            "Other first hit": NumberColumn(
                format="percent", help="Questions whose first hit is another chunk than without the mistake."
            ),
            "Cosine": NumberColumn(
                format="%.3f", help="Of the chunks' vectors with the right ones, on average."
            ),
        },
    )
    st.markdown(costliest(reports))


def costliest(reports: Sequence[MistakeReport]) -> str:
    """Name the costliest mistake and the harmless ones, as Markdown; the first report has no mistake."""
    right, *wrong = reports
    worst = min(wrong, key=lambda report: report.mrr)
    harmless = [label_of(report.mistake) for report in wrong if report.mrr >= right.mrr]
    words = (
        f"Costliest: **{escape_markdown(label_of(worst.mistake))}**, {MRR} {worst.mrr:.3f} instead of "
        f"{right.mrr:.3f}."
        if worst.mrr < right.mrr
        else "None of them costs anything here."
    )
    if harmless and worst.mrr < right.mrr:
        words += f" No worse than right on these questions: {escape_markdown(', '.join(harmless))}."
    return words
