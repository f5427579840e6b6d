import shutil
import sys
from dataclasses import replace

import numpy as np
import pytest

from engine import Decoder, Encoder, verify
from engine.errors import InputError, MemoryLimitError, ModelUnavailableError
from engine.kernels import primitives
from engine.layers.activation import Activation, gelu_backward
from engine.layers.primitives import NUMPY
from engine.official_program import official_trace
from engine.verify import DEFAULT_TEXTS, official_model, verify_model
from engine.weights.fetch import model_path
from tests.decoder_folders import make_model


@pytest.fixture(scope="module")
def stages(official):
    """A function giving the official stages, computed in this process."""

    def trace(text, pair=None, max_tokens=None):
        return official_trace(official, text, 12, pair, max_tokens)

    return trace


@pytest.fixture(scope="module")
def checks(encoder, stages):
    return {check.stage: check for check in verify_model(encoder, official=stages)}


def failing_stages(encoder, stages):
    checks = verify_model(encoder, DEFAULT_TEXTS[:1], stages)
    return [check.stage for check in checks if not check.passed]


def test_every_stage_of_every_layer_is_compared_and_equal(checks, encoder):
    parts = ("query", "key", "value", "scores", "weights", "context", "output")
    stages = [f"attention.{name}" for name in parts]
    stages += ["attention.norm", "ffn.hidden", "ffn.activation", "ffn.output", "output"]
    expected = {f"layers.{i}.{stage}" for i in range(encoder.config.n_layers) for stage in stages}
    vectors = {"pooled.mean", "pooled.pooler", "normalized", "encode", "ids"}
    assert set(checks) == expected | vectors | {"embeddings.output"}
    assert [check for check in checks.values() if not check.passed] == []


def test_a_stage_that_is_wrong_fails_and_those_after_it_do_not(encoder, stages):
    layers = list(encoder.weights.layers)
    dense = layers[2].ffn_hidden
    layers[2] = replace(layers[2], ffn_hidden=dense._replace(bias=dense.bias + np.float32(1e-3)))
    broken = replace(encoder, weights=replace(encoder.weights, layers=tuple(layers)))
    failed = failing_stages(broken, stages)
    assert failed[0] == "layers.2.ffn.hidden"
    assert not any(stage.startswith(("layers.1.", "layers.3.")) for stage in failed)
    assert {"normalized", "encode"} <= set(failed)


def test_a_stage_that_is_not_a_number_fails(encoder, stages):
    def broken(*arguments):
        found = stages(*arguments)
        return {**found, "layers.2.ffn.output": np.full_like(found["layers.2.ffn.output"], np.nan)}

    checks = {check.stage: check for check in verify_model(encoder, DEFAULT_TEXTS[:1], broken)}
    assert checks["layers.2.ffn.output"].decisive == np.inf
    assert not checks["layers.2.ffn.output"].passed


def test_compiled_kernels_that_are_wrong_are_found(encoder, stages, monkeypatch):
    wrong = {"gelu": Activation(lambda x: x, gelu_backward)}
    monkeypatch.setattr(primitives, "_best", replace(NUMPY, activations=wrong))
    assert failing_stages(encoder, stages) == ["encode"]


@pytest.mark.usefixtures("library_in_this_process")
def test_the_program_computes_the_same_stages_for_one_text_after_the_other(encoder, stages):
    with official_model(encoder) as official:
        for arguments in (("one",), ("two words", "and a pair"), ("three " * 300, None, 300)):
            found, expected = official(*arguments), stages(*arguments)
            assert found.keys() == expected.keys()
            for stage, array in expected.items():
                np.testing.assert_allclose(found[stage], array, atol=1e-4)


@pytest.mark.usefixtures("library_in_this_process")
def test_a_decoder_equals_the_official_model_which_the_program_runs(tmp_path):
    decoder = Decoder.load(make_model(tmp_path, "gpt2"))
    checks = {check.stage: check for check in verify_model(decoder)}
    assert [check for check in checks.values() if not check.passed] == []
    assert 0 < checks["decode"].decisive < 2e-2
    in_parts = tmp_path / "model-00001-of-00002.gguf"
    in_parts.touch()
    with pytest.raises(InputError, match="merge them by gguf-split"):
        verify_model(replace(decoder, name=str(in_parts)))


@pytest.mark.usefixtures("library_in_this_process")
def test_in_float64_stages_agree_with_pytorch():
    checks = verify_model(Encoder.load(dtype=np.float64), DEFAULT_TEXTS[:1])
    assert len(checks) == 78
    assert all(check.end_to_end <= 1e-8 for check in checks)


def test_a_missing_library_is_told(encoder, monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(ModelUnavailableError, match=r"not installed: pip install -r requirements\.txt"):
        verify_model(encoder, ["one"])


def test_too_little_memory_is_told_before_anything_is_started(encoder, monkeypatch):
    monkeypatch.setattr("engine.weights.memory.available_memory", lambda: 500_000_000)
    with pytest.raises(MemoryLimitError, match="the official model, run by PyTorch, needs"):
        verify_model(encoder, ["one"])


@pytest.mark.usefixtures("library_in_this_process")
def test_what_the_library_cannot_read_is_told_in_one_line(encoder, tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(model_path(encoder.name), folder)
    (folder / "model.safetensors").write_bytes(b"no weights")
    with pytest.raises(ModelUnavailableError) as error:
        verify_model(replace(encoder, name=str(folder)), ["one"])
    assert str(error.value).startswith("the official model: ")
    assert "\n" not in str(error.value)


def test_a_comparison_beyond_its_time_is_told_and_leaves_no_process(encoder, monkeypatch):
    monkeypatch.setattr(verify, "SECONDS", 1)  # less than the library takes to load
    monkeypatch.setattr("engine.limited_process.WALL_S", 0)
    with pytest.raises(ModelUnavailableError, match=r"the official model takes over 1 s or \d+ MB"):
        verify_model(encoder, ["one"])
