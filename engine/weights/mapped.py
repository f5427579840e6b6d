"""Model files mapped into memory: the operating system reads a page when it is used, and may drop it again.

Only for files that are never shortened, which would end the process: those of known models in the cache are
replaced whole, and so is the bundled reader.
"""

import json
import mmap
import weakref
from pathlib import Path

import numpy as np

from ..layers.tracing import Array

KINDS = {"F16": np.float16, "F32": np.float32, "F64": np.float64, "I64": np.int64}
_maps: weakref.WeakSet[mmap.mmap] = weakref.WeakSet()


def map_safetensors(path: Path) -> dict[str, Array]:
    """Map a .safetensors file of `KINDS` and 8 bits; its matrices cannot be written, vectors are copied."""
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    _maps.add(mapped)
    n_header = int.from_bytes(mapped[:8], "little")
    header = json.loads(mapped[8 : 8 + n_header])
    content = np.frombuffer(mapped, np.uint8, offset=8 + n_header)
    tensors, kinds = {}, KINDS | {"I8": np.int8}
    for name, entry in header.items():
        if name != "__metadata__":
            start, end = entry["data_offsets"]
            array = content[start:end].view(kinds[entry["dtype"]]).reshape(entry["shape"])
            tensors[name] = array if array.ndim == 2 else array.copy()
    return tensors


def is_mapped(array: Array) -> bool:
    """Whether an array is a view of a mapped file."""
    base: object = array
    while isinstance(base, np.ndarray):
        base = base.base
    return isinstance(base, memoryview) and isinstance(base.obj, mmap.mmap)


def release_pages() -> None:
    """Drop the pages of all mapped files from memory; they are read again when they are used."""
    if hasattr(mmap, "MADV_DONTNEED"):  # not on Windows
        for mapped in list(_maps):
            mapped.madvise(mmap.MADV_DONTNEED)
