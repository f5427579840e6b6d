"""Options: checked before anything is loaded, in groups, and from a file."""

import json
import re

import pytest

from engine import __version__
from engine.cli import loading, web
from tests.command_line import LIGHTHOUSE, printed, refusal, run


@pytest.fixture
def nothing_is_loaded(monkeypatch):
    def load(*arguments):
        raise AssertionError("a model is loaded")

    monkeypatch.setattr(loading, "load_model", load)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--splitter", "sentence"], "splitter 'sentence' is not one of .*did you mean 'sentences'"),
        (["--retriever", "hybird"], "retriever 'hybird' is not one of .*did you mean 'hybrid'"),
        (["--chunk-tokens", "1"], "chunk size 1 is too small"),
        (["--k", "0"], "k is 0: ask for 1 passage or more"),
        (["--corpus", "nosuch"], "nosuch does not exist"),
        (["--corpus", "https://example.org/notes.html"], "https://example.org/notes.html is an address"),
        (["--index", "ftp://example.org/i"], "ftp://example.org/i is an address"),
        (["--max-tokens", "0"], "max_tokens is 0: give 1 or more"),
        (["--spliter", "fixed"], r"No such option: --spliter .*--splitter.* \(see .* search -h\)"),
        (["--k", "three"], "Invalid value for '--k'"),
        (["more"], "unexpected extra argument"),
    ],
)
def test_options_are_checked_before_anything_is_loaded(nothing_is_loaded, arguments, reason):
    line = refusal("search", "What?", *arguments)
    assert re.search(reason, line)


def test_options_stand_in_groups():
    shown = run("search", "-h").stdout
    names = ("Options", "Embedding", "Chunks", "Documents", "Search")
    assert [name for name in names if not re.search(f"[─-] {name} [─-]", shown)] == []


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "lighthouse.txt").write_text(LIGHTHOUSE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def n_found(*options):
    return len(printed("search", "What was painted green?", *options)["hits"])


def test_a_file_gives_options_and_those_that_are_given_go_first(folder):
    text = 'corpus = "notes"\nsplitter = "paragraphs"\nchunk-tokens = 16\nk = 1\n'
    (folder / "glassbox.toml").write_text(text, encoding="utf-8")
    assert n_found() == 1
    assert n_found("--k", "2") == 2
    values = {"corpus": "notes", "chunk_tokens": 192, "max_tokens": None, "follow_ups": True, "top_k": 0}
    (folder / "run.json").write_text(json.dumps(values), encoding="utf-8")
    assert n_found("--settings", "run.json") == 1  # the whole text


def test_the_app_is_started_with_the_settings_and_models_of_a_file(folder, monkeypatch):
    started = {}
    monkeypatch.setattr(web.os, "execve", lambda *command: started.update(command[2]))
    text = 'corpus = "notes"\nsplitter = "paragraphs"\nanswer-threshold = 60\nmodel = "mine"\nk = 50\n'
    (folder / "glassbox.toml").write_text(text, encoding="utf-8")
    done = run("app", "--server.port", "8600")
    assert "warning: the app does not take corpus, k of the settings" in done.stderr
    assert json.loads(started["GLASSBOX_SETTINGS"]) == {"splitter": "paragraphs", "answer_threshold": 60}
    assert started["GLASSBOX_ENCODER"] == "mine"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"spliter": "fixed"}', "run.json sets 'spliter', and no option has this name .did you mean"),
        ('{"k": true}', "Invalid value for '--k'"),
        ('{"splitter": "fix"}', "splitter 'fix' is not one of"),
        ('{"answer_threshold": 0.5}', "answer_threshold is 0.5: give a whole number .% sure"),
        ('{"answer_threshold": "high"}', "answer_threshold is 'high': give a whole number"),
        ('{"app": {"k": 3}}', "sets 'app'"),
        ('{"k": {"k": 3}}', "has a table k"),
        ("[1]", "cannot be read as settings"),
        ('{"k": ', "cannot be read as settings"),
        ("[" * 100_000, "cannot be read as settings"),
    ],
)
def test_a_file_of_settings_that_cannot_be_used_is_refused(folder, nothing_is_loaded, text, reason):
    (folder / "run.json").write_text(text, encoding="utf-8")
    assert re.search(reason, refusal("search", "What?", "--settings", "run.json"))


def test_settings_without_an_end_are_refused():
    assert "it is no ordinary file" in refusal("search", "What?", "--settings", "/dev/zero")


def test_a_quiet_command_prints_nothing_but_warnings(folder):
    (folder / "notes" / "picture.png").write_bytes(b"x")
    done = run("search", "What was painted green?", "--corpus", "notes", "--quiet")
    assert done.exit_code == 0
    assert [line[:17] for line in done.stderr.splitlines()] == ["warning: left out"]
    assert "Loading" in run("search", "What was painted green?", "--corpus", "notes").stderr


def test_a_sweep_prints_seconds_and_milliseconds():
    done = run("sweep", "--retriever", "bm25", "--document", "chatlogs.md", "--answers", "0", "--quiet")
    head, row = done.stdout.splitlines()
    assert head.endswith("seconds  ms a search")
    assert all(float(cell) >= 0 for cell in row.split()[-2:])


def test_the_version_is_printed():
    assert run("--version").stdout == f"Glassbox {__version__}\n"
