"""Labels as short answers, and short answers as labels."""

from engine.documents.document import Document
from engine.evaluation.answer_labels import as_labels
from engine.evaluation.answers import AnswerQuestion, ShortAnswer
from engine.evaluation.checks import measurable

TEXT = "The mill was built in 1874 by Ruth Alder. Ruth Alder sold it to the town. It grinds rye and wheat."
MILL = Document("old/mill.md", TEXT)
OTHER = Document("ferry.md", "The ferry leaves at noon. It was built in 1931.")


def answer(text, known, document="", spans=()):
    return AnswerQuestion(text, ShortAnswer.parse(known), document, spans)


def test_short_answers_are_labels_where_they_have_one_place():
    given = [
        answer("When was it built?", "1874 | in the seventies"),  # the only words in all documents
        answer("Who sold it?", "Ruth Alder"),  # twice, once among words of the question
        answer("Who?", "Ruth Alder", "mill.md"),  # twice
        answer("Who sold it?", "Ruth Alder", "mill.md", ((42, 52),)),
        answer("Who sold it?", "Ruth Alder", "mill.md", ((43, 53),)),  # not at its place
        answer("What is ground?", "rye & wheat", "mill.md"),  # parts without places
        answer("What is ground?", "rye & wheat", "mill.md", ((84, 87), (92, 97))),
        answer("Who burnt it?", ""),
        answer("When was it built?", "1931", "mill.md"),  # in another document
    ]
    found = as_labels(given, [OTHER, MILL])
    assert [(each.text, each.references[0].content) for each in found] == [
        ("When was it built?", TEXT[:41]),
        ("Who sold it?", TEXT[42:73]),
        ("Who sold it?", TEXT[42:73]),
        ("What is ground?", TEXT[74:]),
    ]
    assert measurable(found, [OTHER, MILL]) == found
