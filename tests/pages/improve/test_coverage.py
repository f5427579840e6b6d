"""The sentence about the labelled questions with which the page “Questions” begins."""

import pytest

from engine.documents.document import Document
from engine.evaluation.questions import Question, Reference, question_fields
from engine.storage.workspace import Workspace
from pages.improve.questions.labelling import headline
from tests.apps import app_page, own_documents
from ui.questions.kept import LABELLED
from ui.text import escape_markdown


@pytest.mark.parametrize(
    ("counts", "n_questions", "n_own", "words"),
    [
        ({"a.md": 0}, 0, 0, "No labelled question is about the document in use: no setting can be "),
        ({"a.md": 0, "b.md": 0}, 0, 0, "No labelled question is about the 2 documents in use: no setting"),
        ({"a.md": 1}, 1, 1, "1 labelled question, your own, is about the document in use."),
        ({"a.md": 1}, 1, 0, "1 labelled question, a bundled one, is about the document in use."),
        ({"a.md": 34}, 34, 0, "34 labelled questions, none of them your own, are about the document in use."),
        (
            {"a.md": 8, "b.md": 1200},
            1208,
            1208,
            "1,208 labelled questions, all of them your own, are about the 2 documents in use, 8 to 1,200 a",
        ),
        ({"a.md": 2, "b.md": 2}, 4, 3, "3 of them your own, are about the 2 documents in use, 2 about each."),
        (
            {"a.md": 5, "b.md": 0, "c.md": 0},
            5,
            0,
            "none of them your own, are about 1 of the 3 documents in use; b.md and c.md have none.",
        ),
        ({"a.md": 5, "b.md": 0}, 5, 5, "are about 1 of the 2 documents in use; b.md has none."),
        (
            {"a.md": 5, **dict.fromkeys("bcde", 0)},
            5,
            5,
            "about 1 of the 5 documents in use; 4 others have none.",
        ),
    ],
)
def test_the_numbers_of_the_sentence_and_its_words_agree(counts, n_questions, n_own, words):
    assert words in headline(counts, n_questions, n_own)


def test_the_page_begins_with_the_questions_about_the_documents_in_use(encoder):
    text = "The tide turns twice a day."
    question = Question("How often does it turn?", "tide", (Reference(text[15:26], 15, 26),))
    other = Question("What is elsewhere?", "elsewhere", (Reference("x", 0, 1),))
    app = app_page(
        "improve/questions",
        **own_documents(Document("tide.md", text), Document("ebb.md", "The ebb is late.")),
        workspace=Workspace(question_sets={LABELLED: [question_fields(question), question_fields(other)]}),
    ).run()
    words = "1 labelled question, your own, is about 1 of the 2 documents in use; ebb.md has none."
    main = [each.value for each in app.main.markdown]
    assert main[0] == f"**{escape_markdown(words)}**"
