"""The reader's words within documents: dates and amounts whole, each place once, and answers with them."""

from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.documents.document import Chunk
from engine.generation import reading
from engine.generation.answer import N_QUOTES
from engine.generation.answering import ask
from engine.generation.confidence import READING_WEIGHTS, confidence_of, reading_figures
from engine.generation.settings import AnswerSettings, SearchSettings
from engine.models.reader import Span
from engine.retrieval.evidence import Quote
from engine.retrieval.index import Hit
from tests.indexes import DOCUMENTS, QUESTION, index_of_documents

SETTINGS = AnswerSettings(SearchSettings(min_relevance=0), refuse_threshold=0)


def widened(text, part, question="What is it?"):
    start = text.index(part)
    own, end = reading.whole_span(question, text, start, start + len(part))
    return text[own:end]


@pytest.mark.parametrize(
    ("text", "part", "whole"),
    [
        ("The rent is $1,250.00 a month, due on the first.", "1,250", "$1,250.00 a month"),
        ("a fee of 20 EUR, monthly", "20", "20 EUR"),
        ("It cost 3.5 million dollars per year then.", "3.5", "3.5 million dollars per year"),
        ("worth €20bn in all", "20bn", "€20bn"),
        ("seit dem 3. Oktober 1990 ist", "1990", "3. Oktober 1990"),
        ("It began on March 4th, 1925.", "1925", "March 4th, 1925"),
        ("from 5 May to 6 June 2020", "6", "6 June 2020"),
        ("signed on 2024-05-06.", "2024", "2024-05-06"),
        ("It grew by 12 % then.", "12", "12 %"),
        ("at 25.5°C for", "25.5", "25.5°C"),
        ("the 12-month term", "12", "12-month"),
        ("In 1990 150 km were built.", "150", "150 km"),
        ("at 5:30 pm sharp", "5", "5:30 pm"),
        ("open 9:00 to 17:00", "17", "17:00"),
        ("with 1,234,567 people", "234", "1,234,567"),
        ("the light keeper's house", "keep", "keeper"),
        ("42 in total", "42", "42"),
        ("version 2.3.1 is", "3", "3"),
        ("by forty masons in 1891", "forty masons", "forty masons"),
        ("$5\na month", "5", "$5"),
    ],
)
def test_dates_amounts_and_words_are_taken_whole(text, part, whole):
    assert widened(text, part) == whole


@pytest.mark.parametrize(
    ("text", "part", "question"),
    [
        ("It ended on 3 October 1990.", "1990", "In which year did it end?"),
        ("It ended on 3 October 1990.", "3", "On which day of October 1990 did it end?"),
        ("It takes 5 minutes.", "5", "How many minutes does it take?"),
        ("The rent is $1,250.00 a month.", "$1,250.00", "What is the rent per month?"),
    ],
)
def test_a_part_stays_where_the_question_asks_for_it(text, part, question):
    assert widened(text, part, question) == part


@given(
    st.text("ab 1290.,:$€%-/\n塔é", min_size=1, max_size=60), st.text("year month ab", max_size=12), st.data()
)
def test_widened_words_hold_the_words_within_the_text(text, question, data):
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    first, last = reading.whole_span(question, text, start, end)
    assert 0 <= first <= start < end <= last <= len(text)
    assert text[first:start].count("\n") == text[end:last].count("\n") == 0


SHORT = """When was the tower finished?|In which year did the strike end?|Who painted it?|Whose idea was it?
Where is the museum?|What is the rent per month?|Which colour does the flag have?|How many masons built it?
How much does a ticket cost?|How long did it last?|How old is the keeper?|What does MMR stand for?
Is the door red or blue?|Name the architect.|To whom was the letter sent?|And when does it close?
By how much did it grow?|What percentage agreed?|tower finished when?|Can you tell me when it was finished?
Do you know who painted it?|Could you please tell me where it is?|If it rains, when is it open?"""
NO_SHORT = """Is the museum closed on Sundays?|Are dogs allowed?|Did the strike end in 1891?|And is it open?
Can I bring my dog?|Has the tower been painted?|Why was it painted?|How do I reset the password?
How does attention work?|How is bread made?|Explain the warranty.|Describe the building.|List all colours.
Please summarise the agreement.|What are the steps to install it?|What is the difference between the two?
For what reason was it closed?|Can you tell me why it failed?|Can you tell me how it works?
Do you know if dogs are allowed?|Tell me how to cancel the contract.|WHY?|How come?"""


@pytest.mark.parametrize(("questions", "is_short"), [(SHORT, True), (NO_SHORT, False)])
def test_questions_of_yes_and_no_of_reasons_ways_and_lists_have_no_short_answer(questions, is_short):
    asked = questions.replace("\n", "|").split("|")
    assert [each for each in asked if reading.has_short_answer(each) is not is_short] == []


def span(text, start=0, score=0.0, document="d.md"):
    return reading.AnswerSpan(document, start, start + len(text), text, 0, score)


def test_the_next_reading_says_something_else():
    first, same, part, other = span("in 1891"), span("In 1891", 20), span("1891", 40), span("in 1932", 60)
    assert reading.next_reading([first, same, part, other]) == other
    assert reading.next_reading([part, first]) is None
    assert reading.next_reading([first]) is reading.next_reading([]) is None


def test_a_reason_is_given_in_words_where_the_reader_is_sure():
    why, yes_no = "Why was the harbour closed?", "Was the harbour closed?"
    sure, unsure, number = (
        span("because of ice", 0, 6.0),
        span("because of ice", 0, 4.0),
        span("1891", 0, 9.0),
    )
    assert reading.answers_in_words(why, sure)
    assert not reading.answers_in_words(why, unsure)
    assert not reading.answers_in_words(why, number)
    assert not reading.answers_in_words(yes_no, sure)
    assert reading.answers_in_words("When was it closed?", unsure)


def hits_of(text, *places, document="d.md"):
    return [Hit(Chunk(document, start, end, text[start:end], 9), 0.5) for start, end in places]


REPORT = (
    "What was the total revenue in 2011? The total revenue in 2012 was $1,250.00 a month. "
    "The keeper of the lighthouse kept bees."
)


def test_words_are_found_whole_with_their_place_in_the_document_and_not_in_questions(reader):
    text = f"Preface.\n\n{REPORT}"
    hits = [*hits_of(DOCUMENTS["bread.md"], (0, 59), document="b.md"), *hits_of(text, (10, len(text)))]
    found = reading.read_passages("What was the total revenue?", hits, reader)
    assert (found[0].text, found[0].document, found[0].place) == ("$1,250.00 a month", "d.md", 1)
    assert [each.score for each in found] == sorted((each.score for each in found), reverse=True)
    assert len(found) <= reading.N_SPANS
    texts = {"d.md": text, "b.md": DOCUMENTS["bread.md"]}
    for each in found:
        assert texts[each.document][each.start : each.end] == each.text
        assert "2011" not in each.text


def test_passages_that_overlap_give_each_place_once(reader):
    hits = hits_of(REPORT, (0, 90), (36, len(REPORT)), (0, len(REPORT)))
    found = reading.read_passages("What was the total revenue?", hits, reader)
    assert [each.text for each in found].count("$1,250.00 a month") == 1
    places = sorted((each.start, each.end) for each in found)
    assert all(end <= start for (_, end), (start, _) in pairwise(places))
    assert reading.read_passages("What was the total revenue?", [], reader) == ()


def test_words_are_ordered_by_their_sentence_too():
    text = "It was painted in 1932. It was finished in 1891."
    [hit] = hits_of(text, (0, len(text)))
    found = [Span(0, 18, 22, 5.0), Span(0, 43, 47, 4.5)]
    reader = SimpleNamespace(read=lambda *arguments: found)
    best, other = (
        Quote("d.md", a, b, text[a:b], 0, 0.5, (), score, 0.5)
        for a, b, score in ((24, 48, 6.0), (0, 23, 2.0))
    )
    assert [each.text for each in reading.read_passages(QUESTION, [hit], reader)] == ["1932", "1891"]
    first, second = reading.read_passages(QUESTION, [hit], reader, [best, other])
    assert (first.text, first.sentence_lag, first.total) == ("1891", 0, 4.5)
    assert (second.text, second.sentence_lag) == ("1932", 4)
    assert second.total == pytest.approx(5 - 4 * reading.LAG_WEIGHT)
    # words outside of all sentences, such as those of a heading, are as far behind as can be
    first, second = reading.read_passages(QUESTION, [hit], reader, [best])
    assert second.sentence_lag == reading.LARGEST_LAG


@pytest.fixture(scope="module")
def index(encoder):
    return index_of_documents(DOCUMENTS, encoder)


@pytest.fixture(scope="module")
def answer(index, encoder, reader):
    """A function that asks without a language model."""

    def answer(question=QUESTION, reader=reader, index=index, **settings):
        return ask(question, index, encoder, settings=replace(SETTINGS, **settings), reader=reader)

    return answer


def test_an_answer_is_read_judged_and_quoted_without_a_language_model(answer):
    found = answer()
    assert (found.reading.text, found.reading.document) == ("1891", "tower.md")
    assert found.quotes[0].holds("tower.md", found.reading.start)
    assert (found.written, found.text, found.sources) == (None, "", ())
    expected = confidence_of(reading_figures(found.spans, found.evidence), READING_WEIGHTS)
    assert found.judged.confidence == expected
    assert 0 < found.timed.reader_s < found.timed.until_quotes_s
    refused = answer(answer_threshold=1, refuse_threshold=1)
    assert refused.judged.status == "refused"
    assert refused.spans
    assert refused.reading is refused.other_reading is None


def test_what_a_few_words_do_not_answer_is_quoted(answer):
    found = answer("Was the Vardholm tower finished?")
    assert found.spans
    assert found.reading is found.other_reading is None
    assert found.judged.confidence == answer("Was the Vardholm tower finished?", None).judged.confidence
    other = answer("Wann wurde der Turm von Vardholm fertig?")
    assert (other.is_english, other.spans, other.reading) == (False, (), None)
    assert other.quotes
    without = answer(reader=None)
    assert (without.spans, without.reading, without.timed.reader_s) == ((), None, pytest.approx(0, abs=1e-3))
    assert without.quotes[0].text == DOCUMENTS["tower.md"]


def test_the_sentence_of_the_reading_is_quoted_first_and_a_close_second_one_shown(answer):
    found = answer()
    bread, tower = (next(q for q in found.evidence if q.document == d) for d in ("bread.md", "tower.md"))
    spans = (
        reading.AnswerSpan("bread.md", 20, 31, "ten minutes", bread.place, 3.0),
        reading.AnswerSpan("bread.md", 24, 31, "minutes", bread.place, 2.9),
        reading.AnswerSpan("tower.md", 35, 39, "1891", tower.place, 1.5),
    )
    other = replace(found, spans=spans)
    assert other.quotes == (bread, tower)
    assert len(other.quotes) == N_QUOTES
    assert other.other_reading == spans[2]
    far = replace(spans[2], score=0.9)
    assert replace(found, spans=(*spans[:2], far)).other_reading is None
