import json

import pytest

from engine.documents.splitters import Splitting, split
from engine.errors import DocumentError, InputError
from engine.evaluation.beir import load_beir, parse_beir_zip
from engine.evaluation.questions import relevance
from tests.text_files import packed, write_files

CORPUS = [
    {"_id": "d1", "title": "Wings", "text": "Lift is what a wing makes of air."},
    {"_id": "d2", "title": "Wings", "text": "Drag is what it costs."},
    {"_id": "d3", "title": "", "text": ""},
    {"_id": "d4", "title": "Tides", "text": "The moon pulls the sea."},
]
QUERIES = [{"_id": "q1", "text": "What is drag?"}, {"_id": "q2", "text": "Why tides?"}]
QRELS = "query-id\tcorpus-id\tscore\nq1\td1\t1\nq1\td2\t2\nq1\td4\t0\nq2\td4\t1\nq2\td3\t1\n"
FILES = {
    "corpus.jsonl": "\n".join(map(json.dumps, CORPUS)),
    "queries.jsonl": "\n".join(map(json.dumps, QUERIES)),
    "qrels/test.tsv": QRELS,
}


@pytest.mark.parametrize("root", ["", "wings/"])
def test_a_collection_becomes_one_document_whose_spans_are_the_judged_texts(root):
    others = {"readme.md": "Not of the collection.", "__MACOSX/corpus.jsonl": "hidden"}
    found = parse_beir_zip("wings.zip", packed({root + path: text for path, text in FILES.items()} | others))
    text = found.document.text
    assert [question.text for question in found.questions] == ["What is drag?", "Why tides?"]
    assert [[one.content for one in question.references] for question in found.questions] == [
        ["Wings\n\nLift is what a wing makes of air.", "Wings\n\nDrag is what it costs."],
        ["Tides\n\nThe moon pulls the sea."],
    ]
    for question in found.questions:
        assert question.corpus_id == "wings"
        for one in question.references:
            assert text[one.start : one.end] == one.content
    headings = [section.headings for section in found.document.sections]
    assert headings == [("Wings (d1)",), ("Wings (d2)",), ("(d3)",), ("Tides (d4)",)]


def test_chunks_by_headings_are_relevant_as_the_documents_are(encoder, tmp_path):
    expected = load_beir(write_files(tmp_path, FILES)).relevance(["d1", "d2", "d4"])
    found = parse_beir_zip("wings.zip", packed(FILES))
    chunks = split(found.document, encoder.tokenizer, Splitting("markdown", 64))
    assert len(chunks) == 3
    assert relevance(found.questions, chunks).tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "wings.zip holds 0 files corpus.jsonl"),
        (FILES | {"b/corpus.jsonl": "{}"}, "wings.zip holds 2 files corpus.jsonl"),
        ({"corpus.jsonl": FILES["corpus.jsonl"]}, r"wings.zip has no queries.jsonl"),
        ({path: FILES[path] for path in ("corpus.jsonl", "queries.jsonl")}, "holds no judgements"),
        (FILES | {"../up.txt": "a"}, "points out of the archive"),
    ],
)
def test_what_is_no_collection_is_told_in_one_line(files, message):
    with pytest.raises((InputError, DocumentError), match=message) as caught:
        parse_beir_zip("wings.zip", packed(files))
    assert "\n" not in str(caught.value)
    assert "/tmp" not in str(caught.value)


def test_a_collection_too_large_to_search_here_is_sent_to_the_command_line(monkeypatch):
    monkeypatch.setattr("engine.evaluation.beir.MAX_TEXT", 50)
    with pytest.raises(InputError, match="more than the 50: measure it with python -m engine evaluate"):
        parse_beir_zip("wings.zip", packed(FILES))
