"""Vectors in the background: priced, kept batch by batch, stopped and resumed, searched meanwhile."""

import threading
import time

import pytest

from engine.documents.document import Document
from engine.models.encoder import Encoder
from tests.apps import app_file, app_within, own_documents, said
from ui import embedding
from ui.embedding import AT_ONCE, JOB


def tides(place):
    """The state of a session with twelve documents; all sessions of tests share their caches."""
    texts = [f"At {place} station {n} the tide turns at {n} past noon." for n in range(12)]
    return own_documents(*(Document(f"{place}_{n}.txt", text) for n, text in enumerate(texts)))


@pytest.fixture
def batches(monkeypatch):
    """Nothing is short, a batch is two chunks, and the test's jobs embed as many as are released."""
    monkeypatch.setattr(embedding, "SHORT_CPU_S", 0)
    monkeypatch.setattr(embedding, "token_seconds_here", lambda *arguments: 1e-3)
    monkeypatch.setattr(Encoder, "block_texts", 2)
    released, encode_as, earlier = threading.Semaphore(0), Encoder.encode_as, set(threading.enumerate())

    def slowly(self, role, texts, *arguments, **options):
        thread = threading.current_thread()
        if "_run" in thread.name and thread not in earlier:  # that of a job of this test
            released.acquire()
        return encode_as(self, role, texts, *arguments, **options)

    monkeypatch.setattr(Encoder, "encode_as", slowly)
    yield released
    released.release(100)
    for thread in set(threading.enumerate()) - earlier:  # which would take what the next test releases
        if "_run" in thread.name:
            thread.join(60)
            assert not thread.is_alive()


def n_kept(app, n=0):
    """How many vectors are kept, once there are ``n``."""
    until = time.monotonic() + 60
    while (kept := app.session_state["vectors"].n_vectors) < n:
        assert time.monotonic() < until, f"{kept} vectors are kept, not {n}"
        time.sleep(0.01)
    return kept


def test_opening_a_tab_embeds_nothing_long_and_a_button_has_its_price(batches):
    app = app_within("documents", **tides("harbour"))
    app.session_state["documents-tab"] = "Map"
    app.run()
    assert "0 of 12 chunks have vectors" in said(app)
    assert app.button(key="embed").label.startswith("Embed them · about ")
    assert "jobs" not in app.session_state or JOB not in app.session_state["jobs"]


def test_work_is_stopped_anywhere_and_resumed_from_what_is_kept(batches):
    app = app_file(**tides("river")).run()
    app.button(key="embed").click().run()
    job = app.session_state["jobs"][JOB]
    batches.release(3)
    assert n_kept(app, 6) == 6
    job.stop()
    batches.release()
    job.result()
    kept = n_kept(app)
    assert 6 <= kept <= 8
    app.run()
    assert f"{kept} of 12 chunks have vectors" in said(app)
    assert app.button(key="embed").label.startswith("Go on · about ")
    app.button(key="embed").click().run()
    batches.release(100)
    app.session_state["jobs"][JOB].result()
    assert n_kept(app) == 12
    assert "have vectors" not in said(app.run())


def test_8_bits_are_offered_while_long_work_goes_on(batches, monkeypatch):
    price = {"float32": 10.0, "int8": 1.0}
    monkeypatch.setattr(embedding, "token_seconds_here", lambda model, chunks: price[model.precision])
    app = app_file(**tides("bay")).run()
    app.button(key="embed").click().run()
    slow = app.session_state["jobs"][JOB]
    app.button(key="embed-int8").click().run()
    batches.release(6)
    assert slow.stopped
    assert app.session_state["jobs"][JOB] is not slow


def test_questions_are_answered_while_vectors_are_missing_and_the_share_is_said(batches):
    app = app_file(**tides("lagoon"), **{AT_ONCE: "ask"}).run()
    job = app.session_state["jobs"][JOB]
    assert not job.done
    batches.release(1)
    n_kept(app, 2)
    app.text_input(key="question").set_value("When does the tide turn at station 11?")
    app.button(key="FormSubmitter:question-form-Ask").click().run()
    batches.release(100)
    assert app.session_state["asked"].share < 1
    answer = app.session_state["answer"]
    assert answer.reading.document == "lagoon_11.txt"
    assert "by words, and by meaning where chunks had vectors" in said(app)


def test_a_session_that_wants_the_same_vectors_joins_the_work(batches):
    first = app_file(**tides("sound")).run()
    first.button(key="embed").click().run()
    job = first.session_state["jobs"][JOB]
    again = app_file(**tides("sound"), vectors=first.session_state["vectors"]).run()
    assert again.session_state["jobs"][JOB] is job
    batches.release(100)
    job.result()
