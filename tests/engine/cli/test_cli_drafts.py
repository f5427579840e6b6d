"""The command that drafts questions: its file, which it goes on with, and input that it refuses."""

import json

import pytest

from engine.evaluation.questions import load_questions
from tests.command_line import printed, refusal, run

TEXT = (
    "The harbour of Orland was opened to large ships in 1891 after a long dispute. The owners of the fishing "
    "boats of Orland pay a fee of eleven crowns for every berth. The pilot of the harbour keeps bees in the "
    "garden behind the office."
)


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "harbour.md"
    path.write_text(TEXT)
    return path


def test_drafts_are_written_and_gone_on_with(corpus, tmp_path):
    file = tmp_path / "drafts.jsonl"
    first = run("draft-questions", corpus, "--out", file, "--n", 1)
    assert first.exit_code == 0, first.stderr
    assert "1 draft in" in first.stdout
    assert "Nobody has read them" in first.stdout
    (one,) = load_questions(file)
    assert (one.status, one.seed, one.corpus_id) == ("drafted", 0, "harbour")
    assert one.references[0].content in TEXT
    again = printed("draft-questions", corpus, "--out", file, "--n", 1)
    assert again == {"file": str(file), "n": 1, "n_unanswerable": 0}
    assert load_questions(file) == [one]
    swept = run("sweep", "--corpus", corpus, "--questions", file, "--retriever", "bm25,weighted")
    assert "nobody has read 1 of 1 question" in swept.stderr
    first, second = (line for line in swept.stdout.splitlines() if line.startswith("sentences"))
    assert "weighted" in first
    assert "-0." in second
    assert "by 13 labelled corpora and these questions; 0 of 2 are clearly worse" in swept.stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--out", "drafts.csv"], "ends in .jsonl"),
        (["--out", "missing/drafts.jsonl"], "missing"),
        (["--out", "drafts.jsonl", "--n", "0"], "draft 1 or more"),
        (["--out", "others.jsonl"], "drafts of other documents"),
    ],
)
def test_what_cannot_be_drafted_is_told(corpus, tmp_path, monkeypatch, options, message):
    monkeypatch.chdir(tmp_path)
    row = {"question": "Who?", "corpus_id": "mill", "status": "drafted", "seed": 0}
    row["references"] = [{"content": "The mill.", "start_index": 0, "end_index": 9}]
    (tmp_path / "others.jsonl").write_text(json.dumps(row))
    assert message in refusal("draft-questions", corpus, *options)
    assert not (tmp_path / "drafts.jsonl").exists()
