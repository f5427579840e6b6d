import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from engine.errors import GlassboxError, InputError
from tests.apps import app_of, app_within
from ui import jobs
from ui.jobs import Job, follow, place_in_line
from ui.turns import Turns


class Place:
    """A placeholder that keeps what was drawn into it, with the time; `interrupt` ends it as a rerun does."""

    def __init__(self):
        self.drawn = []
        self.interrupt = threading.Event()

    def html(self, text):
        if self.interrupt.is_set():
            raise InterruptedError
        self.drawn.append((time.perf_counter(), text))


def until_stopped(job):
    n = 0
    while not job.stopped:
        job.write(f"{n} ")
        n += 1
        time.sleep(0.005)
    return n


def test_the_result_is_what_the_work_returned_and_stopping_keeps_the_text():
    job = Job(until_stopped)
    job.wait("0 1 2 3 4 ")
    assert not job.done
    job.stop()
    n = job.result()
    assert job.done
    assert n > 3
    assert job.text == "".join(f"{i} " for i in range(n))


def test_every_piece_is_drawn_before_the_next_is_written_where_there_is_time_and_escaped():
    place, late = Place(), []

    def work(job):
        for number in range(10):
            job.write(f"<{number}>")
            patience = time.perf_counter() + 60
            while not any(f"&lt;{number}&gt;" in text for _, text in list(place.drawn)):
                if time.perf_counter() > patience:
                    late.append(number)
                    break
                time.sleep(0.001)

    follow(Job(work), place)
    assert late == []
    assert "<0>" not in place.drawn[-1][1]


def test_a_rerun_interrupts_the_drawing_but_not_the_work_and_the_next_run_goes_on():
    job, place = Job(until_stopped), Place()
    threading.Timer(0.1, place.interrupt.set).start()
    with pytest.raises(InterruptedError):
        follow(job, place)
    before = job.text
    assert job.wait(before) > before  # it writes on while nobody follows
    threading.Timer(0.1, job.stop).start()
    after = Place()
    follow(job, after)
    assert job.text.startswith(before)
    assert before in after.drawn[0][1]
    assert job.text in after.drawn[-1][1]
    silent = Job(lambda job: job.take_turn() and time.sleep(0.5))  # interrupted while no text comes, too
    with pytest.raises(InterruptedError):
        follow(silent, place)
    assert not silent.done


def test_an_error_reaches_whoever_asks_for_the_result_and_is_fit_to_show(caplog):
    def work(job):
        job.write("half")
        raise InputError("k is 0: give 1 or more")

    job = Job(work)
    for _ in range(2):
        with pytest.raises(InputError, match="k is 0: give 1 or more"):
            job.result()
    assert (job.text, job.error) == ("half", "k is 0: give 1 or more")
    with pytest.raises(GlassboxError, match="IndexError: list index out of range"):
        Job(lambda job: [][1]).result()
    assert "IndexError" in caplog.text


def test_a_job_outlives_short_losses_of_its_connection_and_no_long_ones(monkeypatch):
    monkeypatch.setattr(jobs, "GONE_S", 0.5)
    gone = threading.Event()
    job = Job(until_stopped, is_wanted=lambda: not gone.is_set())
    for _ in range(3):
        gone.set()
        time.sleep(0.2)
        gone.clear()
        time.sleep(0.2)
    assert not job.done
    gone.set()
    assert job.result() > 0


def test_what_comes_first_is_drawn_once_and_before_the_text_that_follows_it():
    place, drawn, seen = Place(), [], threading.Event()

    def draw(first):
        drawn.append((first, [text for _, text in place.drawn]))
        seen.set()

    def work(job):
        job.show_first(("quote",))
        assert seen.wait(60)
        job.write("words")

    job = Job(work)
    follow(job, place, draw)
    job.result()
    [(first, before)] = drawn
    assert first == job.first == ("quote",)
    assert not any("words" in text for text in before)
    assert "words" in place.drawn[-1][1]


def test_the_work_of_a_page_is_shown_on_the_others_until_it_is_looked_at():
    end = threading.Event()
    job = Job(lambda _: end.wait(60), is_wanted=lambda: True, page="inside/late")
    job.report(1, 4, "1 of 4 windows")
    assert (job.share, job.words) == (0.25, "1 of 4 windows")
    state = {"jobs": {"late": job}, "searched": ["inside_the_pipeline.md"]}
    app = app_within("inside/positions", **state)
    assert links(app) == ["It goes on while you are on other pages."]
    assert [bar.value for bar in app.sidebar.get("progress")] == [25]
    app.switch_page("pages/inside/late/page.py").run()
    assert links(app) == []  # the page draws it itself
    end.set()
    assert job.result()
    app.switch_page("pages/inside/positions/page.py").run()
    assert links(app) == ["It has ended: see what came of it."]
    app.switch_page("pages/inside/late/page.py").run()
    app.switch_page("pages/inside/positions/page.py").run()
    assert links(app) == []


def links(app):
    return [link.proto.help for link in app.sidebar.get("page_link")]


def starting(name):
    import streamlit as st

    from ui.jobs import start_job

    def work(job):
        while job.take_turn():
            job.rows.append(len(job.rows))

    st.session_state["started"] = start_job(name, work, request=name.upper(), rows=[0])


def test_a_session_keeps_one_job_of_a_name_with_its_request_and_results_so_far():
    app = app_of(starting, args=("a",)).run()
    first = app.session_state["started"]
    assert app.session_state["jobs"] == {"a": first}
    assert first.request == "A"
    app.run()
    assert first.stopped
    second = app.session_state["jobs"]["a"]
    second.stop()
    second.result()
    assert second.rows == [*range(len(second.rows))]
    assert second.error == ""


def test_sessions_stand_in_line_in_the_order_of_their_first_job():
    turns = Turns()
    for session in ("a", "b", "a", "c"):
        turns.join(session)
    assert [turns.n_before(session) for session in ("a", "b", "c", "not there")] == [0, 1, 2, 0]
    turns.leave("a")  # one of its two jobs
    assert turns.n_before("b") == 1
    turns.leave("a")
    assert [turns.n_before(session) for session in ("b", "c")] == [0, 1]


def test_a_question_goes_before_other_work_also_that_of_its_own_session():
    turns = Turns()
    turns.join("a")
    turns.join("b")
    for session in ("c", "a"):
        turns.join(session, urgent=True)
    before = [turns.n_before("c", True), turns.n_before("a", True), turns.n_before("a"), turns.n_before("b")]
    assert before == [0, 1, 1, 2]
    turns.wait("c", lambda: False, urgent=True)
    for session in ("c", "a"):
        turns.leave(session, urgent=True)
    assert [turns.n_before(session) for session in ("a", "b")] == [0, 1]


def test_a_turn_that_is_over_goes_to_the_next_and_comes_back():
    turns, order = Turns(slice_s=0.02), []
    for session in ("a", "b"):
        turns.join(session)

    def work(session):
        for _ in range(2):
            turns.wait(session, lambda: True)
            order.append(session)
            time.sleep(0.05)
        turns.leave(session)

    with ThreadPoolExecutor() as pool:
        list(pool.map(work, ("a", "b")))
    assert order == ["a", "b", "a", "b"]


def test_nobody_waits_alone_for_a_blocked_job_or_for_what_is_not_wanted():
    turns = Turns(slice_s=0.01)
    turns.join("blocked")
    turns.wait("blocked", lambda: True)
    turns.join("b")
    turns.wait("b", lambda: True)
    assert turns.n_before("b") == 0
    patient = Turns()
    patient.join("a")
    patient.join("b")
    patient.wait("b", lambda: False)
    assert patient.n_before("b") == 1


@pytest.fixture
def of_another(monkeypatch):
    """The turns of jobs, in which another session is working."""
    turns = Turns()
    monkeypatch.setattr(jobs, "TURNS", turns)
    turns.join("another")
    return turns


def test_a_job_begins_at_its_turn_and_says_until_then_how_many_come_first(of_another):
    place, begun = Place(), []

    def work(job):
        begun.append(True)
        job.write("written")

    job = Job(work)
    assert place_in_line(job) == "waiting for 1 other visitor"
    threading.Timer(0.3, of_another.leave, ["another"]).start()
    follow(job, place)
    assert "waiting for 1 other visitor" in place.drawn[0][1]
    assert "waiting" not in place.drawn[-1][1]
    assert begun
    assert place_in_line(job) == ""


def test_a_download_takes_no_turn_and_what_is_stopped_in_line_waits_for_none(of_another):
    seen = []

    def work(job):
        seen.append(job.take_turn())
        of_another.leave("another")
        of_another.join("a third")
        seen.append(of_another.n_before("a third"))

    job = Job(work, computes=False)
    assert place_in_line(job) == ""
    job.result()
    assert seen == [True, 0]
    of_another.join("another")
    job = Job(lambda job: job.take_turn())
    job.stop()
    assert job.result() is False  # it ends in line, without its turn


def test_estimates_follow_what_such_work_took_here(monkeypatch):
    monkeypatch.setattr(jobs, "_taken", {jobs.MACHINE: 3.0})
    assert jobs.foreseen("drafts", 10) == 30

    def half(job):
        job.report(2, 10, "")  # of an earlier job
        job.report(6, 10, "")
        job.stop()

    Job(half, cost=("drafts", 20.0)).result()
    assert jobs.foreseen("drafts", 10) < 30  # half of it was foreseen to take ten seconds
    assert jobs.foreseen("others", 10) == 30
