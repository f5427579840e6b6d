import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import InputError
from engine.training.optimizers import adamw, clip_gradients, no_moments, warmup_cosine, warmup_linear
from tests.pytorch import transformers

SHAPES = {"layers.0.weight": (4, 3), "layers.0.bias": (4,), "table": (5, 2), "scale": ()}


def tree(rng, dtype=np.float64):
    return {name: np.asarray(rng.normal(size=shape), dtype) for name, shape in SHAPES.items()}


CASES = {
    "adam": ("Adam", {"betas": (0.9, 0.98), "eps": 1e-9, "weight_decay": 0.0}),
    "adamw": ("AdamW", {}),
    "adamw with much decay": ("AdamW", {"betas": (0.8, 0.95), "weight_decay": 0.5}),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-9), (np.float32, 2e-5)])
def test_a_hundred_clipped_and_scheduled_steps_equal_torch(torch, name, dtype, tolerance):
    """Each gradient depends on the parameters reached, so one step's error would grow in the next."""
    class_name, settings = CASES[name]
    rng = np.random.default_rng(0)
    params, goal = tree(rng, dtype), tree(rng, dtype)
    arrays, moments = dict(params), no_moments(params)
    tensors = {name: torch.nn.Parameter(torch.tensor(array)) for name, array in params.items()}
    official = getattr(torch.optim, class_name)(tensors.values(), lr=1.0, **settings)
    schedule = transformers.get_cosine_schedule_with_warmup(official, 10, 100)
    for step in range(100):
        noise = tree(rng, dtype)
        grads = {key: params[key] - goal[key] + noise[key] for key in params}
        for key, tensor in tensors.items():
            tensor.grad = tensor.detach() - torch.tensor(goal[key]) + torch.tensor(noise[key])
        norm = torch.nn.utils.clip_grad_norm_(tensors.values(), 3.0)
        assert clip_gradients(grads, 3.0) == pytest.approx(float(norm), rel=tolerance)
        for group in official.param_groups:
            group["lr"] = 0.1 * schedule.get_last_lr()[0]
        adamw(params, grads, moments, 0.1 * warmup_cosine(step, 10, 100), **settings)
        official.step()
        schedule.step()
        for key in params:
            np.testing.assert_allclose(
                params[key], tensors[key].detach(), rtol=tolerance, atol=tolerance, err_msg=f"{key} {step}"
            )
    assert all(params[key] is arrays[key] and params[key].dtype == dtype for key in params)  # in place


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
    with pytest.raises(InputError, match=message):
        adamw(params, grads, moments, 0.1)
    assert (params["a"] == 1).all()
    assert moments.n_updates == 0


@pytest.mark.parametrize("kind", ["linear", "cosine"])
@given(n_warmup=st.integers(0, 30), n_steps=st.integers(0, 60))
def test_schedules_equal_transformers_and_stay_at_zero(torch, kind, n_warmup, n_steps):
    ours = {"linear": warmup_linear, "cosine": warmup_cosine}[kind]
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    schedule = getattr(transformers, f"get_{kind}_schedule_with_warmup")(optimizer, n_warmup, n_steps)
    for step in range(max(n_warmup, n_steps) + 1):
        assert ours(step, n_warmup, n_steps) == pytest.approx(schedule.get_last_lr()[0], abs=1e-12)
        optimizer.step()
        schedule.step()
    assert ours(max(n_warmup, n_steps) + 15, n_warmup, n_steps) == 0
