import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import InputError
from engine.training.losses import cross_entropy, info_nce

seeds = st.integers(0, 2**32 - 1)


def slope(loss, x, direction):
    """Of a loss at ``x`` in a direction, by central differences."""
    return (loss(x + 1e-5 * direction) - loss(x - 1e-5 * direction)) / 2e-5


@given(
    batch=st.lists(st.integers(1, 4), max_size=2),
    n_classes=st.integers(1, 6),
    seed=seeds,
)
def test_cross_entropy_and_its_gradient_equal_torch(torch, batch, n_classes, seed):
    rng = np.random.default_rng(seed)
    logits = 3 * rng.normal(size=(*batch, n_classes))
    targets = rng.integers(0, n_classes, size=batch)
    official = torch.tensor(logits, requires_grad=True)
    expected = torch.nn.functional.cross_entropy(
        official.reshape(-1, n_classes),
        torch.tensor(targets.reshape(-1)),
    )
    expected.backward()
    loss, d_logits = cross_entropy(logits, targets)
    assert loss == pytest.approx(expected.item(), rel=1e-9, abs=1e-12)
    np.testing.assert_allclose(d_logits, official.grad, rtol=1e-6, atol=1e-12)
    direction = rng.normal(size=logits.shape)
    measured = slope(lambda x: cross_entropy(x, targets)[0], logits, direction)
    assert float((d_logits * direction).sum()) == pytest.approx(measured, rel=1e-6, abs=1e-8)


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
def test_info_nce_and_its_gradients_equal_torch(torch, n, n_hard, d, scale, seed):
    rng = np.random.default_rng(seed)
    queries, keys = rng.normal(size=(n, d)), rng.normal(size=(n + n_hard, d))
    tensors = [torch.tensor(x, requires_grad=True) for x in (queries, keys)]
    functional = torch.nn.functional
    unit = [functional.normalize(tensor, dim=-1) for tensor in tensors]
    expected = functional.cross_entropy(scale * unit[0] @ unit[1].T, torch.arange(n))
    expected.backward()
    own = np.eye(n, n + n_hard, dtype=bool)
    loss, *gradients = info_nce(queries, keys, own, scale)
    assert loss == pytest.approx(expected.item(), rel=1e-9, abs=1e-12)
    for gradient, tensor in zip(gradients, tensors, strict=True):
        np.testing.assert_allclose(gradient, tensor.grad, rtol=1e-6, atol=1e-9)
    for i, x in enumerate((queries, keys)):
        direction = rng.normal(size=x.shape)

        def at(moved, i=i):
            return info_nce(*((moved, keys) if i == 0 else (queries, moved)), own, scale)[0]

        near = np.linalg.norm(x, axis=-1).min()  # where a vector is short, the cosine bends sharply
        expected_slope = float((gradients[i] * direction).sum())
        if near > 0.1:
            assert slope(at, x, direction) == pytest.approx(expected_slope, rel=1e-4, abs=1e-4)


def test_info_nce_equals_sentence_transformers(torch, official):
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

    columns = np.random.default_rng(0).normal(size=(4, 6, 8)).astype(np.float32)  # two hard negatives each
    tensors = [torch.tensor(column, requires_grad=True) for column in columns]
    expected = MultipleNegativesRankingLoss(official).compute_loss_from_embeddings(tensors, None)
    expected.backward()
    keys = np.concatenate(columns[1:])
    loss, d_queries, d_keys = info_nce(columns[0], keys, np.eye(6, len(keys), dtype=bool))
    assert loss == pytest.approx(expected.item(), rel=1e-5)
    assert d_queries.dtype == d_keys.dtype == np.float32
    np.testing.assert_allclose(d_queries, tensors[0].grad, atol=1e-5)
    np.testing.assert_allclose(d_keys, np.concatenate([t.grad for t in tensors[1:]]), atol=1e-5)


@given(seed=seeds, factor=st.floats(0.1, 10))
def test_the_length_of_a_vector_has_no_part_in_the_contrast(seed, factor):
    queries, keys = np.random.default_rng(seed).normal(size=(2, 4, 5))
    own = np.eye(4, dtype=bool)
    loss, d_queries, d_keys = info_nce(queries, keys, own)
    longer, d_longer, _ = info_nce(factor * queries, keys, own)
    assert longer == pytest.approx(loss, rel=1e-9, abs=1e-12)
    np.testing.assert_allclose(d_longer * factor, d_queries, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose((d_queries * queries).sum(-1), 0, atol=1e-9)
    np.testing.assert_allclose((d_keys * keys).sum(-1), 0, atol=1e-9)
