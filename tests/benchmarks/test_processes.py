"""Contestants that end: the others count, and the row of one that ended says how."""

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks import decode, encode, sweep
from benchmarks.command import OURS, contestants
from benchmarks.processes import Ended, Lineup, Served, environment, run_once

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


def test_a_single_run_names_its_signal(tmp_path):
    (tmp_path / "contestant.py").write_text(CONTESTANT)
    with pytest.raises(Ended, match="SIGSEGV ended by SIGSEGV"):
        run_once("contestant", ["SIGSEGV"], environment(PYTHONPATH=str(tmp_path)))


def test_its_row_says_how_it_ended():
    result = {
        "ours": {"s": 1.0},
        "peers": {"x": {"ended": "ended by SIGSEGV"}, "y": {"s": 2.0, "ratio": 2.0}},
    }
    table = contestants(result, {"s": "{s:.0f}", "ratio": "{ratio:.0f}"})
    assert table.rows == [[OURS, "1", ""], ["x", "ended by SIGSEGV", ""], ["y", "2", "2"]]


def test_a_peer_that_ended_has_no_figures_in_other_tables():
    result = {
        "ours": {"cold_s": 32.0, "warm_s": 3.4, "cold_cpu_s": 60.0, "warm_cpu_s": 6.0, "peak_mb": 500.0},
        "peers": {sweep.PEER: {"ended": "ended by SIGSEGV"}},
        "limit": {"embedding_alone_s": 27.0, "ratio": 0.8},
    }
    table = sweep.table(result)
    assert "ended by SIGSEGV" in table.text()
    assert all(len(row) == len(table.columns) for row in table.rows)


class Quick:
    """A contestant without a process: it ends by a signal if ``mortal``, and else answers at once."""

    def __init__(self, name, answer, mortal):
        self.name, self.answer, self.mortal = name, answer, mortal
        self.ready = {"load_s": 1.0, "ready": 2.0, "resident_mb": 3.0}

    def ask(self, order):
        if self.name == self.mortal:
            raise Ended(self.name, -11, "")
        return self.answer(order)

    def stop(self):
        pass


def test_decode_tells_the_others_figures(tmp_path, monkeypatch):
    def answer(order):
        if "logits" in order:
            np.save(order["logits"], np.zeros((2, 4), np.float32))
            return {}
        return {"tokens": [0] * decode.NEW_TOKENS, "first_s": 1.0, "rest_s": 1.0, "peak_mb": 9.0}

    monkeypatch.setattr(
        decode, "Served", lambda module, args, env, errors: Quick(args[0], answer, "llama.cpp")
    )
    monkeypatch.setattr(decode, "run_once", lambda *arguments: json.dumps({"gb_per_s": 10.0, "gflops": 5.0}))
    lineup = Lineup(list(decode.CONTESTANTS), needed=(OURS, decode.PLAIN, decode.REFERENCE))
    result = decode.figures_of(decode.take_turns(lineup, 1, Path("x"), [1], tmp_path), 1_000_000, 10**9)
    assert result["peers"]["llama.cpp"] == {"ended": "ended by SIGSEGV"}
    assert result["limit"]["prompt_fraction"] == pytest.approx(1 / 5)
    table = decode.table(result)
    rows = {row[0]: row[1:] for row in table.rows}
    assert rows["llama.cpp"][0] == "ended by SIGSEGV"
    assert rows[decode.REFERENCE][0] == f"{decode.NEW_TOKENS - 1:.1f}"
    json.dumps(result)


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_encode_compares_a_precision_with_the_same_peers(tmp_path, monkeypatch, encoder, precision):
    def answer(order):
        np.save(order["vectors"], np.zeros((1, 4), np.float32))
        return {"seconds": 1.0, "peak_mb": 9.0}

    def quick(module, args, env, errors):
        return Quick(args[0], answer, "onnxruntime int8")

    monkeypatch.setattr(encode, "Served", quick)
    monkeypatch.setattr(encode, "run_once", lambda *arguments: json.dumps({"gflops": 1.0, "kernel": "k"}))
    some = encode.Workload(["a"], [3])
    own, work = encode.OWN[precision], {encode.MIXED: some, "256 tokens": some}
    result = encode.figures_of(
        own, encode.take_turns(own, 1, Path("x"), work, tmp_path), work, encoder.config
    )
    assert own not in result["peers"]
    assert set(result["peers"]) == set(encode.CONTESTANTS) - {own}
    assert result["peers"]["onnxruntime int8"] == {"ended": "ended by SIGSEGV"}
    assert own in result["workload"]
    assert encode.table(result).rows[0][0] == OURS
    json.dumps(result)
