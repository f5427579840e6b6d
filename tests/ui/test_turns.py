"""Turns at the processor: one session after the other, none for longer than its slice while others wait."""

import threading
import time

import pytest

from tests.ui.test_jobs import Place
from ui import jobs
from ui.jobs import Job, follow, place_in_line
from ui.turns import Turns


def wanted():
    return True


def test_sessions_stand_in_line_in_the_order_of_their_first_job():
    turns = Turns()
    for session in ("a", "b", "a", "c"):
        turns.join(session)
    assert [turns.n_before(session) for session in ("a", "b", "c", "not there")] == [0, 1, 2, 0]
    turns.leave("a")  # one of its two jobs
    assert turns.n_before("b") == 1
    turns.leave("a")
    assert [turns.n_before(session) for session in ("b", "c")] == [0, 1]


def test_a_turn_that_is_over_goes_to_the_next_and_comes_back():
    turns, order = Turns(slice_s=0.02), []
    for session in ("a", "b"):
        turns.join(session)

    def work(session):
        for _ in range(2):
            turns.wait(session, wanted)
            order.append(session)
            time.sleep(0.05)
        turns.leave(session)

    threads = [threading.Thread(target=work, args=(session,)) for session in ("a", "b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert order == ["a", "b", "a", "b"]


def test_nobody_waits_alone_for_a_blocked_job_or_for_what_is_not_wanted():
    turns = Turns(slice_s=0.01)
    turns.join("blocked")
    turns.wait("blocked", wanted)
    turns.join("b")
    turns.wait("b", wanted)
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
