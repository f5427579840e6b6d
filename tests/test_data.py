import csv
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from benchmarks.follow_ups import load_follow_ups
from engine.documents.loaders import BUNDLED_INDEX, load_corpus
from engine.documents.splitters import split
from engine.evaluation.answers import check_answers, load_answer_questions
from engine.retrieval.embedding_model import embedding_spec
from engine.storage.workspace import import_workspace
from tests.one_document import rows_of

ROOT = Path(__file__).parent.parent
DATA, BENCHMARKS = ROOT / "data", ROOT / "benchmarks"


@pytest.fixture(scope="module")
def rows():
    with (DATA / "questions.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_every_bundled_document_has_questions_and_a_licence(rows):
    licences = (DATA / "README.md").read_text(encoding="utf-8")
    for path in (DATA / "corpus").iterdir():
        assert path.stem in {row["corpus_id"] for row in rows}
        assert path.name in licences


def test_the_bundled_documents_are_written_as_people_write():
    for document in load_corpus():
        assert not re.search(r"<unk>|@[-,.]@|\w [,.;:?!)](?:\s|$)|[(] ", document.text), document.name


def test_the_bundled_index_is_that_of_the_documents_by_default(encoder):
    bundled = import_workspace(BUNDLED_INDEX.name, BUNDLED_INDEX.read_bytes())
    documents = load_corpus()
    chunks = [chunk for document in documents for chunk in split(document, encoder.tokenizer)]
    assert (list(bundled.documents), list(bundled.index.chunks)) == (documents, chunks)
    assert bundled.index.spec == embedding_spec(encoder, "mean", None)
    some = range(0, len(chunks), 40)
    found = encoder.encode([chunks[row].text for row in some])
    np.testing.assert_allclose(bundled.index.vectors[some], found, atol=1e-5)


def test_the_sample_files_show_what_is_read_and_what_is_not():
    fares, minutes, steps = load_corpus(DATA / "samples")
    assert fares.title == "Fares of the Norrvik ferry in 2026, in euros"
    family = "Ticket: Day ticket, family\nSeason: May to September\nPrice: 29,00\nBicycle: free"
    assert (("row 10",), family) in rows_of(fares)
    assert "4. Start the engine" in steps.text
    assert "The crane is repaired from 1 to 12 June." in minutes.text
    assert "page 2" in minutes.notes[0]
    licences = (DATA / "README.md").read_text(encoding="utf-8")
    assert all(document.name in licences for document in (fares, minutes, steps))


def test_questions_are_distinct(rows):
    questions = [row["question"] for row in rows]
    assert len(set(questions)) == len(questions)


@pytest.fixture(scope="module")
def answers():
    return load_answer_questions()


def test_answers_are_many_of_both_halves_and_some_do_not_exist(answers):
    unanswerable = [question for question in answers if not question.answer]
    assert len(answers) >= 150
    assert len(unanswerable) >= 40
    assert {question.half for question in answers} == {"tune", "report"}
    for kind, number in Counter(question.kind for question in answers).items():
        halves = Counter(question.half for question in answers if question.kind == kind)
        assert min(halves["tune"], halves["report"]) >= number / 3, kind
    assert {question.kind for question in unanswerable} == {"unanswerable"}
    assert len({question.text for question in answers}) == len(answers)


def test_every_bundled_document_has_answers(answers):
    names = {path.name for path in (DATA / "corpus").iterdir()}
    assert {question.document for question in answers if question.answer} == names


@pytest.mark.parametrize(
    ("questions", "documents"),
    [(DATA / "answers.csv", DATA / "corpus"), (BENCHMARKS / "pages.csv", BENCHMARKS / "pages")],
    ids=["bundled", "pages"],
)
def test_every_answer_stands_where_it_is_labelled(questions, documents):
    asked = load_answer_questions(questions)
    assert list(check_answers(asked, load_corpus(documents))) == []
    assert all(question.document and question.spans for question in asked if question.answer)


def test_the_pages_of_the_benchmark_are_others_than_the_bundled_ones(answers):
    pages = load_answer_questions(BENCHMARKS / "pages.csv")
    assert len(pages) >= 50
    assert any(not question.answer for question in pages)
    assert {question.half for question in pages} == {"report"}  # nothing is chosen with them
    names = {path.name for path in (BENCHMARKS / "pages").iterdir()}
    assert {question.document for question in pages if question.answer} == names
    assert not names & {question.document for question in answers}
    assert not {question.text for question in pages} & {question.text for question in answers}


def test_follow_ups_are_of_both_kinds_and_halves_and_their_documents_answer_them():
    documents = [*load_corpus(DATA / "corpus"), *load_corpus(BENCHMARKS / "pages")]
    asked = load_follow_ups()
    assert list(check_answers([each.question for each in asked], documents)) == []
    assert {each.question.document for each in asked} == {document.name for document in documents}
    kinds = Counter((each.needs_topic, each.question.half) for each in asked)
    assert kinds == {
        (needs, half): 32 if needs else 16 for needs in (True, False) for half in ("tune", "report")
    }
