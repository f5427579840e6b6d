"""The sentence that an experiment opens with: it says what the table says."""

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.documents.document import Document
from engine.evaluation.grid import grid
from engine.evaluation.questions import Question, Reference
from engine.evaluation.significance import critical_value, questions_needed
from engine.evaluation.sweep import SweepInputs, sweep
from engine.settings import Configuration
from pages.improve.settings.conclusion import (
    HITS,
    conclude,
    cost_words,
    held_out_words,
    rounded,
    sentence,
    summary,
    verdicts,
)
from pages.improve.settings.experiments import Experiment, digest
from tests.apps import app_of, by_label, said, tables
from tests.experiments import results_page, row
from ui.text import escape_markdown, p_words

BASE = Configuration(retriever="dense", k=4)
OTHER = Configuration(retriever="hybrid", k=4)
FACTS = (
    ("What is code E4471?", "E4471: the paper tray is empty."),
    ("What is code E4417?", "E4417: the drum is worn."),
    ("What is code E4741?", "E4741: the lid is open."),
    ("What is code E7441?", "E7441: the fuser is hot."),
    ("What is code E4714?", "E4714: the toner is low."),
    ("How long is dough kneaded?", "Knead the dough for ten minutes, and let it rise."),
    ("Who kept bees?", "Ada Holm kept bees behind the tower."),
    ("Where is the ferry?", "The ferry to Vard leaves from the northern quay."),
)


def hits(n_found, n=40):
    return np.repeat([1.0, 0.0], [n_found, n - n_found])


def told(*rows, metric=HITS, in_use=True):
    judged = verdicts(rows, metric)
    return sentence(rows, judged, metric, conclude(rows, judged, metric), in_use)


def test_a_setting_that_is_better_is_told_with_how_many_questions_more_it_finds():
    before, after = row(BASE, hits(20)), row(OTHER, hits(30))
    assert told(before, after) == (
        "Retriever “hybrid (ranks fused)” finds the passage among the first 4 for 10 more of 40 questions "
        "than retriever “dense (cosine)”, which is in use (30 instead of 20): more than chance explains "
        "(p = 0.002)."
    )
    assert "which was in use" in told(before, after, in_use=False)
    assert told(before, after, metric="mrr").startswith(
        "Retriever “hybrid (ranks fused)” has a better MRR for 10 of 40 questions and a worse one for 0, "
        "compared with retriever “dense (cosine)”, which is in use (a mean of 0.750 instead of 0.500)"
    )


def test_the_gain_of_a_choice_is_that_on_held_out_questions():
    rows = row(BASE, hits(20)), row(OTHER, hits(30))
    words = held_out_words(rows, verdicts(rows, HITS), HITS)
    assert words.startswith("On held-out questions the best gains +0.2")
    few = row(BASE, hits(2, 8)), row(OTHER, hits(6, 8))
    assert held_out_words(few, verdicts(few, HITS), HITS) == ""


def test_what_could_be_chance_is_told_with_the_questions_that_would_settle_it():
    rows = row(BASE, hits(20)), row(OTHER, hits(23))
    found = conclude(rows, verdicts(rows, HITS), HITS)
    differences = (hits(23) - hits(20))[:, None]
    needed = questions_needed(differences[:, 0], critical_value(differences))
    assert (found.place, found.is_sure, found.advised, found.n_more) == (1, False, 0, needed - 40)
    words = told(*rows)
    assert words.startswith("No setting is better than those in use beyond what chance explains: the best, ")
    assert "for 3 more of 40 questions" in words
    assert f"could be chance (p = 0.250), and about {rounded(needed - 40)} more questions" in words


def test_a_tiny_difference_is_settled_by_no_number_of_questions_that_one_can_label():
    random = np.random.default_rng(0)
    before = random.random(40)
    after = before + 1e-3 * (1 + 300 * np.tile([1, -1], 20))
    words = told(row(BASE, before), row(OTHER, after), metric="mrr")
    assert "no number of questions that one can label" in words


def test_the_settings_in_use_may_be_the_best():
    rows = row(BASE, hits(30)), row(OTHER, hits(30)), row(Configuration(retriever="bm25", k=4), hits(5))
    assert told(*rows) == (
        "None of 2 other settings is better than those in use, which find the passage among the first 4 for "
        "30 of 40 questions."
    )
    assert told(*rows[:2], metric="mrr") == (
        "The other setting is not better than those in use, which have a mean MRR of 0.750 over 40 questions."
    )
    assert told(rows[0]) == "Nothing was measured that can be compared with the app's settings."


def test_of_settings_that_are_as_good_the_smaller_index_is_taken():
    rows = (
        row(BASE, hits(10)),
        row(OTHER, hits(30), index_bytes=2000),
        row(Configuration(retriever="weighted", k=4), hits(30), index_bytes=900),
    )
    assert conclude(rows, verdicts(rows, HITS), HITS).place == 2
    assert cost_words(rows[0], rows[1]) == "The index takes 2.0 kB instead of 1.0 kB, for 10 chunks."


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 60), st.integers(1, 6), st.sampled_from([HITS, "mrr"]))
def test_the_sentence_never_contradicts_the_verdicts(seed, n, n_configurations, metric):
    random = np.random.default_rng(seed)
    rows = [
        row(Configuration(chunk_tokens=64 + 8 * i), random.random(n) < random.random())
        for i in range(n_configurations)
    ]
    judged = verdicts(rows, metric)
    found, words = conclude(rows, judged, metric), told(*rows, metric=metric)
    names = [one.word for one in judged]
    assert found.is_sure == ("better" in names) == ("more than chance explains" in words)
    assert ("could be chance" in words) == (not found.is_sure and found.place > 0)
    gains = [one.metrics[metric] - rows[0].metrics[metric] for one in rows]
    assert (found.place == 0) == (max(gains) <= 0)
    if found.place:
        assert names[found.place] in ("better", "not sure")
        assert gains[found.place] > 0
        assert p_words(judged[found.place].comparison.p_value) in words
    if found.is_sure:
        assert "better" in summary(judged)


@pytest.fixture(scope="module")
def measured(encoder):
    """A small experiment, really run."""
    filler = "Nobody in the village had much to say about it that year, and the weather was mild again. "
    text, questions = "", []
    for asked, passage in FACTS:
        text += filler * 3
        questions.append(Question(asked, "notes", (Reference(passage, len(text), len(text) + len(passage)),)))
        text += passage + " "
    documents = [Document("notes.md", text)]
    made = grid(chunk_tokens=[32, 64], retriever=["dense", "bm25", "weighted"], k=[1])
    configurations = made.configurations
    rows = tuple(sweep(SweepInputs(documents, questions, configurations, {encoder.name: encoder})))
    rows = tuple(sorted(rows, key=lambda one: configurations.index(one.configuration)))
    named = ("notes.md",), digest(documents)
    return Experiment("small", "2026-01-02T03:04:05", *named, tuple(questions), configurations, rows)


def drawn(one, metric=HITS, current=None):
    given = (one, current or one.configurations[0])
    return app_of(results_page, args=given, **{"experiment-measure": metric}).run()


def first_sentence(app):
    [box] = [*app.success, *app.info]
    return box.value.replace("\\", "")


@pytest.mark.parametrize("metric", [HITS, "mrr", "span_iou@k"])
def test_the_numbers_of_the_sentence_are_those_of_the_table(measured, metric):
    app = drawn(measured, metric)
    words, (effects, configurations) = first_sentence(app), tables(app)[:2]
    n, baseline = (
        len(measured.questions),
        configurations[configurations["Against the app's"] == "baseline"].iloc[0],
    )
    best = configurations.iloc[0]
    assert (best["Value"] > baseline["Value"]) == ("instead of" in words)
    assert f"of {n} questions" in words
    if metric == HITS:
        now, was = map(int, re.search(r"\((\d+) instead of (\d+)\)", words).groups())
        assert (now / n, was / n) == pytest.approx((best["Value"], baseline["Value"]))
        assert f"for {now - was} more of" in words
    else:
        assert f"{best['Value']:.3f} instead of {baseline['Value']:.3f}" in words
    assert f"p = {best['p']}" in words or f"p {best['p']}" in words
    assert ("could be chance" in words) == (best["Against the app's"] == "not sure")
    for axis in ("Chunk size", "Retriever"):
        if best[axis] != baseline[axis]:
            assert f"{axis} {best[axis]}".lower() in words.lower().replace("“", "").replace("”", "")
    for _, effect in effects.iterrows():
        own = configurations[configurations[effect["Setting"]] == effect["Value"]]
        assert len(own) == effect["Configurations"]
        assert own["Value"].mean() == pytest.approx(effect[effect.index[2]], abs=5e-4)
        low, high = map(float, effect["95 % interval"].split(" – "))
        assert low - 5e-4 <= effect[effect.index[2]] <= high + 5e-4


def test_what_is_recommended_is_applied_and_then_in_use(measured, encoder):
    best = measured.configurations[4]
    better = [row(one, hits(10 + 20 * (one == best))) for one in measured.configurations]
    one = replace(measured, rows=tuple(better), name="another")
    app = drawn(one)
    assert "more than chance explains" in first_sentence(app)
    assert "**Recommended:** Chunk size 64" in said(app)
    app = app.button(key="experiment-use").click().run()
    for axis, value in vars(measured.configurations[4]).items():
        assert axis in ("model", "max_tokens", "prompts") or app.session_state[axis] == value
    assert "The app now has" in said(app)
    in_use = drawn(one, current=measured.configurations[4])
    assert "which were in use" in first_sentence(in_use)
    assert not [button for button in in_use.button if button.key == "experiment-use"]


def test_a_selected_cell_takes_the_place_of_the_recommended_one(measured):
    app = drawn(measured)
    app = by_label(app.selectbox, "Configuration").set_value(3).run()
    assert [button.label for button in app.button].count("Apply") == 1
    assert "**Selected:** Chunk size 64 · Retriever dense" in said(app)
    third, first = measured.rows[3], measured.rows[0]
    assert escape_markdown(cost_words(first, third)) in said(app)
    assert "a search takes" in cost_words(first, third)
    assert f"{third.n_chunks} instead of {first.n_chunks}" in cost_words(first, third)
