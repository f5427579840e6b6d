"""The health of a corpus: its problems, their remedies, and how rankings would change."""

from collections.abc import Sequence
from html import escape

import streamlit as st

from engine.documents.document import Chunk, Document
from engine.inspection.health.report import (
    FINDING_KINDS,
    NEAR_DUPLICATE,
    NEIGHBORS,
    Finding,
    HealthReport,
    RankingChange,
    health_report,
    preview_removal,
)
from engine.installed import rows_of
from engine.layers.tracing import Array
from engine.retrieval.embedding_model import Model, encode_by
from engine.retrieval.embedding_spec import EmbeddingSpec
from engine.weights.fetch import Progress
from engine.wording import counted
from ui.background import in_background
from ui.chunk_settings import Cut
from ui.corpus import index_documents
from ui.questions.sets import usable_questions
from ui.text import chunk_quote, faint_html, joined, show_text
from ui.widgets import check_typed, fragment

MAX_QUESTIONS, MAX_CHARACTERS = 200, 50_000
EXAMPLE_QUESTIONS = 12  # bundled ones, spread evenly over the documents

CHUNK_S, PAIR_S = 9e-5, 9e-9  # to look at a chunk, and to compare two
MAX_LISTED = 8  # findings of a kind, and questions of a preview
SHOWN_CHARACTERS = 280
HITS = 5
# Names, icon, meaning and remedy of each kind of finding.
ADVICE = {row["kind"]: row for row in rows_of("findings.csv")}


def show_corpus_health(documents: Sequence[Document], model: Model, cut: Cut) -> None:
    """Draw the problems of the corpus, and the rankings of some questions without them."""
    st.write(
        "Duplicates push other passages out of the ranking, hubs are found by every question, empty and "
        "repeated chunks answer none. Nothing is removed here; previews show what would change. "
        "Chunks and questions are compared by the model's own vectors, whatever the pooling and retriever in "
        "use."
    )
    index = index_documents(documents, model, cut)
    questions = question_lines(documents)
    vectors = question_vectors(tuple(questions), index.encoder(model), index.spec) if questions else None
    tables = frozenset(document.name for document in documents if document.has_rows)

    def compare(on_progress: Progress) -> HealthReport:
        return health_report(index.chunks, index.vectors, cut.max_tokens, vectors, on_progress, tables)

    n_chunks, key = len(index.chunks), (tuple(documents), cut, tuple(questions))
    seconds = CHUNK_S * n_chunks + PAIR_S * n_chunks**2
    report = in_background("health", "Compare all chunks", key, seconds, "documents", compare)
    if report is not None:
        show_health(report, index.chunks, index.vectors, questions, vectors)


def question_lines(documents: Sequence[Document]) -> list[str]:
    """Draw the box of questions whose rankings are previewed; return them."""
    labelled = [question.text for question in usable_questions(documents)]
    examples = labelled[:: max(1, len(labelled) // EXAMPLE_QUESTIONS)][:EXAMPLE_QUESTIONS]
    with st.expander("Questions for the previews", icon=":material/quiz:"):
        text = st.text_area(
            "One a line",
            "\n".join(examples),
            key="health-questions",
            height=180,
            help=f"At most {MAX_QUESTIONS} are used. The first ones here are labelled questions about the "
            "documents.",
        )
    lines = check_typed(text, MAX_CHARACTERS).splitlines()
    return [line.strip() for line in lines if line.strip()][:MAX_QUESTIONS]


@st.cache_data(show_spinner="Reading the questions…", max_entries=8, scope="session")
def question_vectors(questions: tuple[str, ...], _model: Model, spec: EmbeddingSpec) -> Array:
    """Embed questions once as an index was: ``(n_questions, d_model)``, of length 1."""
    return encode_by(spec, "query", questions, _model)


@fragment
def show_health(
    report: HealthReport,
    chunks: Sequence[Chunk],
    vectors: Array,
    questions: Sequence[str],
    question_vectors: Array | None,
) -> None:
    """Draw the problems of chunks with vectors ``(n_chunks, d_model)``; questions are for previews."""
    found = [kind for kind in FINDING_KINDS if report.of_kind(kind)]
    missing = [ADVICE[kind]["many"] for kind in FINDING_KINDS if kind not in found]
    if not found:
        st.success(
            f"Nothing found in {counted(report.n_chunks, 'chunk')}: no {joined(missing, 'or')}.",
            icon=":material/check_circle:",
        )
    for kind in found:
        findings, advice = report.of_kind(kind), ADVICE[kind]
        removed = sorted({row for finding in findings for row in finding.removable})
        with st.container(border=True):
            name = advice["one" if len(findings) == 1 else "many"]
            st.markdown(f"{advice['icon']} **{len(findings):,} {name}**")
            st.markdown(f"{advice['meaning'].format(near=NEAR_DUPLICATE)} {advice['remedy']}")
            with st.expander("Look at them"):
                for finding in findings[:MAX_LISTED]:
                    show_text(finding_html(finding, chunks))
                if len(findings) > MAX_LISTED:
                    st.caption(f"The worst {MAX_LISTED} of {len(findings):,}.")
            if removed and questions and question_vectors is not None:
                few = "it" if len(removed) == 1 else f"these {len(removed):,} chunks"
                with st.expander(f"What would change without {few}"):
                    changes = preview_removal(vectors, removed, question_vectors, HITS)
                    show_preview(chunks, questions, changes)
    if found and missing:
        st.caption(f":material/check: Not found: {joined(missing, 'or')}.")
    show_method(report)


def finding_html(finding: Finding, chunks: Sequence[Chunk]) -> str:
    """Return a finding's reason and the beginning of its first chunks, escaped."""
    boxes = []
    for chunk in (chunks[row] for row in finding.rows[:2]):
        place = f"{chunk.document}, {chunk.start:,}–{chunk.end:,}, {chunk.n_tokens:,} tokens"
        boxes.append(chunk_quote(chunk, SHOWN_CHARACTERS, f"<small>{escape(place)}</small>"))
    more = len(finding.rows) - len(boxes)
    note = faint_html(f"and {more:,} more") if more else ""
    return f"<b>{escape(finding.reason)}</b>{''.join(boxes)}{note}"


def show_preview(chunks: Sequence[Chunk], questions: Sequence[str], changes: Sequence[RankingChange]) -> None:
    """Draw for each question the hits that would go and come."""
    changed = [(question, c) for question, c in zip(questions, changes, strict=True) if c.lost or c.gained]
    n_questions = counted(len(questions), "question")
    if not changed:
        st.write(f"Nothing: the first {HITS} hits of {n_questions} stay the same.")
        return
    st.write(f"The first {HITS} hits change for {len(changed):,} of {n_questions}.")
    for question, change in changed[:MAX_LISTED]:
        lines = [f"<b>{escape(question)}</b>"]
        lines += [hit_html("− goes", chunks[row], change.before.index(row) + 1) for row in change.lost]
        lines += [hit_html("+ comes", chunks[row], change.after.index(row) + 1) for row in change.gained]
        show_text("".join(lines))
    if len(changed) > MAX_LISTED:
        st.caption(f"The first {MAX_LISTED} of {len(changed):,}.")


def hit_html(what: str, chunk: Chunk, rank: int) -> str:
    """Return a hit that goes or comes, with its rank, escaped."""
    place = f"{what} · rank {rank} · {chunk.document}"
    return chunk_quote(chunk, 140, f"<small>{escape(place)}</small>")


def show_method(report: HealthReport) -> None:
    """Explain how hubs are counted, with the skewness of the corpus."""
    with st.expander("How this is measured", icon=":material/rule:"):
        st.write(
            f"Each of {counted(report.n_chunks, 'chunk')} is compared with all others. For hubs, the "
            f"{NEIGHBORS} nearest others of each chunk are listed, and the lists that a chunk is in are "
            f"counted: {report.occurrence.max():.0f} for the most frequent, skewness {report.skewness:+.2f}. "
            "At 0 every chunk is found equally often; the larger, the more a few chunks fill the "
            "lists (Radovanović, Nanopoulos & Ivanović 2010). Ties share their ranks."
        )
        st.write(
            "Nothing is removed here. A preview searches again without the removable chunks: all copies but "
            "the first, and every chunk found of the other kinds."
        )
