"""Changes to a saved model's folder that the tests of reading make, and the end of writing a GGUF file."""

import json

import gguf
from safetensors.numpy import load_file, save_file

from engine.weights.stored import StoredTensor


def edit_json(path, **changes):
    content = json.loads(path.read_text()) if path.is_file() else {}
    path.write_text(json.dumps({**content, **changes}))


def edit_config(folder, **changes):
    edit_json(folder / "config.json", **changes)


def config_with(**changes):
    """A change of a folder's configuration."""
    return lambda folder: edit_config(folder, **changes)


def edit_tensors(folder, change):
    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    save_file(tensors, folder / "model.safetensors")


def without(name):
    """A change of a folder that takes a tensor away."""
    return lambda folder: edit_tensors(folder, lambda tensors: tensors.pop(name))


def finish_gguf(writer, tensors):
    """Write the metadata of a GGUF writer, and tensors: arrays, or rows of a stored type."""
    for name, array in tensors.items():
        if isinstance(array, StoredTensor):
            writer.add_tensor(name, array.rows, raw_dtype=gguf.GGMLQuantizationType[array.kind])
        else:
            writer.add_tensor(name, array)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
