"""How failing cases are counted, the limits that are printed, and a few kills of the running app."""

import pytest

from benchmarks.kills import LEFT_AFTER, LOST, MIXED, NEW, OLD, run_kills
from benchmarks.operations import HANGS, LEAKS, TRACEBACKS, WRONG, end_of, limits_in_force
from engine.documents import loaders

HOSTILE = "tests/hostile/test_mutations.py::test_a_changed_file_is_read_or_refused_by_one_line[GGUF-3]"


@pytest.mark.parametrize(
    ("case", "text", "end"),
    [
        (HOSTILE, "E       AssertionError: assert not 'KeyError: a'", TRACEBACKS),
        (HOSTILE, "E       AssertionError: assert not 'AssertionError: '", WRONG),
        (HOSTILE, "E       AssertionError: assert not 'Killed: too long'", HANGS),
        (HOSTILE, "E       AssertionError: assert not 'Killed: exit code -9'", TRACEBACKS),
        ("tests/hostile/test_gguf.py::test_a", "    raise\nE   IndexError: list index", TRACEBACKS),
        ("tests/hostile/test_gguf.py::test_a", "def f():\n    KeyError\nE   assert 1 == 2", WRONG),
        ("tests/browser/test_sessions.py::test_b", "E   AssertionError: 3\nE   assert not ['code']", LEAKS),
    ],
)
def test_a_case_that_fails_is_counted_by_its_end(case, text, end):
    assert end_of(case, text) == end


def test_limits_are_those_of_the_code(monkeypatch):
    before = list(limits_in_force())
    monkeypatch.setattr(loaders, "MAX_DOCUMENTS", 7)
    [(what, own, public)] = set(limits_in_force()) - set(before)
    assert (what, own, public) == ("documents of a file", "7", "7")
    assert ("a file of documents", "20 MB", "5 MB") in before


def test_a_kill_leaves_the_old_state_or_the_new_of_each_file(tmp_path):
    for found in run_kills(3, tmp_path, seed=423).values():  # each about a second after writing begins
        assert found[OLD] + found[NEW] == 1
        assert found[LOST] == found[MIXED] == found[LEFT_AFTER] == 0
