import zipfile

import numpy as np
import pytest

from engine.documents.document import Document
from engine.errors import InputError
from engine.evaluation.answers import AnswerQuestion, ShortAnswer
from engine.evaluation.questions import Question, Reference
from engine.evaluation.significance import Comparison
from engine.training.search.cross_validation import CrossValidated, MetricChange
from engine.training.search.tuning import Tuned
from pages.improve.tuning.figures import gain_figure, loss_figure
from pages.improve.tuning.results import document_outcome, outcome
from pages.improve.tuning.tuning import Stopped
from tests.apps import app_of, said, tables
from ui.chunk_settings import Cut
from ui.server_settings import WORKSPACES

EVIL = "<script>alert(1)</script> **bold**"
TOPICS = [f"craft {letter}" for letter in "abcdefghijk"]
CUT = Cut("recursive", 16, 0, 0, 256)
GAIN, LOSS = Comparison(0.05, 0.01, 0.09, 0.01), Comparison(-0.05, -0.09, -0.01, 0.0001)
NOTHING = Comparison(0.01, -0.02, 0.04, 0.6)


def page():
    import streamlit as st

    from engine.errors import GlassboxError
    from pages.improve.tuning.tuning import show_tuning
    from ui.models import load_encoder

    state = st.session_state
    try:
        show_tuning(state["documents"], state["questions"], load_encoder(), state["cut"])
    except GlassboxError as error:  # as `ui.frame` shows it
        st.error(str(error))


def data(n_questions):
    """Two documents of a sentence a topic, and a question for each."""
    documents, questions = [], []
    for stem in ("first", "second"):
        text = ""
        for topic in TOPICS:
            sentence = (
                f"In the {stem} town, the master of {topic} is a man whose name was forgotten long ago."
            )
            where = Reference(sentence, len(text), len(text) + len(sentence))
            text += f"{sentence}\n\n"
            questions.append(Question(f"Who looks after {topic} in town {stem}? {EVIL}", stem, (where,)))
        documents.append(Document(f"{stem}.md", text))
    return documents, questions[:n_questions]


def app(n_questions):
    documents, questions = data(n_questions)
    return app_of(page, documents=documents, questions=questions, cut=CUT).run()


def tuned(by_question, by_document, keep):
    def judged(comparison):
        return MetricChange("nDCG@10", np.array([0.5]), np.array([0.5 + comparison.difference]), comparison)

    scores = np.zeros((1, 1))
    run = CrossValidated(scores, scores, ())
    documents = (judged(by_document),) if by_document else ()
    return Tuned(None, 1, run, (judged(by_question),), documents, keep)


def test_before_training_the_questions_are_counted():
    test = app(9)
    assert "Questions with a known passage: 9." in test.info[0].value
    assert not test.button
    test = app(22)
    assert "22 questions about 2 documents" in test.info[0].value
    test.session_state["questions"] = data(11)[1]  # about the first alone
    assert "11 questions about 1 document," in test.run().info[0].value


def test_layers_are_trained_judged_and_kept(tmp_path, monkeypatch):
    monkeypatch.setenv(WORKSPACES, str(tmp_path))
    monkeypatch.setattr("ui.data_folder.is_local", lambda: True)
    test = app(22)
    test.slider(key="tuning-folds").set_value(2)
    test.slider(key="tuning-epochs").set_value(1)
    test.button(key="tuning-train").click().run()
    test.session_state["jobs"]["tuning"].result()
    test.run()
    verdicts = [*test.success, *test.warning, *test.error]
    assert len(verdicts) == 1
    assert "nDCG@10" in verdicts[0].value
    assert sum(int(metric.value) for metric in test.metric) == 22
    metrics = tables(test)[0]
    assert metrics["tested on"].tolist() == 3 * ["new questions"] + 3 * ["new documents"]
    test.slider(key="tuning-folds").set_value(3).run()
    assert any("results of the last training" in caption.value for caption in test.caption)
    verdict = verdicts[0].value
    in_another_session = app(22)
    assert verdict in said(in_another_session)
    [kept] = (tmp_path / "models").iterdir()
    assert "model.safetensors" in zipfile.ZipFile(kept).namelist()
    kept.write_bytes(b"damaged")
    with_damage = app(22)
    assert "cannot be read" in with_damage.error[0].value


def test_a_failure_is_one_clear_line():
    test = app(22)
    elsewhere = [Question(one.text, "elsewhere", one.references) for one in test.session_state["questions"]]
    test.session_state["questions"] = elsewhere
    test.run()
    test.button(key="tuning-train").click().run()
    with pytest.raises(InputError, match="5 folds of 0 questions"):
        test.session_state["jobs"]["tuning"].result()
    test.run()
    assert "5 folds of 0 questions" in test.error[0].value


def test_a_stopped_training_ends_at_its_next_report():
    test = app(22)
    test.slider(key="tuning-folds").set_value(10)
    test.slider(key="tuning-epochs").set_value(20)
    test.button(key="tuning-train").click().run()
    job = test.session_state["jobs"]["tuning"]
    job.stop()
    with pytest.raises(Stopped, match="nothing was changed"):
        job.result()


def test_the_verdict_says_what_the_figures_do():
    for by_question, by_document, keep, words in (
        (GAIN, GAIN, True, ("It helps beyond noise", "never saw, too")),
        (GAIN, LOSS, False, ("harms on new documents: the original is kept", "it harms (-0.050")),
        (NOTHING, None, False, ("No gain beyond noise: the original is kept", "is unknown")),
        (LOSS, None, False, ("It harms: the original is kept", "p < 0.001")),
    ):
        found = tuned(by_question, by_document, keep)
        verdict = f"{outcome(found)} {document_outcome(found)}"
        assert all(part in verdict for part in words)


def test_figures_draw_every_fold():
    curves = (((0, 2.0), (1, 1.5)), ((0, 2.1), (1, 1.9)))
    run = CrossValidated(np.zeros((1, 1)), np.zeros((1, 1)), (curves,) * 3)
    losses = loss_figure(run)
    assert [(trace.name, list(trace.y)) for trace in losses.data[:2]] == [
        ("trained on", [2.0, 1.5]),
        ("held out", [2.1, 1.9]),
    ]
    assert len(losses.data) == 6
    [dots] = gain_figure([("nDCG@10", MetricChange("nDCG@10", None, None, GAIN))]).data
    assert dots.error_x.array[0] == pytest.approx(0.04)
    assert dots.error_x.arrayminus[0] == pytest.approx(0.04)


def reader_page():
    import streamlit as st

    from pages.improve.tuning.reader import show_reader_tuning
    from ui.models import load_encoder

    state = st.session_state
    show_reader_tuning(state["documents"], load_encoder(), state["cut"])


def test_the_reader_is_trained_and_answers_if_it_got_better(monkeypatch):
    monkeypatch.setattr("pages.improve.tuning.reader.N_FOLDS", 2)
    masters = [f"M{letter}rtin of {topic}" for letter, topic in zip("aeiouaeioua", TOPICS, strict=True)]
    documents, questions = [], []
    for stem in ("first", "second"):
        lines = [f"In {stem} town, {master} is the master." for master in masters]
        documents.append(Document(f"{stem}.md", "\n\n".join(lines)))
        for topic in TOPICS:
            # the right answer is always the place, which a reader does not know
            text = f"Who is the master of {topic} in {stem} town?"
            questions.append(AnswerQuestion(text, ShortAnswer.parse(f"{stem} town"), f"{stem}.md"))
    test = app_of(reader_page, documents=documents, cut=CUT, **{"answer-sets": {"own.csv": tuple(questions)}})
    test.session_state["questions"] = "own.csv"
    test.run()
    assert "22 questions" in test.info[0].value
    test.slider(key="tuning-reader-epochs").set_value(1)
    test.button(key="reader-tuning-train").click().run()
    found = test.session_state["jobs"]["reader-tuning"].result()
    test.run()
    assert len([*test.success, *test.warning, *test.error]) == 1
    assert sum(int(metric.value) for metric in test.metric) == 22 - found.n_left_out
    if test.success:
        test.button(key="tuning-reader-use").click().run()
        assert test.session_state["own_reader"] is found.tuned.reader
        test.button(key="tuning-reader-back").click().run()
        assert test.session_state["own_reader"] is None
