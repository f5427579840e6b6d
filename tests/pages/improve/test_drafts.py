"""Drafts on the pages: written, read one by one, marked wherever they count, and what they may claim."""

from dataclasses import replace

import numpy as np
import pytest

from engine.documents.document import Document
from engine.evaluation.questions import DRAFTED, KEPT, Question, Reference, question_fields, to_jsonl
from engine.settings import Configuration
from engine.storage.workspace import Workspace
from pages.improve.settings.conclusion import ELSEWHERE, EXPECTED, draft_sentence, verdicts
from tests.apps import app_of, app_page, by_label, html_of, own_documents, said, tables
from tests.experiments import experiment, results_page, row
from tests.ui.test_question_sets import picker_page
from ui.questions.kept import DRAFTS, LABELLED

TEXT = (
    "The harbour of Orland was opened to large ships in 1891 after a long dispute. The owners of the fishing "
    "boats of Orland pay a fee of eleven crowns for every berth. The pilot of the harbour keeps bees there."
)
HARBOUR = Document("harbour.md", TEXT)
SENTENCES = [f"{each.rstrip('.')}." for each in TEXT.split(". ")]


def draft(asked, passage, answer):
    start = TEXT.index(passage)
    at = TEXT.index(answer)
    place = Reference(passage, start, start + len(passage))
    return Question(asked, "harbour", (place,), Reference(answer, at, at + len(answer)), DRAFTED, 3)


OPENED = draft("When could ships first come to Orland?", SENTENCES[0], "1891")
FEE = draft("What does a berth cost?", SENTENCES[1], "eleven crowns")
NONE = Question("When could ships first come to Tessel?", "harbour", (), None, DRAFTED, 3)


def questions_page(*questions, **state):
    sets = {DRAFTS: [question_fields(each) for each in questions]} if questions else {}
    cut = {"splitter": "recursive", "chunk_tokens": 32, "questions-tab": "Drafts"}
    workspace = Workspace(question_sets=sets)
    return app_page("improve/questions", **own_documents(HARBOUR), **cut, workspace=workspace, **state).run()


def kept(app, name):
    return app.session_state["workspace"].question_sets.get(name, [])


def test_drafts_are_kept_edited_and_struck_one_by_one(encoder):
    app = questions_page(OPENED, FEE, NONE)
    assert "When could ships first come to Orland?" in app.subheader[0].value
    assert f"{SENTENCES[0]}</mark>" in html_of(app)
    assert "Answer, as the reader finds it: **1891**" in said(app)
    app.button(key="drafts-keep").click().run()
    assert kept(app, LABELLED) == [question_fields(replace(OPENED, status=KEPT))]
    app.button(key="drafts-edit").click().run()
    app.text_input(key=f"drafts-text-{FEE.text}").set_value("How much is a berth?")
    app.text_input(key=f"drafts-answer-{FEE.text}").set_value("twelve crowns")
    by_label(app.button, "Keep it so").click().run()
    assert "not in the marked sentence" in said(app)
    app.text_input(key=f"drafts-answer-{FEE.text}").set_value("crowns")
    by_label(app.button, "Keep it so").click().run()
    at = TEXT.index("crowns")
    edited = replace(FEE, text="How much is a berth?", answer=Reference("crowns", at, at + 6), status=KEPT)
    assert kept(app, LABELLED)[1] == question_fields(edited)
    assert "To be refused" in said(app)
    app.button(key="drafts-strike").click().run()
    assert (kept(app, DRAFTS), len(kept(app, LABELLED))) == ([], 2)
    assert "Every draft is read" in said(app)
    app.button(key="drafts-undo").click().run()
    app.button(key="drafts-undo").click().run()
    assert kept(app, DRAFTS) == [question_fields(FEE), question_fields(NONE)]
    assert len(kept(app, LABELLED)) == 1


def test_nothing_is_drafted_about_the_samples_while_files_are_read(encoder, monkeypatch):
    monkeypatch.setattr("ui.questions.drafts.foreseen", lambda kind, seconds: seconds)
    app = questions_page(upload_failures=[], upload_skipped=[])
    assert "about 1 s, in the background" in said(app)  # of a few sentences
    app.session_state["unread"] = [("sound.md", b"The sound is four miles wide.")]
    app.button(key="drafts-start").click().run()
    assert "Your files were still being read" in app.error[0].value


def test_a_draft_follows_its_sentence_and_one_whose_sentence_has_changed_is_told(encoder):
    moved = replace(OPENED, references=(Reference(SENTENCES[0], 1, 1 + len(SENTENCES[0])),))
    app = questions_page(moved)
    assert f"{SENTENCES[0]}</mark>" in html_of(app)
    assert kept(app, DRAFTS) == [question_fields(OPENED)]
    changed = replace(OPENED, references=(Reference("The harbour was opened in 1790.", 0, 31),))
    assert "has changed since" in said(questions_page(changed))


def picker(**sets):
    rows = {name: [question_fields(each) for each in own] for name, own in sets.items()}
    return app_of(
        picker_page, given=[HARBOUR], **own_documents(HARBOUR), workspace=Workspace(question_sets=rows)
    ).run()


def test_without_questions_drafts_are_offered_and_unread_ones_are_a_set_of_their_own(encoder):
    app = picker()
    assert app.selectbox(key="questions").value == DRAFTS
    assert "You have no questions yet: draft 60 from your documents" in said(app)
    app = picker(**{DRAFTS: [OPENED, NONE], LABELLED: [replace(FEE, status=KEPT)]})
    assert app.selectbox(key="questions").value == DRAFTS
    assert app.session_state["picked"] == [OPENED, replace(FEE, status=KEPT)]
    assert "1 draft that nobody has read and 1 draft that you kept" in said(app)
    assert "1 that the documents do not answer, to be refused" in said(app)
    app.selectbox(key="questions").set_value(LABELLED).run()
    assert app.session_state["picked"] == [replace(FEE, status=KEPT)]
    assert "1 draft that you kept" in said(app)


def test_an_uploaded_file_of_drafts_joins_the_drafts(encoder):
    app = picker()
    content = to_jsonl([OPENED, FEE]).encode()
    app.file_uploader(key="questions-file-0").upload("drafts.jsonl", content, "text/plain").run()
    assert app.selectbox(key="questions").value == DRAFTS
    assert kept(app, DRAFTS) == [question_fields(OPENED), question_fields(FEE)]


def test_one_choice_of_questions_serves_search_and_answers(encoder):
    state = own_documents(HARBOUR)
    sets = {DRAFTS: [question_fields(each) for each in (OPENED, NONE)]}
    page = {"workspace": Workspace(question_sets=sets)}
    app = app_page("improve/settings", **state, **page).run()
    assert app.selectbox(key="questions").value == DRAFTS
    assert "1 question about these documents, 1 draft that nobody has read" in said(app)
    assert app.number_input(key="grid-answered").max == 2
    rows = b"question,answer\nWho keeps bees?,the pilot\nWhat is paid?,Orland\nWho is the mayor?,\n"
    app.file_uploader(key="questions-file-0").upload("short.csv", rows, "text/csv").run()
    assert app.selectbox(key="questions").value == "short.csv"
    assert app.number_input(key="grid-answered").max == 3
    app = picker()
    app.file_uploader(key="questions-file-0").upload("short.csv", rows, "text/csv").run()
    (bees,) = app.session_state["picked"]
    assert bees.references[0].content == SENTENCES[2]
    assert "1 without a passage at its place" in said(app)
    assert "1 that the documents do not answer, to be refused" in said(app)
    app.button(key="questions-remove").click().run()
    assert app.selectbox(key="questions").value == DRAFTS


def drawing_page():
    import streamlit as st

    from ui.documents import session_documents
    from ui.jobs import current_job
    from ui.questions.drafts import show_drafting

    show_drafting(session_documents(), is_offer=True)
    if job := current_job("drafts"):
        st.session_state["job"] = job


def test_drafts_are_written_in_the_background_and_stopped_ones_gone_on_with(encoder, reader, decoder):
    app = app_of(drawing_page, **own_documents(HARBOUR)).run()
    app.button(key="drafts-start").click().run()
    job = app.session_state["job"]
    while not job.rows and not job.done:
        job.wait(seconds=0.05)
    job.stop()
    job.result()
    app.run()
    n = len(job.rows)
    assert 1 <= n < 60
    assert len(kept(app, DRAFTS)) == n
    assert f"{n} of 60 are made" in app.button(key="drafts-start").label


@pytest.mark.parametrize(
    ("metric", "by", "words"),
    [
        ("mrr", "By what 13 labelled corpora say, moved by 40 drafts that nobody has read", "1 of 2 is"),
        ("ndcg@k", "By 40 drafts that nobody has read", "1 of 2 is"),
    ],
)
def test_drafts_say_what_is_clearly_worse_and_never_what_is_best(metric, by, words):
    asked = [Question(f"{n}?", "harbour", (), None, DRAFTED) for n in range(40)]
    cells = [Configuration(retriever=name, k=4) for name in ("weighted", "hybrid", "dense")]
    values = [np.repeat([1.0, 0.0], [n, 40 - n]) for n in (38, 36, 5)]
    rows = [row(one, found) for one, found in zip(cells, values, strict=True)]
    judged = verdicts(rows, metric, asked)
    sentence = draft_sentence(judged, "40 drafts that nobody has read", metric)
    assert sentence.startswith(f"{by}: {words} clearly worse than the app's settings.")
    assert "keep questions, towards 40" in sentence
    assert (ELSEWHERE in sentence) == (metric == "mrr")


def test_other_corpora_hold_back_what_few_drafts_say():
    asked = [Question(f"{n}?", "harbour", (), None, DRAFTED) for n in range(8)]
    rows = [row(Configuration(retriever=name), [hit] * 8) for name, hit in (("weighted", 0), ("dense", 1))]
    found = verdicts(rows, "mrr", asked)[1].comparison.difference
    alone = verdicts(rows, "mrr")[1].comparison.difference
    assert found < 0.5 < alone == 1
    kept = [replace(each, status=KEPT) for each in asked] * 50
    rows = [replace(one, values=dict.fromkeys(one.values, one.values["mrr"] * 50)) for one in rows]
    assert verdicts(rows, "mrr", [*kept[1:], asked[0]])[1].comparison.difference > 0.8


def test_results_of_drafts_recommend_nothing_and_show_the_order_of_other_corpora(encoder):
    one = experiment()
    asked = tuple(replace(each, status=DRAFTED) for each in one.questions)
    app = app_of(results_page, args=(replace(one, questions=asked), one.configurations[0])).run()
    assert "nobody has read" in said(app)
    assert "Recommended" not in said(app)
    configurations = next(each for each in tables(app) if "Against the app's" in each.columns)
    assert list(configurations.columns[1:3]) == [ELSEWHERE, EXPECTED]
    assert not set(configurations["Against the app's"]) & {"better", "worse"}
