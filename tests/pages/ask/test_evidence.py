import pytest

from engine.documents.document import Document
from engine.generation.checks import CheckedSentence, UnknownWord
from engine.retrieval.evidence import Quote
from pages.ask.evidence import checked_html, excerpt_html, excerpt_source, excerpts
from tests.apps import app_of, plain
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
    return " ".join(plain(str(each.value)) for each in (*app.markdown, *app.caption, *app.get("html")))


TOWER = Document("tower.md", TEXT)


def quote_of(sentence):
    start = TEXT.index(sentence)
    return Quote("tower.md", start, start + len(sentence), sentence, 0, 0.5, (), 1.0, 0.9)


def html_of(quotes):
    return [excerpt_html(each, 120) for each in excerpts(quotes, {"tower.md": TOWER}, 3, 120)]


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
    [excerpt] = excerpts([QUOTE, first], {"tower.md": TOWER}, 3, 120)
    assert excerpt_source(excerpt) == f"[3] [2] tower.md · characters {first.start}–{QUOTE.end}"


def test_quotes_of_other_paragraphs_or_far_apart_have_excerpts_of_their_own():
    first, later = quote_of("It was <b>high</b>."), quote_of("Later lines.")
    assert len(html_of([QUOTE, later])) == 2
    assert [len(each.quotes) for each in excerpts([QUOTE, first], {"tower.md": TOWER}, 3, 0)] == [1, 1]


def test_a_row_of_a_table_stands_below_the_names_of_its_columns():
    text, row = "| Years | <Days> |\n|---|---|\n| 0 to 5 | 25 |\n| over 5 | 27 |", "| over 5 | 27 |"
    quote = Quote("leave.md", text.index(row), len(text), row, 0, 0.5, (), 1.0, 0.9)
    [excerpt] = excerpts([quote], {"leave.md": Document("leave.md", text)}, 3, 120)
    heads, marked = excerpt_html(excerpt, 120).split("<br>")
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
        ({"status": "unsure"}, "They may not answer the question", True),
        ({"status": "refused"}, "No sentence of these documents is likely to answer", False),
        ({"sentences": (UNSUPPORTED,)}, "All of it is unsupported (it would be as probable", True),
        ({"text": "", "sentences": ()}, "The quotes above are the answer", False),
        (CUT, "The server's content filter ended it here.", True),
        (CUT | {"text": "", "sentences": ()}, "content filter let no word through", False),
    ],
)
def test_an_answer_is_drawn_with_its_quotes_and_says_what_it_is_worth(changed, said, has_text):
    words = words_of(answer(**{"confidence": 0.8, "evidence": (QUOTE,), "sentences": (KEPT,), **changed}))
    assert said in words
    assert "It was finished in 1891." in words
    assert ("This." in words) == has_text
