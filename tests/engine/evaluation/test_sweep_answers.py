"""Answers in a sweep are those that the app would give under each configuration."""

import json
from collections import Counter
from dataclasses import replace

import pytest

from engine.documents.document import Document
from engine.evaluation.answer_labels import as_answers, as_labels
from engine.evaluation.answers import AnswerQuestion, ShortAnswer, measure_answers
from engine.evaluation.bootstrap import share_interval
from engine.evaluation.sweep import SweepInputs, sweep
from engine.evaluation.sweep_answers import Answering, limit_of
from engine.evaluation.sweep_cost import sweep_seconds
from engine.evaluation.sweep_row import RIGHT
from engine.evaluation.sweep_store import read_row, row_fields, to_csv, to_json
from engine.generation.answering import ask
from engine.generation.settings import AnswerSettings, SearchSettings
from engine.models.reader import Reader
from engine.retrieval import evidence
from engine.retrieval.embedding_model import cut_documents
from engine.retrieval.index import build_index
from engine.retrieval.vector_cache import VectorCache
from engine.settings import Configuration

DOCUMENTS = [
    Document(
        "mill.md", "The mill of Arden was built in 1782 by Ruth Alder. Its wheel is driven by the river Senn."
    ),
    Document(
        "ferry.md", "The ferry leaves at noon. It was painted green in 1931. A ticket costs two pennies."
    ),
]
ASKED = [
    AnswerQuestion("Who built the mill of Arden?", ShortAnswer.parse("Ruth Alder"), "mill.md"),
    AnswerQuestion(
        "When was the ferry painted?", ShortAnswer.parse("1782"), "ferry.md", ((26, 57),)
    ),  # wrong
    AnswerQuestion("Which river drives the wheel?", ShortAnswer(()), "mill.md", ((51, 90),)),  # by its place
    AnswerQuestion("Who composed the opera?", ShortAnswer(()), "mill.md"),
]


@pytest.fixture(scope="module")
def reader():
    return Reader.load()


def test_every_configuration_is_answered_as_the_app_answers(encoder, reader, monkeypatch):
    cells = [Configuration(chunk_tokens=24, retriever=name, k=2) for name in ("dense", "bm25", "weighted")]
    cells.append(Configuration(chunk_tokens=24, retriever="weighted", k=1, context="title"))
    labels = as_labels(ASKED[:1], DOCUMENTS)
    answering = Answering(ASKED, DOCUMENTS, reader)
    inputs = SweepInputs(DOCUMENTS, labels, cells, {cells[0].model: encoder}, answering)
    logits, read, cache = Reader.logits, [], VectorCache()
    with monkeypatch.context() as patch:
        patch.setattr(Reader, "logits", lambda self, some: read.extend(some) or logits(self, some))
        rows = {row.configuration: row for row in sweep(inputs, cache)}
    assert max(Counter(tuple(window.ids) for window in read).values()) == 1  # in all cells
    for cell in cells:
        pieces = cut_documents(sorted(DOCUMENTS, key=lambda one: one.name), encoder, cell.splitting)
        index = build_index([each for own in pieces for each in own], encoder, "mean", documents=DOCUMENTS)
        settings = AnswerSettings(SearchSettings(cell.k, retriever=cell.retriever))
        expected = measure_answers(
            ASKED, lambda text, i=index, s=settings: ask(text, i, encoder, None, s, reader=reader)
        )
        row = rows[cell]
        assert [replace(one, until_quotes_s=0, seconds=0) for one in row.answers] == [
            replace(one, until_quotes_s=0, seconds=0) for one in expected
        ]
        n_right = sum(one.right for one in expected)
        interval = share_interval(n_right, 3)  # the last has no answer
        assert row.metrics[RIGHT] == interval.estimate
        assert row.intervals[RIGHT] == (interval.low, interval.high)
        assert len(row.values[RIGHT]) == 3
        again = read_row(json.loads(json.dumps(row_fields(row))))
        assert again == row
        [fields] = to_json([row])["rows"]
        assert fields[RIGHT] == row.metrics[RIGHT]
        assert fields["n_answers"] == 4
        assert f"{RIGHT} low" in to_csv([row])
    best = limit_of(rows[cells[0]].answers)
    assert (best.n, best.n_right) == (3, 2)
    assert best.by in best.words
    assert sweep_seconds(inputs) > 0
    monkeypatch.setattr(evidence, "unit_vectors", lambda ids, model: pytest.fail("read again") if ids else ())
    assert {row.configuration for row in sweep(inputs, cache)} == {*cells}  # their sentences are in the cache


def test_what_limits_is_where_more_are_lost():
    assert limit_of(()) is None
    labels = as_labels(ASKED, DOCUMENTS)
    assert {each.text for each in as_answers(labels)} == {ASKED[0].text}
