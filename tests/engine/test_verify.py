from dataclasses import replace

import numpy as np
import pytest

from engine import Encoder
from engine.verify import DEFAULT_TEXTS, verify_encoder


@pytest.fixture(scope="module")
def checks(encoder):
    return {check.stage: check for check in verify_encoder(encoder)}


def test_every_stage_of_every_layer_is_compared(checks, encoder):
    stages = [
        "attention." + name for name in ("query", "key", "value", "scores", "weights", "context", "output")
    ]
    stages += ["attention.norm", "ffn.hidden", "ffn.activation", "ffn.output", "output"]
    expected = {f"layers.{i}.{stage}" for i in range(encoder.config.n_layers) for stage in stages}
    vectors = {"pooled.mean", "pooled.pooler", "pooled.pooler.cosine", "normalized"}
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


def test_a_stage_that_is_wrong_fails_and_those_after_it_do_not(encoder):
    layers = list(encoder.weights.layers)
    dense = layers[2].ffn_hidden
    layers[2] = replace(layers[2], ffn_hidden=dense._replace(bias=dense.bias + np.float32(1e-3)))
    broken = replace(encoder, weights=replace(encoder.weights, layers=tuple(layers)))
    failed = [check.stage for check in verify_encoder(broken, DEFAULT_TEXTS[:1]) if not check.passed]
    assert failed[0] == "layers.2.ffn.hidden"
    assert not any(stage.startswith(("layers.1.", "layers.3.")) for stage in failed)
    assert "normalized" in failed
