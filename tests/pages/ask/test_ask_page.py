from engine.documents.document import Document
from engine.errors import InputError
from engine.kernels import primitives
from tests.apps import app_file, by_label, html_of, own_documents, plain, said


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
    assert "None: these documents have no headings or names" in said(app_file(**own).run())


def asked(app, question):
    app.text_input(key="question").set_value(question)
    return app.button(key="FormSubmitter:question-form-Ask").click().run()


def test_a_question_without_an_answer_is_refused_until_the_threshold_is_lowered():
    app = asked(app_file(searched=["inside_the_pipeline.md"]).run(), "How do I bake sourdough bread?")
    assert "closer than 9" in plain(said(app))
    assert not app.tabs
    app.slider(key="min_relevance").set_value(0).run()
    assert "the answer from before your change of the search" in said(app)
    by_label(app.button, "Ask again").click().run()
    assert "Sources" in [tab.label for tab in app.tabs]


def test_a_follow_up_is_read_with_the_topic_until_a_new_one_begins():
    app = asked(app_file().run(), "How much did it cost to build Copenhagen's Amager Bakke plant?")
    app = asked(app, "what can people do there besides skiing")
    [read_as] = [box.value for box in app.text_input if box.label == "Read as a follow-up:"]
    assert "besides skiing (" in read_as
    assert "Amager Bakke" in read_as
    assert "climbing wall" in html_of(app)
    by_label(app.button, "New topic").click().run()
    assert "The next question starts a new topic." in said(app)
    app = asked(app, "And in winter?")
    assert not [box for box in app.text_input if box.label == "Read as a follow-up:"]
