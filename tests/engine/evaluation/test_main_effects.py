from dataclasses import astuple

import numpy as np
import pytest

from engine.errors import InputError
from engine.evaluation.bootstrap import mean_interval
from engine.evaluation.main_effects import main_effects


def gains(effects):
    return [effect.difference.estimate if effect.difference else 0 for effect in effects]


def test_an_effect_is_the_mean_of_all_configurations_with_a_value_and_its_difference_is_paired():
    values = np.random.default_rng(0).random((6, 50))
    small, large = main_effects(values, [64, 128, 64, 128, 64, 128], 64)
    assert (small.value, large.value, small.n_configurations, large.n_configurations) == (64, 128, 3, 3)
    of_small, of_large = values[::2].mean(axis=0), values[1::2].mean(axis=0)
    assert astuple(small.mean) == pytest.approx(astuple(mean_interval(of_small)))
    assert astuple(large.difference) == pytest.approx(astuple(mean_interval(of_large - of_small)))
    assert small.difference is None


def test_a_balanced_grid_recovers_the_effect_that_was_added():
    random = np.random.default_rng(1)
    cells = [(size, pooling) for size in (0, 1, 2) for pooling in ("mean", "cls")]
    questions = random.random(200)
    values = np.array([questions + 0.1 * size - 0.3 * (pooling == "cls") for size, pooling in cells])
    effects = main_effects(values, [pooling for _, pooling in cells], "mean")
    assert gains(effects) == pytest.approx([0, -0.3])
    sizes = main_effects(values, [size for size, _ in cells], 1)
    assert gains(sizes) == pytest.approx([-0.1, 0, 0.1])


def test_a_reference_without_a_configuration_is_refused():
    with pytest.raises(
        InputError, match=r"no configuration has the value 5 to compare with: choose of \[1, 2\]"
    ):
        main_effects(np.zeros((2, 3)), [1, 2], 5)
