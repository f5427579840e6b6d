from functools import partial

from engine.documents.document import Document
from engine.models.reader import Reader
from tests.apps import app_file, by_label, html_of, own_documents, plain, said
from ui.models import shared_reader


def with_examples(text):
    """The page with one document, once the drafting of examples that its button starts has ended."""
    app = app_file(**own_documents(Document("tide.md", text))).run()
    assert "examples" not in app.session_state["jobs"]
    app.button(key="draft-examples").click().run()
    job = app.session_state["jobs"]["examples"]
    while not job.done:
        job.wait("", seconds=0.1)
    return app.run()


def test_examples_are_drafted_from_own_documents_and_without_a_sentence_they_say_so():
    app = with_examples("The lighthouse of Vardholm was painted green by Ada Holm in the summer of 1931.")
    [question] = app.pills(key="example").options
    assert question.endswith("?")
    app.pills(key="example").set_value(question).run()
    assert app.session_state["answer"].question == question
    assert "None: no document has a sentence" in said(with_examples("| 12 | 13 |"))


def test_an_example_about_files_reads_them_and_tells_what_was_left_out():
    app = app_file().run()
    app.pills(key="file-example").set_value("When is the crane repaired?").run()
    app.run()
    assert app.session_state["searched"] == ["ferry_fares.csv", "harbour_minutes.pdf", "pump_steps.html"]
    assert app.session_state["answer"].reading.text.endswith("1 to 12 June")
    assert "harbour_minutes.pdf: page 2" in plain(said(app))


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


def test_words_are_found_before_a_language_model_is_loaded_which_writes_on_request(monkeypatch):
    def loaded(*arguments):
        raise AssertionError("no text is asked for")

    with monkeypatch.context() as patch:
        patch.setattr("ui.models.read_decoder", loaded)
        patch.setattr("ui.models.default_decoder", loaded)
        app = app_file().run()
        asked(app, "What is the price of insulin for seniors on Medicare?")
        app.switch_page("pages/inside/answer/page.py").run()
        assert "No language model wrote a text" in said(app)
        assert app.button(key="write-text").label.startswith("Have ")
        app.switch_page("pages/ask/page.py").run()
    answer = app.session_state["answer"]
    span = answer.reading
    assert answer.written is None
    assert f"characters {span.start:,}–{span.end:,}" in plain(said(app))
    assert app.session_state["current-passage"].start <= span.start
    assert [tab.label for tab in app.tabs] == ["Sources", "In the documents", "Timing"]
    app.button(key="write-text").click().run()
    assert app.session_state["answer"].text
    assert not app.toggle(key="write").value
    assert "Exact prompt" in [tab.label for tab in app.tabs]
    assert "from before your change" not in said(app)


def test_without_the_readers_file_it_is_said_once_and_sentences_are_quoted(monkeypatch, tmp_path):
    monkeypatch.setattr(Reader, "load", partial(Reader.load, tmp_path / "none"))
    monkeypatch.setattr("engine.models.reader._shipped", [])
    shared_reader.clear()
    app = asked(app_file().run(), "What is the price of insulin for seniors on Medicare?")
    [line] = [plain(each.value) for each in app.warning]
    assert line.startswith("No reader: there is no reader at")
    assert line.endswith("; quotes only.")
    assert app.session_state["answer"].reading is None
    assert app.session_state["answer"].quotes
    shared_reader.clear()


def test_a_follow_up_is_read_with_the_topic_until_a_new_one_begins():
    app = asked(app_file().run(), "How much did it cost to build Copenhagen's Amager Bakke plant?")
    app = asked(app, "what can people do there besides skiing")
    [read_as] = [box.value for box in app.text_input if box.label == "Read as a follow-up:"]
    assert "besides skiing (" in read_as
    assert "Amager Bakke" in read_as
    assert "climbing wall" in html_of(app)
    by_label(app.button, "New topic").click().run()
    assert "climbing wall" not in html_of(app)
    assert by_label(app.text_input, "Your question").value == ""
    app = asked(app, "And in winter?")
    assert not [box for box in app.text_input if box.label == "Read as a follow-up:"]
