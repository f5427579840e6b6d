import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import InputError
from engine.training.losses import cross_entropy, info_nce
from tests.pytorch import Library

seeds = st.integers(0, 2**32 - 1)


@given(batch=st.lists(st.integers(1, 4), max_size=2), n_classes=st.integers(1, 6), seed=seeds)
def test_cross_entropy_and_its_gradient_equal_torch(torch, batch, n_classes, seed):
    rng = np.random.default_rng(seed)
    logits = 3 * rng.normal(size=(*batch, n_classes))
    targets = rng.integers(0, n_classes, size=batch)
    official = torch.tensor(logits, requires_grad=True)
    flat = official.reshape(-1, n_classes), torch.tensor(targets.reshape(-1))
    expected = torch.nn.functional.cross_entropy(*flat)
    expected.backward()
    loss, d_logits = cross_entropy(logits, targets)
    assert loss == pytest.approx(expected.item(), rel=1e-9, abs=1e-12)
    np.testing.assert_allclose(d_logits, official.grad, rtol=1e-6, atol=1e-12)


def test_cross_entropy_neither_overflows_nor_fears_a_class_that_is_out():
    logits = np.float32([[1e4, 0, -np.inf], [0, 0, -np.inf]])
    loss, d_logits = cross_entropy(logits, np.array([0, 1]))
    assert loss == pytest.approx(np.log(2) / 2)
    assert d_logits.dtype == np.float32
    np.testing.assert_allclose(d_logits, [[0, 0, 0], [0.25, -0.25, 0]])


def test_targets_that_are_no_classes_are_named():
    for target in (-1, 3):
        with pytest.raises(InputError, match=f"target {target} is none of 3 classes: use 0 to 2"):
            cross_entropy(np.zeros((2, 3)), np.array([0, target]))


@given(
    n=st.integers(1, 5), n_hard=st.integers(0, 4), d=st.integers(1, 6), scale=st.floats(0.5, 30), seed=seeds
)
def test_info_nce_of_one_or_several_relevant_keys_and_its_gradients_equal_torch(
    torch, n, n_hard, d, scale, seed
):
    rng = np.random.default_rng(seed)
    queries, keys = rng.normal(size=(n, d)), rng.normal(size=(n + n_hard, d))
    relevant = np.eye(n, n + n_hard, dtype=bool) | (rng.random((n, n + n_hard)) < rng.choice([0, 0.4]))
    tensors = [torch.tensor(x, requires_grad=True) for x in (queries, keys)]
    unit = [torch.nn.functional.normalize(tensor, dim=-1) for tensor in tensors]
    log_p = torch.log_softmax(scale * unit[0] @ unit[1].T, dim=1)
    rows = zip(log_p, relevant, strict=True)
    expected = -torch.stack([row[torch.tensor(right)].mean() for row, right in rows]).mean()
    expected.backward()
    loss, *gradients = info_nce(queries, keys, relevant, scale)
    assert loss == pytest.approx(expected.item(), rel=1e-9, abs=1e-12)
    for gradient, tensor in zip(gradients, tensors, strict=True):
        np.testing.assert_allclose(gradient, tensor.grad, rtol=1e-6, atol=1e-9)


def test_info_nce_equals_sentence_transformers(torch, official):
    columns = np.random.default_rng(0).normal(size=(4, 6, 8)).astype(np.float32)  # two hard negatives each
    tensors = [torch.tensor(column, requires_grad=True) for column in columns]
    expected = (
        Library("sentence_transformers.sentence_transformer.losses")
        .MultipleNegativesRankingLoss(official)
        .compute_loss_from_embeddings(tensors, None)
    )
    expected.backward()
    keys = np.concatenate(columns[1:])
    loss, d_queries, d_keys = info_nce(columns[0], keys, np.eye(6, len(keys), dtype=bool))
    assert loss == pytest.approx(expected.item(), rel=1e-5)
    assert d_queries.dtype == d_keys.dtype == np.float32
    np.testing.assert_allclose(d_queries, tensors[0].grad, atol=1e-5)
    np.testing.assert_allclose(d_keys, np.concatenate([t.grad for t in tensors[1:]]), atol=1e-5)


def test_a_question_without_an_answer_is_refused():
    with pytest.raises(InputError, match="no relevant chunk"):
        info_nce(np.ones((1, 3)), np.ones((3, 3)), np.zeros((1, 3), bool))
