"""Why wasn't it found? One question, one passage, and every step between them in order."""

from dataclasses import replace

import streamlit as st

from engine.evaluation.questions import Question
from engine.inspection.diagnosis.causes import InUse, causes
from engine.inspection.diagnosis.diagnose import Diagnosis, diagnose
from engine.inspection.diagnosis.location import Location
from engine.retrieval.language_fit import language_note
from pages.improve.diagnose.ask import Asked, ask
from pages.improve.diagnose.other_settings import current_configuration, show_other_settings
from pages.improve.diagnose.rank import ranking_of, show_rank
from pages.improve.diagnose.steps import show_causes, show_chunks, show_lost, show_place
from ui.corpus import null_scores_of_documents
from ui.documents import NoDocumentError
from ui.languages import show_language_note
from ui.models import load_encoder
from ui.questions.sets import some_usable
from ui.report import Report, element, facts, paragraph
from ui.search import Search
from ui.setting_values import settings_in_use, settings_words
from ui.settings import search_sidebar
from ui.text import Strong


@st.cache_resource(
    max_entries=8,
    show_spinner="Looking for the cause…",
    scope="session",
    hash_funcs={Search: lambda search: (*search.embedded, search.k)},
)
def diagnosis_of(question: str, place: Location, search: Search) -> Diagnosis:
    """Diagnose a question and a passage under the settings in use."""
    document = search.document(place.document)
    return diagnose(question, place, document, search.index, search.model, search.k)


def show(asked: Asked, search: Search, questions: tuple[Question, ...]) -> None:
    """Draw the causes and the steps."""
    report = Report(paragraph("The passage that should have been found: ", Strong(asked.passage)))
    show_language_note(report, language_note(search.index.languages.values(), search.model, asked.question))
    if asked.place is None:
        show_causes(report, causes(None))
        show_place(report, asked)
        save(report, asked, search)
        return
    found = diagnosis_of(asked.question, asked.place, search)
    ranking = ranking_of(asked.question, asked.place, search)
    rank = ranking.rank if ranking.is_found else None
    left_out = search.model.prompts.in_search if search.cut.prompts == "none" else {}
    longest = search.cut.text_limit(search.model)  # the most tokens of a chunk that can be read
    if (encoder := search.model.as_encoder) is not None and not search.cut.uploaded:
        longest = encoder.config.max_positions
    used = InUse(current_configuration(search), longest, rank, left_out)
    if used.finds:
        # Without a near passage among those found, no answer is given.
        nearest = max(float(found.scores[row]) for row in ranking.order[: search.k])
        null_scores = null_scores_of_documents(search.documents, search.model, search.cut, search.pooling)
        least = settings_in_use(load_encoder())["min_relevance"]
        used = replace(used, relevance=null_scores.relevance(nearest), min_relevance=least)
    found_causes = causes(found, used)
    short, steps = st.container(), Report()
    show_place(steps, asked)
    show_chunks(steps, asked.place, search, found, ranking)
    show_lost(steps, asked.place, search, found)
    show_rank(steps, asked.question, search, found, ranking)
    fix = show_other_settings(steps, asked, asked.place, search, questions)
    with short:
        show_causes(report, found_causes, used, () if used.finds else fix)
    report.parts += steps.parts
    save(report, asked, search)


def save(report: Report, asked: Asked, search: Search) -> None:
    """Draw the download of what is drawn, with the settings and the documents searched."""
    searched = {
        "Encoder": search.model.name,
        "Chunks": f"{len(search.index.chunks):,}",
        "Documents searched": ", ".join(document.name for document in search.documents),
    }
    report.parts += [element("h2", "Settings"), facts(settings_words(search.settings) | searched)]
    report.button("diagnosis", asked.question)


def main() -> None:
    """Draw the page."""
    search = search_sidebar(load_encoder())
    if not search.documents:
        raise NoDocumentError
    _ = search.index  # embedded under its own progress bar, before anything is asked
    questions = tuple(some_usable(search.documents))
    if asked := ask(search, questions):
        show(asked, search, questions)


main()
