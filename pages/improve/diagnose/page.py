"""Why wasn't it found? From a wrong answer and its passage to the cause, and to a cure that is tried."""

from engine.evaluation.questions import Question
from engine.inspection.diagnosis.chain import Chain
from engine.inspection.diagnosis.diagnose import Diagnosis
from engine.retrieval.language_fit import language_note
from pages.improve.diagnose.above import show_rank
from pages.improve.diagnose.ask import Asked, ask
from pages.improve.diagnose.cure import diagnosed, show_applied, show_cure
from pages.improve.diagnose.links import show_cause, show_chain, show_passage
from ui.documents import NoDocumentError
from ui.languages import show_language_note
from ui.models import load_encoder
from ui.questions.sets import some_usable
from ui.report import Report, element, facts, paragraph
from ui.search import Search
from ui.setting_values import settings_words
from ui.settings import search_sidebar
from ui.text import Strong


def show(asked: Asked, search: Search, questions: tuple[Question, ...]) -> None:
    """Draw the cause, its cure, and the links."""
    report = Report(paragraph("The passage that should have answered: ", Strong(asked.passage)))
    show_language_note(report, language_note(search.index.languages.values(), search.model, asked.question))
    found = diagnosed(asked, search)
    show_applied(report, found)
    show_cause(report, found)
    show_cure(report, found, asked, search, questions)
    show_chain(report, found.chain)
    show_evidence(report, found, found.chain, search)
    report.parts += [
        element("h2", "Settings"),
        facts(
            settings_words(search.settings)
            | {
                "Encoder": search.model.name,
                "Chunks": f"{len(search.index.chunks):,}",
                "Documents searched": ", ".join(document.name for document in search.documents),
            }
        ),
    ]
    report.button("diagnosis", asked.question)


def show_evidence(report: Report, found: Diagnosis, chain: Chain, search: Search) -> None:
    """Draw the passage with its chunks, and what ranks above it."""
    if found.place is None or chain.ranking is None:
        return
    show_passage(report, found.place, chain, search)
    show_rank(report, found.before.question, search, chain)


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
