"""Passages given by their words alone: where they are located, and what is said where they are not."""

import pytest

from engine.documents.document import Document
from engine.errors import InputError
from engine.evaluation.checks import check_questions, measurable
from engine.evaluation.passage_search import located
from engine.evaluation.questions import UNLOCATED, parse_questions, to_jsonl

TIDE = Document("tide.md", "The moon pulls\nthe sea. It turns “twice” a day. Late: the moon.")
HARBOUR = Document("notes/harbour.md", "The harbour opens at 9. It turns “twice” a day. It shuts. It shuts.")
DOCUMENTS = [TIDE, HARBOUR]


def read(*rows, columns="question,passage"):
    return parse_questions("mine.csv", "\n".join([columns, *rows]).encode())


def spans(question):
    return [(one.start, one.end) for one in question.references]


def test_every_place_counts_in_wrapped_text_too_and_only_whole_words_do():
    wrapped = Document("notes.md", "No cat. A cat\nsleeps. Category: a cat sleeps.")
    capital = Document("notes.md", wrapped.text.replace("a cat", "A cat"))
    [question] = located(read("Who?,A cat sleeps."), [capital])
    assert spans(question) == [(8, 21), (32, 45)]
    [question] = located(read("What?,cat"), [wrapped])
    assert spans(question) == [(3, 6), (10, 13), (34, 37)]


def test_a_word_that_stands_everywhere_is_not_placed():
    rows = read("What?,cat")
    assert located(rows, [Document("cats.md", "cat " * 21)]) == rows


COLUMNS = "question,passage,document"


@pytest.mark.parametrize("name", ["harbour", "harbour.md", "notes/harbour.md"])
def test_the_document_decides_where_several_hold_the_passage(name):
    rows = read(f"How often?,It turns “twice” a day.,{name}", columns=COLUMNS)
    assert [question.corpus_id for question in located(rows, DOCUMENTS)] == ["harbour"]


@pytest.mark.parametrize("name", ["prices.csv#3", "prices.csv", "prices", ""])
def test_a_row_of_a_table_is_a_document(name):
    table = [Document(f"prices.csv#{number}", f"item: {item}") for number, item in [(2, "Oak"), (3, "Ash")]]
    [question] = located(read(f"What is 3?,item: Ash,{name}", columns=COLUMNS), table)
    assert (question.corpus_id, spans(question)) == ("prices#3", [(0, 9)])
    assert check_questions([question], table) == []


def test_a_passage_in_several_documents_or_none_is_not_placed_and_the_reason_is_said():
    rows = read("How often?,It turns “twice” a day.", "Why?,Because of the wind.")
    assert located(rows, DOCUMENTS) == rows
    assert all(one.start == UNLOCATED for question in rows for one in question.references)
    assert measurable(rows, DOCUMENTS) == []
    twice, none = check_questions(rows, DOCUMENTS)
    expected = "question 1: its passage “It turns “twice” a day.” stands in none of the documents, in"
    assert expected in twice.text
    assert "“document”" in none.text


def test_passages_without_a_place_are_written_and_read_again():
    rows = read("Why?,Because.", "Who?,The moon.,tide", columns=COLUMNS)
    assert parse_questions("mine.jsonl", to_jsonl(rows).encode()) == rows
    lines = (
        '{"question": "Why?", "passage": "Because."}\n'
        '{"question": "Who?", "passage": "The moon.", "document": "tide"}'
    )
    assert parse_questions("mine.jsonl", lines.encode()) == rows


UNPLACED_ROW = (
    '{"question": "Why?", "corpus_id": "", '
    '"references": [{"content": "words", "start_index": -1, "end_index": -1}]}'
)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"question": "", "passage": "a"}', "question and passage are text"),
        ('{"question": "Why?", "passage": 5}', "question and passage are text"),
        ('{"question": "Why?", "passage": "\\ud800"}', "question and passage are text"),
        ('{"question": "Why?", "passage": "a", "document": ["b"]}', "document is a name"),
        ('{"question": "Why?", "answer": "a"}', "it needs question and passage"),
        (UNPLACED_ROW.replace("words", " "), "no span of text"),
        (UNPLACED_ROW.replace("-1}", "true}"), "no span of text"),
    ],
)
def test_a_malformed_row_is_named_with_what_it_needs(line, said):
    with pytest.raises(InputError, match=said):
        parse_questions("mine.jsonl", line.encode())
