from dataclasses import replace
from itertools import islice
from time import monotonic, sleep

import numpy as np
import pytest

from engine.errors import InputError
from engine.training.language.seq2seq_checkpoint import training_bytes
from engine.training.language.seq2seq_loop import Recipe, Training, least_loss, train
from engine.training.language.tasks import PAD, date_task, number_task
from pages.learn.translator.figures import alignment_map, chosen_weights, progress_figure
from pages.learn.translator.session import TrainingSession
from pages.learn.translator.training import TASKS
from pages.learn.translator.translate import correctness, step_rows, translated
from tests.apps import app_of, said, tables

SCRIPT = """
from pages.learn.translator.training import show_seq2seq
show_seq2seq()
"""
NUMBERS, DATES = TASKS.values()
SHORT = Recipe(d_model=32, n_heads=2, d_ff=64, n_steps=20, report_every=10, n_exam=4, batch_size=4)


def run(session=None):
    trainings = {} if session is None else {NUMBERS.name: session}
    return app_of(SCRIPT, **{"seq2seq-trainings": trainings}).run()


def ended(session):
    """A training whose job is over."""
    until = monotonic() + 300
    while session.running:
        assert monotonic() < until
        sleep(0.01)
    return session


def paused(recipe=SHORT):
    """A training that has made one report and is paused."""
    training = Training(NUMBERS, recipe)
    session = TrainingSession(training)
    session.resume()
    session.stop()
    return ended(session)


@pytest.fixture(scope="module")
def learnt():
    """A training of small numbers that has learnt them."""
    recipe = replace(
        SHORT, d_model=48, n_heads=4, d_ff=96, n_layers=1, batch_size=32, n_steps=250, n_warmup=30
    )
    training = Training(number_task(999), replace(recipe, learning_rate=4e-3, report_every=250))
    list(train(training))
    return training


def test_before_a_training_the_page_says_what_to_do():
    app = run()
    assert "Nothing is trained yet. Press Train" in said(app)
    assert app.button(key="seq2seq-train").label == "Train"
    assert not app.text_input


def test_a_training_is_started_paused_gone_on_with_and_forgotten():
    app = run()
    app.slider(key="seq2seq-steps").set_value(3000)
    app.select_slider(key="seq2seq-width").set_value(32)
    app.select_slider(key="seq2seq-batch").set_value(16)
    app.button(key="seq2seq-train").click().run()
    session = app.session_state["seq2seq-trainings"][NUMBERS.name]
    try:
        assert session.running
        assert session.training.recipe == Recipe(d_model=32, d_ff=128, batch_size=16, n_steps=3000)
        assert app.slider(key="seq2seq-steps").disabled
        app.button(key="seq2seq-pause").click().run()
    finally:
        session.job.stop()
    made = ended(session).training.moments.n_updates
    assert 20 <= made < 3000
    app.run()
    assert f"step {made:,} of 3,000, paused" in app.get("progress")[0].proto.text
    app.button(key="seq2seq-resume").click().run()
    session.job.stop()
    assert ended(session).training.moments.n_updates > made
    app.run().button(key="seq2seq-reset").click().run()
    assert "Nothing is trained yet" in said(app)
    assert not app.slider(key="seq2seq-steps").disabled


def test_a_training_that_was_saved_comes_back_and_another_s_is_told():
    saved = paused()
    content = training_bytes(saved.training)
    app = run()
    assert not [button for button in app.get("download_button") if "Checkpoint" in button.proto.label]
    app.file_uploader(key="seq2seq-file").set_value(("model.safetensors", content, "")).run()
    app.button(key="seq2seq-load").click().run()
    assert "step 10 of 20, paused" in app.get("progress")[0].proto.text
    session = app.session_state["seq2seq-trainings"][NUMBERS.name]
    app.button(key="seq2seq-resume").click().run()
    assert ended(session).training.moments.n_updates == 20

    other = training_bytes(Training(NUMBERS, replace(SHORT, d_ff=32)))
    app.run().file_uploader(key="seq2seq-file").set_value(("model.safetensors", other, "")).run()
    app.button(key="seq2seq-load").click().run()
    assert "another model \\(d\\_ff 32 instead of 64\\)" in app.error[0].value
    assert app.session_state["seq2seq-trainings"][NUMBERS.name] is session


def test_a_paused_job_goes_on_to_what_it_would_have_come_to():
    session = paused()
    assert session.training.moments.n_updates == 10
    session.resume()
    whole = Training(NUMBERS, SHORT)
    list(train(whole))
    ended(session)
    assert session.training.done
    for name, value in whole.params.items():
        np.testing.assert_array_equal(session.training.params[name], value)


def test_samples_and_numbers_are_those_of_the_last_report():
    session = paused()
    app = run(session)
    last = session.training.reports[-1]
    assert {m.label: m.value for m in app.metric}["Loss"] == f"{last.loss:.3f}"
    assert {m.label: m.value for m in app.metric}["Held-out right"] == f"{last.exact:.0%}"
    assert f"{sum(not one.right for one in last.exam)} of 4 are wrong" in said(app)
    table = tables(app)[0]
    assert set(table["source"]) == {one.pair.source for one in last.exam}


def test_a_training_that_ran_away_says_so_and_can_only_be_reset():
    session = paused()
    session.training.failure = "the loss came to <b>9</b>"
    app = run(session)
    assert "The loss came to \\<b\\>9" in app.error[0].value
    assert "ended early" in app.get("progress")[0].proto.text
    assert not [button for button in app.button if button.key == "seq2seq-resume"]
    assert app.button(key="seq2seq-reset")


def test_the_user_s_own_source_is_translated_or_told_in_a_line(learnt):
    session = paused()
    session.training.good, session.training.config = learnt.good, learnt.config
    app = run(session)
    source = app.text_input(key=f"seq2seq-source-{NUMBERS.name}")
    source.set_value("342").run()
    assert "## trescientos cuarenta y dos" in said(app)
    assert ":green[" in said(app)
    source.set_value("two hundred and *fivé*").run()
    assert "is not in the vocabulary\\: write it like" in app.error[0].value
    assert "\\*fivé\\*" in app.error[0].value
    source.set_value(" ").run()
    assert "Write something to translate" in said(app)


def test_a_translation_comes_with_its_steps_and_what_it_looked_at(learnt):
    decoded = translated("342", learnt.task, learnt.good, learnt.config)
    assert decoded.read == ("three", "hundred", "and", "forty", "two", "<end>")
    assert decoded.written == (*decoded.text.split(), "<end>")
    np.testing.assert_allclose(decoded.probabilities.sum(axis=-1), 1, atol=1e-5)
    assert [layer.shape for layer in decoded.attention] == [(4, len(decoded.written), 6)]
    np.testing.assert_allclose(decoded.attention[0].sum(axis=-1), 1, atol=1e-5)
    rows = step_rows(decoded, learnt.task.words)
    assert [row["writes"] for row in rows] == [*decoded.text.split(), "(end)"]
    assert rows[0]["probability"] == pytest.approx(decoded.probabilities[0].max())
    with pytest.raises(InputError, match="“zwei” is not in the vocabulary"):
        translated("zwei", learnt.task, learnt.good, learnt.config)


def test_the_verdict_tells_right_from_wrong_and_held_out_from_not(learnt):
    decoded = translated("342", learnt.task, learnt.good, learnt.config)
    assert "Right" in correctness("342", decoded, NUMBERS)
    wrong = correctness("37", decoded, NUMBERS)
    assert "Wrong], it should be “treinta y siete”. It is held out" in wrong
    assert "may have drawn it" in correctness("36", decoded, NUMBERS)
    assert "Unknown whether" in correctness("one two", decoded, NUMBERS)
    assert "2024\\-03\\-05" in correctness("5 Mar 2024", decoded, DATES)


def test_starting_one_task_pauses_the_other():
    app = run(session := paused(replace(SHORT, n_steps=100_000)))
    session.resume()
    app.session_state["seq2seq-task"] = DATES.name
    app.run()
    app.slider(key="seq2seq-steps").set_value(100)
    app.button(key="seq2seq-train").click().run()
    ended(session)
    assert 10 < session.training.moments.n_updates < 100_000
    app.session_state["seq2seq-trainings"][DATES.name].job.stop()


def test_the_progress_figure_shows_every_report_and_the_least_loss():
    training = Training(date_task(), SHORT)
    reports = list(islice(train(training), 2))
    least = least_loss(0.1, training.config.vocab_size)
    figure = progress_figure(reports, 20, least)
    assert list(figure.data[0].y) == [report.loss for report in reports]
    assert list(figure.data[1].y) == [report.exact for report in reports]
    assert figure.layout.shapes[0].y0 == least


def test_the_alignment_is_of_the_head_looked_at_and_repeated_words_stay_apart():
    rng = np.random.default_rng(0)
    layers = [rng.random((3, 2, 4)) for _ in range(2)]
    np.testing.assert_array_equal(chosen_weights(layers, 1, 2), layers[1][2])
    np.testing.assert_allclose(chosen_weights(layers, 0, None), layers[0].mean(axis=0))
    figure = alignment_map(layers[0][0], ["mil", "mil"], ["one", PAD, "one", "one"])
    assert len(set(figure.data[0].x)) == 4
    assert figure.data[0].x[1] == "1 &lt;pad&gt;"
    assert len(set(figure.data[0].y)) == 2
