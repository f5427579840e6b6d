import json

import pytest

from engine.errors import InputError
from engine.evaluation.beir import load_beir
from tests.text_files import write_files

HEADER = "query-id\tcorpus-id\tscore"
CORPUS = [
    {"_id": "d1", "title": "Wings", "text": "Lift of a\r\nwing.", "metadata": {"url": "x"}},
    {"_id": "d 2", "title": "", "text": "Drag.\u2028More drag."},
    {"_id": "3.txt", "text": ""},
]
QUERIES = [
    {"_id": "q2", "text": "what is drag"},
    {"_id": "unjudged", "text": "why"},
    {"_id": "q1", "text": "naïve wing", "metadata": {}},
]
QRELS = [("q1", "d1", 2), ("q2", "d 2", 1), ("q1", "d 2", 0), ("q1", "3.txt", -1), ("q2", "3.txt", 4)]


def jsonl(rows):
    return "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)


def tsv(rows):
    return "\n".join([HEADER, *("\t".join(map(str, row)) for row in rows)])


@pytest.fixture
def folder(tmp_path):
    files = {"corpus.jsonl": jsonl(CORPUS), "queries.jsonl": jsonl(QUERIES), "qrels/test.tsv": tsv(QRELS)}
    return write_files(tmp_path, files)


def test_a_folder_is_read(folder):
    found = load_beir(folder)
    assert [(d.name, d.title, d.text) for d in found.documents] == [
        ("d1", "Wings", "Wings\n\nLift of a\nwing."),
        ("d 2", "", "Drag.\u2028More drag."),
        ("3.txt", "", ""),
    ]
    assert found.query_ids == ("q2", "q1")
    assert found.questions == ("what is drag", "naïve wing")
    assert found.qrels == {"q1": {"d1": 2, "d 2": 0, "3.txt": -1}, "q2": {"d 2": 1, "3.txt": 4}}


def test_a_split_is_chosen_by_name_and_test_is_the_first_choice(folder):
    (folder / "qrels" / "dev.tsv").write_text(tsv([("unjudged", "d1", 1)]))
    assert load_beir(folder).query_ids == ("q2", "q1")
    assert load_beir(folder, "dev").query_ids == ("unjudged",)
    with pytest.raises(InputError, match=r"no train\.tsv: choose one of the splits dev, test"):
        load_beir(folder, "train")
    (folder / "qrels" / "test.tsv").rename(folder / "qrels" / "train.tsv")
    with pytest.raises(InputError, match="choose one of the splits dev, train"):
        load_beir(folder)
    (folder / "qrels" / "train.tsv").unlink()
    assert load_beir(folder).query_ids == ("unjudged",)


@pytest.mark.parametrize("name", ["corpus.jsonl", "queries.jsonl", "qrels/test.tsv"])
def test_a_missing_file_is_named(folder, name):
    (folder / name).unlink()
    with pytest.raises(InputError, match="qrels" if name.startswith("qrels") else name):
        load_beir(folder)


ROW = jsonl([{"_id": "a", "text": "one"}])


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("corpus.jsonl", "", r"corpus\.jsonl is empty"),
        ("corpus.jsonl", ROW + "{", r"corpus\.jsonl, line 2 is no JSON"),
        ("corpus.jsonl", '{"_id": 1, "text": "one"}', r"corpus\.jsonl, line 1 has not both"),
        ("corpus.jsonl", '{"_id": "1"}', r"corpus\.jsonl, line 1 has not both"),
        ("corpus.jsonl", '{"_id": "1", "text": "", "title": 5}', r"corpus\.jsonl, line 1 has a title"),
        ("corpus.jsonl", ROW + ROW, r"corpus\.jsonl, line 2 has the _id 'a'"),
        ("queries.jsonl", '{"_id": " ", "text": "one"}', r"queries\.jsonl, line 1 has the _id ' '"),
        ("queries.jsonl", ROW.encode("utf-16"), r"queries\.jsonl is no UTF-8 \(byte 0\)"),
        ("qrels/test.tsv", "", r"test\.tsv, line 1 is no header"),
        ("qrels/test.tsv", "q1\td1\t1\n", r"test\.tsv, line 1 is no header"),
        ("qrels/test.tsv", f"{HEADER}\n\n", r"test\.tsv holds no judgements"),
        ("qrels/test.tsv", tsv([("q1", "d1", 1), ("q1", "d1")]), r"test\.tsv, line 3 is no judgement"),
        ("qrels/test.tsv", tsv([("q9", "d1", 1)]), r"test\.tsv, line 2 judges question 'q9'"),
        ("qrels/test.tsv", tsv([("q1", "d9", 1)]), r"test\.tsv, line 2 judges document 'd9'"),
        ("qrels/test.tsv", tsv([("q1", "d1", 1), ("q1", "d1", 0)]), r"test\.tsv, line 3 judges what"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(folder, name, content, message):
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError, match=message):
        load_beir(folder)
