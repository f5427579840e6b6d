"""The labelled questions about some documents, those of one's own too, with the ranks of their passages."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import streamlit as st

from engine import Encoder
from engine.documents.document import Document
from engine.evaluation.metrics import reciprocal_rank
from engine.evaluation.questions import Question, Reference, relevance, stem
from engine.inspection.diagnosis_place import Location
from engine.inspection.diagnosis_settings import as_question
from engine.retrieval.index import Index
from engine.retrieval.vector_cache import VectorCache
from ui.chunk_settings import Cut
from ui.corpus import bundled_names, session_vectors, shared_vectors
from ui.map_figures import shortened
from ui.question_search import all_scores
from ui.question_sets import bundled_questions


@dataclass(frozen=True)
class Labelled:
    """A labelled question, one of its passages, where it stands, and its rank now; None if not found."""

    question: Question
    reference: Reference
    place: Location
    rank: int | None

    @property
    def name(self) -> str:
        """The question with the beginning of the passage, as it is listed."""
        return f"{self.question.text} · “{shortened(' '.join(self.reference.content.split()), 60)}”"

    def is_among(self, k: int) -> bool:
        """Whether the passage is among the first ``k``."""
        return self.rank is not None and self.rank <= k


@st.cache_resource(max_entries=4, show_spinner=False, scope="session")
def ranked_labels(
    questions: tuple[Question, ...],
    documents: tuple[Document, ...],
    cut: Cut,
    pooling: str,
    retriever: str,
    _encoder: Encoder,
    _index: Index,
) -> list[Labelled]:
    """Rank the passages of labelled questions about some documents, in the index of this cut."""
    pairs = [(question, reference) for question in questions for reference in question.references]
    holding = [holder(reference, question, documents) for question, reference in pairs]
    places = [
        Location(document.name, reference.start, reference.end)
        for (_, reference), document in zip(pairs, holding, strict=True)
    ]
    asked = [
        as_question(question.text, place, document)
        for (question, _), place, document in zip(pairs, places, holding, strict=True)
    ]
    row_of = {text: row for row, text in enumerate(dict.fromkeys(question.text for question in asked))}
    scores = all_scores(tuple(row_of), _index, _encoder, retriever, kept_vectors(questions))
    scores = scores[[row_of[question.text] for question in asked]]  # (n_pairs, n_chunks)
    # Documents of one stem are one to a question, but a passage stands in one of them.
    names = np.array([chunk.document for chunk in _index.chunks], object)  # (n_chunks,)
    held = np.array([place.document for place in places], object)[:, None] == names  # (n_pairs, n_chunks)
    relevant = relevance(asked, _index.chunks) & held
    reciprocal = reciprocal_rank(scores, relevant).tolist()
    return [
        Labelled(question, reference, place, round(1 / each) if each else None)
        for (question, reference), place, each, is_cut in zip(
            pairs, places, reciprocal, relevant.any(axis=1), strict=True
        )
        if is_cut
    ]


def holder(reference: Reference, question: Question, documents: tuple[Document, ...]) -> Document:
    """Return the document in which a passage stands; of those that have the question's name, the first."""
    called = [document for document in documents if stem(document.name) == question.corpus_id]
    there = (one for one in called if one.text[reference.start : reference.end] == reference.content)
    return next(there, called[0])


def kept_vectors(questions: Sequence[Question], documents: Sequence[Document] = ()) -> VectorCache:
    """Return where vectors of questions and documents are kept: with all sessions where all are bundled."""
    is_bundled = {document.name for document in documents} <= bundled_names()
    is_bundled &= {question.text for question in questions} <= {one.text for one in bundled_questions()}
    return shared_vectors() if is_bundled else session_vectors()
