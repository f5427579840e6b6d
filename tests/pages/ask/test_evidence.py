import re
from dataclasses import replace

import pytest

from engine.documents.document import Document
from engine.generation.checks import CheckedSentence, UnknownWord
from engine.generation.prompt import Source
from engine.generation.reading import AnswerSpan
from engine.retrieval.evidence import Quote
from pages.ask.evidence import checked_html
from pages.ask.excerpts import excerpt_html, excerpt_source, excerpts
from tests.apps import app_of, plain
from tests.one_document import parse_document
from tests.pages.ask.test_ask_answer import answer
from ui.colours import source_colour

TEXT = "# Towers\nIt was <b>high</b>. It was finished in 1891. Masons built it.\n\nLater lines."
START = TEXT.index("It was finished")
QUOTE = Quote("tower.md", START, START + 24, TEXT[START : START + 24], 0, 0.5, (), 1.0, 0.9)


def whole(shown):
    from pages.ask.answer import show_answer
    from tests.pages.ask.test_ask_answer import DOCUMENTS, asked
    from tests.pages.ask.test_evidence import TOWER

    show_answer(shown, asked(documents={**DOCUMENTS, "tower.md": TOWER}))


def words_of(shown):
    app = app_of(whole, args=(shown,)).run()
    return " ".join(
        plain(str(each.value)) for each in (*app.markdown, *app.warning, *app.caption, *app.get("html"))
    )


TOWER = Document("tower.md", TEXT)
# What the model read, the best sentence last.
SOURCES = [
    Source(number, "tower.md", TEXT.index(text), TEXT.index(text) + len(text), text, 0.5, 9, False)
    for number, text in ((2, "It was <b>high</b>."), (3, "It was finished in 1891."))
]


def quote_of(sentence):
    start = TEXT.index(sentence)
    return Quote("tower.md", start, start + len(sentence), sentence, 0, 0.5, (), 1.0, 0.9)


def html_of(quotes, words=()):
    return [excerpt_html(each, words) for each in excerpts(quotes, {"tower.md": TOWER}, SOURCES)]


def test_a_row_of_a_table_is_quoted_with_a_line_for_each_cell_and_its_number():
    table = parse_document("prices.csv", b"Item,Price\nOak,4\nAsh,5\n")
    start, end = table.row_at(len(table.text))
    quote = Quote("prices.csv", start, end, table.text[start:end], 0, 0.5, (), 1.0, 0.9)
    words = AnswerSpan("prices.csv", end - 1, end, "5", 0, 2.0)
    [excerpt] = excerpts([quote], {"prices.csv": table})
    assert re.sub("<.*?>", "", excerpt_html(excerpt, [words])) == "Item: Ash\nPrice: 5"
    assert excerpt_source(excerpt, [words]).startswith("prices.csv · row 3 · characters")


def test_a_quote_is_marked_within_its_own_paragraph_and_escaped():
    [html] = html_of([QUOTE])
    assert "<mark" in html
    assert "It was finished in 1891.</mark>" in html
    assert "It was &lt;b&gt;high&lt;/b&gt;." in html
    assert "Masons built it." in html
    assert "Towers" not in html
    assert "Later" not in html


def test_quotes_of_one_paragraph_are_marked_in_one_excerpt_in_the_order_of_the_text():
    first = quote_of("It was <b>high</b>.")
    [html] = html_of([QUOTE, first])
    assert html.count("<mark") == 2
    assert html.index("&lt;b&gt;high") < html.index("finished in 1891")
    assert html.count("finished in 1891") == html.count("Masons built it.") == 1
    assert source_colour(3) in html
    assert source_colour(2) in html
    [excerpt] = excerpts([QUOTE, first], {"tower.md": TOWER}, SOURCES)
    assert excerpt_source(excerpt) == f"[3] [2] tower.md · characters {first.start}–{QUOTE.end}"


def test_quotes_of_other_paragraphs_or_far_apart_have_excerpts_of_their_own():
    first, later = quote_of("It was <b>high</b>."), quote_of("Later lines.")
    assert len(html_of([QUOTE, later])) == 2
    assert [len(each.quotes) for each in excerpts([QUOTE, first], {"tower.md": TOWER}, (), 0)] == [1, 1]


def span_of(text, score=5.0):
    start = TEXT.index(text)
    return AnswerSpan("tower.md", start, start + len(text), text, 0, score)


def test_of_a_sentence_with_words_that_answer_these_alone_are_marked_and_their_place_is_given():
    words = [span_of("1891"), span_of("in")]
    [html] = html_of([QUOTE], words)
    assert re.findall("<mark[^>]*>(.*?)</mark>", html) == ["in", "1891"]
    [excerpt] = excerpts([QUOTE, quote_of("It was <b>high</b>.")], {"tower.md": TOWER})
    assert excerpt_html(excerpt, words).count("<mark") == 2
    assert excerpt_source(excerpt, words) == f"tower.md · characters {words[0].start}–{words[0].end}"


def test_a_row_of_a_table_stands_below_the_names_of_its_columns():
    text, row = "| Years | <Days> |\n|---|---|\n| 0 to 5 | 25 |\n| over 5 | 27 |", "| over 5 | 27 |"
    quote = Quote("leave.md", text.index(row), len(text), row, 0, 0.5, (), 1.0, 0.9)
    [excerpt] = excerpts([quote], {"leave.md": Document("leave.md", text)})
    heads, marked = excerpt_html(excerpt).split("<br>")
    assert "| Years | &lt;Days&gt; |" in heads
    assert "25" not in marked
    assert f"{row}</mark>" in marked


def test_unknown_words_are_underlined_and_unsupported_sentences_struck_through():
    text = "It cost <5> euros. It is old."
    unknown = (UnknownWord(9, 10, "number"),)
    sentences = (CheckedSentence(0, 19, unknown), CheckedSentence(19, 29, ()))
    html = checked_html(text, sentences)
    assert '<s style="' in html
    assert html.index("</s>") < html.index("It is old.")
    assert ">5</u>" in html
    assert "cost &lt;" in html


CUT = {"finish_reason": "content_filter"}
KEPT, UNSUPPORTED = CheckedSentence(0, 5, ()), CheckedSentence(0, 5, (), log_prob_drop=0.0)


@pytest.mark.parametrize(
    ("changed", "said", "has_text"),
    [
        ({"status": "answered"}, "Answered · 80% sure", True),
        ({"status": "unsure"}, "It may not answer the question", True),
        ({"status": "refused"}, "No sentence of these documents is likely to answer", False),
        ({"sentences": (UNSUPPORTED,)}, "All of it is unsupported (it would be as probable", True),
        ({"text": "", "sentences": ()}, "What was found above is the answer", False),
        (CUT, "The server's content filter ended it here.", True),
        (CUT | {"text": "", "sentences": ()}, "content filter let no word through", False),
    ],
)
def test_an_answer_is_drawn_with_its_quotes_and_says_what_it_is_worth(changed, said, has_text):
    words = words_of(answer(**{"confidence": 0.8, "evidence": (QUOTE,), "sentences": (KEPT,), **changed}))
    assert said in words
    assert "It was finished in 1891." in words
    assert ("This." in words) == has_text


def found(question="When?", **changed):
    """An answer of words, of which no text is written."""
    shown = answer(**{"confidence": 0.8, "evidence": (QUOTE,), **changed})
    return replace(shown, written=None, spans=(span_of("1891"), span_of("high", 4.0)), question=question)


def large(shown):
    """The words drawn large, each with its size."""
    html = "".join(each.proto.body for each in app_of(whole, args=(shown,)).run().get("html"))
    return re.findall(r'<strong style="[^"]*font-size:([\d.]+)rem[^"]*">(.*?)</strong>', html)


def test_an_answer_opens_with_the_words_found_less_large_where_it_is_unsure_and_then_the_second_reading():
    assert large(found()) == [("2", "1891"), ("1.15", "high")]
    assert large(found(status="unsure")) == [("1.4", "1891"), ("1.15", "high")]
    assert large(found(status="refused")) == []
    assert "No sentence of these documents" in words_of(found(status="refused"))


def test_passages_without_a_sentence_to_quote_are_the_sources_themselves():
    assert "1.md · characters 0–6" in words_of(replace(found(evidence=()), spans=()))


def test_questions_that_no_few_words_answer_and_other_languages_are_said_and_have_quotes_alone():
    why = found(question="Why was it built?")
    assert large(why) == []
    assert "A few words cannot answer" in words_of(why)
    german = found(question="Wann wurde der Turm gebaut?")
    said = (
        "all-MiniLM-L6-v2 and the reader were trained on English, and documents or the question are in German"
    )
    assert said in words_of(replace(german, spans=())).replace("\\", "")
    assert "trained on English" not in words_of(found())
