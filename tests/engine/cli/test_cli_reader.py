"""The command that trains a reader: its files, its checkpoint, and input that it refuses."""

import json
import os
import signal

import numpy as np
import pytest

from engine.models.reader import Reader
from tests.command_line import printed, refusal, run

TEXT = "The harbour of {0} opened in {1}. Its pilot was Mara Lind, who came from Tessel and kept bees."


def article(name, year, shift=0):
    text = TEXT.format(name, year)
    asked = ((f"When did the harbour of {name} open?", str(year)), ("Who was the pilot?", "Mara Lind"))
    questions = [
        {"question": question, "answers": [{"text": answer, "answer_start": text.index(answer) + shift}]}
        for question, answer in asked
    ]
    return {"title": name, "paragraphs": [{"context": text, "qas": questions}]}


@pytest.fixture
def questions(tmp_path):
    path = tmp_path / "questions.json"
    path.write_text(json.dumps({"data": [article("Orland", 1891), article("Vardholm", 1931)]}))
    return path


@pytest.fixture
def command(questions, tmp_path):
    """The command with few updates of one layer."""
    return "train-reader", questions, "--output", tmp_path / "reader", "--crops", "24,40", "--layers", 1


def test_a_stopped_run_goes_on_and_says_what_to_do_next(command, questions, tmp_path):
    path = tmp_path / "reader" / "checkpoint.safetensors"
    first = run(*command, "--minutes", 0)
    assert first.exit_code == 0, first.stderr
    assert first.stdout.splitlines()[-1].startswith("Stopped at update 1: run the same command again")
    assert "held out: F1" in first.stdout
    second = printed(*command, "--tune", questions)
    assert (second["checkpoint"], second["finished"]) == (str(path), True)
    assert second["updates"] == 2
    assert second["quality"].keys() == {"held out", "tune"}
    other = run(
        *command[:3],
        tmp_path / "other",
        *command[4:],
        "--from",
        path.with_name("reader.safetensors"),
        "--updates",
        1,
    )
    assert "Starting from the weights" in other.stderr
    assert other.stdout.splitlines()[-1].startswith("Trained: ")
    one, two = (tmp_path / name / "reader.safetensors" for name in ("reader", "other"))
    before = [np.array(Reader.load(path).head.weight) for path in (one, two)]
    assert run(*command, "--average", two).exit_code == 0
    assert np.array(Reader.load(one).head.weight) == pytest.approx(np.mean(before, axis=0))


def test_ctrl_c_saves_a_whole_update(command, tmp_path, monkeypatch):
    def interrupted(*arguments):
        os.kill(os.getpid(), signal.SIGINT)
        return 1e-4

    monkeypatch.setattr("engine.training.reading.loop.learning_rate", interrupted)
    result = run(*command)
    assert (result.exit_code, result.stdout.splitlines()[-1][:19]) == (0, "Stopped at update 1")
    assert (tmp_path / "reader" / "checkpoint.safetensors").exists()


def test_a_full_disk_is_told_and_the_checkpoint_before_stays(command, tmp_path, monkeypatch):
    path = tmp_path / "reader" / "checkpoint.safetensors"
    assert run(*command, "--minutes", 0).exit_code == 0
    before = path.read_bytes()

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    line = refusal(*command)
    assert "cannot be written (No space left on device), and the one before stays" in line
    assert path.read_bytes() == before


def test_a_checkpoint_of_another_shape_is_refused(command, tmp_path):
    assert run(*command, "--minutes", 0).exit_code == 0
    assert "of a model of other sizes" in refusal(*command[:-1], 2)
    assert run(*command[:3], tmp_path / "two", *command[4:-1], 2, "--minutes", 0).exit_code == 0
    line = refusal(*command, "--output", tmp_path / "two")
    assert "weights and sizes are not of one model" in line


def test_offsets_that_do_not_match_are_refused(command, questions):
    questions.write_text(json.dumps({"data": [article("Orland", 1891, shift=2)]}))
    line = refusal(*command)
    assert str(questions) in line
    assert "the answer '1891' to 'When did the harbour of Orland open?' does not stand at" in line


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--crops", "24,many"), "--crops has 'many'"),
        (("--crops", "0"), "--crops has 0"),
        (("--layers", 99), "has 6"),
        (("--from", "nowhere"), "there is no reader at nowhere"),
        (("--start-decay", 10**6), "the decay cannot start at update 1000000"),
    ],
)
def test_options_that_cannot_be_are_refused(command, options, words):
    assert words in refusal(*command, *options)


def test_files_without_questions_and_a_missing_folder_are_refused(command, questions, tmp_path):
    assert "does not exist" in refusal(*command[:3], tmp_path / "none" / "reader")
    questions.write_text(json.dumps({"data": []}))
    assert "no questions there" in refusal(*command)
