from dataclasses import replace

import pytest

from engine.documents.document import Document
from engine.evaluation.questions import Question, Reference
from engine.evaluation.sweep_row import SweepRow
from engine.inspection.diagnosis.setting_changes import changed_settings, effect_on_others, other_questions
from engine.settings import Configuration


def test_settings_that_differ_are_named():
    assert changed_settings(Configuration(), Configuration(k=2, retriever="bm25")) == ("retriever", "k")


def test_the_effect_on_others_counts_those_won_and_lost():
    before = SweepRow(Configuration(), 1, 2, {}, {}, {"hit_rate@k": (0.0, 1.0), "mrr": (0.0, 1.0)}, 1.0, 1)
    assert effect_on_others(before, before).won == effect_on_others(before, before).lost == ()

    def with_hits(hits, reciprocal):
        return replace(before, values={"hit_rate@k": (0.0, *hits), "mrr": (0.0, *reciprocal)})

    effect = effect_on_others(with_hits((1, 0, 0), (1, 0.2, 0.2)), with_hits((0, 1, 1), (0.25, 1, 0.5)))
    assert effect.won == (1, 2)
    assert effect.lost == (0,)
    assert (effect.hits_before, effect.hits_after) == pytest.approx((1 / 3, 2 / 3))
    assert effect.mrr.difference == pytest.approx((-0.75 + 0.8 + 0.3) / 3)
    assert effect_on_others(with_hits((), ()), with_hits((), ())) is None


def test_the_question_itself_and_those_about_absent_documents_are_no_others():
    def asked(text, name):
        return Question(text, name, (Reference("x", 0, 1),))

    target, other, absent = asked("Why?", "a"), asked("How?", "a"), asked("Who?", "b")
    unanswered = Question("When?", "a", ())
    given = [target, asked("Why?", "a"), other, absent, unanswered]
    assert other_questions(target, given, [Document("a.txt", "x")]) == [other]
