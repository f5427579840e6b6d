import json

import pytest
from typer.testing import CliRunner

import engine.cli.index  # noqa: F401 (adds its command to the app)
from engine.cli.main import app
from engine.models.encoder import Encoder

TEXTS = {
    "lighthouse.md": "The lighthouse of Vardholm was painted green in 1931. Its keeper kept bees.",
    "bread.txt": "Knead the dough for ten minutes. Let it rest for an hour.",
}
MADE_WITH = ("--chunk-tokens", 16, "--pooling", "max", "--precision", "int8")


@pytest.fixture
def corpus(tmp_path):
    for name, text in TEXTS.items():
        path = tmp_path / "notes" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path / "notes"


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def printed(*arguments):
    """What a command prints as JSON, with the seconds left out."""
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.stderr
    return {name: value for name, value in json.loads(result.stdout).items() if name != "timings"}


def test_the_command_says_how_many_files_and_chunks_changed(corpus, tmp_path):
    first = run("index", corpus, "--out", tmp_path / "kept", *MADE_WITH)
    assert first.exit_code == 0
    assert first.stdout.splitlines() == [
        f"4 chunks in {tmp_path / 'kept'}, 4 embedded now",
        "files: 2 new, 0 changed, 0 deleted, 0 unchanged",
    ]
    (corpus / "bread.txt").unlink()
    (corpus / "moth.txt").write_text("Grace found the moth.", encoding="utf-8")
    again = printed("index", corpus, "--out", tmp_path / "kept", *MADE_WITH)
    assert again == {
        "out": str(tmp_path / "kept"),
        "files": {"new": 1, "changed": 0, "deleted": 1, "unchanged": 1},
        "chunks": 3,
        "embedded": 1,
    }


def test_search_and_ask_find_the_same_by_the_index_as_by_the_corpus(corpus, tmp_path, monkeypatch):
    question = "What was painted green?"
    by_corpus = ("--corpus", corpus, *MADE_WITH)
    quoted = ("ask", question, "--quotes-only", "--min-relevance", 0)
    expected = [printed("search", question, *by_corpus), printed(*quoted, *by_corpus)]
    assert run("index", corpus, "--out", tmp_path / "kept", *MADE_WITH).exit_code == 0

    read, encode_ids = [], Encoder.encode_ids

    def counted(self, sequences, *rest, **settings):
        read.append(len(sequences))
        return encode_ids(self, sequences, *rest, **settings)

    monkeypatch.setattr(Encoder, "encode_ids", counted)
    by_index = ("--index", tmp_path / "kept")
    assert printed("search", question, *by_index) == expected[0]
    assert read == [1], "only the question is embedded"
    assert printed(*quoted, *by_index) == expected[1]


def test_options_that_are_up_to_the_index_are_refused(corpus, tmp_path):
    assert run("index", corpus, "--out", tmp_path / "kept", *MADE_WITH).exit_code == 0
    same = run("search", "bees", "--index", tmp_path / "kept", "--pooling", "max", "--precision", "int8")
    assert same.exit_code == 0
    for option, value in (("--pooling", "cls"), ("--corpus", corpus), ("--model", "other")):
        result = run("search", "bees", "--index", tmp_path / "kept", option, value)
        assert result.exit_code == 2
        [line] = [line for line in result.stderr.splitlines() if line.startswith("error")]
        assert f"leave out {option}, or --index" in line


@pytest.mark.parametrize("command", ["search", "ask"])
def test_a_folder_without_an_index_is_one_line(command, tmp_path):
    result = run(command, "bees", "--index", tmp_path)
    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1].startswith(f"error: {tmp_path} holds no index: write one with")
