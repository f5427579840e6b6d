"""Why wasn't it found? One question, one passage, and every step between them, in order."""

import streamlit as st

from engine import Encoder
from engine.documents.document import Document
from engine.errors import GlassboxError
from engine.evaluation.questions import Question
from engine.inspection.diagnosis import Diagnosis, diagnose
from engine.inspection.diagnosis_causes import causes
from engine.inspection.diagnosis_place import Location
from ui.answer import escape_markdown
from ui.chunk_settings import Cut, chunk_settings
from ui.corpus import document_picker, index_documents, ready
from ui.diagnose_ask import Asked, Search, ask
from ui.diagnose_rank import ranking_of, show_rank
from ui.diagnose_settings import show_settings
from ui.diagnose_steps import show_chunks, show_lost, show_place, show_verdict
from ui.frame import require_frame
from ui.models import load_encoder
from ui.question_sets import usable_questions
from ui.settings import passages_setting, pooling_setting, retriever_setting


def search_settings(encoder: Encoder) -> tuple[Cut, str, str, int]:
    """Draw the settings; return the cut, the pooling, the retriever, and how many passages count."""
    with st.expander("Chunks", icon=":material/content_cut:"):
        cut = chunk_settings(encoder)
        pooling = pooling_setting()
    return cut, pooling, retriever_setting(), passages_setting()


@st.cache_resource(max_entries=8, show_spinner="Looking for the cause…", scope="session")
def diagnosis_of(
    asked: Asked,
    place: Location,
    documents: tuple[Document, ...],
    cut: Cut,
    pooling: str,
    k: int,
    _search: Search,
) -> Diagnosis:
    """Diagnose once for a question, a passage, and settings."""
    document = _search.document(place.document)
    return diagnose(asked.question, place, document, _search.index, _search.encoder, k)


def show(asked: Asked, pooling: str, search: Search, questions: tuple[Question, ...]) -> None:
    """Draw the verdict and the steps."""
    if asked.place is None:
        show_verdict(None, None, causes(None), search.retriever)
        show_place(asked)
        return
    settings = (search.documents, search.cut, pooling)
    found = diagnosis_of(asked, asked.place, *settings, search.k, search)
    ranking = ranking_of(asked.question, asked.place, *settings, search.retriever, search)
    show_verdict(found, ranking, causes(found), search.retriever)
    show_place(asked)
    show_chunks(asked.place, search, found, ranking)
    show_lost(asked.place, search, found)
    show_rank(asked.question, search, found, ranking)
    show_settings(asked, asked.place, search, questions)


def main() -> None:
    """Draw the page."""
    require_frame("pages/diagnose.py")
    st.title("Why wasn't it found?")
    st.write(
        "Give a question and the passage that it should have found. See each step between them, in order, "
        "what went wrong, and the smallest change that mends it without breaking other questions."
    )
    try:
        encoder = load_encoder()
        with st.sidebar:
            documents = document_picker()
            cut, pooling, retriever, k = search_settings(encoder)
        if not documents:
            st.info("No document is chosen. Add one or pick some under “Search in” in the sidebar.")
            return
        index = index_documents(documents, encoder, cut, pooling)
        ready(index, retriever)
        search = Search(tuple(documents), encoder, cut, index, retriever, k)
        questions = tuple(usable_questions(documents))
        if asked := ask(search, questions):
            show(asked, pooling, search, questions)
    except GlassboxError as error:
        st.error(escape_markdown(str(error)), icon=":material/error:")


main()
