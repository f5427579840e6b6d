"""Programs in child processes: limits of one request end that request alone."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from engine.limited_process import Limits, Program, ask, release

SOURCE = """
import os
import time

def answer(request):
    match request.partition(b" "):
        case b"sum", _, numbers:
            return str(sum(map(int, numbers.split()))).encode()
        case b"fill", _, n:
            return b"x" * int(n)
        case b"process", _, _:
            return str(os.getppid()).encode()
        case b"sleep", _, s:
            time.sleep(float(s))
        case b"report", _, _:
            for n in range(1, 5):
                time.sleep(0.3)
                report(n, 4)
        case b"loop", _, _:
            while True:
                pass
        case b"end", _, _:
            os._exit(3)
        case _:
            raise ValueError
    return b""
"""
LIMITS = Limits(seconds=1, megabytes=200)


@pytest.fixture
def program(tmp_path):
    (tmp_path / "program.py").write_text(SOURCE)
    one = Program(tmp_path / "program.py", idle_s=60)
    yield one
    for process in one.idle:
        release(process)


def test_a_request_is_answered(program):
    assert ask(program, b"sum 1 2 3", LIMITS) == b"6"
    assert ask(program, b"sum " + b"1 " * 1_000_000, LIMITS) == b"1000000"
    assert ask(program, b"fill 9000000", LIMITS) == b"x" * 9_000_000
    assert ask(program, b"sleep 0", LIMITS) == b""


@pytest.mark.parametrize("request_", [b"loop", b"fill 900000000", b"end", b"other"])
def test_a_request_beyond_its_limits_has_no_answer_and_the_next_one_has(program, request_):
    process = ask(program, b"process", LIMITS)
    assert ask(program, request_, LIMITS) is None
    assert ask(program, b"process", LIMITS) == process


def test_a_request_ends_after_the_wall_time_which_reports_start_anew_up_to_a_bound(program, monkeypatch):
    ask(program, b"process", LIMITS)
    monkeypatch.setattr("engine.limited_process.WALL_S", 0)  # of the parent, whose limit is the later one
    reports = []
    assert ask(program, b"report", LIMITS, lambda *counts: reports.append(counts)) == b""
    assert reports == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert ask(program, b"report", LIMITS) is None  # nobody hears the reports
    assert not program.idle
    monkeypatch.setattr("engine.limited_process.MOST_S", 0.5)
    assert ask(program, b"report", LIMITS, lambda *_: None) is None


def test_a_listener_that_raises_ends_the_process(program):
    with pytest.raises(ZeroDivisionError):
        ask(program, b"report", LIMITS, lambda n, _: 1 / 0)
    assert not program.idle


def test_limits_are_those_of_the_request(program):
    assert ask(program, b"fill 300000000", LIMITS) is None
    assert len(ask(program, b"fill 300000000", Limits(20, 1000))) == 300_000_000


def test_requests_at_once_have_a_process_each(program):
    with ThreadPoolExecutor() as pool:
        slow = pool.submit(ask, program, b"sleep 0.5", LIMITS)
        while not slow.running():
            time.sleep(0.01)
        assert ask(program, b"sum 1", LIMITS) == b"1"
        assert slow.result() == b""
    assert len(program.idle) == 2


def test_a_process_ends_when_it_is_not_asked_and_is_replaced(tmp_path):
    (tmp_path / "program.py").write_text(SOURCE)
    program = Program(tmp_path / "program.py", idle_s=0.2)
    first = ask(program, b"process", LIMITS)
    assert program.idle[-1].wait(timeout=10) == 0
    assert ask(program, b"process", LIMITS) != first
