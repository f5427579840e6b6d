import csv
import json
import shutil

import pytest

from engine.evaluation.metrics import METRICS
from tests.command_line import LIGHTHOUSE, printed, refusal, run
from tests.text_files import write_files

BREAD = "Knead the dough for ten minutes.\n\nLet it rise under a cloth."


def reference(text, passage):
    start = text.index(passage)
    return {"content": passage, "start_index": start, "end_index": start + len(passage)}


@pytest.fixture
def corpus(tmp_path):
    return write_files(tmp_path / "notes", {"lighthouse.md": LIGHTHOUSE, "bread.txt": BREAD})


@pytest.fixture
def questions(tmp_path):
    rows = [
        ("What colour is the lighthouse?", "lighthouse", reference(LIGHTHOUSE, "painted green")),
        ("How long is dough kneaded?", "bread", reference(BREAD, "ten minutes")),
    ]
    lines = [json.dumps({"question": q, "corpus_id": name, "references": [found]}) for q, name, found in rows]
    path = tmp_path / "questions.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


@pytest.fixture
def sweep(corpus, questions):
    """The command, for these documents and questions."""
    return "sweep", "--corpus", corpus, "--questions", questions


def test_sweep_prints_one_object_with_a_row_a_cell(sweep):
    sizes = ("--chunk-tokens", "12,16", "--overlap", "0,2")
    rows = printed(*sweep, *sizes, "--retriever", "dense,bm25,hybrid")["rows"]
    assert len(rows) == 12
    assert [(row["chunk_tokens"], row["overlap"], row["retriever"]) for row in rows[:4]] == [
        (12, 0, "dense"),
        (12, 0, "bm25"),
        (12, 0, "hybrid"),
        (12, 2, "dense"),
    ]
    for row in rows:
        assert set(METRICS) <= set(row)
        assert row["n_questions"] == 2
        for name in METRICS:
            low, high = row["intervals"][name]
            assert 0 <= low <= row[name] <= high <= 1
    assert rows[0]["mrr"] == 1


def test_the_table_shows_the_best_first_with_every_setting_that_differs(sweep):
    head, first, *_ = run(*sweep, "--chunk-tokens", "12", "--k", "1,2").stdout.splitlines()
    assert head.startswith("splitter   chunk tokens  overlap  model")
    assert "1.000" in first
    assert "precision" not in head
    head, *rows = run(*sweep, "--precision", "float32,int8", "--retriever", "bm25").stdout.splitlines()
    assert "  k  precision  " in head
    assert sorted(row.split()[8] for row in rows) == ["float32", "int8"]


def test_tables_rows_and_embeddings_are_kept_in_files(sweep, questions, tmp_path):
    table, kept, cache = (tmp_path / name for name in ("rows.csv", "kept.jsonl", "vectors.sqlite3"))
    result = run(*sweep, "--pooling", "mean,cls", "--csv", table)
    assert (result.exit_code, result.stdout) == (0, "")
    with table.open(encoding="utf-8", newline="") as file:
        assert [row["pooling"] for row in csv.DictReader(file)] == ["mean", "cls"]
    command = (*sweep, "--cache", cache, "--resume", kept)
    [first] = printed(*command, "--chunk-tokens", "12")["rows"]
    assert cache.stat().st_size > 0
    lines = kept.read_bytes()
    again, _ = printed(*command, "--chunk-tokens", "12,16")["rows"]
    assert again == first  # the seconds, too: it was not measured again
    assert kept.read_bytes().startswith(lines)
    assert "is no file of a sweep" in refusal(*sweep, "--resume", questions)


def test_what_is_left_out_is_told(sweep):
    result = run(*sweep, "--chunk-tokens", "12,64", "--overlap", "16", "--json")
    assert len(json.loads(result.stdout)["rows"]) == 1
    assert "left out 1 of the grid: overlap 16 does not fit a chunk of 12 tokens" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--chunk-tokens", "12,x"], "--chunk-tokens has 'x': give whole numbers"),
        (["--chunk-tokens", ","], "--chunk-tokens is empty"),
        (["--chunk-tokens", "12", "--overlap", "16"], "nothing is left of the grid: overlap 16 does not fit"),
        (["--splitter", "lines"], "splitter 'lines' is not one of"),
        (["--prompts", "none"], "nothing is left of the grid: all-MiniLM-L6-v2 has no prompts to leave out"),
        (["--questions", "nowhere.csv"], "nowhere.csv cannot be read"),
        (["--document", "tide.md"], "there is no document 'tide.md': there are bread.txt, lighthouse.md"),
        (["--csv", "nowhere/rows.csv"], "the folder nowhere does not exist"),
    ],
)
def test_bad_input_is_one_line(sweep, arguments, message):
    assert message in refusal(*sweep, *arguments)


def test_some_of_the_documents_are_searched(sweep):
    command = (*sweep, "--retriever", "bm25", "--json")
    whole, some = (run(*command, *chosen) for chosen in ([], ["--document", "bread.txt"]))
    for result, n in ((whole, 2), (some, 1)):
        [row] = json.loads(result.stdout)["rows"]
        assert (row["n_questions"], row["n_chunks"]) == (n, n)
    assert "left out 1 of 2 questions: 1 about documents that are not searched" in some.stderr
    both = run(*command, "--document", "bread.txt", "--document", "lighthouse.md")
    assert without_seconds(both) == without_seconds(whole)


def without_seconds(result):
    return [row | {"seconds": 0, "search_seconds": 0} for row in json.loads(result.stdout)["rows"]]


def test_questions_that_cannot_be_judged_are_left_out_and_counted(sweep, questions):
    whole = run(*sweep, "--json")
    unusable = [
        {"question": "Where?", "corpus_id": "bread", "references": [reference(LIGHTHOUSE, "painted green")]},
        {"question": "Who?", "corpus_id": "nowhere", "references": [reference(LIGHTHOUSE, "painted green")]},
        {"question": "Why?", "corpus_id": "bread", "references": []},
    ]
    with questions.open("a", encoding="utf-8") as file:
        file.writelines("\n" + json.dumps(row) for row in unusable)
    more = run(*sweep, "--json")
    assert without_seconds(more) == without_seconds(whole)
    said = more.stderr.splitlines()
    assert "left out 1 of 5 questions, about documents that are not there: nowhere" in said
    assert "left out 2 of 4 questions: 2 without a passage at its place" in said
    questions.write_text(json.dumps(unusable[2]), encoding="utf-8")
    assert "no question can be used (1 without a passage at its place)" in refusal(*sweep)


def test_names_of_documents_are_taken_but_for_ending_and_capitals_and_else_asked_for(sweep, questions):
    whole, given = run(*sweep, "--json"), questions.read_text(encoding="utf-8")
    questions.write_text(given.replace('"bread"', '"Bread.txt"'), encoding="utf-8")
    taken = run(*sweep, "--json")
    assert without_seconds(taken) == without_seconds(whole)
    assert "the questions' document 'Bread.txt' is taken to be bread.txt" in taken.stderr
    others = given.replace('"bread"', '"breads"').replace('"lighthouse"', '"light_houses"')
    questions.write_text(others, encoding="utf-8")
    said = refusal(*sweep)
    assert "'light_houses' (did you mean lighthouse?), 'breads' (did you mean bread?)" in said
    assert "correct the names" in said


def test_more_passages_than_chunks_are_warned_of(sweep):
    result = run(*sweep, "--k", "1,9", "--retriever", "dense,bm25")
    assert "warning: 1 of 4 configurations retrieve all their chunks" in result.stderr
    assert "retrieve all" not in run(*sweep, "--k", "1").stderr


def test_a_collection_is_swept_with_its_questions_packed_or_not(beir, questions, corpus, tmp_path):
    packed = shutil.make_archive(str(tmp_path / "facts"), "zip", beir)
    given = ["sweep", "--beir", packed, "--retriever", "bm25", "--splitter", "markdown"]
    [row] = printed(*given)["rows"]
    assert (row["n_chunks"], row["n_questions"]) == (3, 2)
    assert row["mrr"] == 1
    folder = run(*(beir if word == packed else word for word in given), "--json")
    assert without_seconds(folder) == [row | {"seconds": 0, "search_seconds": 0}]
    [row] = printed(*given, "--corpus", corpus, "--questions", questions)["rows"]
    assert (row["n_chunks"], row["n_questions"]) == (5, 2)
    for path in (questions, "nowhere", "nowhere.zip"):
        line = refusal("sweep", "--beir", path)
        assert "cannot be read" in line
        assert "a BEIR folder" in line


@pytest.fixture
def beir(tmp_path):
    texts = {"d1": LIGHTHOUSE, "d2": BREAD, "d3": "Chess is played by two players."}
    asked = {"q1": "What colour is the lighthouse?", "q2": "How long is dough kneaded?"}
    files = {"qrels/test.tsv": "query-id\tcorpus-id\tscore\nq1\td1\t1\nq2\td2\t1\nq2\td3\t1\n"}
    for name, rows in {"corpus": texts, "queries": asked}.items():
        lines = [json.dumps({"_id": number, "text": text}) for number, text in rows.items()]
        files[f"{name}.jsonl"] = "\n".join(lines)
    return write_files(tmp_path / "beir", files)


def test_a_beir_folder_is_judged(beir, tmp_path):
    packed = shutil.make_archive(str(tmp_path / "facts"), "zip", beir)
    found = printed("evaluate", packed, "--precision", "int8")
    assert found["precision"] == "int8"
    assert (found["n_documents"], found["n_questions"]) == (3, 2)
    assert [row["retriever"] for row in found["rows"]] == ["dense", "bm25", "hybrid"]
    # d3 shares no word with its question, so that words alone do not find it
    assert [row["recall@10"] for row in found["rows"]] == [1, 0.75, 1]
    for row in found["rows"]:
        assert row["mrr@10"] == 1
        assert 0.8 < row["ndcg@10"] <= 1
        assert set(row["intervals"]) == {"ndcg@10", "recall@10", "mrr@10"}
    first, head, *lines = run("evaluate", beir).stdout.splitlines()
    assert first.startswith("2 questions, 3 documents")
    assert head.split() == ["retriever", "ndcg@10", "recall@10", "mrr@10"]
    assert len(lines) == 3
