"""Read GGUF files: metadata by key, tensors by name.

The format is described in ggml's docs/gguf.md. The ``gguf`` package reads it too, but makes an object of
every byte range of the metadata, which takes seconds for a vocabulary; here it only serves for quantised
types. Files are not trusted: every count is bounded by the bytes that are left before anything is allocated,
and nothing is mapped into memory, where a file that shrinks would end the process.
"""

import math
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import ModelFileError
from .gguf_parts import check_parts, is_part, part_paths
from .stored import FLOATS, StoredTensor, block_size, held_bytes, kind_name
from .tensors import file_size, shortened

MAGIC = b"GGUF"
VERSIONS = (2, 3)
STRING, LIST = 8, 9
NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
DEFAULT_ALIGNMENT = 32
# Vocabularies of 300,000 tokens take some 15 MB and a million values; the largest models have 2000 tensors.
MAX_HEADER = 64 * 1024**2
MAX_VALUES, MAX_ENTRIES, MAX_AXES = 4_000_000, 100_000, 4
MAX_ALIGNMENT = 1024**2


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
        n_columns, n_bytes = block_size(self.kind)
        return self.n_numbers // n_columns * n_bytes


class GGUF:
    """A .gguf file: metadata by key, tensors read on demand.

    Of a model in several parts, any of them stands for all; the others lie in its folder.
    """

    def __init__(self, path: Path) -> None:
        content = read_file(path)
        parts = {path: content}
        if is_part(content[0]):
            paths = part_paths(path, content[0])
            parts = {part: content if part == path else read_file(part) for part in paths}
            check_parts(parts)
        self.path, (self._metadata, _) = next(iter(parts.items()))
        self._places = {name: place for _, places in parts.values() for name, place in places.items()}
        self._parts = {name: part for part, (_, places) in parts.items() for name in places}

    def get(self, key: str, default: Any = None) -> Any:
        """Return a metadata value, or ``default``."""
        return self._metadata.get(key, default)

    def __getitem__(self, key: str) -> Any:
        value = self.get(key)
        if value is None:
            raise ModelFileError(f"{self.path} has no metadata {key!r}: it is not a language model's file")
        return value

    def texts(self, key: str) -> list[str]:
        """Return a metadata value that is a list of texts."""
        value = self[key]
        if not isinstance(value, list) or not value or not isinstance(value[0], str):
            raise ModelFileError(f"{self.path} has no texts in {key!r}: download it again")
        return value

    def __contains__(self, tensor: str) -> bool:
        return tensor in self._places

    def tensor(self, name: str) -> StoredTensor:
        """Return a tensor in its stored type."""
        if name not in self._places:
            raise ModelFileError(f"{self.path} has no tensor {name!r}: download it again")
        place, path = self._places[name], self._parts[name]
        data = np.empty(place.n_bytes, np.uint8)
        with path.open("rb") as file:
            file.seek(place.start)
            n_read = file.readinto(data.data)
        if n_read < place.n_bytes:  # it has become shorter since it was opened
            raise ModelFileError(
                f"{path} is not a complete GGUF file (it ends within tensor {name!r}): download it again"
            )
        if place.kind in FLOATS:
            return StoredTensor(place.kind, data.view(FLOATS[place.kind]).reshape(place.shape))
        return StoredTensor(place.kind, data.reshape(*place.shape[:-1], -1))

    @property
    def held_bytes(self) -> int:
        """Bytes of all tensors in memory, in the types they are stored in."""
        return round(sum(place.n_numbers * held_bytes(place.kind) for place in self._places.values()))


def read_file(path: Path) -> tuple[dict[str, Any], dict[str, TensorPlace]]:
    """Read the metadata of a .gguf file and the places of its tensors."""
    try:
        size = file_size(path)
        with path.open("rb") as file:
            content = file.read(MAX_HEADER)
        metadata, places = read_header(memoryview(content))
        check_places(places, size)
    except (OSError, ValueError, KeyError, IndexError, struct.error, MemoryError) as error:
        is_meant = path.suffix.lower() == ".gguf"
        then = "download it again" if is_meant else "give one, or the folder of config.json and safetensors"
        raise ModelFileError(f"{path} is not a complete GGUF file ({shortened(error)}): {then}") from error
    return metadata, places


class Header:
    """A cursor over a file's header; every count is checked against the bytes behind it."""

    def __init__(self, content: memoryview) -> None:
        self.content = content
        self.place = 0
        self.n_values = 0  # in lists

    def number(self, form: str) -> Any:
        """Read a number."""
        [value] = struct.unpack_from(form, self.content, self.place)
        self.place += struct.calcsize(form)
        return value

    def count(self, what: str, n_bytes: int, most: int) -> int:
        """Read a number of things that take at least ``n_bytes`` each."""
        n: int = self.number("<Q")
        if n > most:
            raise ValueError(f"it has {n} {what}, and at most {most} are read")
        if n * n_bytes > len(self.content) - self.place:
            raise ValueError(f"it ends within {n} {what}")
        return n

    def string(self) -> str:
        """Read a string: its length in bytes, and UTF-8."""
        return self.strings(1)[0]

    def strings(self, n: int) -> list[str]:
        """Read many strings."""
        content, place, unpack = self.content, self.place, struct.Struct("<Q").unpack_from
        texts = []
        for _ in range(n):
            start = place + 8
            place = start + unpack(content, place)[0]
            if place > len(content):
                raise ValueError("it ends within a string")
            texts.append(str(content[start:place], "utf-8", "replace"))
        self.place = place
        return texts

    def value(self, kind: int) -> Any:
        """Read a metadata value of a type."""
        if kind == STRING:
            return self.string()
        if kind != LIST:
            return self.number(number_form(kind))
        kind = self.number("<I")
        if kind == LIST:
            raise ValueError("it has a list of lists, which is not read")
        form = None if kind == STRING else number_form(kind)
        n = self.count("values", 8 if form is None else struct.calcsize(form), MAX_VALUES - self.n_values)
        self.n_values += n
        if form is None:
            return self.strings(n)
        numbers = np.frombuffer(self.content, np.dtype(form), n, self.place)
        self.place += numbers.nbytes
        return numbers.tolist()


def number_form(kind: int) -> str:
    """Return the struct format of a type of numbers; raise ``ValueError`` for unknown types."""
    if kind not in NUMBERS:
        raise ValueError(f"it has a value of the unknown type {kind}")
    return f"<{NUMBERS[kind]}"


def read_header(content: memoryview) -> tuple[dict[str, Any], dict[str, TensorPlace]]:
    """Read the metadata of a file and the places of its tensors."""
    header = Header(content)
    if bytes(content[:4]) != MAGIC:
        raise ValueError("it does not begin with GGUF")
    header.place = 4
    version = header.number("<I")
    if version not in VERSIONS:
        raise ValueError(f"version {version}; versions 2 and 3 in little-endian order are read")
    # A tensor takes 24 bytes and more, a key 13.
    n_tensors, n_keys = header.count("tensors", 24, MAX_ENTRIES), header.count("keys", 13, MAX_ENTRIES)
    metadata = {header.string(): header.value(header.number("<I")) for _ in range(n_keys)}
    alignment = metadata.get("general.alignment", DEFAULT_ALIGNMENT)
    if type(alignment) is not int or not 8 <= alignment <= MAX_ALIGNMENT or alignment.bit_count() != 1:
        raise ValueError(f"its alignment is {shortened(alignment)}, not a power of two from 8 on")
    places = dict(read_place(header, alignment) for _ in range(n_tensors))
    if len(metadata) < n_keys or len(places) < n_tensors:
        raise ValueError("two of its keys or tensors have the same name")
    beginning = -(-header.place // alignment) * alignment
    return metadata, {
        name: TensorPlace(place.shape, place.kind, beginning + place.start) for name, place in places.items()
    }


def read_place(header: Header, alignment: int) -> tuple[str, TensorPlace]:
    """Read a tensor's name and its place behind the header."""
    name, n_axes = header.string(), header.number("<I")
    if not name or not 1 <= n_axes <= MAX_AXES:
        raise ValueError(f"it has a tensor {shortened(name)} of {n_axes} axes, not 1 to {MAX_AXES}")
    shape = tuple(header.number("<Q") for _ in range(n_axes))[::-1]
    place = TensorPlace(shape, kind_name(header.number("<I")), header.number("<Q"))
    if shape[-1] % block_size(place.kind)[0] or not all(shape):
        raise ValueError(f"tensor {shortened(name)} of shape {shape} is not in whole blocks of {place.kind}")
    if place.start % alignment:
        raise ValueError(f"tensor {shortened(name)} begins at {place.start}, no multiple of {alignment}")
    return name, place


def check_places(places: dict[str, TensorPlace], size: int) -> None:
    """Raise ``ValueError`` unless the tensors lie one behind the other within the bytes of the file."""
    end = 0
    for name, place in sorted(places.items(), key=lambda entry: entry[1].start):
        if place.start < end:
            raise ValueError(f"tensor {shortened(name)} overlaps another")
        end = place.start + place.n_bytes
        if end > size:
            raise ValueError(f"it ends within tensor {shortened(name)}")
