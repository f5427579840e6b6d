import re
from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from engine.documents.document import Document
from engine.evaluation.checks import check_questions, measurable, mended, repaired
from engine.evaluation.questions import Question, Reference, load_questions

TEXT = (
    "The harbour master closed the gate at nine. Ships from “Oslo” waited outside — all\n"
    "of them. The gate is closed at night. Storms came late; the lamp-keeper slept."
)
DOCUMENT = Document("port.md", TEXT)


@pytest.fixture(scope="module")
def questions():
    return load_questions()


def asked(content, start=0, end=None, text="When?", corpus_id="port"):
    end = start + len(content) if end is None else end
    return Question(text, corpus_id, (Reference(content, start, end),))


def only(problems):
    (problem,) = problems
    assert "\n" not in problem.text
    return problem


def test_the_bundled_questions_have_no_problem(bundled, questions):
    assert check_questions(questions, bundled) == []
    assert repaired(questions, []) == questions


@pytest.mark.parametrize(
    ("content", "meant"),
    [  # spelled alike, and then approximately
        ('Ships from "Oslo" waited', "Ships from “Oslo” waited"),
        ("outside - all of them.", "outside — all\nof them."),
        ("all\n\n  of\tthem", "all\nof them"),
        (" lamp\u2010keeper slept.\n", "lamp-keeper slept."),
        ("The harbor master closed the gate at nine.", "The harbour master closed the gate at nine."),
        ("storms came late; the lamp keeper sleeps", "Storms came late; the lamp-keeper slept"),
        ("The gate closed at night.", "The gate is closed at night."),
        ("THE GATE IS CLOSED", "The gate is closed"),
    ],
)
def test_a_passage_that_was_changed_is_found(content, meant):
    problem = only(check_questions([asked(content, 3)], [DOCUMENT]))
    is_spelled_alike = "spelled alike, it stands" in problem.text
    assert is_spelled_alike != bool(re.search(r"a text that is alike to \d+% stands at", problem.text))
    assert is_spelled_alike == (re.findall(r"\w+", content) == re.findall(r"\w+", meant))
    assert problem.suggestion.content == meant
    assert problem.suggestion.start == TEXT.index(meant)


def test_a_word_far_from_the_others_does_not_stretch_the_place():
    shared = "stayed shut all winter long because ice had come down from north and sealed it"
    document = Document("port.md", f"One gate among seven more that we saw once {shared}. Then came spring.")
    suggestion = only(check_questions([asked(f"gate {shared}", 0, 9)], [document])).suggestion
    assert suggestion.content == f"once {shared}"  # as many words as the passage has


def test_approximate_search_knows_that_cjk_has_no_spaces():
    document = Document("haven.txt", "港は九時に閉まる。船は外で待つ。灯台守は眠る。")
    suggestion = only(check_questions([asked("船は外に待つ", corpus_id="haven")], [document])).suggestion
    assert suggestion.content == "船は外で待つ"


@pytest.mark.parametrize(
    "content", ["Submarines surfaced near Lisbon", "   ", "", "?!", "the the the the the"]
)
def test_nothing_is_offered_for_what_is_not_there(content):
    problem = only(check_questions([asked(content, 3, 9)], [DOCUMENT]))
    assert problem.suggestion is None
    assert all(one.suggestion is None for one in check_questions([asked(content)], [Document("port.md", "")]))
    assert problem.text.endswith("nothing like it was found there: correct the passage, or leave it out")
    assert repaired([asked(content, 3, 9)], [problem]) == [asked(content, 3, 9)]


@given(st.integers(0, len(TEXT)), st.integers(1, 60), st.integers(-60, len(TEXT)) | st.just(10**9))
def test_every_passage_of_a_document_is_found_again(start, length, given_start):
    content = TEXT[start : start + length]
    assume(content.strip())
    wrong = asked(content, given_start)
    problems = check_questions([wrong], [DOCUMENT])
    right = repaired([wrong], problems)
    assert check_questions(right, [DOCUMENT]) == []
    assert right[0].references[0].content == content
    is_there = given_start >= 0 and TEXT[given_start : given_start + len(content)] == content
    assert bool(problems) != is_there


@given(st.text(max_size=30), st.text(max_size=60), st.integers(0, 40))
def test_a_suggestion_is_always_a_span_of_the_document(content, text, start):
    document = Document("port.md", text)
    for problem in check_questions([asked(content, start, start + 1)], [document]):
        if suggestion := problem.suggestion:
            assert suggestion.start < suggestion.end
            assert text[suggestion.start : suggestion.end] == suggestion.content


def test_questions_about_another_corpus_are_one_problem_a_document():
    questions = [
        asked("gate", TEXT.index("gate")),
        asked("x", corpus_id="moon"),
        asked("y", text="Where?", corpus_id="moon"),
    ]
    problem = only(check_questions(questions, [DOCUMENT, Document("b.md", "b")]))
    assert problem.questions == (1, 2)
    assert problem.text == (
        "2 questions, the first is question 2, are about “moon”, and no document is called that (there are: "
        "“port”, “b”): load that document, or leave these questions out"
    )
    assert only(check_questions(questions[:1], [])).text.startswith(
        "question 1 is about “port”, and no document is called that (there are: none)"
    )
    rows = [Document(f"ships.csv#{number}", "x") for number in range(2, 1002)]
    assert "“ships#21” and 980 more): load" in only(check_questions(questions[:1], rows)).text


def test_a_name_that_is_nearly_a_documents_is_corrected():
    problem = only(check_questions([asked("gate", corpus_id="port.md")], [DOCUMENT]))
    assert "did you mean port? Correct corpus_id, or load that document" in problem.text
    assert problem.suggestion is None


def test_documents_of_one_name_are_told():
    here = asked("gate", TEXT.index("gate"))
    other = Document("old/port.txt", "no")
    problem = only(check_questions([here], [other, DOCUMENT]))
    assert problem.questions == (0,)
    assert "“port”, which 2 documents are called (“old/port.txt”, “port.md”)" in problem.text


def test_blank_repeated_and_unanswered_questions_are_found():
    place = TEXT.index("gate")
    questions = [
        asked("gate", place),
        asked("gate", place, text=" \n"),
        asked("gate", place, text="  WHEN? "),
        asked("b", text="When?", corpus_id="b"),
        Question("Why?", "port", ()),
        asked("gate", place, text="\t"),
    ]
    found = check_questions(questions, [DOCUMENT, Document("b.md", "b")])
    assert [problem.questions for problem in found] == [(1,), (5,), (0, 2), (4,)]
    texts = [problem.text for problem in found]
    assert texts[0] == "question 2 is blank: write what it asks, or leave it out"
    assert texts[2].startswith("question 3 repeats question 1, “WHEN?”: it counts twice")
    assert texts[3].startswith("question 5, “Why?”, has no passage that answers it")
    assert "it is left out" in texts[3]


def test_a_search_is_judged_by_questions_whose_passages_are_all_there():
    place = TEXT.index("gate")
    here, there = Reference("gate", place, place + 4), Reference("gate", place + 1, place + 5)
    questions = [
        Question("Both?", "port", (here, there)),
        Question("Here?", "port", (here,)),
        Question("None?", "port", ()),
        Question("Elsewhere?", "b", (here,)),
    ]
    assert measurable(questions, [DOCUMENT]) == [questions[1]]
    assert measurable(questions, [DOCUMENT, Document("b.md", TEXT)]) == [questions[1], questions[3]]


def test_only_the_reference_that_is_wrong_is_repaired():
    place = TEXT.index("gate")
    good, bad = Reference("gate", place, place + 4), Reference("Storms", 0, 6)
    question = Question("What?", "port", (good, bad, good))
    problems = check_questions([question], [DOCUMENT])
    assert only(problems).reference == 1
    assert repaired([question], problems)[0].references == (
        good, Reference("Storms", TEXT.index("Storms"), TEXT.index("Storms") + 6), good,
    )  # fmt: skip


def test_a_passage_that_moved_a_little_is_found_again_and_one_far_away_is_asked_about():
    text = "x" * 20 + " The moon pulls the sea. " + "y " * 200 + "It rains."
    documents = [Document("tide.md", text)]
    start = text.index("The moon")
    near = Question("Who?", "tide", (Reference("The \u200emoon", start + 5, start + 14),))
    far = Question("When?", "tide", (Reference("It rains.", 0, 9),))
    questions, problems, n_mended = mended([near, far], documents)
    assert questions == [replace(near, references=(Reference("The moon", start, start + 8),)), far]
    assert [problem.questions for problem in problems] == [(1,)]
    assert n_mended == 1
