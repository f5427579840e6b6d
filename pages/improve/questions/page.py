"""Questions whose answers are known: labelled, or drafted from the documents."""

from pages.improve.questions.drafts import show_drafts
from pages.improve.questions.labelling import show_labelling
from ui.documents import NoDocumentError
from ui.models import load_encoder
from ui.settings import search_sidebar
from ui.widgets import show_tabs


def main() -> None:
    """Draw the page."""
    search = search_sidebar(load_encoder())
    if not search.documents:
        raise NoDocumentError
    views = {
        "Label questions": lambda: show_labelling(search),
        "Drafts": lambda: show_drafts(search.documents),
    }
    show_tabs(views, "questions-tab")


main()
