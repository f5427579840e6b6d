import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import get_cosine_schedule_with_warmup, get_linear_schedule_with_warmup

from engine.errors import InputError
from engine.training.optimizers import adam, adamw, clip_gradients, no_moments
from engine.training.schedules import warmup_cosine, warmup_linear

SHAPES = {"layers.0.weight": (4, 3), "layers.0.bias": (4,), "table": (5, 2), "scale": ()}


def tree(rng, dtype=np.float64):
    return {name: np.asarray(rng.normal(size=shape), dtype) for name, shape in SHAPES.items()}


def as_torch(params):
    return {name: torch.nn.Parameter(torch.tensor(array)) for name, array in params.items()}


def adam_pair(step, official, **settings):
    def ours(params):
        moments = no_moments(params)
        return lambda grads, rate: step(params, grads, moments, rate, **settings)

    return ours, lambda tensors: official(tensors, lr=1.0, **settings)


OPTIMIZERS = {
    "adam": adam_pair(adam, torch.optim.Adam),
    "adam of Vaswani et al.": adam_pair(adam, torch.optim.Adam, betas=(0.9, 0.98), eps=1e-9),
    "adamw": adam_pair(adamw, torch.optim.AdamW),
    "adamw with much decay": adam_pair(adamw, torch.optim.AdamW, betas=(0.8, 0.95), weight_decay=0.5),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-9), (np.float32, 2e-5)])
def test_a_hundred_clipped_and_scheduled_steps_equal_torch(name, dtype, tolerance):
    """Each gradient depends on the parameters reached, so one step's error would grow in the next."""
    rng = np.random.default_rng(0)
    params, goal = tree(rng, dtype), tree(rng, dtype)
    arrays, tensors = dict(params), as_torch(params)
    ours, official = (make(x) for make, x in zip(OPTIMIZERS[name], (params, tensors.values()), strict=True))
    schedule = get_cosine_schedule_with_warmup(official, 10, 100)
    for step in range(100):
        noise = tree(rng, dtype)
        grads = {key: params[key] - goal[key] + noise[key] for key in params}
        for key, tensor in tensors.items():
            tensor.grad = tensor.detach() - torch.tensor(goal[key]) + torch.tensor(noise[key])
        norm = torch.nn.utils.clip_grad_norm_(tensors.values(), 3.0)
        assert clip_gradients(grads, 3.0) == pytest.approx(float(norm), rel=tolerance)
        for group in official.param_groups:
            group["lr"] = 0.1 * schedule.get_last_lr()[0]
        ours(grads, 0.1 * warmup_cosine(step, 10, 100))
        official.step()
        schedule.step()
        for key in params:
            np.testing.assert_allclose(
                params[key], tensors[key].detach(), rtol=tolerance, atol=tolerance, err_msg=f"{key} {step}"
            )
    assert all(params[key] is arrays[key] and params[key].dtype == dtype for key in params)  # in place


@pytest.mark.parametrize("step", [adam, adamw])
def test_gradients_are_left_as_they_were_given(step):
    rng = np.random.default_rng(0)
    params, grads = tree(rng), tree(rng)
    before = {name: grad.copy() for name, grad in grads.items()}
    step(params, grads, no_moments(params), 0.1)
    for name, grad in grads.items():
        np.testing.assert_array_equal(grad, before[name])


def test_a_transposed_parameter_is_stepped_in_place_too():
    rng = np.random.default_rng(0)
    weight = rng.normal(size=(3, 4))
    params, grads = {"weight": weight.T}, {"weight": rng.normal(size=(4, 3))}
    expected = {"weight": params["weight"].copy()}
    adam(params, grads, no_moments(params), 0.1)
    adam(expected, grads, no_moments(expected), 0.1)
    np.testing.assert_array_equal(weight.T, expected["weight"])


def test_parameters_left_out_stay_as_they_are():
    rng = np.random.default_rng(0)
    params, grads = tree(rng), tree(rng)
    moments, table = no_moments(params), params["table"].copy()
    adamw({"scale": params["scale"]}, {"scale": grads["scale"]}, moments, 0.1)
    np.testing.assert_array_equal(params["table"], table)
    assert not moments.mean["table"].any()
    assert moments.mean["scale"] != 0


@pytest.mark.parametrize(
    ("grads", "message"),
    [
        ({}, r"'a' is \(2, 3\) and its gradient missing"),
        ({"a": np.ones(3)}, r"'a' is \(2, 3\) and its gradient \(3,\)"),
        ({"a": np.ones((2, 3)), "b": np.ones(1)}, r"'b' is no parameter and its gradient \(1,\)"),
    ],
)
def test_a_gradient_that_fits_no_parameter_is_named(grads, message):
    params = {"a": np.ones((2, 3))}
    moments = no_moments(params)
    for step in (adam, adamw):
        with pytest.raises(InputError, match=message):
            step(params, grads, moments, 0.1)
    assert (params["a"] == 1).all()
    assert moments.n_updates == 0


def test_short_gradients_are_not_clipped():
    grads = {"a": np.array([3.0, 0.0]), "b": np.array([[4.0]])}
    assert clip_gradients(grads, 6.0) == 5
    np.testing.assert_array_equal(grads["a"], [3, 0])


@given(seed=st.integers(0, 1000), scale=st.floats(1e-6, 1e6), max_norm=st.floats(1e-3, 1e3))
def test_clipping_keeps_the_direction_and_bounds_the_length(seed, scale, max_norm):
    grads = {name: scale * grad for name, grad in tree(np.random.default_rng(seed)).items()}
    before = np.concatenate([grad.ravel() for grad in grads.values()])
    norm = clip_gradients(grads, max_norm)
    after = np.concatenate([grad.ravel() for grad in grads.values()])
    assert norm == pytest.approx(np.linalg.norm(before))
    assert np.linalg.norm(after) <= max_norm * (1 + 1e-12)
    np.testing.assert_allclose(after * norm, before * np.linalg.norm(after), rtol=1e-6)


def test_a_gradient_that_is_not_finite_is_reported():
    assert np.isnan(clip_gradients({"a": np.array([1.0, np.nan])}, 1.0))
    assert np.isinf(clip_gradients({"a": np.array([1.0, np.inf])}, 1.0))


@pytest.mark.parametrize(
    ("ours", "official"),
    [
        (warmup_linear, get_linear_schedule_with_warmup),
        (warmup_cosine, get_cosine_schedule_with_warmup),
    ],
)
@given(n_warmup=st.integers(0, 30), n_steps=st.integers(0, 60))
def test_schedules_equal_transformers(ours, official, n_warmup, n_steps):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    schedule = official(optimizer, n_warmup, n_steps)
    for step in range(max(n_warmup, n_steps) + 1):
        assert ours(step, n_warmup, n_steps) == pytest.approx(schedule.get_last_lr()[0], abs=1e-12)
        optimizer.step()
        schedule.step()


def test_cosine_without_warm_up_equals_torch():
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=40)
    for step in range(41):
        assert warmup_cosine(step, 0, 40) == pytest.approx(schedule.get_last_lr()[0], abs=1e-12)
        optimizer.step()
        schedule.step()


@pytest.mark.parametrize("schedule", [warmup_linear, warmup_cosine])
def test_after_the_last_step_the_rate_stays_zero(schedule):
    assert [schedule(step, 3, 10) for step in (10, 11, 25)] == [0, 0, 0]
