import numpy as np
import pytest

from engine import Encoder
from engine.inspection.model.rounding import (
    largest_in_layers,
    mean_cosine,
    relative_error,
    stage_errors,
)
from engine.layers.quantization import BLOCK
from tests.engine.models.test_encoder_families import save
from tests.pytorch import modules
from tests.sentence_transformer_folders import save_modules

TEXT = "The tide turns twice a day."


@pytest.fixture(scope="module")
def errors(encoder):
    return {each.stage: each for each in stage_errors(encoder, "int8", TEXT)}


def test_error_and_cosine_of_known_vectors():
    x, rounded = np.array([[3.0, 4.0], [0.0, 5.0]]), np.array([[3.0, 4.0], [5.0, 0.0]])
    assert relative_error(x, rounded) == pytest.approx(1.0)  # sqrt(50) / sqrt(50)
    assert mean_cosine(x, rounded) == pytest.approx(0.5)  # of 1 and 0
    assert relative_error(np.zeros(2), np.zeros(2)) == 0


def test_a_row_for_each_stage_in_the_order_of_the_pass(encoder, errors):
    layers = [
        f"layers.{i}.{part}"
        for i in range(encoder.config.n_layers)
        for part in ("attention.output", "ffn.output", "output")
    ]
    assert list(errors) == ["embeddings.output", *layers, "pooled.mean", "normalized"]


def test_embeddings_are_exact_and_every_stage_behind_them_is_near(encoder, errors):
    assert errors["embeddings.output"].relative == 0
    assert all(0 < each.relative < 0.1 for stage, each in errors.items() if stage != "embeddings.output")
    rounded = encoder.with_precision("int8").trace(TEXT)["normalized"]
    assert errors["normalized"].cosine == pytest.approx(rounded @ encoder.encode([TEXT])[0], abs=1e-5)
    largest = largest_in_layers(list(errors.values()))
    assert largest.relative == max(each.relative for name, each in errors.items() if "layers" in name)


def test_float32_beside_itself_has_no_error(encoder):
    same = stage_errors(encoder, "float32", TEXT, "A second text.", 16)
    assert {each.relative for each in same} == {0.0}
    assert min(each.cosine for each in same) == pytest.approx(1)


@pytest.mark.parametrize("name", ["modernbert", "qwen3"])
def test_other_families_and_heads_have_the_same_stages(torch, tmp_path, name):
    base, behind = tmp_path / "base", (modules.Pooling(BLOCK, ("cls", "mean")), modules.Normalize())
    save(base, name, hidden_size=BLOCK)
    encoder = Encoder.load(save_modules(tmp_path / name, base, *behind))
    errors = stage_errors(encoder, "int8", "a bad cafe")
    assert [errors[0].stage, errors[-2].stage] == ["embeddings.output", "pooled.own"]
    assert len(errors) == 3 + 3 * encoder.config.n_layers
    assert all(each.relative > 0 for each in errors[1:])
