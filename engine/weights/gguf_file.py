"""Read GGUF files: metadata by key, tensors by name.

The format is described in ggml's docs/gguf.md. The ``gguf`` package reads it too, but makes an object of
every byte range of the metadata, which takes seconds for a vocabulary; here it only serves for quantised
types.
"""

import math
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from engine.errors import ModelFileError
from engine.layers.tracing import Array
from engine.weights.stored import FLOATS, StoredTensor, block_size, held_bytes, kind_name

MAGIC = b"GGUF"
VERSIONS = (2, 3)
STRING, LIST = 8, 9
NUMBERS = {
    0: "<B",
    1: "<b",
    2: "<H",
    3: "<h",
    4: "<I",
    5: "<i",
    6: "<f",
    7: "<?",
    10: "<Q",
    11: "<q",
    12: "<d",
}
DEFAULT_ALIGNMENT = 32


@dataclass(frozen=True)
class TensorPlace:
    """Shape (rows first), type and byte offset of a tensor in its file."""

    shape: tuple[int, ...]
    kind: str
    start: int

    @property
    def n_numbers(self) -> int:
        """How many numbers the tensor has."""
        return math.prod(self.shape)

    @property
    def n_bytes(self) -> int:
        """Bytes of the tensor in its file."""
        if self.kind in FLOATS:
            return self.n_numbers * np.dtype(FLOATS[self.kind]).itemsize
        n_columns, n_bytes = block_size(self.kind)
        return self.n_numbers // n_columns * n_bytes


class GGUF:
    """A .gguf file: metadata by key, tensors read on demand."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._bytes: Array = np.memmap(path, np.uint8, mode="r")
            self._metadata, self._places = read_header(memoryview(self._bytes.data))
        except (OSError, ValueError, KeyError, IndexError, struct.error, MemoryError) as error:
            raise ModelFileError(
                f"{path} is not a complete GGUF file ({error}): download it again"
            ) from error

    def get(self, key: str, default: Any = None) -> Any:
        """Return a metadata value, or ``default``."""
        return self._metadata.get(key, default)

    def __getitem__(self, key: str) -> Any:
        value = self.get(key)
        if value is None:
            raise ModelFileError(f"{self.path} has no metadata {key!r}: it is not a language model's file")
        return value

    def __contains__(self, tensor: str) -> bool:
        return tensor in self._places

    def tensor(self, name: str) -> StoredTensor:
        """Return a tensor in its stored type."""
        if name not in self._places:
            raise ModelFileError(f"{self.path} has no tensor {name!r}: download it again")
        place = self._places[name]
        data = self._bytes[place.start : place.start + place.n_bytes]
        if len(data) < place.n_bytes:
            raise ModelFileError(
                f"{self.path} is not a complete GGUF file (it ends within tensor {name!r}): download it again"
            )
        if place.kind in FLOATS:
            return StoredTensor(place.kind, np.asarray(data).view(FLOATS[place.kind]).reshape(place.shape))
        return StoredTensor(place.kind, np.asarray(data).reshape(*place.shape[:-1], -1))

    @property
    def held_bytes(self) -> int:
        """Bytes of all tensors in memory, in the types they are held in."""
        return round(sum(place.n_numbers * held_bytes(place.kind) for place in self._places.values()))


class Header:
    """A cursor over a file's header."""

    def __init__(self, content: memoryview) -> None:
        self.content = content
        self.place = 0

    def number(self, form: str) -> Any:
        """Read a number."""
        [value] = struct.unpack_from(form, self.content, self.place)
        self.place += struct.calcsize(form)
        return value

    def string(self) -> str:
        """Read a string: its length in bytes, and UTF-8."""
        end = self.number("<Q") + self.place
        if end > len(self.content):
            raise ValueError("it ends within a string")
        text = str(self.content[self.place : end], "utf-8", "replace")
        self.place = end
        return text

    def strings(self, n: int) -> list[str]:
        """Read many strings."""
        content, place, unpack = self.content, self.place, struct.Struct("<Q").unpack_from
        texts = []
        for _ in range(n):
            start = place + 8
            place = start + unpack(content, place)[0]
            texts.append(str(content[start:place], "utf-8", "replace"))
        if place > len(content):
            raise ValueError("it ends within a string")
        self.place = place
        return texts

    def value(self, kind: int) -> Any:
        """Read a metadata value of a type."""
        if kind == STRING:
            return self.string()
        if kind != LIST:
            return self.number(NUMBERS[kind])
        kind, n = self.number("<I"), self.number("<Q")
        if kind == STRING:
            return self.strings(n)
        if kind == LIST:
            return [self.value(LIST) for _ in range(n)]
        dtype = np.dtype(NUMBERS[kind])
        numbers = np.frombuffer(self.content, dtype, n, self.place)
        self.place += numbers.nbytes
        return numbers.tolist()


def read_header(content: memoryview) -> tuple[dict[str, Any], dict[str, TensorPlace]]:
    """Read the metadata of a file and the places of its tensors."""
    header = Header(content)
    if bytes(content[:4]) != MAGIC:
        raise ValueError("it does not begin with GGUF")
    header.place = 4
    version = header.number("<I")
    if version not in VERSIONS:
        raise ValueError(f"version {version}; versions 2 and 3 in little-endian order are read")
    n_tensors, n_keys = header.number("<Q"), header.number("<Q")
    metadata = {header.string(): header.value(header.number("<I")) for _ in range(n_keys)}
    places = {}
    for _ in range(n_tensors):
        name = header.string()
        shape = [header.number("<Q") for _ in range(header.number("<I"))]
        kind, start = header.number("<I"), header.number("<Q")
        places[name] = TensorPlace(tuple(reversed(shape)), kind_name(kind), start)
    alignment = metadata.get("general.alignment", DEFAULT_ALIGNMENT)
    beginning = -(-header.place // alignment) * alignment
    return metadata, {
        name: TensorPlace(place.shape, place.kind, beginning + place.start) for name, place in places.items()
    }
