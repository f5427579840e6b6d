from dataclasses import replace

import pytest

from benchmarks.diagnosis import diagnosed, load_cases
from engine.documents.document import Document, Failure
from engine.documents.splitters import Splitting, split
from engine.evaluation.answers import ShortAnswer
from engine.inspection.diagnosis.asking import Searched, says
from engine.inspection.diagnosis.chain import TITLES
from engine.inspection.diagnosis.diagnose import diagnose
from engine.retrieval.index import build_index
from engine.retrieval.relevance import null_scores_of
from engine.retrieval.vector_cache import VectorCache
from engine.settings import SETTINGS

CACHE = VectorCache()
CASES = {case.name: case for case in load_cases()}
# Of each cause one whose cure gives the right answer, but for a text that no cure brings.
CURED = {
    "page without text": "",
    "columns by blanks": "Ask “List what stands in the row: What head does the Cedar pump have?”",
    "a list and its head": "Set chunk size 40 → 192",
    "said by the heading": "Set context off → headings",
    "end of a long chunk": "Set chunk size 512 → 192",
    "motorists": "Ask “Where Petrol sold?”",
    "coolnat": "Ask “What is the coolant?”",
    "German question": "Ask “Wie lange ist die Garantie der Bohrmaschine? (warranty, drill",
    "sauna after tickets": "Ask it as a new topic",
    "names of columns again": "Ask “List what stands in the row: ",
    "two models": "Ask “How loud is the Lawnman 40? (petrol)”",
    "grouped digits": "Ask “Who paid 1.250 EUR?”",
    "long chunk of many things": "Set ",
    "one passage only": "Set passages 1 → 4",
    "two lengths": "Ask “How long is the Grimm tunnel? (built, ",
    "strict confidence": "Set refused below 99 → ",
    "right already": "",
}
TEXT = "The keeper of the lighthouse kept bees. He sold the honey in Vardholm for two crowns a jar."
DOCUMENT = Document("light.txt", TEXT)


@pytest.fixture(scope="module")
def searched(encoder, reader):
    index = build_index(split(DOCUMENT, encoder.tokenizer), encoder, documents=[DOCUMENT])
    values = {key: setting.default for key, setting in SETTINGS.items()}
    return Searched(index, encoder, reader, values, null_scores_of(index, encoder), [DOCUMENT])


@pytest.mark.parametrize("name", CURED)
def test_each_cause_is_named_and_its_cure_gives_the_right_answer(encoder, name):
    case = CASES[name]
    found = diagnosed(case, encoder, CACHE)
    assert found.cause == case.cause
    assert found.cure_words.startswith(CURED[name])
    assert bool(found.trial and found.trial.is_right) == bool(CURED[name])
    assert [link.name for link in found.chain.links] == (["read"] if case.cause == "not_read" else [*TITLES])
    broken = found.chain.broken
    assert (broken is None) == (case.cause == "none")
    as_json = found.to_json()
    assert as_json["before"]["question"].startswith(case.question)
    if CURED[name]:
        assert as_json["cure"]["gives_right_answer"]
        assert as_json["after"]["question"].startswith(as_json["cure"]["question"])


def test_every_cause_has_cases_in_both_halves():
    causes = {case.cause for case in CASES.values()}
    assert {CASES[name].cause for name in CURED} == causes
    for half in ("build", "aside"):
        assert {case.cause for case in CASES.values() if case.half == half} == causes


def test_a_text_that_is_alike_counts_only_while_it_still_answers(searched):
    changed = "The old keeper of the lighthouse kept many bees."
    assert diagnose("Who kept bees?", changed, searched, ShortAnswer.parse("keeper")).cause == "none"
    other = "He sold the honey in Vardholm for nine crowns a jar."
    found = diagnose("What does honey cost?", other, searched, ShortAnswer.parse("nine crowns"))
    assert found.cause == "not_read"
    assert "alike to 91%" in found.sentence


def test_what_reading_left_out_is_told_of_a_passage_that_is_nowhere(searched):
    failure = Failure("scan.png", "scan.png is a picture: give the text")
    found = diagnose("Who?", "A submarine sank near Iceland.", searched, failures=[failure])
    assert "Left out in reading: scan.png is a picture" in found.sentence
    assert found.trial is None
    assert "add the text" in found.cure_words


def test_a_passage_longer_than_a_document_is_not_read(searched):
    assert diagnose("Who kept bees?", TEXT * 40, searched).cause == "not_read"


def test_cures_end_where_they_are_stopped_and_cut_only_where_they_may(encoder, reader):
    case = replace(CASES["a list and its head"], options={})
    document = Document("crews.txt", case.files["crews.txt"])
    chunks = split(document, encoder.tokenizer, Splitting("sentences", 40))
    index = build_index(chunks, encoder, documents=[document])
    values = {key: setting.default for key, setting in SETTINGS.items()} | {"chunk_tokens": 40}
    searched = Searched(index, encoder, reader, values, null_scores_of(index, encoder), [document])
    asked = case.question, case.passage, searched, ShortAnswer.parse(case.answer)
    stopped = diagnose(*asked, stop=lambda: True)
    assert (stopped.n_tried, stopped.is_unfinished) == (0, True)
    assert stopped.cure_words == "No cure was tried yet."
    kept = diagnose(*asked, may_cut=False)
    assert kept.is_unfinished
    assert kept.trial.n_chunks == len(chunks)


def test_other_sizes_follow_smaller_chunks(searched):
    wide = replace(searched, settings={**searched.settings, "overlap": 128, "parent_tokens": 16})
    chunks = wide.under({"chunk_tokens": 24}).index.chunks
    assert max(chunk.n_tokens for chunk in chunks) <= 24
    assert wide.under({"k": 2}).index is searched.index


@pytest.mark.parametrize(
    ("wanted", "text", "right"),
    [
        ("Tuesdays", "The smithy opens on Tuesdays", True),
        ("1000", "450\n630\n1000\n320", False),
        (
            "Silas Boone",
            "Captain Rees until the end of the year. On the way home the mate Silas Boone",
            False,
        ),
        ("12 euros", "12 euros a day", True),
    ],
)
def test_words_hold_an_answer_and_not_several_things(wanted, text, right):
    assert says(ShortAnswer.parse(wanted), text) == right
