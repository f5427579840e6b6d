from engine.documents.document import Document
from engine.errors import InputError
from engine.kernels import primitives
from tests.apps import app_file, own_documents, said


def test_the_box_of_the_question_is_there_while_kernels_are_compiled(monkeypatch):
    def ended_early():
        raise InputError("not compiled yet")

    monkeypatch.setattr(primitives, "has_op_tape", ended_early)
    app = app_file().run()
    assert [error.value for error in app.error] == ["not compiled yet"]
    assert [box.label for box in app.text_input] == ["Your question"]
    assert [chosen.label for chosen in app.multiselect] == ["Search in"]


def test_without_a_subject_to_ask_about_the_examples_say_so():
    own = own_documents(Document("tide.md", "The tide turns."))
    assert "None: these documents have no headings or names of which" in said(app_file(**own).run())
