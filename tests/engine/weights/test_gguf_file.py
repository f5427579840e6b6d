import struct

import gguf
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import ModelFileError
from engine.generation.decoder import Decoder
from engine.models.stored_reader import StoredReader
from engine.weights.catalog import DEFAULT_DECODER
from engine.weights.fetch import model_path
from engine.weights.gguf_file import GGUF
from engine.weights.quantized import QUANTIZED
from engine.weights.stored import StoredTensor, block_size, held_bytes, kind_name
from engine.weights.tensors import with_shape
from tests.engine.weights.random_blocks import random_blocks
from tests.model_files import finish_gguf

Kind = gguf.GGMLQuantizationType
WRITTEN = ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0"]  # by the official library

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


def write(path, metadata=None, tensors=None, architecture="llama"):
    """Write a file with the official library; tensors are float32 arrays by (name, type)."""
    writer = gguf.GGUFWriter(path, architecture)
    for key, value in (metadata or {}).items():
        writer.add_key_value(key, value, gguf.GGUFValueType.get_type(value))
    stored = {}
    for (name, kind), array in (tensors or {}).items():
        stored[name] = StoredTensor(kind, array if kind == "F32" else gguf.quantize(array, Kind[kind]))
    finish_gguf(writer, stored)
    return path


@given(st.dictionaries(st.sampled_from(["a.b", "ü", "tokenizer.ggml.tokens"]), values))
def test_metadata_are_those_that_were_written(tmp_path_factory, metadata):
    file = GGUF(write(tmp_path_factory.mktemp("gguf") / "x.gguf", metadata, {("t", "F32"): numbers(2)}))
    for key, value in metadata.items():
        assert file[key] == value
    assert file["general.architecture"] == "llama"
    assert file.get("nothing", 5) == 5


@pytest.mark.parametrize("kind", ["F32", "F16", "BF16", *WRITTEN])
def test_a_tensor_is_what_the_official_library_makes_of_it(tmp_path, kind):
    path = write(tmp_path / "x.gguf", None, {("other", "F32"): numbers(3), ("w", kind): numbers(5, 64)})
    stored = GGUF(path).tensor("w")
    official = {tensor.name: tensor for tensor in gguf.GGUFReader(path).tensors}["w"]
    assert stored.kind == kind
    assert stored.shape == (5, 64)
    np.testing.assert_array_equal(stored.float32(), gguf.dequantize(official.data, Kind[kind]))


def test_the_default_decoder_is_read_as_by_the_official_library(gguf_reader):
    file = GGUF(model_path(DEFAULT_DECODER))
    for key, field in gguf_reader.fields.items():
        if not key.startswith("GGUF."):
            assert file[key] == field.contents(), key
    for tensor in gguf_reader.tensors:
        stored = file.tensor(tensor.name)
        assert stored.kind == tensor.tensor_type.name
        assert stored.shape == tuple(tensor.shape[::-1])
        np.testing.assert_array_equal(stored.rows.ravel(), np.asarray(tensor.data).ravel())


def test_the_readable_way_rounds_nothing(tmp_path):
    tensors = {("a", "Q5_0"): numbers(3, 64), ("b", "Q5_1"): numbers(2, 64)}
    file = GGUF(write(tmp_path / "x.gguf", None, tensors))
    a, b = (file.tensor(name) for name in "ab")
    np.testing.assert_array_equal(
        StoredReader(None, packed=False).matrix(a, b), np.concatenate([a.float32(), b.float32()])
    )


def test_rows_may_be_taken_in_any_order(tmp_path):
    stored = GGUF(write(tmp_path / "x.gguf", None, {("w", "Q8_0"): numbers(5, 64)})).tensor("w")
    order = np.array([3, 0, 3])
    np.testing.assert_array_equal(stored[order].float32(), stored.float32()[order])


def test_the_bytes_held_are_told_before_anything_is_read(tmp_path):
    tensors = {("a", "Q4_1"): numbers(3, 64), ("b", "Q5_0"): numbers(2, 64), ("c", "F32"): numbers(7)}
    file = GGUF(write(tmp_path / "x.gguf", None, tensors))
    assert file.held_bytes == sum(file.tensor(name).rows.nbytes for name in "abc")
    assert held_bytes("Q4_K") == 148 / 256  # its scales are held as bytes


def test_types_that_are_not_held_are_refused_with_those_that_are():
    with pytest.raises(ModelFileError, match=r"type IQ2_XXS, which cannot be used.* Q4_K, .*BF16"):
        held_bytes("IQ2_XXS")


@pytest.mark.parametrize("kind", QUANTIZED)
def test_a_quantized_type_is_described_as_by_the_official_library(kind):
    assert block_size(kind) == gguf.GGML_QUANT_SIZES[Kind[kind]]
    assert kind_name(Kind[kind].value) == kind
    assert held_bytes(kind) <= 1.05 * block_size(kind)[1] / block_size(kind)[0]


@pytest.mark.parametrize("kind", QUANTIZED)
def test_numbers_that_are_not_finite_are_told_from_the_scales(kind):
    own, rng = QUANTIZED[kind], np.random.default_rng(0)
    stored = StoredTensor(kind, random_blocks(rng, kind, 3, 2))
    assert stored.is_finite()
    for name in own.halves or ("e",):
        for bad in (np.inf, -np.inf, np.nan) if own.halves else (253, 255):
            rows = stored.rows.copy()
            fields = own.split(rows)
            fields[name][2, 1] = np.array([bad], np.float16).view(np.uint8) if own.halves else bad
            assert not StoredTensor(kind, rows).is_finite()


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda content: b"", "not a complete GGUF"),
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


@pytest.mark.parametrize(
    ("name", "advice"),
    [("x.gguf", "download it again"), ("model.safetensors", "or the folder of config.json")],
)
def test_a_file_of_another_kind_is_refused_with_what_to_give(tmp_path, name, advice):
    (tmp_path / name).write_bytes(b"{}" * 50)
    with pytest.raises(ModelFileError, match=advice):
        GGUF(tmp_path / name)


@given(st.data())
def test_a_file_cut_anywhere_is_refused(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("gguf")
    path = write(folder / "x.gguf", {"words": ["a", "bc"], "n": [1, 2]}, {("w", "F32"): numbers(4, 32)})
    content = path.read_bytes()
    path.write_bytes(content[: data.draw(st.integers(0, len(content) - 1))])
    with pytest.raises(ModelFileError):
        GGUF(path).tensor("w")


def write_parts(folder, name="m-{:05d}-of-00002.gguf", n_tensors=2, number=1, same=False):
    """Write a model of two tensors in two files, with the metadata in the first one."""
    paths = [folder / name.format(part) for part in (1, 2)]
    for place, path in enumerate(paths):
        split = {"split.no": place * number, "split.count": 2, "split.tensors.count": n_tensors}
        tensor = "w0" if same else f"w{place}"
        words = {"words": ["a"]} if place == 0 else {}
        write(path, split | words, {(tensor, "F32"): numbers(2, 3, seed=place)})
    return paths


def test_a_model_in_parts_is_read_by_any_of_them(tmp_path):
    for path in write_parts(tmp_path):
        file = GGUF(path)
        assert file["words"] == ["a"]
        for place in range(2):
            np.testing.assert_array_equal(file.tensor(f"w{place}").rows, numbers(2, 3, seed=place))
        assert file.held_bytes == 2 * 6 * 4


@pytest.mark.parametrize(
    ("changes", "removed", "reason"),
    [
        ({}, 0, r"is part 2 of 2 of a model, .*: put m-00001-of-00002.gguf next to it"),
        ({}, 1, r"is part 1 of 2 of a model, .*: put m-00002-of-00002.gguf next to it"),
        ({"name": "m{}.gguf"}, None, "part 1 of 2 of a model, and its name does not tell .*: put all parts"),
        ({"name": "m-{:05d}-of-00003.gguf"}, None, "part 1 of 2 of a model, and its name does not tell"),
        ({"number": 0}, None, "m-00002-of-00002.gguf is not part 2 of 2, as its name says"),
        ({"n_tensors": 5}, None, "have 2 tensors, and the model 5: download all parts again"),
        ({"same": True}, None, "have 1 tensors, and the model 2"),
    ],
)
def test_parts_of_a_model_that_are_not_all_of_it_are_named(tmp_path, changes, removed, reason):
    paths = write_parts(tmp_path, **changes)
    if removed is not None:
        paths.pop(removed).unlink()
    with pytest.raises(ModelFileError, match=reason):
        GGUF(paths[0])


@pytest.mark.parametrize("count", [0, -1, 1, 2.5, True, "2", [2, 2]])
def test_a_number_of_parts_that_is_none_is_of_a_whole_model(tmp_path, count):
    assert "w" in GGUF(write(tmp_path / "x.gguf", {"split.count": count}, {("w", "F32"): numbers(2, 3)}))


@pytest.mark.parametrize(
    ("architecture", "metadata", "reason"),
    [
        ("llama", {"general.type": "adapter"}, r"is an adapter \(LoRA\).*merge it into that one"),
        ("llama", {"general.type": "mmproj"}, "reads pictures or sound: give the file of the language model"),
        ("clip", {}, "reads pictures or sound"),
        ("llama", {"general.type": "imatrix"}, "table of statistics"),
    ],
)
def test_a_file_beside_a_model_is_refused_with_what_to_give(tmp_path, architecture, metadata, reason):
    path = write(tmp_path / "x.gguf", metadata, {("w", "F32"): numbers(2, 3)}, architecture)
    with pytest.raises(ModelFileError, match=reason):
        Decoder.load(path)


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
