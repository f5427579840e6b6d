import csv
from collections import Counter
from pathlib import Path

import pytest

from engine.evaluation.sts import load_pairs

DATA = Path(__file__).parent.parent / "data"


@pytest.fixture(scope="module")
def rows():
    with (DATA / "questions.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_every_bundled_document_has_questions_and_a_licence(rows):
    licences = (DATA / "README.md").read_text(encoding="utf-8")
    for path in (DATA / "corpus").iterdir():
        assert path.stem in {row["corpus_id"] for row in rows}
        assert path.name in licences


def test_questions_are_distinct(rows):
    questions = [row["question"] for row in rows]
    assert len(set(questions)) == len(questions)


def test_scored_pairs_are_distinct_and_spread_over_the_scale():
    pairs = load_pairs(DATA / "sts_pairs.csv")
    assert len({frozenset((pair.first, pair.second)) for pair in pairs}) == len(pairs)
    assert all(pair.first != pair.second for pair in pairs)
    scores = Counter(pair.score for pair in pairs)
    assert set(scores) == {half / 2 for half in range(11)}
    assert min(scores.values()) >= 5
    readme = (DATA / "README.md").read_text(encoding="utf-8")
    assert f"`sts_pairs.csv` | {len(pairs)} pairs" in readme
