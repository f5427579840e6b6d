import time
from dataclasses import replace
from html import escape

import numpy as np
import pytest

from engine.documents.document import Document
from engine.documents.loaders import load_corpus
from engine.errors import InputError
from engine.training.language.small_decoder_checkpoint import Checkpoint
from engine.training.language.small_decoder_loop import TrainingState, UpdateReport
from engine.training.language.vocabulary import Vocabulary
from pages.learn.decoder.live import learning_figure
from pages.learn.decoder.session import Choice, restore
from pages.learn.decoder.write import step_attention
from tests.apps import app_page, html_of, own_documents, said

TEXT = next(d.text for d in load_corpus() if "state" in d.name)[:20_000]
EVIL = "<script>alert(1)</script> $x$ [a](b) \n"
SMALL = {
    "layers": 1,
    "heads": 2,
    "width": 32,
    "context": 16,
    "batch": 8,
    "steps": 100,
    "learning-rate": 0.005,
}


def opened(texts=(TEXT,), **chosen):
    state = {f"lab-decoder-{key}": value for key, value in {**SMALL, **chosen}.items()}
    documents = own_documents(*(Document(f"{number}.txt", text) for number, text in enumerate(texts)))
    return app_page("learn/decoder", **documents, **state).run()


def words(app):
    return said(app) + html_of(app)


def trained(*args, **chosen):
    app = opened(*args, **chosen)
    app.button(key="lab-decoder-train").click().run()
    run = app.session_state["lab-decoder-run"]
    run.job.result()
    return app.run(), run


def test_a_model_learns_and_everything_is_shown():
    app, run = trained()
    losses = [report.loss for report in run.reports]
    assert len(losses) == 100
    assert np.mean(losses[-10:]) < np.mean(losses[:10]) - 0.5
    metrics = {metric.label: metric.value for metric in app.metric}
    assert metrics["Loss"] == f"{losses[-1]:.3f}"
    assert metrics["Held out"] == f"{run.reports[-1].held_out_loss:.3f}"
    assert "What it writes at step 100" in words(app)
    assert [seen.update for seen in run.snapshots][:3] == [0, 5, 10]
    app.select_slider(key="lab-decoder-look-100").set_value(0).run()
    assert escape(run.snapshots[0].sample) in words(app).replace("<b>", "").replace("</b>", "")
    assert "Where it looks at step 0" in words(app)
    assert app.button(key="lab-decoder-resume").disabled
    assert app.segmented_control(key="lab-decoder-kind").disabled


def test_other_tokens_and_positions_learn_too():
    _, run = trained(kind="BPE", vocabulary=300, positions="ALiBi", norm="After each part")
    assert run.state.config.vocab_size == 300
    assert (run.state.config.positions, run.state.config.norm_first) == ("alibi", False)
    assert run.reports[-1].loss < run.reports[0].loss - 0.5


def test_who_pauses_can_go_on_and_write_meanwhile():
    app = opened(steps=5000)
    app.button(key="lab-decoder-train").click().run()
    run = app.session_state["lab-decoder-run"]
    assert "Pause the training to write" in words(app)
    app.button(key="lab-decoder-pause").click().run()
    paused = run.state.n_updates
    assert not run.running
    time.sleep(0.1)
    assert run.state.n_updates == paused
    app.text_input(key="lab-decoder-prompt").set_value("The ")
    app.slider(key="lab-decoder-new").set_value(20)
    app.button(key="lab-decoder-write").click().run()
    written = app.session_state["lab-decoder-written"]
    assert run.tokenizer.decode(written.ids).startswith("The ")
    assert f"20 tokens by the model of step {paused:,}, ended by the maximum" in words(app)
    app.button(key="lab-decoder-resume").click().run()
    app.button(key="lab-decoder-pause").click().run()
    assert run.state.n_updates >= paused
    assert [report.update for report in run.reports] == list(range(1, run.state.n_updates + 1))
    app.button(key="lab-decoder-reset").click().run()
    assert "Nothing is trained yet" in words(app)


def test_a_learning_rate_that_diverges_is_told_and_another_goes_on():
    app, run = trained(**{"learning-rate": 1.0, "norm": "After each part"})
    assert "Training diverged: the loss" in words(app)
    assert all(np.isfinite(array).all() for array in run.state.params.values())
    app.select_slider(key="lab-decoder-learning-rate").set_value(0.001).run()
    app.button(key="lab-decoder-resume").click().run()
    run.job.result()
    assert run.finished
    assert "diverged" not in words(app.run())


def test_what_was_trained_stops_refuses_and_comes_back(monkeypatch):
    app, run = trained()
    blank = run.tokenizer.encode(" ").ids[0]
    app.multiselect(key="lab-decoder-stops").set_value([blank])
    app.button(key="lab-decoder-write").click().run()
    steps = app.session_state["lab-decoder-written"].steps
    assert steps[-1].token_id == blank
    assert blank not in [step.token_id for step in steps[:-1]]
    assert "ended by a stop token" in words(app)

    app.text_input(key="lab-decoder-prompt").set_value("Жук")
    app.button(key="lab-decoder-write").click().run()
    assert "character 'Ж' at place 0 is none of the" in words(app)

    content = run.checkpoint.to_bytes()
    choice = Choice("characters", 0, {}, 8, run.settings, keep_unknown=False)
    again = restore(content, choice, [Document("text", TEXT)])
    assert again.state.n_updates == 100
    assert again.snapshots[0].sample == run.snapshots[-1].sample
    with pytest.raises(InputError, match=r"character 'Ж' .*: choose those that it was trained on"):
        restore(content, choice, [Document("other", "Жук " * 50)])
    other = Checkpoint(
        TrainingState.fresh(replace(run.state.config, d_ff=16), 0),
        Vocabulary("characters", run.tokenizer.tokens),
    )
    monkeypatch.setattr("pages.learn.decoder.session.current", lambda: run)
    with pytest.raises(InputError, match="another model"):
        restore(other.to_bytes(), choice, [Document("text", TEXT)])


def test_characters_that_the_documents_lack_can_be_kept_as_unknown_and_text_is_escaped():
    app, run = trained([EVIL * 100], **{"keep-unknown": True})
    assert "<script>" in run.snapshots[-1].sample  # it has learnt to write that
    assert "<script>" not in html_of(app)
    assert "&lt;script&gt;" in html_of(app)
    app.text_input(key="lab-decoder-prompt").set_value("alert Ж")
    app.button(key="lab-decoder-write").click().run()
    assert not app.error
    assert run.tokenizer.decode(app.session_state["lab-decoder-written"].prompt) == "alert \ufffd"


def test_texts_that_teach_nothing_are_told():
    assert "nothing to learn from" in words(opened(()))
    for text, message in (
        ("short", "too short for a context of 16"),
        ("", "no text to learn a vocabulary from"),
    ):
        app = opened((text,))
        app.button(key="lab-decoder-train").click().run()
        assert message in words(app)


def test_figures_hold_what_was_told():
    reports = [UpdateReport(i, 5 - i / 100, None if i % 50 else 4.0, 1.0, 0.5, 0.1) for i in range(1, 1001)]
    traces = {trace.name: trace for trace in learning_figure(reports, 96).data}
    assert list(traces["held out"].x) == list(range(50, 1001, 50))
    assert traces["guessing"].y[0] == pytest.approx(np.log(96))
    assert len(traces["training"].x) <= 502
    assert traces["training"].x[-1] == 1000
    attention = np.arange(24.0).reshape(2, 3, 4)
    (heat,) = step_attention(attention, ["a", "b", "<i>", "d"]).data
    np.testing.assert_array_equal(heat.z, attention.reshape(6, 4))
    assert heat.x[2] == "2 &lt;i&gt;"
    assert heat.y[4] == "layer 1 head 1"
