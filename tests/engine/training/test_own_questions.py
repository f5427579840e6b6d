"""Tuning a reader to a person's own questions: where answers stand, and what is left out is what tests."""

import numpy as np
import pytest

from engine.documents.document import Chunk
from engine.errors import InputError
from engine.evaluation.answers import AnswerQuestion, ShortAnswer
from engine.retrieval.index import Hit
from engine.training.reading.loop import ReadingSettings
from engine.training.reading.own_questions import answer_span, own_question, tune_reader

PLACES = "Orland Tessel Brake Murn Kels Varin Dost Pell Horn Lune Sard Wick"


def hit(text, start=0):
    return Hit(Chunk("towns.md", start, start + len(text), text, 0), 0.5)


def asked(text, answer, spans=()):
    return AnswerQuestion(text, ShortAnswer.parse(answer), "towns.md", spans)


@pytest.fixture(scope="module")
def questions():
    """Questions whose right answers are always the second year, which a reader does not know."""
    found = []
    for number, place in enumerate(PLACES.split()):
        for thing in ("harbour", "mill"):
            own, other = 1700 + 7 * number + len(thing), 1820 + 3 * number + len(thing)
            text = f"The {thing} of {place} opened in {own}, or in {other} as the town counts."
            question = asked(f"When did the {thing} of {place} open?", str(other))
            found.append(own_question(question, [hit(text)]))
    return found


@pytest.mark.parametrize(
    ("text", "answer", "spans", "expected"),
    [
        ("Mara Lind was the pilot. Lind left.", "Lind|Mara Lind", (), "Mara Lind"),
        ("It has 120 rooms and 12 doors.", "12", (), "12"),
        ("Built in 1891. Burned in 1891.", "1891", ((125, 129),), "1891"),
        ("Built in 1891.", "1932", (), None),
        ("Mara Lind and Jon Arde.", "Mara Lind & Jon Arde", (), None),
        ("Nothing is said.", "", (), None),
    ],
)
def test_an_answer_is_found_in_its_passage(text, answer, spans, expected):
    span = answer_span(asked("Who?", answer, spans), hit(text, start=100))
    assert (span and text[slice(*span)]) == expected
    if spans:
        assert span[0] == 25  # at the labelled place, not at the first


def test_a_question_whose_answer_is_in_no_passage_is_left_out():
    assert own_question(asked("When?", "1891"), [hit("Nobody knows.")]) is None
    assert own_question(asked("When?", ""), [hit("Nobody knows.")]).spans == (None,)


def test_training_helps_on_questions_that_it_left_out(reader, encoder, questions):
    settings = ReadingSettings(crops=(64,) * 3, batch_size=4, learning_rate=3e-4, n_warmup=2, n_last=1)
    before = [array.copy() for array in reader.head]
    seen = list[tuple[int, int]]()
    tuned = tune_reader(reader, encoder, questions, settings, 3, lambda *counts: seen.append(counts))
    assert tuned.before.mean() < 0.3
    assert tuned.comparison.low > 0
    assert tuned.comparison.difference > 0.2
    assert tuned.comparison.difference == pytest.approx(tuned.after.mean() - tuned.before.mean())
    assert seen == sorted(seen)
    assert seen[-1] == (1000, 1000)
    assert all(np.array_equal(*pair) for pair in zip(before, reader.head, strict=True))  # it is another one
    assert np.mean([own.f1(tuned.reader) for own in questions]) > 0.9


def test_too_few_questions_are_refused(reader, encoder, questions):
    with pytest.raises(InputError, match="19 questions to train on: give 20 or more"):
        tune_reader(reader, encoder, questions[:19], ReadingSettings())
