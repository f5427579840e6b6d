"""The health of a corpus: what was found, what to do about it, and what answers would change."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
import streamlit as st

from engine.documents.document import Chunk
from engine.inspection.health import KINDS, NEAR, NEIGHBORS, Finding, HealthReport, Kind, health_report
from engine.inspection.health_preview import Change, preview
from engine.layers.tracing import Array
from ui.text import show_text

LISTED = 8
SHOWN_CHARACTERS = 280
HITS = 5
BOX = "border-left:3px solid #8C8C8C66;padding-left:10px;margin:2px 0 10px"


@dataclass(frozen=True)
class Advice:
    """What a kind of finding is called, means and asks for."""

    one: str
    many: str
    icon: str
    meaning: str
    remedy: str


ADVICE: dict[Kind, Advice] = {
    "exact duplicate": Advice(
        "text repeated exactly",
        "texts repeated exactly",
        ":material/content_copy:",
        "Copies take places among the hits that other passages could have.",
        "Leave out all but one.",
    ),
    "near duplicate": Advice(
        "near-duplicate group",
        "near-duplicate groups",
        ":material/file_copy:",
        f"Their vectors have a cosine above {NEAR:.2f}: where one is a hit, so are the others.",
        "Keep one of each group; where they overlap, lower the overlap of chunks.",
    ),
    "boilerplate": Advice(
        "repeated line",
        "repeated lines",
        ":material/repeat:",
        "Headers, footers and notices that many documents share pull their vectors together.",
        "Take them out of the files. A chunk made up mostly of them can go.",
    ),
    "near empty": Advice(
        "near-empty chunk",
        "near-empty chunks",
        ":material/crop_square:",
        "A few letters, or signs without words, have a vector all the same, which can lie anywhere.",
        "Leave them out, or make chunks larger.",
    ),
    "oversized": Advice(
        "oversized chunk",
        "oversized chunks",
        ":material/content_cut:",
        "The model does not read them to the end, so no search can find what stands there.",
        "Lower the chunk size. Removing them would lose text.",
    ),
    "hub": Advice(
        "hub",
        "hubs",
        ":material/hub:",
        "A hub is among the nearest of very many chunks or questions, whatever they are about.",
        "Read it. An overview may rightly be one; a chunk that mixes subjects is better cut in two.",
    ),
}


@st.fragment
def show_health(
    chunks: Sequence[Chunk],
    vectors: Array,
    questions: Sequence[str],
    question_vectors: Array | None,
    max_tokens: int,
) -> None:
    """Draw what ails a corpus.

    Parameters
    ----------
    chunks
        The chunks.
    vectors
        Their vectors, ``(n_chunks, d_model)``.
    questions, question_vectors
        Questions and their vectors, ``(n_questions, d_model)``, for previews; none and None where there
        are none.
    max_tokens
        What the encoder reads of a chunk.
    """
    if not chunks:
        st.info("There are no chunks to look at yet. Add a document.", icon=":material/health_and_safety:")
        return
    report = report_of(
        content_of(chunks, vectors, question_vectors), max_tokens, chunks, vectors, question_vectors
    )
    found = [kind for kind in KINDS if report.of(kind)]
    missing = [ADVICE[kind].many for kind in KINDS if kind not in found]
    if not found:
        st.success(
            f"Nothing found in {report.n_chunks:,} chunks: no {listed(missing, 'or')}.",
            icon=":material/check_circle:",
        )
    for kind in found:
        show_kind(kind, report.of(kind), chunks, vectors, questions, question_vectors)
    if found and missing:
        st.caption(f":material/check: Not found: {listed(missing, 'or')}.")
    show_method(report)


def content_of(chunks: Sequence[Chunk], vectors: Array, questions: Array | None) -> str:
    """Return a hash of all that a report depends on."""
    digest = hashlib.sha256(np.ascontiguousarray(vectors).tobytes())
    if questions is not None:
        digest.update(np.ascontiguousarray(questions).tobytes())
    for chunk in chunks:
        place = (chunk.document, chunk.start, chunk.end, chunk.n_tokens, chunk.text)
        digest.update(repr(place).encode())
    return digest.hexdigest()


@st.cache_data(show_spinner=False, max_entries=4, scope="session")
def report_of(
    content: str, max_tokens: int, _chunks: Sequence[Chunk], _vectors: Array, _questions: Array | None
) -> HealthReport:
    """Look at a corpus once, under a progress bar; ``content`` is its hash."""
    bar = st.progress(0.0, "Comparing chunks…")

    def show(done: int, total: int) -> None:
        bar.progress(done / total, f"Comparing chunks: {done:,} of {total:,}")

    try:
        return health_report(_chunks, _vectors, max_tokens, _questions, on_progress=show)
    finally:
        bar.empty()


def show_kind(
    kind: Kind,
    findings: Sequence[Finding],
    chunks: Sequence[Chunk],
    vectors: Array,
    questions: Sequence[str],
    question_vectors: Array | None,
) -> None:
    """Draw one kind: how many, what it means, what to do, and, folded, the chunks and the preview."""
    advice = ADVICE[kind]
    removed = sorted({row for finding in findings for row in finding.removable})
    with st.container(border=True):
        name = advice.one if len(findings) == 1 else advice.many
        st.markdown(f"{advice.icon} **{len(findings):,} {name}**")
        st.markdown(f"{advice.meaning} {advice.remedy}")
        with st.expander("Look at them"):
            for finding in findings[:LISTED]:
                show_text(finding_html(finding, chunks))
            if len(findings) > LISTED:
                st.caption(f"The worst {LISTED} of {len(findings):,}.")
        if removed and questions and question_vectors is not None:
            few = "it" if len(removed) == 1 else f"these {len(removed):,} chunks"
            with st.expander(f"What would change without {few}"):
                show_preview(chunks, questions, preview(vectors, removed, question_vectors, HITS))


def finding_html(finding: Finding, chunks: Sequence[Chunk]) -> str:
    """Return a finding's reason and the beginning of its first chunks, escaped."""
    boxes = [chunk_html(chunks[row]) for row in finding.rows[:2]]
    more = len(finding.rows) - len(boxes)
    note = f'<span style="opacity:0.75">and {more:,} more</span>' if more else ""
    return f"<b>{escape(finding.reason)}</b>{''.join(boxes)}{note}"


def chunk_html(chunk: Chunk) -> str:
    """Return where a chunk is and how it begins, escaped."""
    place = f"{chunk.document}, {chunk.start:,}–{chunk.end:,}, {chunk.n_tokens:,} tokens"
    return f'<div style="{BOX}"><small>{escape(place)}</small>\n{beginning(chunk)}</div>'


def beginning(chunk: Chunk, characters: int = SHOWN_CHARACTERS) -> str:
    """Return the beginning of a chunk in one line, escaped; blanks alone are said to be blank."""
    text = " ".join(chunk.text.split())
    return escape(text[:characters]) + "…" * (len(text) > characters) or "<em>blank</em>"


def show_preview(chunks: Sequence[Chunk], questions: Sequence[str], changes: Sequence[Change]) -> None:
    """Say for each question which hits go and which come."""
    changed = [(question, c) for question, c in zip(questions, changes, strict=True) if c.gone or c.come]
    n_questions = f"{len(questions):,} question" + "s" * (len(questions) > 1)
    if not changed:
        st.write(f"Nothing: the first {HITS} hits of {n_questions} stay as they are.")
        return
    st.write(f"The first {HITS} hits change for {len(changed):,} of {n_questions}.")
    for question, change in changed[:LISTED]:
        lines = [f"<b>{escape(question)}</b>"]
        lines += [hit_html("− goes", chunks[row], change.before.index(row) + 1) for row in change.gone]
        lines += [hit_html("+ comes", chunks[row], change.after.index(row) + 1) for row in change.come]
        show_text("".join(lines))
    if len(changed) > LISTED:
        st.caption(f"The first {LISTED} of {len(changed):,}.")


def hit_html(what: str, chunk: Chunk, rank: int) -> str:
    """Return a hit that goes or comes, with its rank, escaped."""
    place = f"{what} · rank {rank} · {chunk.document}"
    return f'<div style="{BOX}"><small>{escape(place)}</small>\n{beginning(chunk, 140)}</div>'


def listed(names: Sequence[str], last: str) -> str:
    """``["a", "b", "c"] -> "a, b or c"``."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {last} {names[-1]}"


def show_method(report: HealthReport) -> None:
    """Say how hubs are counted and how lopsided the corpus is."""
    with st.expander("How this is measured", icon=":material/rule:"):
        st.write(
            f"All {report.n_chunks:,} chunks are compared with each other. For hubs, each chunk asks for its "
            f"{NEIGHBORS} nearest others, and it is counted in how many of those lists a chunk is: "
            f"{report.occurrence.max():.0f} for the most frequent, skewness {report.skewness:+.2f}. At 0 "
            "every chunk would be found as often as any other; the larger, the more a few crowd the "
            "lists (Radovanović, Nanopoulos & Ivanović 2010). Ties share their places."
        )
        st.write(
            "Nothing is removed here. A preview searches again without the chunks that can go: of copies "
            "all but the first, of the other kinds each one found."
        )
