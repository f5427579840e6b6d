from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from engine import Encoder
from engine.kernels import primitives
from engine.kernels.primitives import NUMPY
from engine.layers.activation import Activation, gelu_backward
from engine.verify import DEFAULT_TEXTS, official_trace, verify_encoder


@pytest.fixture(scope="module")
def checks(encoder, official):
    return {check.stage: check for check in verify_encoder(encoder, official=official)}


def failing_stages(encoder, official):
    checks = verify_encoder(encoder, DEFAULT_TEXTS[:1], official)
    return [check.stage for check in checks if not check.passed]


def test_every_stage_of_every_layer_is_compared(checks, encoder):
    stages = [
        "attention." + name for name in ("query", "key", "value", "scores", "weights", "context", "output")
    ]
    stages += ["attention.norm", "ffn.hidden", "ffn.activation", "ffn.output", "output"]
    expected = {f"layers.{i}.{stage}" for i in range(encoder.config.n_layers) for stage in stages}
    vectors = {"pooled.mean", "pooled.pooler", "pooled.pooler.cosine", "normalized", "encode", "ids"}
    assert set(checks) == expected | vectors | {"embeddings.output"}


def test_the_encoder_equals_the_official_model_at_every_stage(checks):
    assert [check for check in checks.values() if not check.passed] == []


def test_layer_norms_are_held_to_a_tighter_tolerance_than_the_rest(checks):
    assert checks["layers.3.attention.norm"].tolerance == 1.9e-6
    assert checks["layers.3.output"].tolerance == 1.9e-6
    assert checks["layers.3.ffn.output"].tolerance == 1e-5
    assert checks["normalized"].tolerance == 1e-6


def test_the_pooler_points_the_same_way_as_the_official_one(checks):
    assert checks["pooled.pooler.cosine"].end_to_end <= 1e-6


def test_final_vectors_are_compared_from_the_text_on(checks):
    assert checks["normalized"].decisive == checks["normalized"].end_to_end <= 1e-6


def test_in_float64_all_stages_agree_from_the_text_on():
    checks = verify_encoder(Encoder.load(dtype=np.float64), DEFAULT_TEXTS[:2])
    assert max(check.end_to_end for check in checks if check.stage != "pooled.pooler.cosine") <= 1e-8


def test_a_stage_that_is_wrong_fails_and_those_after_it_do_not(encoder, official):
    layers = list(encoder.weights.layers)
    dense = layers[2].ffn_hidden
    layers[2] = replace(layers[2], ffn_hidden=dense._replace(bias=dense.bias + np.float32(1e-3)))
    broken = replace(encoder, weights=replace(encoder.weights, layers=tuple(layers)))
    failed = failing_stages(broken, official)
    assert failed[0] == "layers.2.ffn.hidden"
    assert not any(stage.startswith(("layers.1.", "layers.3.")) for stage in failed)
    assert {"normalized", "encode"} <= set(failed)


def test_compiled_kernels_that_are_wrong_are_found(encoder, official, monkeypatch):
    wrong = {"gelu": Activation(lambda x: x, gelu_backward)}
    monkeypatch.setattr(primitives, "_best", replace(NUMPY, activations=wrong))
    assert failing_stages(encoder, official) == ["encode"]


def test_a_model_that_is_loaded_can_be_compared_with_again(encoder, official, checks):
    again = {check.stage: check for check in verify_encoder(encoder, DEFAULT_TEXTS[:1], official)}
    assert set(again) == set(checks)
    assert all(check.passed for check in again.values())


def test_threads_that_compare_at_once_do_not_mix_their_stages(official):
    texts = ["one", "two words", "three words here", "now there are four"]
    alone = [official_trace(official, text, 12) for text in texts]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda text: official_trace(official, text, 12), texts * 3))
    for number, stages in enumerate(together):
        for stage, array in alone[number % 4].items():
            np.testing.assert_allclose(stages[stage], array, atol=1e-4)


def test_a_pair_and_a_longer_limit_are_read_by_both(encoder, official):
    for arguments in ({"pair": "A feline rests."}, {"max_tokens": 512}):
        text = "The cat sat. " * (1 if "pair" in arguments else 200)
        theirs = official_trace(official, text, 12, **arguments)
        ours = encoder.trace(text, **arguments)
        for stage, array in theirs.items():
            np.testing.assert_allclose(ours[stage], array, atol=2e-4)
