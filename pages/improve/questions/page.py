"""Questions whose answers are known: labelled in the app, or made from sentences of the documents."""

from pages.improve.questions.labelling import show_labelling
from pages.improve.questions.sentence_check import show_sentence_check
from ui.documents import NoDocumentError
from ui.models import load_encoder
from ui.settings import search_sidebar
from ui.uploaded_vectors import search_model
from ui.widgets import show_tabs


def main() -> None:
    """Draw the page."""
    encoder = load_encoder()
    documents, cut, pooling, retriever, _ = search_sidebar(encoder)
    if not documents:
        raise NoDocumentError
    model = search_model(documents)
    views = {
        "Label questions": lambda: show_labelling(documents, model, cut, pooling, retriever),
        "Sentence check": lambda: show_sentence_check(documents, model, cut, pooling, retriever),
    }
    show_tabs(views, "questions-tab")


main()
