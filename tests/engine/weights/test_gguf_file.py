import struct

import gguf
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import ModelFileError
from engine.kernels.matrix_storage import pack_or_float
from engine.weights.gguf_file import GGUF
from engine.weights.stored import StoredTensor, as_q8_0, held_bytes, stack
from engine.weights.tensors import with_shape

Kind = gguf.GGMLQuantizationType
QUANTIZED = ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0"]

values = st.one_of(
    st.booleans(),
    st.integers(-(2**31), 2**31 - 1),
    st.floats(width=32, allow_nan=False),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=5), min_size=1, max_size=9),
    st.lists(st.integers(0, 99), min_size=1, max_size=9),
    st.lists(st.floats(width=32, allow_nan=False), min_size=1, max_size=9),
)


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def write(path, metadata=None, tensors=None):
    """Write a file with the official library; tensors are float32 arrays by (name, type)."""
    writer = gguf.GGUFWriter(path, "llama")
    for key, value in (metadata or {}).items():
        if isinstance(value, bool):
            writer.add_bool(key, value)
        elif isinstance(value, int):
            writer.add_int32(key, value)
        elif isinstance(value, float):
            writer.add_float32(key, value)
        elif isinstance(value, str):
            writer.add_string(key, value)
        else:
            writer.add_array(key, value)
    for (name, kind), array in (tensors or {}).items():
        data = array if kind == "F32" else gguf.quantize(array, Kind[kind])
        writer.add_tensor(name, data, raw_dtype=Kind[kind])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@given(st.dictionaries(st.sampled_from(["a.b", "ü", "tokenizer.ggml.tokens"]), values))
def test_metadata_are_those_that_were_written(tmp_path_factory, metadata):
    metadata = {key: value for key, value in metadata.items() if value != ""}  # which the writer leaves out
    file = GGUF(write(tmp_path_factory.mktemp("gguf") / "x.gguf", metadata, {("t", "F32"): numbers(2)}))
    for key, value in metadata.items():
        assert file[key] == value
    assert file["general.architecture"] == "llama"
    assert file.get("nothing", 5) == 5


@pytest.mark.parametrize("kind", ["F32", "F16", "BF16", *QUANTIZED])
def test_a_tensor_is_what_the_official_library_makes_of_it(tmp_path, kind):
    path = write(tmp_path / "x.gguf", None, {("other", "F32"): numbers(3), ("w", kind): numbers(5, 64)})
    stored = GGUF(path).tensor("w")
    official = {tensor.name: tensor for tensor in gguf.GGUFReader(path).tensors}["w"]
    assert stored.kind == kind
    assert stored.shape == (5, 64)
    np.testing.assert_array_equal(stored.float32(), gguf.dequantize(official.data, Kind[kind]))


def test_the_default_decoder_is_read_as_by_the_official_library():
    from engine.weights.catalog import DEFAULT_DECODER
    from engine.weights.fetch import model_path

    path = model_path(DEFAULT_DECODER)
    file, official = GGUF(path), gguf.GGUFReader(path)
    for key, field in official.fields.items():
        if not key.startswith("GGUF."):
            assert file[key] == field.contents(), key
    for tensor in official.tensors:
        stored = file.tensor(tensor.name)
        assert stored.kind == tensor.tensor_type.name
        assert stored.shape == tuple(tensor.shape[::-1])
        np.testing.assert_array_equal(stored.rows.ravel(), np.asarray(tensor.data).ravel())


def test_q4_0_is_held_exactly(tmp_path):
    stored = GGUF(write(tmp_path / "x.gguf", None, {("w", "Q4_0"): numbers(5, 64)})).tensor("w")
    assert stored.kept().kind == "Q4_1"
    np.testing.assert_array_equal(stored.kept().float32(), stored.float32())


@pytest.mark.parametrize("kind", ["Q5_0", "Q5_1"])
def test_other_codes_are_held_with_8_bits(tmp_path, kind):
    stored = GGUF(write(tmp_path / "x.gguf", None, {("w", kind): numbers(5, 64)})).tensor("w")
    assert stored.kept().kind == "Q8_0"
    exact = stored.float32()
    largest = np.abs(exact.reshape(-1, 32)).max(axis=1).repeat(32).reshape(exact.shape)
    half_a_step, rounded_scale = 0.5 / 127, 2**-11
    assert (np.abs(stored.kept().float32() - exact) <= largest * (half_a_step + rounded_scale)).all()


def test_rows_that_are_no_whole_blocks_stay_numbers():
    stored = StoredTensor("F16", numbers(3, 40).astype(np.float16))
    assert as_q8_0(stored).kind == "F32"
    np.testing.assert_array_equal(as_q8_0(stored).float32(), stored.float32())


def test_stacked_matrices_of_one_type_stay_as_they_are(tmp_path):
    tensors = {("a", "Q4_1"): numbers(3, 64), ("b", "Q4_1"): numbers(2, 64), ("c", "Q8_0"): numbers(2, 64)}
    file = GGUF(write(tmp_path / "x.gguf", None, tensors))
    a, b, c = (file.tensor(name) for name in "abc")
    assert stack([a, b]).kind == "Q4_1"
    np.testing.assert_array_equal(stack([a, b]).float32(), np.concatenate([a.float32(), b.float32()]))
    mixed = stack([a, c])
    assert mixed.kind == "Q8_0"
    np.testing.assert_allclose(mixed.float32()[:3], a.float32(), atol=np.abs(a.float32()).max() / 127)
    np.testing.assert_array_equal(mixed.float32()[3:], c.float32())


def test_stacked_numbers_of_several_sizes_lose_nothing():
    half, single = StoredTensor("F16", numbers(3, 64).astype(np.float16)), StoredTensor("F32", numbers(2, 64))
    assert stack([half, single]).kind == "F32"
    np.testing.assert_array_equal(
        stack([half, single]).float32(), np.concatenate([half.float32(), single.float32()])
    )


def test_the_readable_way_rounds_nothing(tmp_path):
    tensors = {("a", "Q5_0"): numbers(3, 64), ("b", "Q5_1"): numbers(2, 64)}
    file = GGUF(write(tmp_path / "x.gguf", None, tensors))
    a, b = (file.tensor(name) for name in "ab")
    np.testing.assert_array_equal(pack_or_float(False, a, b), np.concatenate([a.float32(), b.float32()]))


def test_rows_may_be_taken_in_any_order(tmp_path):
    stored = GGUF(write(tmp_path / "x.gguf", None, {("w", "Q8_0"): numbers(5, 64)})).tensor("w")
    order = np.array([3, 0, 3])
    np.testing.assert_array_equal(stored[order].float32(), stored.float32()[order])


def test_the_bytes_held_are_told_before_anything_is_read(tmp_path):
    tensors = {("a", "Q4_1"): numbers(3, 64), ("b", "Q5_0"): numbers(2, 64), ("c", "F32"): numbers(7)}
    file = GGUF(write(tmp_path / "x.gguf", None, tensors))
    kept = [file.tensor(name).kept().rows.nbytes for name in "abc"]
    assert file.held_bytes == sum(kept)
    assert held_bytes("Q4_0") == 0.625


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda content: b"", "not a complete GGUF"),
        (lambda content: b"GGUF", "not a complete GGUF"),
        (lambda content: b"FUGG" + content[4:], "does not begin with GGUF"),
        (lambda content: content[:4] + struct.pack("<I", 1) + content[8:], "version 1"),
        (lambda content: content[:4] + struct.pack(">I", 3) + content[8:], "little-endian"),
        (lambda content: content[:16] + struct.pack("<Q", 2**60) + content[24:], "not a complete GGUF"),
        (lambda content: content[:-40], "ends within tensor 'w'"),
    ],
)
def test_a_damaged_file_is_refused(tmp_path, damage, reason):
    path = write(tmp_path / "x.gguf", {"words": ["a", "bc"]}, {("w", "F32"): numbers(4, 32)})
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ModelFileError, match=reason):
        GGUF(path).tensor("w")


@given(st.data())
def test_a_file_cut_anywhere_is_refused(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("gguf")
    path = write(folder / "x.gguf", {"words": ["a", "bc"], "n": [1, 2]}, {("w", "F32"): numbers(4, 32)})
    content = path.read_bytes()
    path.write_bytes(content[: data.draw(st.integers(0, len(content) - 1))])
    with pytest.raises(ModelFileError):
        GGUF(path).tensor("w")


def test_what_is_not_there_is_said(tmp_path):
    file = GGUF(write(tmp_path / "x.gguf", None, {("w", "F32"): numbers(2, 3)}))
    with pytest.raises(ModelFileError, match="no tensor 'v'"):
        file.tensor("v")
    with pytest.raises(ModelFileError, match="no metadata 'words'"):
        file["words"]
    with pytest.raises(ModelFileError, match=r"shape \(2, 3\).*ask for \(3, 2\)"):
        with_shape(file.tensor("w"), "w", (3, 2))
    assert "w" in file
    assert "v" not in file
    with pytest.raises(ModelFileError, match="not a complete GGUF"):
        GGUF(tmp_path / "absent.gguf")
