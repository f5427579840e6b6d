"""The labelled questions about the chosen documents, with the present rank of each passage."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import streamlit as st

from engine.documents.document import Document
from engine.evaluation.metrics import reciprocal_rank
from engine.evaluation.questions import Question, Reference, relevance, stem
from engine.inspection.diagnosis.location import Location
from engine.inspection.diagnosis.setting_changes import passage_question
from engine.retrieval.vector_cache import VectorCache
from engine.wording import beginning
from ui.corpus import session_vectors, shared_vectors
from ui.documents import bundled_names
from ui.questions.search import all_scores
from ui.questions.sets import bundled_questions
from ui.search import Search


@dataclass(frozen=True)
class LabelledPassage:
    """A labelled question, one of its passages, its location, and its present rank; None if not found."""

    question: Question
    reference: Reference
    place: Location
    rank: int | None

    @property
    def name(self) -> str:
        """The question and the beginning of the passage, as a line of a list."""
        return f"{self.question.text} · “{beginning(self.reference.content, 60)}”"

    def is_among(self, k: int) -> bool:
        """Whether the passage is among the first ``k``."""
        return self.rank is not None and self.rank <= k


@st.cache_resource(
    max_entries=4, show_spinner=False, scope="session", hash_funcs={Search: lambda search: search.ranked}
)
def ranked_labels(questions: tuple[Question, ...], search: Search) -> list[LabelledPassage]:
    """Rank the passages of labelled questions in the index; passages that no chunk contains are left out."""
    documents, index = search.documents, search.index
    pairs = [(question, reference) for question in questions for reference in question.references]
    holding = [holder(reference, question, documents) for question, reference in pairs]
    places = [
        Location(document.name, reference.start, reference.end)
        for (_, reference), document in zip(pairs, holding, strict=True)
    ]
    asked = [
        passage_question(question.text, place, document)
        for (question, _), place, document in zip(pairs, places, holding, strict=True)
    ]
    row_of = {text: row for row, text in enumerate(dict.fromkeys(question.text for question in asked))}
    scores = all_scores(tuple(row_of), index, search.model, search.retriever, vector_cache(questions))
    scores = scores[[row_of[question.text] for question in asked]]  # (n_pairs, n_chunks)
    # A question names its document by its stem, which several may share; the passage is in one of them.
    names = np.array([chunk.document for chunk in index.chunks], object)  # (n_chunks,)
    of_places = np.array([place.document for place in places], object)  # (n_pairs,)
    in_document = of_places[:, None] == names  # (n_pairs, n_chunks)
    relevant = relevance(asked, index.chunks) & in_document
    reciprocal = reciprocal_rank(scores, relevant).tolist()
    return [
        LabelledPassage(question, reference, place, round(1 / each) if each else None)
        for (question, reference), place, each, is_cut in zip(
            pairs, places, reciprocal, relevant.any(axis=1), strict=True
        )
        if is_cut
    ]


def holder(reference: Reference, question: Question, documents: Sequence[Document]) -> Document:
    """Return the document that contains a passage, else the first of those that the question names."""
    called = [document for document in documents if stem(document.name) == question.corpus_id]
    there = (one for one in called if one.text[reference.start : reference.end] == reference.content)
    return next(there, called[0])


def vector_cache(questions: Sequence[Question], documents: Sequence[Document] = ()) -> VectorCache:
    """Return the cache of vectors: that of all sessions where questions and documents are bundled."""
    is_bundled = {document.name for document in documents} <= bundled_names()
    is_bundled &= {question.text for question in questions} <= {one.text for one in bundled_questions()}
    return shared_vectors() if is_bundled else session_vectors()
