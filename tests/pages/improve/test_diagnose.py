import pytest

from engine.documents.document import Document
from engine.documents.loaders import BUNDLED_CORPUS
from engine.documents.sentences import sentence_spans
from engine.evaluation.questions import Question, Reference, question_fields
from engine.inspection.diagnosis.suspects import Cause
from engine.storage.workspace import Workspace
from pages.improve.diagnose.links import CAUSES
from tests.apps import app_page, by_label, own_documents, plain, said
from tests.model_files import edit_tensors
from tests.sentence_transformer_folders import save_reranker

HEADINGS = [
    "In short",
    "The cure",
    "From the file to the answer",
    "The passage and its chunks",
    "What ranks above it",
]
UNITS = Document(
    "units.txt",
    "The refrigerant of unit A7 is propane. The coolant of the unit is glycol. "
    "The solvent of the unit is acetone.",
)
MUSEUM = Document("museum.txt", "The town museum shows clocks. Guided tours start at the entrance.")
OWN = own_documents(UNITS, MUSEUM)
TOURS, CLOCKS = Reference(MUSEUM.text[30:], 30, len(MUSEUM.text)), Reference(MUSEUM.text[:29], 0, 29)
MISSED = Question("What is the coolant of the unit?", "museum", (TOURS,))
FOUND = Question("What does the town museum show?", "museum", (CLOCKS,))
SETS = {"mine.jsonl": [question_fields(MISSED), question_fields(FOUND)]}
LABELLED = OWN | {"workspace": Workspace(question_sets=SETS), "k": 1}


def page(**state):
    return app_page("improve/diagnose", **{"searched": ["inside_the_pipeline.md"], **state}).run()


def found_by_words(question, words, **state):
    way = {"diagnose-way-False": "Find it in a document", "diagnose-way-True": "Find it in a document"}
    return page(**OWN | way | {"diagnose-question": question, "diagnose-words": words} | state)


def document(name):
    return (BUNDLED_CORPUS / name).read_text(encoding="utf-8")


def headings(app):
    return [heading.value for heading in app.header]


def pasted(question, passage, **state):
    way = {"diagnose-way-True": "Paste the passage", "diagnose-way-False": "Paste the passage"}
    return page(**state | way | {"diagnose-question": question, "diagnose-passage": passage})


@pytest.fixture(scope="module")
def labelled(encoder):
    return page(**LABELLED)


def test_every_cause_has_a_title():
    assert set(CAUSES) == set(Cause.__args__)


def test_a_labelled_question_that_misses_is_explained_at_once(labelled):
    assert headings(labelled) == HEADINGS
    assert labelled.warning
    assert "Word for word" in plain(said(labelled))
    assert "ranks it" in plain(said(labelled))


def test_the_question_of_the_session_comes_first(labelled):
    app = page(**LABELLED | {"current-question": FOUND.text})
    assert by_label(app.selectbox, "Question and passage").value.startswith(FOUND.text[:30])
    assert f"Question: {FOUND.text}" in said(app)
    app = page(**LABELLED | {"diagnose-way-True": "none of the ways"})
    assert app.button_group[0].value == "A labelled question"


def test_a_text_of_no_document_ends_at_the_first_link(encoder):
    app = pasted("Why?", "A purple <b>submarine</b> sank near Iceland last Tuesday.")
    assert headings(app) == HEADINGS[:3]
    assert "It is not in the documents" in said(app)
    assert "No setting and no wording can give it" in plain(said(app))


def test_without_a_question_or_a_passage_both_are_asked_for(encoder):
    assert "Give the question, and the passage" in said(pasted("", ""))
    assert not headings(pasted("Why?", " "))


def test_a_sentence_of_any_document_is_picked_by_its_words(encoder):
    app = page(
        **{
            "diagnose-way-True": "Find it in a document",
            "diagnose-question": "How many words does it know?",
            "diagnose-words": "vocabulary WORDPIECE",
        }
    )
    text = document("inside_the_pipeline.md").lower()
    sentences = [text[start:end] for start, end in sentence_spans(text)]
    options = by_label(app.selectbox, "The passage").options
    assert len(options) == sum("vocabulary" in each and "wordpiece" in each for each in sentences) > 0
    assert all(option.startswith("inside_the_pipeline.md · ") for option in options)
    assert "No sentence of the documents" in said(found_by_words("Why?", "zebra crossing"))


def test_a_cure_is_tried_applied_and_undone(encoder):
    app = found_by_words("What is the coolnat?", "coolant")
    assert "The question has a typing error" in said(app)
    assert "Ask “What is the coolant?”: the right answer is then given." in plain(said(app))
    assert "It changes only this question." in plain(said(app))
    app = by_label(app.button, "Apply it and ask again").click().run()
    assert app.session_state["current-question"] == "What is the coolant?"
    assert by_label(app.text_area, "The passage").value == "The coolant of the unit is glycol."
    assert app.success[0].value.startswith("**Nothing broke")
    assert "Applied:" in plain(said(app))
    app = by_label(app.button, "Undo").click().run()
    assert app.session_state["current-question"] == "What is the coolnat?"
    assert "The question has a typing error" in said(app)
    assert "Applied:" not in plain(said(app))


def test_a_setting_is_changed_and_changed_back(encoder):
    asked = "What is the solvent of the unit?", "solvent"
    app = found_by_words(*asked, refuse_threshold=99, answer_threshold=99)
    assert "It was refused by a threshold" in said(app)
    assert "It changes which answers are shown" in plain(said(app))
    app = by_label(app.button, "Apply it and ask again").click().run()
    assert app.session_state["refuse_threshold"] < 99
    assert app.success
    app = by_label(app.button, "Undo").click().run()
    assert app.session_state["refuse_threshold"] == 99


def test_the_right_answer_tells_a_wrong_one_of_the_same_passage(encoder):
    asked = "What is the coolant of the unit?", "coolant"
    assert found_by_words(*asked).success
    other = found_by_words(*asked, **{"diagnose-answer": "brine"})
    assert not other.success
    assert "cures" in plain(said(other))


def test_another_cross_encoder_ranks_anew(tmp_path):
    first, second = save_reranker(tmp_path / "first"), save_reranker(tmp_path / "second")

    def negate(weights):
        weights["classifier.weight"] *= -1  # the order of the first, from the other end

    edit_tensors(second, negate)
    asked = "What does a loader do?", "A loader turns a file into plain text."
    state = own_documents(Document("pipeline.md", document("inside_the_pipeline.md")[:4000]))
    state |= {"chunk_tokens": 64, "retriever": "cross-encoder"}
    app, other = (pasted(*asked, **state, reranker=str(path)) for path in (first, second))
    alone = found_line(other)
    assert found_line(app) != alone
    app.session_state["reranker"] = str(second)
    assert found_line(app.run()) == alone


def found_line(app):
    """The link that says where the passage ranks."""
    return next(line for line in plain(said(app)).split("\n") if "by a cross-encoder ranks it" in line)
