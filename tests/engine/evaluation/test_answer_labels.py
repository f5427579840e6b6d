"""Labels as short answers, and short answers as labels."""

from engine.documents.document import Document
from engine.evaluation.answer_labels import as_answers, as_labels
from engine.evaluation.answers import AnswerQuestion, ShortAnswer
from engine.evaluation.checks import measurable
from engine.evaluation.questions import DRAFTED, KEPT, Question, Reference

TEXT = "The mill was built in 1874 by Ruth Alder. Ruth Alder sold it to the town. It grinds rye and wheat."
MILL = Document("old/mill.md", TEXT)
OTHER = Document("ferry.md", "The ferry leaves at noon. It was built in 1931.")
BUILT = Reference(TEXT[:41], 0, 41)


def answer(text, known, document="", spans=()):
    return AnswerQuestion(text, ShortAnswer.parse(known), document, spans)


def test_labels_are_asked_with_what_is_known_and_keep_their_status():
    kept = Question("When?", "mill", (BUILT,), Reference("1874", 22, 26), KEPT, 0)
    none = Question("Who burnt it?", "mill", (), None, DRAFTED, 0)
    label = Question("Who?", "mill", (BUILT,))
    found = as_answers([kept, none, label])
    assert [(each.text, each.kind, bool(each.answer), each.is_answerable) for each in found] == [
        ("When?", KEPT, True, True),
        ("Who burnt it?", DRAFTED, False, False),
        ("Who?", "", False, True),
    ]
    assert found[0].fits(TEXT)
    assert as_labels(found[:2], [OTHER, MILL]) == [Question("When?", "mill", (BUILT,))]


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
