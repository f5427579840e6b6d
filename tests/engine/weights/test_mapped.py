"""Mapped model files: the same numbers as when read, in memory only while they are used."""

import numpy as np
import pytest
from safetensors.numpy import save_file

from engine.layers.linear import linear
from engine.weights.fetch import model_path
from engine.weights.mapped import is_mapped, map_safetensors, release_pages
from engine.weights.tensors import TensorReader, read_safetensors

TENSORS = {
    "table": np.arange(12, dtype=np.float32).reshape(4, 3),
    "dense.weight": np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3),
    "dense.bias": np.array([0.5, -0.5], np.float32),
    "positions": np.arange(4, dtype=np.int64).reshape(1, 4),
}


@pytest.fixture
def file(tmp_path):
    save_file(TENSORS, tmp_path / "model.safetensors", {"format": "np"})
    return tmp_path / "model.safetensors"


def test_a_mapped_file_holds_what_reading_it_gives_and_nobody_can_write_its_matrices(file):
    mapped, read = map_safetensors(file), read_safetensors(file)
    release_pages()  # which are read again
    assert mapped.keys() == read.keys()
    for name, array in mapped.items():
        assert array.dtype == read[name].dtype
        np.testing.assert_array_equal(array, read[name])
    assert is_mapped(mapped["table"][1:])
    assert not is_mapped(mapped["dense.bias"])
    assert not is_mapped(np.zeros(3))
    with pytest.raises(ValueError, match="read-only"):
        mapped["table"][0, 0] = 1


def test_a_dense_layer_of_a_mapped_file_is_not_copied_and_computes_the_same(file):
    tensors = map_safetensors(file)
    dense = TensorReader(tensors, np.dtype(np.float32)).dense("dense", 3, 2)
    assert np.shares_memory(dense.weight, tensors["dense.weight"])
    x = np.ones((1, 3), np.float32)
    expected = x @ TENSORS["dense.weight"].T + TENSORS["dense.bias"]
    np.testing.assert_allclose(linear(x, *dense), expected, rtol=1e-6)


def test_the_default_encoder_is_mapped_and_a_copy_of_its_folder_is_not(encoder, tmp_path):
    import shutil

    from engine import Encoder

    assert is_mapped(encoder.weights.token_table)
    shutil.copytree(model_path("all-MiniLM-L6-v2"), tmp_path / "model")
    assert not is_mapped(Encoder.load(tmp_path / "model").weights.token_table)
