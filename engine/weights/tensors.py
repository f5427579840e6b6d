"""Named tensors of a model file, read through the safetensors and gguf libraries."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, deserialize, safe_open

from engine.errors import ModelFileError
from engine.layers.tracing import Array


def read_json(path: Path) -> dict[str, Any]:
    """Read one of a model folder's JSON files."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ModelFileError(f"{path.parent} has no {path.name}: give a complete model folder") from error
    except (OSError, ValueError) as error:
        raise ModelFileError(f"{path} is not readable JSON ({error}): download it again") from error
    if not isinstance(content, dict):
        raise ModelFileError(f"{path} holds no JSON object: download it again")
    return content


def config_size(config: Mapping[str, Any], key: str, default: int | None = None) -> int:
    """Return a whole number above 0 of a config.json; ``default`` stands in for a missing one."""
    value = config.get(key)
    value = default if value is None else value
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ModelFileError(f"the model's config has {key} {value!r}, not a size: download it again")
    return value


def config_float(config: Mapping[str, Any], key: str, default: float | None = None) -> float:
    """Return a number above 0 of a config.json; ``default`` stands in for a missing one."""
    value = config.get(key)
    value = default if value is None else value
    if not isinstance(value, int | float) or isinstance(value, bool) or not value > 0:
        raise ModelFileError(
            f"the model's config has {key} {value!r}, not a number above 0: download it again"
        )
    return float(value)


def read_safetensors(path: Path) -> dict[str, Array]:
    """Read every tensor of a .safetensors file; bfloat16 becomes float32."""
    if not path.is_file():
        raise ModelFileError(f"{path.parent} has no {path.name}: give a complete model folder")
    try:
        with safe_open(path, framework="numpy") as file:
            names = list(file.keys())
            if not any(file.get_slice(name).get_dtype() == "BF16" for name in names):
                return {name: file.get_tensor(name) for name in names}
        return dict(
            decode(name, entry)
            for name, entry in deserialize(path.read_bytes())  # type: ignore[no-untyped-call]
        )
    except (SafetensorError, OSError, TypeError, KeyError) as error:
        raise ModelFileError(
            f"{path} is not a complete safetensors file ({error}): download it again"
        ) from error


def decode(name: str, entry: Mapping[str, Any]) -> tuple[str, Array]:
    """Turn one entry of ``safetensors.deserialize`` into an array, widening bfloat16."""
    kinds = {"BF16": np.uint16, "F16": np.float16, "F32": np.float32, "F64": np.float64, "I64": np.int64}
    array: Array = np.frombuffer(entry["data"], kinds[entry["dtype"]]).reshape(entry["shape"])
    if entry["dtype"] == "BF16":  # bfloat16 is the upper half of a float32
        array = (array.astype(np.uint32) << 16).view(np.float32)
    return name, array


class GGUF:
    """A .gguf file: metadata by key, and tensors dequantised one at a time as they are asked for."""

    def __init__(self, path: Path) -> None:
        import gguf

        try:
            self._reader = gguf.GGUFReader(path)
        except (OSError, ValueError, KeyError, IndexError) as error:
            raise ModelFileError(
                f"{path} is not a complete GGUF file ({error}): download it again"
            ) from error
        self.path = path
        self._tensors = {tensor.name: tensor for tensor in self._reader.tensors}

    def get(self, key: str, default: Any = None) -> Any:
        """Return a metadata value, or ``default``."""
        field = self._reader.fields.get(key)
        return default if field is None else field.contents()

    def __getitem__(self, key: str) -> Any:
        value = self.get(key)
        if value is None:
            raise ModelFileError(f"{self.path} has no metadata {key!r}: it is not a language model's file")
        return value

    def __contains__(self, tensor: str) -> bool:
        return tensor in self._tensors

    def tensor(self, name: str) -> Array:
        """Return a tensor as float32, rows first as in PyTorch: ``(d_out, d_in)``."""
        import gguf

        if name not in self._tensors:
            raise ModelFileError(f"{self.path} has no tensor {name!r}: download it again")
        tensor = self._tensors[name]
        try:
            return gguf.dequantize(tensor.data, tensor.tensor_type)
        except NotImplementedError as error:
            raise ModelFileError(
                f"{self.path}: tensor {name!r} is stored as {tensor.tensor_type.name}, which cannot be "
                f"dequantised here: use a file in Q4, Q5, Q6, Q8 or F16"
            ) from error


def require(tensors: Mapping[str, Array], name: str) -> Array:
    """Return the tensor ``name``, or say that it is missing."""
    if name not in tensors:
        raise ModelFileError(f"the model has no tensor {name!r}: its file is incomplete or of another model")
    return tensors[name]


def shaped(array: Array, name: str, shape: Iterable[int], dtype: np.dtype) -> Array:
    """Return a tensor in ``dtype``, or say that it has not the shape the sizes ask for."""
    if array.shape != tuple(shape):
        raise ModelFileError(
            f"tensor {name!r} has shape {array.shape}, but the model's sizes ask for {tuple(shape)}: "
            f"weights and config are not of one model"
        )
    return np.ascontiguousarray(array, dtype)
