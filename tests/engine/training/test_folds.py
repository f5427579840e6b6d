import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import InputError
from engine.evaluation.significance import Comparison
from engine.layers.norm import l2_normalize
from engine.training.search.cross_validation import FoldResult, cross_validate, should_keep
from engine.training.search.folds import LabelledTexts, folds_by_document, folds_by_question, hold_out


def labelled(answers, n_chunks_per_document=2):
    """Questions by the number of the document whose first chunk answers each."""
    n_documents = max(answers) + 1
    names = tuple(f"d{i}" for i in range(n_documents) for _ in range(n_chunks_per_document))
    relevant = np.zeros((len(answers), len(names)), bool)
    relevant[np.arange(len(answers)), np.array(answers) * n_chunks_per_document] = True
    return LabelledTexts(tuple(f"q{i}" for i in range(len(answers))), names, names, relevant)


ANSWERS = st.lists(st.integers(0, 5), min_size=4, max_size=30).filter(lambda found: len(set(found)) > 1)


@given(ANSWERS, st.integers(2, 4), st.integers(0, 9))
def test_every_question_is_tested_once_and_never_trained_on(answers, n_folds, seed):
    data = labelled(answers)
    for split in (folds_by_question, folds_by_document):
        folds = split(data, n_folds, seed)
        assert sorted(np.concatenate([fold.test for fold in folds])) == list(range(len(answers)))
        assert not any(set(fold.train) & set(fold.test) for fold in folds)
    for fold in folds:  # by document, training sees nothing of the documents that are tested
        tested = {data.documents[chunk] for chunk in np.flatnonzero(data.relevant[fold.test].any(axis=0))}
        assert not tested & {data.documents[chunk] for chunk in fold.seen}
        assert data.relevant[np.ix_(fold.train, fold.seen)].any(axis=1).all()


def test_what_cannot_be_dealt_is_told():
    with pytest.raises(InputError, match="1 documents with questions"):
        folds_by_document(labelled([0, 0, 0]), 2)
    with pytest.raises(InputError, match="4 folds of 3 questions"):
        folds_by_question(labelled([0, 1, 2]), 4)
    with pytest.raises(InputError, match="1 folds"):
        folds_by_question(labelled([0, 1, 2]), 1)
    with pytest.raises(InputError, match="bring more"):
        hold_out(np.arange(1), 3, 0)
    one_for_all = np.array([[True, False], [True, True], [True, False]])
    with pytest.raises(InputError, match="answer all the others too"):
        folds_by_document(LabelledTexts(("a", "b", "c"), ("x", "y"), ("d", "e"), one_for_all), 2)
    with pytest.raises(InputError, match="2 questions and 1 chunks"):
        LabelledTexts(("a", "b"), ("x",), ("d",), np.ones((1, 1), bool))
    with pytest.raises(InputError, match="1 questions have no relevant chunk"):
        LabelledTexts(("a", "b"), ("x",), ("d",), np.array([[True], [False]]))


def test_each_question_is_scored_by_the_model_of_its_own_fold():
    data, rng = labelled([0, 1, 2, 0, 1, 2]), np.random.default_rng(0)
    asked, chunks = (l2_normalize(rng.normal(size=(6, 4))) for _ in range(2))
    tested = []

    def fit(fold, on_progress):
        tested.append(fold)
        on_progress(1, 2)
        return FoldResult(-asked[fold.test], chunks, ((1, 0.5),), ((0, 1.0),))

    seen = []
    folds = folds_by_question(data, 3)
    found = cross_validate(asked, chunks, folds, fit, lambda *progress: seen.append(progress))
    np.testing.assert_allclose(found.after, -found.before)
    assert tested == folds
    assert seen == [(50, 300), (100, 300), (150, 300), (200, 300), (250, 300), (300, 300)]


@pytest.mark.parametrize(
    ("by_question", "by_document", "kept"),
    [
        (Comparison(0.05, 0.01, 0.09, 0.01), None, True),
        (Comparison(0.05, 0.01, 0.09, 0.01), Comparison(-0.02, -0.05, 0.01, 0.2), True),
        (Comparison(0.05, 0.01, 0.09, 0.01), Comparison(-0.05, -0.09, -0.01, 0.01), False),
        (Comparison(0.05, -0.01, 0.11, 0.08), None, False),
        (Comparison(0.05, 0.01, 0.09, 0.06), None, False),
        (Comparison(-0.05, -0.09, -0.01, 0.01), None, False),
    ],
)
def test_the_guard_keeps_the_original_unless_the_gain_is_beyond_noise(by_question, by_document, kept):
    assert should_keep(by_question, by_document) == kept
