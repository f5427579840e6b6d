import json
from dataclasses import replace

from engine.documents.document import Document
from engine.evaluation.questions import (
    Question,
    Reference,
    load_questions,
    parse_questions,
    question_fields,
    to_jsonl,
)
from engine.retrieval.retrievers import RETRIEVERS
from engine.storage.workspace import Workspace, export_workspace, import_workspace
from tests.apps import app_of, app_page, html_of, own_documents, said
from tests.text_files import packed
from ui.questions.kept import BUNDLED, DRAFTS, LABELLED, with_label
from ui.text import escape_markdown

EVIL = "<script>alert(1)</script> **bold**"
TEXT = (
    f"The tide turns twice a day. The moon pulls the sea {EVIL}. Sailors know when it does. The end is near."
)
TIDE = Document("tide.md", TEXT)
MOON = Reference(f"The moon pulls the sea {EVIL}.", 28, 28 + len(f"The moon pulls the sea {EVIL}."))
ASKED = Question("Who moves the water?", "tide", (MOON,))


def picker_page():
    import streamlit as st

    from ui.documents import chosen_documents
    from ui.questions.sets import question_set_picker

    documents = st.session_state.get("given") or chosen_documents()
    st.session_state["picked"] = question_set_picker(documents)


def picker(documents=None, **state):
    return app_of(picker_page, given=documents, **state).run()


def questions_page(*documents, **state):
    cut = {"splitter": "recursive", "chunk_tokens": 32}
    return app_page("improve/questions", **own_documents(*documents), **cut, **state).run()


def give(app, name, content, kind="text/csv"):
    number = app.session_state["questions-uploader"]
    return app.file_uploader(key=f"questions-file-{number}").upload(name, content, kind).run()


def jsonl(*questions):
    return to_jsonl(questions).encode()


def test_the_bundled_set_is_chosen_first_and_only_its_questions_about_the_documents_are_used():
    app = picker()
    assert app.selectbox(key="questions").value == BUNDLED
    assert app.session_state["picked"] == load_questions()
    app.session_state["searched"] = ["wikitexts.md"]
    app.run()
    own = [question for question in load_questions() if question.corpus_id == "wikitexts"]
    assert app.session_state["picked"] == own
    assert f"{len(own)} questions about these documents" in said(app)
    assert f"{310 - len(own)} about documents that are not searched" in said(app)


def test_uploaded_passages_are_located_and_a_question_of_a_workspace_that_is_none_is_left_out():
    rows = [question_fields(ASKED), {"question": " ", "corpus_id": "tide", "references": []}]
    odd = Workspace(question_sets={"odd.csv": rows})
    app = picker([TIDE], workspace=odd)
    assert app.session_state["picked"] == [ASKED]
    assert "Question 2 of the workspace is no labelled question" in said(app)
    app, passage = picker(), "A loader turns a file into plain text."
    give(app, "mine.csv", f"question,passage\nWhat does a loader do?,{passage}\nWhy?,No such words.".encode())
    [question] = app.session_state["picked"]
    assert (question.corpus_id, question.references[0].content) == ("inside_the_pipeline", passage)
    assert "No such words" in said(app)


def test_documents_that_a_question_cannot_tell_apart_are_said_at_once():
    app = picker([TIDE])
    give(app, "mine.jsonl", jsonl(ASKED))
    assert not app.warning
    app.session_state["given"] = [TIDE, Document("tide.html", "The tide of another land.")]
    app.run()
    assert app.session_state["picked"] == [ASKED]
    [warning] = app.warning
    assert "1 of them may be judged wrongly" in warning.value
    assert "which 2 documents are called" in said(app)


def test_a_file_is_kept_loses_nothing_by_ones_that_cannot_be_read_and_is_taken_out_again():
    app = give(picker([TIDE]), "mine.jsonl", jsonl(ASKED))
    assert app.selectbox(key="questions").value == "mine.jsonl"
    assert "Uploaded: mine.jsonl" in app.selectbox(key="questions").options
    for name, content, message in (
        ("bad.jsonl", b'{"question": "*high*"}', "'corpus_id' is missing"),
        ("bad.csv", b"\x89PNG\xff", "no UTF-8"),
        ("bad.csv", b"", "holds no questions"),
        ("bad.zip", b"PK\x03\x04nothing", "is damaged"),
    ):
        give(app, name, content)
        [error] = app.error
        assert escape_markdown(message) in error.value
        assert "\n" not in error.value
        assert app.session_state["picked"] == [ASKED]
        assert app.session_state["workspace"].question_sets == {"mine.jsonl": [question_fields(ASKED)]}
    give(app, "mine.jsonl", jsonl(ASKED))
    assert not app.error
    app.button(key="questions-remove").click().run()
    assert app.session_state["workspace"].question_sets == {}


def test_misplaced_passages_are_left_out_until_one_click_puts_them_right():
    moved = Question("Who?", "tide", (Reference(MOON.content, MOON.start + 9, MOON.end + 9),))
    gone = Question("What?", "tide", (Reference("Nothing like it zyx.", 0, 20),))
    bare = Question("Why?", "tide", ())
    lost = Question(EVIL, "tides", (MOON,))
    app = give(picker([TIDE]), "mine.jsonl", jsonl(ASKED, moved, gone, bare, lost))
    assert app.session_state["picked"] == [ASKED]
    assert "1 about documents that are not searched, 3 without a passage at its place" in said(app)
    problems = [caption.value for caption in app.caption if caption.value.startswith("Question")]
    assert len(problems) == 4
    assert any("did you mean tide?" in line for line in problems)
    assert any(f"stands at {MOON.start} to {MOON.end}" in line for line in problems)
    app.button(key="questions-repair").click().run()
    assert app.session_state["picked"] == [ASKED, Question("Who?", "tide", (MOON,))]
    assert len(app.session_state["workspace"].question_sets["mine.jsonl"]) == 5
    assert any(box.label.startswith("3 problems") for box in app.expander)


def test_a_set_is_replaced_only_by_one_that_holds_all_of_it():
    app, more = picker(), replace(ASKED, text="Who pulls?")
    for given, names in (
        ((ASKED,), ["mine.jsonl"]),
        ((more, ASKED), ["mine.jsonl"]),
        ((ASKED,), ["mine.jsonl", "mine (2).jsonl"]),
        ((ASKED,), ["mine.jsonl", "mine (2).jsonl"]),
    ):
        give(app, "mine.jsonl", jsonl(*given))
        assert list(app.session_state["workspace"].question_sets) == names
        assert app.session_state["questions"] == names[-1]
        kept = [row["question"] for row in app.session_state["workspace"].question_sets[names[-1]]]
        assert kept == [each.text for each in given]


def test_a_collection_brings_its_documents():
    rows = [{"_id": "d1", "title": EVIL, "text": "Lift."}, {"_id": "d2", "text": "Drag is what it costs."}]
    files = {
        "corpus.jsonl": "\n".join(map(json.dumps, rows)),
        "queries.jsonl": json.dumps({"_id": "q", "text": "Cost of wings?"}),
        "qrels/test.tsv": "query-id\tcorpus-id\tscore\nq\td2\t1\n",
    }
    app = give(picker(), "wings.zip", packed(files), "application/zip")
    assert not app.error
    [document] = app.session_state["uploads"]["wings.zip"]
    assert app.session_state["new_files"] == ("wings.zip",)
    app.session_state["searched"] = ["wings.zip"]
    [question] = app.run().session_state["picked"]
    [one] = question.references
    assert document.text[one.start : one.end] == one.content == "Drag is what it costs."


def test_labels_are_kept_saved_opened_and_deleted():
    app = questions_page(TIDE)
    assert "Write a question to begin" in said(app)
    app.text_input(key="label-question").set_value(f"Who moves it? {EVIL}").run()
    app.button(key="label-hit-0").click().run()
    app.selectbox(key="passage-from").set_value(1).run()
    app.selectbox(key="passage-to").set_value(1).run()
    app.button(key="label-keep").click().run()
    expected = Question(f"Who moves it? {EVIL}", "tide", (MOON,))
    kept = app.session_state["workspace"]
    assert kept.question_sets == {LABELLED: [question_fields(expected)]}
    opened = import_workspace("mine.glassbox", export_workspace(kept))
    assert opened.question_sets == kept.question_sets

    other = picker([TIDE], workspace=opened)
    assert other.selectbox(key="questions").value == DRAFTS  # one label decides nothing
    other.selectbox(key="questions").set_value(LABELLED).run()
    assert other.session_state["picked"] == [expected]

    app.multiselect(key=f"label-deleted-{LABELLED}").set_value([0]).run()
    app.button(key="label-delete").click().run()
    assert app.session_state["workspace"].question_sets == {}
    assert "<script" not in html_of(app)


def test_passages_are_found_by_words_too_and_marked_where_they_stand():
    kept = {"mine.jsonl": [question_fields(ASKED)]}
    long = Document("long.md", "Filler goes here. " * 90 + TEXT)
    app = questions_page(long, retriever="bm25", workspace=Workspace(question_sets=kept))
    app.selectbox(key="label-set").set_value("mine.jsonl").run()
    app.text_input(key="label-question").set_value("sailors").run()
    assert len([button for button in app.button if str(button.key).startswith("label-hit")]) == 1
    assert RETRIEVERS["bm25"].label in said(app)
    app.segmented_control(key="label-how").set_value("By words").run()
    app.text_input(key="label-words").set_value("SAILORS know").run()
    app.button(key="label-hit-0").click().run()
    assert app.selectbox(key="passage-from").value == app.selectbox(key="passage-to").value == 92
    app.slider(key="passage-place").set_value(92).run()
    assert app.selectbox(key="passage-from").value == app.selectbox(key="passage-to").value == 91
    app.selectbox(key="passage-to").set_value(93).run()
    app.selectbox(key="passage-from").set_value(92).run()
    app.button(key="label-keep").click().run()
    first, row = app.session_state["workspace"].question_sets["mine.jsonl"]
    assert first == question_fields(ASKED)
    assert row["references"][0]["content"] == "Sailors know when it does. The end is near."
    app.text_input(key="label-words").set_value("no such words").run()
    assert "No sentence of these documents" in said(app)


def test_a_second_passage_joins_its_question():
    second = Reference("The end is near.", 90, 106)
    one = with_label([], ASKED.text, "tide", MOON)
    assert one == [ASKED]
    assert with_label(one, ASKED.text, "tide", MOON) == one
    assert with_label(one, ASKED.text, "tide", second) == [Question(ASKED.text, "tide", (MOON, second))]
    assert len(with_label(one, ASKED.text, "moon", second)) == len(with_label(one, "Why?", "tide", MOON)) == 2
    assert parse_questions("labels.jsonl", jsonl(*one)) == one


def test_of_a_long_file_a_sample_is_kept_and_told(monkeypatch):
    monkeypatch.setattr("ui.questions.sets.MAX_QUESTIONS", 3)
    asked = [replace(ASKED, text=f"Who is number {n}?") for n in range(5)]
    content = jsonl(*asked, replace(ASKED, corpus_id="elsewhere"))
    app = give(picker(**own_documents(TIDE)), "long.jsonl", content)
    assert len(app.session_state["picked"]) == 3
    assert "a sample of 3 of 6 questions is kept, 5 questions being about documents" in app.toast[0].value
