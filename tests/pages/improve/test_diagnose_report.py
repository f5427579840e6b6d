import re
from dataclasses import replace
from html import escape

import pytest

from engine.documents.document import Document
from engine.documents.splitters import Splitting, split
from engine.evaluation.metrics import METRICS
from engine.evaluation.questions import Question
from engine.evaluation.sweep_row import SweepRow
from engine.inspection.diagnosis.causes import InUse, causes
from engine.inspection.diagnosis.diagnose import diagnose
from engine.inspection.diagnosis.location import locate
from engine.inspection.diagnosis.setting_changes import effect_on_others
from engine.retrieval.index import build_index
from pages.improve.diagnose.ask import Asked, Search
from pages.improve.diagnose.fix import Fixes
from pages.improve.diagnose.other_settings import Measured, current_cell
from pages.improve.diagnose.rank import ranking_of
from pages.improve.diagnose.report import Diagnosed, report
from ui.chunk_settings import Cut

EVIL = '<script>alert("1")</script>'
PASSAGE = f"Its mortar was mixed with {EVIL} and eggs."
TEXT = (
    f"The old tower stands in the town. {PASSAGE} Masons built it of sandstone.\n\n"
    "Which colour is the tower of the town? The tower of the town is red.\n\n"
    "The tower of the town has a clock, and the colour of the clock of the tower is gold."
)
QUESTION = "Which colour is the tower of the town? <b>Red</b>"
TITLES = (
    "In short",
    "1 · Is the text in a document?",
    "2 · Into which chunks was it cut?",
    "3 · Was any of it lost to the token limit?",
    "4 · Where does it rank, and what outranks it?",
    "5 · Where would it rank under other settings?",
    "6 · What is the smallest change that finds it?",
    "Settings",
)


def words_of(html):
    return re.sub(r"<[^>]+>", "", html.partition("<main>")[2])


def titles(html):
    return re.findall("<h2>(.*?)</h2>", html)


@pytest.fixture(scope="module")
def search(encoder):
    document, splitting = Document(f"{EVIL}.md", TEXT), Splitting("sentences", 48)
    index = build_index(split(document, encoder.tokenizer, splitting), encoder, "mean", 256)
    return Search((document,), encoder, Cut(splitting, 0, 256), index, "hybrid", 1)


@pytest.fixture(scope="module")
def diagnosed(search):
    place, [document] = locate(PASSAGE, search.documents), search.documents
    found = diagnose(QUESTION, place, document, search.index, search.model, search.k)
    ranking = ranking_of.__wrapped__(
        QUESTION, place, (document,), search.cut, "mean", search.retriever, "", search
    )
    used = InUse(current_cell(search), 512, ranking.rank)
    return Diagnosed(place, found, ranking, used, None)


def row(cell, reciprocal):
    """A row of the diagnosed question and two others, by their reciprocal ranks."""
    values = {name: tuple(reciprocal) for name in METRICS}
    means = {name: sum(reciprocal) / len(reciprocal) for name in METRICS}
    return SweepRow(cell, 9, len(reciprocal), means, dict.fromkeys(METRICS, (0.0, 1.0)), values, 1.0, 1)


def test_a_report_has_every_step_with_its_verdict_and_tables(search, diagnosed):
    asked = Asked(QUESTION, PASSAGE, diagnosed.place)
    html = report(asked, search, causes(diagnosed.found, diagnosed.used), diagnosed)
    words = words_of(html)
    assert titles(html) == [*TITLES[:6], TITLES[7]]
    assert "Yes, word for word" in words
    assert "One chunk contains all of it." in words
    assert "No. All of it is within the 256 tokens" in words
    assert f"Rank{diagnosed.ranking.rank} of {len(search.index.chunks)}" in words
    assert "The chunks above it" in words
    assert "Nothing is measured yet for these settings." in words
    assert "Chunk size (tokens)48" in words
    assert f"Encoder{search.model.name}" in words
    assert html.count("<figure>") == 2  # the passage's chunk, and the best one
    assert html.count("plotly.js v") == 1


def test_all_text_of_a_report_is_escaped(search, diagnosed):
    asked = Asked(QUESTION, PASSAGE, diagnosed.place)
    html = report(asked, search, causes(diagnosed.found, diagnosed.used), diagnosed)
    assert "<script>alert" not in html
    assert "<b>Red" not in html
    assert html.count(escape(EVIL)) >= 6
    assert html.count(escape(QUESTION)) == 2


def test_a_text_of_no_document_ends_at_the_first_step(search):
    html = report(Asked(QUESTION, EVIL, None), search, causes(None))
    assert titles(html) == [*TITLES[:2], TITLES[7]]
    assert "It is not in the documents." in words_of(html)
    assert "No. No chosen document contains it" in words_of(html)
    assert "<script" not in html


def test_measured_settings_and_the_effect_of_a_change_are_told(search, diagnosed):
    current = current_cell(search)
    now, better = row(current, (0.5, 1.0, 0.2)), row(replace(current, chunk_tokens=64), (1.0, 1.0, 1.0))
    others = (Question("Who built it?", "a", ()), Question(EVIL, "a", ()))
    fixes = Fixes(("Chunk size 48 → 64",), ("chunk size 48 → 64 · rank 1",), 0, effect_on_others(now, better))
    measured = Measured((now, better), now, others, fixes)
    html = report(
        Asked(QUESTION, PASSAGE, diagnosed.place), search, (), replace(diagnosed, measured=measured)
    )
    words = words_of(html)
    assert titles(html) == list(TITLES)
    assert "Under 1 of 2 settings it is among the first 1." in words
    assert "chunk size 48 → 64 · rank 1" in words
    assert "Its effect on the other 2 labelled questions:" in words
    assert "100.0%" in words
    assert "<script>alert" not in html


def test_a_pooling_without_shares_is_named(search, diagnosed, encoder):
    index = build_index(search.index.chunks, encoder, "pooler", 256)
    html = report(Asked(QUESTION, PASSAGE, diagnosed.place), replace(search, index=index), (), diagnosed)
    assert "What its chunk shares with the question: " in words_of(html)
    assert "<figure" not in html.partition("<main>")[2]
