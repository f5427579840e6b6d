import pytest

from engine.documents.document import Document
from engine.evaluation.answers import AnswerQuestion, ShortAnswer
from engine.evaluation.document_names import (
    at_rows,
    did_you_mean,
    matched_names,
    proposals,
    renamed,
    unknown_names,
)
from engine.evaluation.questions import UNLOCATED, Question, Reference, stem
from tests.one_document import parse_document

COST = "Inventories are valued at the lower of cost and market."
FINANCE = Document("finance_slice.md", f"A report. {COST} It ends.")
OTHER = Document("finances.md", "Nothing of the kind is here, and it is much longer than the other one.")


def labelled(name, content=COST, start=10):
    return Question("How?", name, (Reference(content, start, start + len(content)),))


def answered(name):
    at = FINANCE.text.index("cost")
    return AnswerQuestion("How?", ShortAnswer.parse("cost"), name, ((at, at + 4),))


@pytest.mark.parametrize("make", [labelled, answered])
@pytest.mark.parametrize(
    "given",
    ["Finance_Slice", "finance_slice.txt", "FINANCE_SLICE.MD", "a/Finance_slice.md", "finance_slice.doc"],
)
def test_a_name_is_taken_but_for_its_ending_and_capitals(make, given):
    asked, names = make(given), [FINANCE.name, OTHER.name]
    [found] = renamed([asked], matched_names([asked], names))
    assert unknown_names([found], names) == []
    assert found.fits(FINANCE.text)


@pytest.mark.parametrize("make", [labelled, answered])
def test_a_name_that_is_exact_or_may_mean_several_is_left_as_it_is(make):
    asked = [make("finance_slice"), make("Notes"), make("finance")]
    names = [FINANCE.name, "notes.md", "notes.html", "FINANCE_SLICE.txt"]
    assert matched_names(asked, names) == {}
    assert renamed(asked, {}) == asked
    assert unknown_names(asked, names) == ["Notes", "finance"]


def test_a_dot_in_a_name_begins_no_ending_that_may_be_another():
    assert matched_names([labelled("LGPL-2.1")], ["LGPL-2.txt"]) == {}
    assert did_you_mean("Apache-2", ["Apache-2.0.txt", "MPL-2.0.txt"]) == "did you mean Apache-2.0?"


@pytest.mark.parametrize("name", ["prices.csv#3", "Prices.csv#3"])
@pytest.mark.parametrize("start", [0, UNLOCATED])
def test_a_question_about_a_row_is_one_about_its_table(name, start):
    table = parse_document("shop/prices.csv", b"Item,Price\nOak,4\nAsh,4\n")
    places = Reference("Price: 4", 10, 18) if start == 0 else Reference("Price: 4", start, start)
    short = AnswerQuestion("?", ShortAnswer.parse("4"), name)
    asked = [Question("What is Ash?", stem(name), (places,)), short]
    question, answer = at_rows(asked, [table, FINANCE])
    [reference] = question.references
    assert (question.corpus_id, table.text[reference.start :]) == ("prices", "Price: 4")
    row = table.text.index("Item: Ash"), len(table.text)
    assert (answer.document, answer.spans) == (table.name, (row,))
    assert at_rows(asked, [table, parse_document("prices.csv", b"A\n1\n2")]) == asked  # which one is meant?
    assert at_rows(asked, [Document(name, "Item: Ash\nPrice: 4"), table])[1] == asked[1]


def test_without_places_the_most_similar_name_is_proposed():
    [found] = proposals([Question("How?", "finance", ())], [FINANCE, OTHER])
    assert (found.best, found.n_questions, found.n_quoting) == (OTHER.name, 1, 0)
    assert proposals([labelled("finance")], []) == []


def test_the_most_similar_name_is_asked_for():
    assert did_you_mean("finance", ["tides.md", FINANCE.name]) == "did you mean finance_slice?"
    assert did_you_mean("Finance_Slices.md", ["tides.md", FINANCE.name]) == "did you mean finance_slice?"
    assert did_you_mean("zebra", ["tides.md"]) == ""
