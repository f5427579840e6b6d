"""Contestants that end: the others count, and the row of one that ended says how."""

import pytest

from benchmarks.command import OURS, contestants
from benchmarks.processes import Ended, Lineup, Served, environment

# A contestant that answers every order but "die", and ends by the signal of its name before the first one.
CONTESTANT = """
import json, os, signal, sys
name = sys.argv[1]
if name.startswith("SIG"):
    os.kill(os.getpid(), signal.Signals[name])
print(json.dumps({"ready": name}), flush=True)
for line in sys.stdin:
    if json.loads(line) == "die":
        print("out of luck", file=sys.stderr)
        sys.exit(3)
    print(line, end="", flush=True)
"""


@pytest.fixture
def start(tmp_path):
    """A function that starts the contestant of a name."""
    (tmp_path / "contestant.py").write_text(CONTESTANT)
    env = environment(PYTHONPATH=str(tmp_path))
    return lambda name: Served("contestant", [name], env, tmp_path / "errors.txt")


@pytest.mark.parametrize("name", ["SIGSEGV", "SIGILL", "SIGKILL"])
def test_a_signal_is_named(start, name):
    with pytest.raises(Ended, match=f"^{name} ended by {name}:"):
        start(name)


def test_an_exit_is_told_with_what_was_said(start):
    served = start("a")
    assert served.ask({"n": 1}) == {"n": 1}
    with pytest.raises(Ended, match="a ended with exit code 3:\nout of luck"):
        served.ask("die")
    with pytest.raises(Ended, match="exit code 3"):  # its input is closed by now
        served.ask({"n": 1})


def test_the_others_go_on(start):
    lineup, answers = Lineup(["a", "SIGSEGV", "b"], needed=["a"]), []
    served = {}
    for name in lineup:
        with lineup.turn(name):
            served[name] = start(name)
    for name in lineup:
        answers.append(served[name].ask({"to": name}))
        served[name].stop()
    assert answers == [{"to": "a"}, {"to": "b"}]
    assert lineup.ended_rows == {"SIGSEGV": {"ended": "ended by SIGSEGV"}}


def test_without_one_that_is_needed_there_is_no_benchmark(start):
    lineup = Lineup(["SIGSEGV"], needed=["SIGSEGV"])
    with pytest.raises(SystemExit, match="ended by SIGSEGV"), lineup.turn("SIGSEGV"):
        start("SIGSEGV")


def test_its_row_says_how_it_ended():
    result = {
        "ours": {"s": 1.0},
        "peers": {"x": {"ended": "ended by SIGSEGV"}, "y": {"s": 2.0, "ratio": 2.0}},
    }
    table = contestants(result, {"s": "{s:.0f}", "ratio": "{ratio:.0f}"})
    assert table.rows == [[OURS, "1", ""], ["x", "ended by SIGSEGV", ""], ["y", "2", "2"]]
