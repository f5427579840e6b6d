import re
import string
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.documents.document import Chunk, Document
from engine.errors import InputError
from engine.evaluation import answers
from engine.generation.answer import Answer, Judged, Retrieval, SearchTimes, Timings, Written
from engine.generation.checks import CheckedSentence, UnknownWord
from engine.generation.reading import AnswerSpan
from engine.retrieval.evidence import Quote
from engine.retrieval.index import Hit
from engine.retrieval.relevance import NullScores

WORDS = st.lists(
    st.sampled_from(
        ["the", "The", "an", "a", "theatre", "Tower", "U.S.", "$5", "co-op", "an’t", "1,000", " "]
    )
)


def squad_normalized(text):
    """`normalize_answer` of SQuAD's evaluation script."""
    text = "".join(c for c in text.lower() if c not in set(string.punctuation))
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", text).split())


def squad_f1(prediction, truth):
    """`f1_score` of SQuAD's evaluation script."""
    have, want = squad_normalized(prediction).split(), squad_normalized(truth).split()
    same = sum((Counter(have) & Counter(want)).values())
    if same == 0:
        return 0
    precision, recall = same / len(have), same / len(want)
    return 2 * precision * recall / (precision + recall)


ASCII = st.text(st.characters(max_codepoint=126, min_codepoint=32), max_size=30)


@given(st.one_of(WORDS.map(" ".join).map(lambda text: text.replace("’", "'")), ASCII))
def test_ascii_is_normalized_as_squad_does_it(text):
    assert answers.normalized(text) == squad_normalized(text)


def test_punctuation_of_unicode_does_not_count_and_its_symbols_do():
    assert answers.normalized("“Co-op” — it’s ‘here’…") == "coop its here"
    assert answers.normalized("€5 and 5 °C") == "€5 and 5 °c"


@pytest.mark.parametrize(
    ("answer", "text", "expected"),
    [
        ("1990|1991", "It began in 1991.", True),
        ("1990|1991", "It began in 1992.", False),
        ("UAW & IBEW", "The IBEW and the U.A.W. agreed.", True),
        ("UAW & IBEW", "The IBEW agreed.", False),
        ("red|crimson & blue", "blue, then crimson", True),
        ("C&A|H&M", "It was bought at C&A.", True),
        ("C&A", "It was bought at C.", False),
        (".", "", False),
        ("ten", "often, and listened", False),
        ("ten minutes", "ten long minutes", False),
        ("the tower", "A TOWER!", True),
        ("", "anything", False),
    ],
)
def test_every_part_occurs_as_whole_words_in_one_of_its_forms(answer, text, expected):
    assert answers.ShortAnswer.parse(answer).is_in(text) is expected


@given(WORDS.map(" ".join).map(lambda text: text.replace("’", "'")))
def test_f1_is_squads_of_the_nearest_alternative(text):
    for answer in ("the tower", "co-op theatre 1,000"):
        assert answers.ShortAnswer.parse(answer).f1(text) == pytest.approx(squad_f1(text, answer))
    either = max(squad_f1(text, each) for each in ("tower", "theatre 1000"))
    assert answers.ShortAnswer.parse("tower|theatre 1000").f1(text) == pytest.approx(either)


def test_f1_by_hand():
    # 2 of 2 words wanted, 2 of 3 written
    assert answers.ShortAnswer.parse("forty masons").f1("The forty old masons") == pytest.approx(0.8)
    assert answers.ShortAnswer.parse("red|blue & green").f1("blue, green") == 1
    assert answers.ShortAnswer.parse("").f1("") == 0


def question(answer="1891", document="tower.md", spans=(), **labels):
    return answers.AnswerQuestion("When?", answers.ShortAnswer.parse(answer), document, spans, **labels)


def hit(start, text, document="tower.md"):
    return Hit(Chunk(document, start, start + len(text), text, 9), 0.5)


def test_an_answer_is_found_where_it_is_labelled():
    hits = [hit(0, "Finished in 1891."), hit(17, "Painted in 1931.")]
    assert question(spans=((12, 16),)).is_found_in(hits)
    assert not question(spans=((20, 25),)).is_found_in(hits)  # there stands another year
    assert not question(spans=((12, 16), (90, 95))).is_found_in(hits)  # of two places, one is missing
    assert question("1891 & 1931", spans=((12, 16), (28, 32))).is_found_in(hits)
    assert question("1931").is_found_in(hits)
    assert not question(document="other.md").is_found_in(hits)
    assert question(document="").is_found_in(hits)
    assert question(document="notes/tower.txt").is_found_in(hits)  # names count without path and ending
    assert not question("").is_found_in(hits)


QUOTED = "It was finished in 1891."


def answer(status, text="", holds=True, quotes=(QUOTED,), hits=()):
    evidence = tuple(Quote("tower.md", 0, len(one), one, 0, 0.5, (), 1.0, 1 / len(quotes)) for one in quotes)
    unknown = () if holds else (UnknownWord(0, 1, "number"),)
    times = SearchTimes(0.25, 0.25, 0.5)
    return Answer(
        question="When?",
        retrieved=Retrieval(tuple(hits), (), NullScores(np.zeros(1), np.zeros(1)), 0, "dense", times),
        evidence=evidence,
        written=Written(text, "stop", "small", None, None, ()),
        judged=Judged(status, 0.7, (CheckedSentence(0, len(text), unknown),) if text else ()),
        timed=Timings(times, evidence_s=1.0),
    )


@pytest.mark.parametrize("status", ["answered", "unsure"])
def test_what_is_shown_is_right_if_a_quote_or_the_text_holds_the_answer(status):
    by_quote = answers.score_answer(question(), answer(status), 2.0)
    assert (by_quote.right, by_quote.wrong_confident) == (True, False)
    assert by_quote.f1 == pytest.approx(squad_f1(QUOTED, "1891"))
    assert (by_quote.until_quotes_s, by_quote.seconds) == (2.0, 2.0)
    by_text = answers.score_answer(question("1931"), answer(status, "In 1931."), 1.0)
    assert by_text.right
    assert by_text.f1 == pytest.approx(2 / 3)
    wrong = answers.score_answer(question("1931"), answer(status), 1.0)
    assert (wrong.right, wrong.wrong_confident) == (False, status == "answered")


def read(status, *texts):
    """An answer whose best quote is `QUOTED`, with the words that the reader found."""
    spans = tuple(AnswerSpan("tower.md", 19, 19 + len(one), one, 0, 9.0 - n) for n, one in enumerate(texts))
    return replace(answer(status, "In 1931."), spans=spans)


def test_the_words_that_the_reader_found_are_scored_by_themselves():
    exact = answers.score_answer(question("1891|in 1891"), read("answered", "in 1891", "1932"), 1.0)
    assert (exact.reading, exact.exact, exact.f1, exact.right) == ("in 1891", True, 1.0, True)
    part = answers.score_answer(question("1891"), read("unsure", "finished in 1891"), 1.0)
    assert (part.exact, part.f1) == (False, pytest.approx(squad_f1("finished in 1891", "1891")))
    refused = answers.score_answer(question(), read("refused", "1891"), 1.0)
    assert (refused.reading, refused.exact, refused.f1) == ("", False, 0)
    assert not answers.score_answer(question(""), read("answered", "1891"), 1.0).exact
    by_text = answers.score_answer(question("1931"), read("answered"), 1.0)  # the language model's
    assert (by_text.exact, by_text.f1) == (False, pytest.approx(2 / 3))


def test_a_refusal_shows_nothing():
    row = answers.score_answer(question(), answer("refused", "In 1891.", hits=[hit(0, QUOTED)]), 1.0)
    assert (row.right, row.f1, row.wrong_confident) == (False, 0, False)
    assert row.found  # the search is judged all the same
    assert not answers.score_answer(question(), answer("refused", quotes=()), 1.0).right


def test_an_answer_to_what_the_documents_do_not_hold_is_wrong():
    row = answers.score_answer(question(""), answer("answered"), 1.0)
    assert (row.right, row.found, row.wrong_confident) == (False, False, True)
    assert not answers.score_answer(question(""), answer("unsure"), 1.0).wrong_confident


def row(status="answered", confidence=0.5, right=True, answerable=True, f1=0.0, found=True, exact=False):
    asked = question("1891" if answerable else "")
    quotes = (QUOTED,) if right else ()
    is_right = right and status != "refused"
    return answers.AnswerRow(
        asked, status, confidence, quotes, "", found, is_right, f1, 0.0, 0.0, exact=exact
    )


def test_each_metric_is_a_share_of_the_questions_that_count():
    rows = [
        row("answered", right=True, f1=1.0, exact=True),
        row("answered", right=False, f1=0.2, found=False),
        row("unsure", right=True),
        row("refused", right=False, found=False),
        row("refused", right=False, answerable=False),
        row("answered", right=False, answerable=False),
    ]
    values = {name: each.estimate for name, each in answers.answer_metrics(rows).items()}
    assert values == pytest.approx(
        {
            "found": 2 / 4,
            "right": 2 / 4,
            "exact": 1 / 4,
            "f1": 1.2 / 4,
            "answered": 2 / 4,
            "refused_wrongly": 1 / 4,
            "refused_rightly": 1 / 2,
            "wrong_confident": 2 / 6,
        }
    )
    for interval in answers.answer_metrics(rows).values():
        assert 0 <= interval.low <= interval.estimate <= interval.high <= 1


def test_a_metric_without_questions_is_left_out():
    assert set(answers.answer_metrics([row(answerable=False, right=False)])) == {
        "refused_rightly",
        "wrong_confident",
    }
    assert set(answers.answer_metrics([row()])) == set(answers.ANSWER_METRICS) - {"refused_rightly"}
    assert answers.answer_metrics([]) == {}


HEADER = "question,answer,document,start,end,kind,half\n"


def parse(text):
    return answers.parse_answer_questions("own.csv", text.encode() if isinstance(text, str) else text)


def test_a_file_of_questions_is_read(tmp_path):
    text = HEADER + (
        "When?,1891|in 1891,tower.md,19,23,date,tune\n"
        'Who?,"Ada & Grace",rows.csv,1 & 20,5 & 25,,\n'
        "Why?,,,,,,\n"
    )
    first, second, third = parse(text)
    assert first == answers.AnswerQuestion(
        "When?", answers.ShortAnswer((("1891", "in 1891"),)), "tower.md", ((19, 23),), "date", "tune"
    )
    assert second.answer.parts == (("Ada",), ("Grace",))
    assert second.spans == ((1, 5), (20, 25))
    assert third == answers.AnswerQuestion("Why?", answers.ShortAnswer(()))
    path = tmp_path / "own.csv"
    path.write_bytes(b"\xef\xbb\xbf" + text.encode())  # as a spreadsheet saves it
    assert answers.load_answer_questions(path) == [first, second, third]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "own.csv holds no questions: give one a row, under question and answer"),
        ("question,reply\nWhen?,1891\n", "own.csv has no column answer"),
        (HEADER, "own.csv holds no questions"),
        (HEADER + "When?,1\n ,2\n", "row 2 has no question"),
        (HEADER + "When?,1891,d.md,12,\n", "row 1 has start '12' and end ''"),
        (HEADER + "When?,1891,d.md,1&2,9\n", "give as many of one as of the other"),
        (HEADER + "When?,1891,d.md,x,9\n", "row 1 has start 'x'"),
        (HEADER + "When?,1891,d.md,9,9\n", "row 1 has a place that ends before it begins"),
        (HEADER + "When?,1891 & ,d.md\n", "row 1: the answer '1891 & ' has an empty part"),
        (HEADER + "When?,|1891,d.md\n", "has an empty part"),
        (b"question,answer\n\xff,1\n", "own.csv is no UTF-8 (byte 16)"),
        ('question,answer\n"When?" x,1\n', "own.csv is no CSV"),
    ],
)
def test_a_malformed_file_is_refused_in_one_line(content, message):
    with pytest.raises(InputError, match=re.escape(message)) as error:
        parse(content)
    assert "\n" not in str(error.value)


TOWER = Document("notes/tower.md", "The tower was finished in 1891. Its masons came from Oslo.")


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        (question(), None),
        (question(spans=((4, 31),)), None),
        (question("1891 & Oslo", spans=((26, 30), (53, 57))), None),
        (question(document=""), None),
        (question(""), None),
        (question("", document="bread.md"), "question 1 is about bread.md, which is not among the documents"),
        (question("1931"), "the answer of question 1 occurs nowhere in tower.md"),
        (question("1931", document=""), "the answer of question 1 occurs nowhere in the documents"),
        (question(spans=((32, 40),)), "the answer of question 1 is not at the place given in tower.md"),
    ],
)
def test_a_question_whose_answer_is_not_where_it_says_is_told(asked, problem):
    assert list(answers.check_answers([asked], [TOWER])) == [problem] * (problem is not None)


def test_semicolons_and_tabs_part_columns_too():
    for mark in (";", "\t"):
        [asked] = parse(f"question{mark}answer\nWhen, or about when?{mark}Sept. 4 | 4 September\n")
        assert asked.text == "When, or about when?"
        assert asked.answer.is_in("On 4 September")


FIGURES = st.tuples(
    st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.booleans(), st.sampled_from(["answered", "unsure", "refused"])
)


@given(st.lists(FIGURES, max_size=8))
def test_the_curve_has_the_shares_at_or_above_each_confidence_whatever_was_refused(figures):
    rows = [row(status, confidence=confidence, right=right) for confidence, right, status in figures]
    assert [each.holds for each in rows] == [right for _, right, _ in figures]
    curve = answers.coverage_curve(rows)
    assert [each.confidence for each in curve] == sorted({each.confidence for each in rows}, reverse=True)
    for point in curve:
        above = [each for each in rows if each.confidence >= point.confidence]
        assert point.answered == pytest.approx(len(above) / len(rows))
        assert point.right == pytest.approx(sum(each.holds for each in above) / len(above))
    assert answers.reliability(rows) == answers.reliability([replace(each, status="unsure") for each in rows])
