"""The input of a diagnosis: a question, and the passage that should have been found."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import streamlit as st

from engine.documents.document import Document
from engine.evaluation.metrics import reciprocal_rank
from engine.evaluation.questions import Question, Reference, relevance, stem
from engine.inspection.diagnosis.location import Location, locate
from engine.inspection.diagnosis.setting_changes import passage_question
from engine.retrieval.vector_cache import VectorCache
from engine.wording import beginning
from ui.corpus import session_vectors, vectors_of
from ui.current import (
    LABELLED,
    PASTED,
    SEARCHED,
    current_passage,
    current_question,
    follow,
    follow_question,
    is_about_another,
    set_passage,
    set_question,
)
from ui.documents import OF_DOCUMENTS
from ui.questions.search import all_scores, sentences_with
from ui.questions.sets import LABEL_SOME, bundled_questions
from ui.search import Search
from ui.text import escape_markdown
from ui.widgets import MOST_QUESTION, check_typed, choice, kept

CHOSEN = "diagnose-chosen"  # key of the session's state: the name of the chosen labelled question
ABOUT = "diagnose-about"  # key of the session's state: the question that the passage was given for
REWORDED = 0.6  # likeness of characters from which on a question is the former one in other words
MAX_HITS_SHOWN = 50
MAX_PASSAGE_CHARACTERS = 5_000
place_of = st.cache_data(max_entries=32, show_spinner="Looking for the passage…", **OF_DOCUMENTS)(locate)


@dataclass(frozen=True)
class Asked:
    """A question, the expected passage, and its location; None where no document holds it word for word."""

    question: str
    passage: str
    place: Location | None
    answer: str = ""  # the right one, where it is known


def ask(search: Search, questions: tuple[Question, ...]) -> Asked | None:
    """Draw the input; return the question and the passage, or None until both are there.

    ``questions`` are the labelled ones about the documents.
    """
    has_labels = bool(questions)
    key = f"diagnose-way-{has_labels}"
    ways = [LABELLED, PASTED, SEARCHED] if has_labels else [PASTED, SEARCHED]
    if st.session_state.get(key) not in ways:  # an address may name any
        st.session_state[key] = ways[0]
    way = choice(
        "The passage that should have been found",
        ways,
        key,
        "The bundled documents come with labelled questions, whose passages are known. To have more, "
        f"{LABEL_SOME}. Or paste the passage, or find it by a few of its words.",
    )
    if way == LABELLED:
        return ask_labelled(search, questions)
    if not has_labels:
        st.caption(f"No labelled question is about these documents. To choose from some here, {LABEL_SOME}.")
    changed = follow_question("diagnose-question")
    if is_about_another(ABOUT, st.session_state["diagnose-question"], REWORDED):
        st.session_state.update(dict.fromkeys(("diagnose-words", "diagnose-passage", "diagnose-answer"), ""))
    question = st.text_input(
        "Your question",
        **kept("diagnose-question"),
        on_change=changed,
        placeholder="Which question was answered wrongly, or not at all?",
        help="As you asked it on the page “Ask your documents”.",
    )
    check_typed(question, MOST_QUESTION)
    asked = (ask_pasted if way == PASTED else ask_searched)(question, search.documents)
    answer = st.text_input(
        "The right answer, if you know its words",
        **kept("diagnose-answer"),
        max_chars=200,
        placeholder="Without it, any words of the passage count as right",
        help="Parts that must all occur stand between &, other spellings of one between |: 5 May | 05/05.",
    )
    return asked and replace(asked, answer=answer)


def ask_labelled(search: Search, questions: tuple[Question, ...]) -> Asked | None:
    """Draw the choice of a labelled question; at first, only those whose passage is not found are listed."""
    labelled = ranked_labels(questions, search)
    n_missing = sum(not one.is_among(search.k) for one in labelled)
    only_missing = st.toggle(
        f"Only those whose passage is not among the first {search.k}: {n_missing:,} of {len(labelled):,}",
        value=True,
        **kept("diagnose-missing"),
        help="A question with several passages is listed once for each of them.",
    )
    # The chosen question stays in the list when new settings find its passage.
    named = (one.name for one in labelled if one.question.text == current_question())
    last = st.session_state.get(CHOSEN) or next(named, None)
    shown = [one for one in labelled if not one.is_among(search.k) or not only_missing or one.name == last]
    if not shown:
        st.success(
            "Under these settings every labelled passage is found. Try "
            + ("fewer passages or " * (search.k > 1))
            + "other chunks."
        )
        return None
    by_name = {one.name: one for one in shown}

    def changed() -> None:
        one = by_name[st.session_state["diagnose-labelled"]]
        set_question(one.question.text)
        set_passage(one.place.document, one.place.start, one.place.end)

    chosen = st.selectbox(
        "Question and passage",
        list(by_name),
        index=list(by_name).index(last) if last in by_name else 0,
        key="diagnose-labelled",
        on_change=changed,
        help="The question, and the beginning of the passage.",
    )
    st.session_state[CHOSEN] = chosen
    one = by_name[chosen]
    st.caption(f"Question: {escape_markdown(one.question.text)}")  # a narrow screen cuts it off above
    return Asked(one.question.text, one.reference.content, one.place)


def ask_pasted(question: str, documents: list[Document]) -> Asked | None:
    """Draw a box for the passage, and search for it in all chosen documents."""
    key, current = "diagnose-passage", current_passage()
    texts = {document.name: document.text for document in documents}
    if current is not None and current.document in texts:
        follow(key, current, texts[current.document][current.start : current.end])
    passage = st.text_area(
        "The passage",
        **kept(key),
        placeholder="Paste the text that should have been found",
        help="White space, quotation marks and dashes need not be those of the document, and a few words may "
        "differ.",
    )
    if not question.strip() or not check_typed(passage, MAX_PASSAGE_CHARACTERS).strip():
        st.info("Give the question, and the passage that it should find.", icon=":material/find_in_page:")
        return None
    place = place_of(passage, documents)
    if place is not None and place.how != "approximate":
        set_passage(place.document, place.start, place.end, shown_by=key)
    return Asked(question, passage, place if place and place.how != "approximate" else None)


def ask_searched(question: str, documents: list[Document]) -> Asked | None:
    """Draw a search for a sentence of the documents by some of its words."""
    wanted = st.text_input(
        "Words of the passage",
        **kept("diagnose-words"),
        max_chars=200,
        placeholder="Lists the sentences with all of them",
        help="Upper and lower case are the same, and parts of words count.",
    )
    if not wanted.strip():
        st.info("Type a few words of the passage to pick its sentence.", icon=":material/find_in_page:")
        return None
    found = [(document, *span) for document in documents for span in sentences_with(wanted, document.text)]
    if not found:
        st.info("No sentence of the documents has all these words. Try fewer, or paste the passage.")
        return None
    if len(found) > MAX_HITS_SHOWN:
        st.caption(f"The first {MAX_HITS_SHOWN} of {len(found):,} sentences. Add words to narrow them down.")
    hits = [f"{each.name} · {beginning(each.text[start:end], 140)}" for each, start, end in found]
    number = st.selectbox(
        "The passage",
        range(min(len(found), MAX_HITS_SHOWN)),
        format_func=lambda number: hits[number],
        key="diagnose-sentence",
        help="Sentences with all the words, in the order of the documents.",
    )
    document, start, end = found[min(number, len(found) - 1)]
    if not question.strip():
        st.info("Give the question that should have found it.", icon=":material/find_in_page:")
        return None
    set_passage(document.name, start, end)
    return Asked(question, document.text[start:end], Location(document.name, start, end))


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
    asked: list[tuple[Question, Reference, Location, Question]] = []
    for question in questions:
        for reference in question.references:
            called = [document for document in documents if stem(document.name) == question.corpus_id]
            there = (one for one in called if one.text[reference.start : reference.end] == reference.content)
            document = next(there, called[0])
            place = Location(document.name, reference.start, reference.end)
            target = passage_question(question.text, place, document)
            asked.append((question, reference, place, target))
    targets = [target for *_, target in asked]
    row_of = {text: row for row, text in enumerate(dict.fromkeys(target.text for target in targets))}
    scores = all_scores(tuple(row_of), index, search.model, search.retriever, vector_cache(questions))
    scores = scores[[row_of[target.text] for target in targets]]  # (n_asked, n_chunks)
    # A question names its document by its stem, which several may share; the passage is in one of them.
    names = np.array([chunk.document for chunk in index.chunks], object)  # (n_chunks,)
    of_places = np.array([place.document for _, _, place, _ in asked], object)  # (n_asked,)
    relevant = relevance(targets, index.chunks) & (of_places[:, None] == names)  # (n_asked, n_chunks)
    reciprocal = reciprocal_rank(scores, relevant).tolist()
    return [
        LabelledPassage(*one[:3], round(1 / each) if each else None)
        for one, each, is_cut in zip(asked, reciprocal, relevant.any(axis=1), strict=True)
        if is_cut
    ]


def vector_cache(questions: Sequence[Question], documents: Sequence[Document] = ()) -> VectorCache:
    """Return the cache of vectors: that of all sessions where questions and documents are bundled."""
    known = {question.text for question in bundled_questions()}
    is_known = known.issuperset(question.text for question in questions)
    return vectors_of(documents) if is_known else session_vectors()
