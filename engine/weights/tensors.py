"""Named tensors of a model file, read through the safetensors library."""

import json
import reprlib
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from pydantic import TypeAdapter
from safetensors import SafetensorError, deserialize, safe_open

from ..errors import UNREADABLE, GlassboxError, ModelFileError
from ..layers.activation import ACTIVATIONS, ALSO_CALLED
from ..layers.linear import Linear
from ..layers.norm import LayerNorm
from ..layers.quantization import StoredMatrix
from ..layers.tracing import Array
from ..wording import printable, reason_of
from .mapped import KINDS, is_mapped
from .memory import require_memory
from .stored import FLOATS, StoredTensor, from_bfloat16

T = TypeVar("T")
Header = TypeVar("Header")  # a dataclass with a field ``format`` of a single value

HEADER_KEY = "glassbox"  # of the JSON in the metadata of files that are written here

MAX_JSON = 100 * 1024**2  # bytes; the largest tokenizer.json files have some 35 MB
MAX_JSON_VALUES = 4_000_000  # a vocabulary of 300,000 tokens with its merges has 2 million
MAX_SIZE, MAX_FLOAT, MAX_EPS = 2**24, 1e15, 1.0  # of the numbers in a model's config
MAX_MESSAGE = 300
ADAPTER = "adapter_model.safetensors"
ONNX = "has its weights only as ONNX, which is not read: give a model with model.safetensors"
# What folders without a model's safetensors hold, by patterns of their files, and what to give.
INSTEAD = {
    "adapter_config.json": "is an adapter (LoRA), which changes another model: merge it into that one by "
    "peft's merge_and_unload, and give the result",
    "pytorch_model*.bin": "has its weights only in pytorch_model.bin, a pickle, which may run any code when "
    "it is opened: give a model with model.safetensors",
    "*.onnx": ONNX,
    "onnx/*.onnx": ONNX,
    "*.gguf": "holds a GGUF file: give the path of that file",
}


def shortened(value: object) -> str:
    """Return a value from a file as one short line for a message."""
    return reason_of(value)[:120] if isinstance(value, Exception) else reprlib.repr(value)[:60]


def unreadable_tokenizer(path: Path, error: BaseException) -> ModelFileError:
    """Return the error of a tokenizer.json that is not as it should be."""
    return ModelFileError(f"{path} is not a readable tokenizer ({reason_of(error)}): download it again")


@contextmanager
def damaged_files(path: Path) -> Iterator[None]:
    """Turn errors of unexpected values in a model's files into a `ModelFileError` of one line."""
    try:
        yield
    except ModelFileError as error:
        message = printable(str(error))
        if len(message) > MAX_MESSAGE:
            message = f"{message[: MAX_MESSAGE - 100]}…{message[-90:]}"
        if message == str(error):
            raise
        raise ModelFileError(message) from error
    except GlassboxError:
        raise
    except (OSError, *UNREADABLE) as error:
        raise ModelFileError(
            f"{str(path)[-120:]} is not a readable model ({type(error).__name__}: {shortened(error)}): "
            "download it again"
        ) from error


def file_size(path: Path) -> int:
    """Return the bytes of a file; raise ``OSError`` for one that is not regular, such as a pipe."""
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise OSError("it is not a regular file")
    return status.st_size


def read_text(path: Path, most: int) -> str:
    """Read a text of one of a model's files, in UTF-8 and of up to ``most`` bytes."""
    try:
        if file_size(path) > most:
            raise ModelFileError(f"{path} has over {most / 1024**2:.0f} MB, the most that is read")
        with path.open("rb") as file:
            return file.read(most).decode("utf-8")
    except FileNotFoundError as error:
        raise ModelFileError(missing(path)) from error
    except (OSError, ValueError) as error:
        raise ModelFileError(f"{path} cannot be read ({shortened(error)}): download it again") from error


def missing(path: Path) -> str:
    """Say that a folder lacks a model's file, and what it is in place of a model that can be read."""
    folder = path.parent
    if all(each.name == ADAPTER for each in folder.glob("*.safetensors")):
        for pattern, found in INSTEAD.items():
            if any(folder.glob(pattern)):
                return f"{folder} {found}"
    return f"{folder} has no {path.name}: give a complete model folder"


def parse_json(path: Path, text: str) -> Any:
    """Parse the text of one of a model's JSON files."""
    if sum(map(text.count, ",[{")) > MAX_JSON_VALUES:
        raise ModelFileError(f"{path} has over {MAX_JSON_VALUES} values, the most that are read")
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(
            f"{path} is not readable JSON ({shortened(error)}): download it again"
        ) from error


def read_json(path: Path) -> dict[str, Any]:
    """Read one of a model folder's JSON files."""
    content = parse_json(path, read_text(path, MAX_JSON))
    if not isinstance(content, dict):
        raise ModelFileError(f"{path} holds no JSON object: download it again")
    return content


def read_optional(path: Path) -> dict[str, Any]:
    """Read a JSON file, {} if it is missing."""
    return read_json(path) if path.is_file() else {}


def config_size(config: Mapping[str, Any], key: str, default: int | None = None, most: int = MAX_SIZE) -> int:
    """Return a whole number from 1 to ``most`` of a config.json; ``default`` stands in for a missing one."""
    value = config.get(key)
    value = default if value is None else value
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
        raise ModelFileError(
            f"the model's config has {key} {shortened(value)}, not a size up to {most}: download it again"
        )
    return value


def config_float(
    config: Mapping[str, Any], key: str, default: float | None = None, most: float = MAX_FLOAT
) -> float:
    """Return a number above 0, up to ``most``, of a config.json; ``default`` stands in for a missing one."""
    value = config.get(key)
    value = default if value is None else value
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value <= most:
        raise ModelFileError(
            f"the model's config has {key} {shortened(value)}, not a number above 0 and up to {most:g}: "
            "download it again"
        )
    return float(value)


def config_activation(config: Mapping[str, Any], key: str, default: str = "gelu") -> str:
    """Return the key of `ACTIVATIONS` that a config.json names; ``default`` stands in for a missing name."""
    value = config.get(key) or default
    name = ALSO_CALLED.get(str(value), str(value))
    if name not in ACTIVATIONS:
        raise ModelFileError(
            f"activation {shortened(value)} is not one of {', '.join((*ACTIVATIONS, *ALSO_CALLED))}: use "
            "another model"
        )
    return name


@contextmanager
def reading_safetensors(path: Path) -> Iterator[None]:
    """Raise `ModelFileError` for a missing or damaged file, `MemoryLimitError` for one that does not fit."""
    if not path.is_file():
        raise ModelFileError(missing(path))
    require_memory(path.stat().st_size, str(path))
    try:
        yield
    except (SafetensorError, OSError, TypeError, KeyError, ValueError) as error:
        raise ModelFileError(
            f"{path} is not a complete safetensors file ({error}): download it again"
        ) from error


def read_safetensors(path: Path) -> dict[str, Array]:
    """Read every tensor of a .safetensors file; bfloat16 becomes float32."""
    with reading_safetensors(path):
        with safe_open(path, framework="numpy") as file:
            names = list(file.keys())
            if not any(file.get_slice(name).get_dtype() == "BF16" for name in names):
                return {name: file.get_tensor(name) for name in names}
        entries = deserialize(path.read_bytes())  # type: ignore[no-untyped-call]
        return {name: decode(entry) for name, entry in entries}


def read_header(content: bytes, kind: type[Header], what: str) -> Header:
    """Read the JSON in the header of a file that was written here: 8 bytes of length, then the header."""
    length = int.from_bytes(content[:8], "little")
    try:
        text = json.loads(content[8 : 8 + length])["__metadata__"][HEADER_KEY]
        return TypeAdapter(kind).validate_json(text, strict=True)
    except UNREADABLE as error:
        reason = f"{type(error).__name__}: {reason_of(error)}"
        raise ModelFileError(
            f"this is no checkpoint of {what} ({reason}): give a file that was saved here"
        ) from error


def decode(entry: Mapping[str, Any]) -> Array:
    """Turn an entry of ``safetensors.deserialize`` into an array, widening bfloat16."""
    kinds = {**KINDS, "BF16": np.uint16}
    array: Array = np.frombuffer(entry["data"], kinds[entry["dtype"]]).reshape(entry["shape"])
    return from_bfloat16(array) if entry["dtype"] == "BF16" else array


def require(tensors: Mapping[str, T], name: str) -> T:
    """Return the tensor ``name``, or raise `ModelFileError` if it is missing."""
    if name not in tensors:
        raise ModelFileError(f"the model has no tensor {name!r}: its file is incomplete or of another model")
    return tensors[name]


def read_stored(path: Path) -> dict[str, StoredTensor]:
    """Read every numeric tensor of a .safetensors file in its stored type."""
    with reading_safetensors(path):
        entries = deserialize(path.read_bytes())  # type: ignore[no-untyped-call]
        return {
            name: StoredTensor(
                entry["dtype"], np.frombuffer(entry["data"], FLOATS[entry["dtype"]]).reshape(entry["shape"])
            )
            for name, entry in entries
            if entry["dtype"] in FLOATS
        }


def with_shape(stored: StoredTensor, name: str, shape: Iterable[int]) -> StoredTensor:
    """Return a tensor after checking its shape, and that its numbers are finite."""
    check_shape(stored.shape, name, shape)
    check_finite(stored.is_finite(), name)
    return stored


@dataclass(frozen=True)
class TensorReader:
    """Reads the parameters of layers from a file's tensors, in ``dtype``, after checking their shapes."""

    tensors: Mapping[str, Array]
    dtype: np.dtype

    def tensor(self, name: str, *shape: int) -> Array:
        """Return a tensor by its full name."""
        array = require(self.tensors, name)
        check_shape(array.shape, name, shape)
        check_finite(bool(np.isfinite(array).all()), name)
        return array if isinstance(array, StoredMatrix) else np.ascontiguousarray(array, self.dtype)

    def vector(self, tensor: Array) -> Array:
        """Return the numbers of a tensor."""
        return tensor

    def matrix(self, *parts: Array) -> Array:
        """Return a matrix, or several with the same input stacked into one."""
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def dense(self, name: str, d_in: int, d_out: int, biased: bool = True) -> Linear:
        """Return ``name.weight`` and ``name.bias``, zeros where there is none."""
        weight = self.tensor(f"{name}.weight", d_out, d_in)
        if isinstance(weight, np.ndarray) and not is_mapped(weight):
            weight = np.asfortranarray(weight)  # so that W^T is read row by row in x W^T
        bias = self.tensor(f"{name}.bias", d_out) if biased else np.zeros(d_out, self.dtype)
        return Linear(weight, bias)

    def norm(self, name: str, d_model: int, biased: bool = True) -> LayerNorm:
        """Return ``name.weight`` and ``name.bias``, zeros where there is none."""
        weight = self.tensor(f"{name}.weight", d_model)
        return LayerNorm(
            weight, self.tensor(f"{name}.bias", d_model) if biased else np.zeros(d_model, self.dtype)
        )


def check_shape(found: tuple[int, ...], name: str, shape: Iterable[int]) -> None:
    """Raise `ModelFileError` if a tensor has another shape than the model's sizes require."""
    if found != tuple(shape):
        raise ModelFileError(
            f"tensor {name!r} has shape {found}, but the model's sizes ask for {tuple(shape)}: "
            f"weights and config are not of one model"
        )


def check_finite(is_finite: bool, name: str) -> None:
    """Raise `ModelFileError` for a tensor with numbers that are not finite."""
    if not is_finite:
        raise ModelFileError(f"tensor {name!r} has numbers that are not finite: download the model again")
