import numpy as np
import pytest

from engine.errors import InputError
from engine.layers.norm import l2_normalize
from engine.training.losses import softmax_loss
from engine.training.search import adapter as module
from engine.training.search.adapter import Adapter, fit_adapter, train_adapter

D = 12


@pytest.fixture(scope="module")
def turned():
    """Questions that are their chunks, all turned by the same matrix."""
    rng = np.random.default_rng(0)
    chunks = l2_normalize(rng.normal(size=(120, D))).astype(np.float32)
    turn = np.eye(D) + 0.45 * rng.normal(size=(D, D))
    asked = l2_normalize(chunks[:60] @ turn.T).astype(np.float32)
    return asked, chunks, np.eye(60, 120, dtype=bool)


def test_a_question_without_an_answer_is_told():
    with pytest.raises(InputError, match="no relevant chunk"):
        softmax_loss(np.ones((1, 3)), np.zeros((1, 3), bool))


def test_what_all_questions_have_in_common_is_learnt(turned):
    asked, chunks, relevant = turned
    fitted = fit_adapter(asked[:48], chunks, relevant[:48])
    found = (fitted.adapter(asked[48:]) @ chunks.T).argmax(axis=1)
    before = (asked[48:] @ chunks.T).argmax(axis=1)
    right = np.arange(48, 60)
    assert (found == right).mean() > (before == right).mean() + 0.1
    assert fitted.n_epochs > 0
    assert fitted.losses[-1][1] < fitted.losses[0][1]
    assert [epoch for epoch, _ in fitted.validation_losses][:3] == [0, 5, 10]


def test_the_gradient_of_the_weight_is_that_of_differences(turned):
    """The first step of Adam goes against the sign of the gradient, by the learning rate."""
    asked, chunks, relevant = (x[:20] for x in turned)
    relevant = relevant[:, :20]
    first, second = (
        moment.adapter.weight.copy() for moment in train_adapter(asked, chunks, relevant, 0.0, 1)
    )

    def loss(weight):
        return softmax_loss(20 * l2_normalize(asked.astype(float) @ weight.T) @ chunks.T, relevant)[0]

    for place in ((0, 0), (3, 7), (11, 2)):
        nudge = np.zeros((D, D))
        nudge[place] = 1e-4
        slope = (loss(first + nudge) - loss(first - nudge)) / 2e-4
        assert (second - first)[place] == pytest.approx(-np.sign(slope) * module.LEARNING_RATE, rel=1e-3)


def test_bad_input_is_told(turned):
    with pytest.raises(InputError, match="0 epochs"):
        fit_adapter(*turned, n_epochs=0)
    with pytest.raises(InputError, match="takes vectors of 12 numbers, not 5"):
        Adapter(np.eye(D), np.zeros(D))(np.ones((1, 5)))
