import json
import re

import pytest

from engine.retrieval import index_choice, index_kinds
from tests import command_line
from tests.command_line import refusal, run
from tests.text_files import write_files

TEXTS = {
    "lighthouse.md": "The lighthouse of Vardholm was painted green in 1931. Its keeper kept bees.",
    "bread.txt": "Knead the dough for ten minutes. Let it rest for an hour.",
}
MADE_WITH = ("--chunk-tokens", 16, "--pooling", "max", "--precision", "int8")


@pytest.fixture
def corpus(tmp_path):
    return write_files(tmp_path / "notes", TEXTS)


def printed(*arguments):
    """What a command prints as JSON, with the seconds left out."""
    return {name: value for name, value in command_line.printed(*arguments).items() if name != "timings"}


def test_the_command_says_how_many_files_and_chunks_changed(corpus, tmp_path):
    first = run("index", corpus, "--out", tmp_path / "kept", *MADE_WITH)
    assert first.exit_code == 0
    assert first.stdout.splitlines()[:3] == [
        f"4 chunks in {tmp_path / 'kept'}, 4 embedded now",
        "files: 2 new, 0 changed, 0 deleted, 0 unchanged",
        "index: exact search, as reading 4 chunks each time is fast (up to 50,000)",
    ]
    measured = first.stdout.splitlines()[3]
    assert re.fullmatch(r"  exact: recall@10 100 %, [\d.]+ ms a search .*, 0\.0 MB", measured)
    (corpus / "bread.txt").unlink()
    (corpus / "moth.txt").write_text("Grace found the moth.", encoding="utf-8")
    again = printed("index", corpus, "--out", tmp_path / "kept", *MADE_WITH)
    assert (again["index"]["asked"], again["index"]["kind"]) == ("auto", "flat")
    assert {name: value for name, value in again.items() if name != "index"} == {
        "out": str(tmp_path / "kept"),
        "files": {"new": 1, "changed": 0, "deleted": 1, "unchanged": 1},
        "chunks": 3,
        "embedded": 1,
        "notes": {},
        "failures": [],
    }


def test_a_file_that_cannot_be_read_is_left_out_with_a_warning(corpus, tmp_path):
    (corpus / "empty.txt").touch()
    (corpus / "old.doc").write_text("text")
    (corpus / "cut.md").write_bytes("Der Teig wird fünf Minuten geknetet. \u2013".encode()[:-1])
    reason = "empty.txt is empty: there is no text to search"
    made = printed("index", corpus, "--out", tmp_path / "kept")
    assert made["files"]["new"] == 3
    assert [each["name"] for each in made["failures"]] == ["empty.txt", "old.doc"]
    assert made["failures"][0]["reason"] == reason
    [note] = made["notes"]["cut.md"]
    assert "1 character could not be read" in note
    asked = ("search", "How long is dough kneaded?")
    searched = run(*asked, "--corpus", corpus, "--k", 1)
    assert searched.exit_code == 0
    assert f"warning: left out: {reason}\n" in searched.stderr
    assert "left out: old.doc is of a kind that is not read: save it as .docx" in searched.stderr
    assert f"note: cut.md: {note}\n" in searched.stderr
    kept = printed(*asked, "--index", tmp_path / "kept")
    assert (kept["notes"], kept["failures"]) == (made["notes"], made["failures"])
    assert refusal(*asked, "--corpus", corpus / "empty.txt") == f"error: {reason}"


def test_documents_by_name_tag_and_day_are_found_the_same_by_the_index_as_by_the_corpus(corpus, tmp_path):
    (corpus / "hive.md").write_text("---\ndate: 2026-05-01\ntags: [bees]\n---\nThe hive was green.")
    (corpus / "wasps.md").write_text("---\ndate: 2026-06-01\ntags: [wasps]\n---\nThe nest was green.")
    assert run("index", corpus, "--out", tmp_path / "kept", *MADE_WITH).exit_code == 0
    question = ("search", "What was green?")
    for options, names in (
        (("--tag", "bees", "--tag", "Wasps"), {"hive.md", "wasps.md"}),
        (("--since", "2026-05-02"), {"wasps.md"}),
        (("--document", "bread.txt"), {"bread.txt"}),
        (("--tag", "bees", "--until", "2026-05-01", "--document", "hive.md"), {"hive.md"}),
    ):
        found = printed(*question, *options, "--index", tmp_path / "kept")
        assert {hit["document"] for hit in found["hits"]} == names
        assert found == printed(*question, *options, "--corpus", corpus, *MADE_WITH)
    by_index = ("--index", tmp_path / "kept")
    line = refusal(*question, "--document", "bred.txt", *by_index)
    assert line.endswith("no document 'bred.txt' in the index: is it 'bread.txt'?")
    line = refusal(*question, "--tag", "bees", "--document", "bread.txt", *by_index)
    assert line == "error: no document has the tag bees: they have no tags"


def test_what_an_index_lost_is_listed_and_exact_search_used(corpus, tmp_path, monkeypatch):
    monkeypatch.setattr(index_choice, "FEWEST_CHUNKS", 0)
    monkeypatch.setattr(index_choice, "EFFORTS", (1,))
    monkeypatch.setattr(index_kinds, "EXACT_SHARE", 0)
    monkeypatch.setattr(index_kinds, "LEAST_PER_LIST", 20)
    lines = [f"Subject number {n} is about {word}." for n in range(40) for word in ("bees", "bread", "moths")]
    (corpus / "many.jsonl").write_text("\n".join(json.dumps({"text": line}) for line in lines))
    result = run("index", corpus, "--out", tmp_path / "kept", "--index-kind", "ivf")
    lines = result.stdout.splitlines()
    assert lines[2].startswith("index: exact search: IVF (as asked for) finds only")
    [start] = [place for place, line in enumerate(lines) if line.startswith("What IVF lost, ")]
    assert re.match(r"  many\.jsonl:\d+-\d+, number \d+ for ", lines[start + 1])


def test_vectors_in_milvus_are_found_and_a_place_that_is_none_is_one_line(corpus, tmp_path):
    pytest.importorskip("milvus_lite", reason="pip install -r requirements-cluster.txt")
    made = run("index", corpus, "--out", tmp_path / "kept", *MADE_WITH, "--store", f"milvus:{tmp_path}/v.db")
    assert made.stdout.splitlines()[2] == "index: exact search, by Milvus"
    question = ("search", "What was painted green?", "--retriever", "dense")
    found = printed(*question, "--index", tmp_path / "kept")["hits"]
    expected = printed(*question, "--corpus", corpus, *MADE_WITH)["hits"]
    assert [hit["text"] for hit in found] == [hit["text"] for hit in expected]
    assert [hit["score"] for hit in found] == pytest.approx([hit["score"] for hit in expected], abs=2e-6)
    for wrong in (
        ("--store", "milvus:v"),
        ("--ray", "127.0.0.1:1"),
        ("--ray-workers", 2),
        ("--ray", "local", "--cache", tmp_path / "cache"),
    ):
        result = run("index", corpus, "--out", tmp_path / "other", *wrong)
        assert result.exit_code == 2
        assert len([line for line in result.stderr.splitlines() if line.startswith("error: ")]) == 1


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
    line = refusal(command, "bees", "--index", tmp_path)
    assert line.startswith(f"error: {tmp_path} holds no index: write one with")
