import re
from dataclasses import replace
from html import escape

import pytest

from engine.documents.document import Chunk, Document, Section
from engine.generation.checks import CheckedSentence, UnknownWord
from engine.generation.conversation import Turn
from engine.generation.prompt import Prompt, Source
from engine.retrieval.evidence import Quote
from engine.retrieval.index import Hit
from pages.ask.report import report
from tests.pages.ask.test_ask_answer import answer, asked

EVIL = '<script>alert("1")</script>'
TEXT = f"# Towers\nIt was high {EVIL}. It was finished in 1891. Masons built it.\nLater lines."
TOWER = Document("tower.md", TEXT, sections=(Section(0, ("Towers",), 3),))
START = TEXT.index("It was finished")
FINISHED = TEXT[START : START + 24]
QUOTE = Quote("tower.md", START, START + 24, FINISHED, 0, 0.5, (), 1.0, 0.9)
HITS = (Hit(Chunk("tower.md", 9, len(TEXT), TEXT[9:], 30), 0.7), Hit(Chunk("1.md", 0, 6, "text 1", 3), 0.1))


def written(**changed):
    text = "It cost 5 euros. It is old."
    sentences = (CheckedSentence(0, 17, (UnknownWord(8, 9, "number"),)), CheckedSentence(17, 27, ()))
    source = Source(1, "tower.md", START, START + 24, FINISHED, 0.7, 8, False)
    given = {"text": text, "sentences": sentences, "evidence": (QUOTE,), "hits": HITS, "margins": (0.6, None)}
    given |= {"prompt": Prompt((), "", (1,) * 9, 3, (source,), (), 100), "model": "scribe", "confidence": 0.8}
    return answer(**(given | changed))


def words_of(html):
    return re.sub(r"<[^>]+>", "", html.partition("</style>")[2])


def test_a_report_holds_the_answer_and_all_that_it_rests_on():
    html = report(written(), asked(), {"tower.md": TOWER})
    words = words_of(html)
    assert "Answered · 80% sure" in words
    assert "Asked2026-01-02 03:04 UTC" in words
    assert "Encodersmall-encoder" in words
    assert "Written byscribe" in words
    assert f"{FINISHED}</mark>" in html
    assert "Masons built it." in words
    assert f"[1] tower.md · Towers · page 3 · characters {START}–{START + 24}" in words
    assert "1 of 2 sentences do not hold: a number in it occurs in no source." in words
    assert "struck throughIt cost 5 euros.a number in it occurs in no source" in words
    assert "underlined5this number occurs in no source" in words
    assert "Passages found: 2" in words
    assert (
        "cosine 0.700 · closer than all random pairs · 0.600 ahead of the next · read by the model: [1]"
        in words
    )
    assert "left out: not close enough" in words
    assert "Encode question100.0 ms" in words
    assert "Together300.0 ms" in words
    assert "Chunk size (tokens)64" in words
    assert "Pooling[CLS]" in words
    assert "<script" not in html


def test_all_text_of_a_report_is_escaped():
    shown = written(
        text=EVIL,
        sentences=(CheckedSentence(0, len(EVIL), (UnknownWord(1, 7, "name"),)),),
        model=EVIL,
        server=f"http://{EVIL}",
        searched_for=EVIL,
        hits=(*HITS, Hit(Chunk(EVIL, 0, len(EVIL), EVIL, 3), 0.7)),
        margins=(None,) * 3,
        evidence=(QUOTE, replace(QUOTE, document=EVIL, text=EVIL)),
    )
    question = asked(
        typed=EVIL, question=f"{EVIL}?", turns=(Turn(EVIL, EVIL),), encoder=EVIL, documents=frozenset({EVIL})
    )
    html = report(shown, question, {"tower.md": TOWER})
    assert "<script" not in html
    assert html.count(escape(EVIL)) >= 12


def test_a_follow_up_and_the_text_searched_for_are_told():
    question = asked(typed="And in 2016?", question="And in 2016? (revenues)", turns=(Turn("In 2015?", ""),))
    words = words_of(report(written(searched_for="Which?\nThat one."), question, {}))
    assert "Read as a follow-up: And in 2016? (revenues)" in words
    assert "In 2015?\nRefused." in words
    assert "That one." in words


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"status": "unsure"}, "They may not answer the question"),
        ({"status": "refused"}, "Not shown, as the answer is refused."),
        ({"text": "", "sentences": ()}, "(the model ended its answer at once)"),
        ({"finish_reason": "stopped"}, "Stopped before its end."),
        ({"finish_reason": "content_filter"}, "Ended by a content filter of the server."),
        ({"sentences": (CheckedSentence(0, 27, ()),)}, "All of its sentences pass the checks."),
        ({"min_relevance": 100, "prompt": None, "evidence": ()}, "The nearest passage of those that"),
        ({"hits": (), "margins": (), "prompt": None, "evidence": ()}, "BM25 (words) finds no passage"),
    ],
)
def test_each_end_of_an_answer_is_told(changed, said):
    html = report(written(**changed), asked(), {"tower.md": TOWER})
    assert said in words_of(html)
