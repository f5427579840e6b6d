"""Small files of PyTorch (.pt), pickles of tensors by name, read without PyTorch; nothing in them is run.

A pickle may name any function to be called. Here it can name none but those that put a tensor together.
"""

import pickle
import zipfile
from collections import OrderedDict
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import ModelFileError
from ..layers.tracing import Array
from .stored import from_bfloat16

MAX_BYTES = 2**27  # of a file, and of each part unpacked
# The numbers in each kind of storage, little-endian.
STORAGES = {"FloatStorage": "<f4", "HalfStorage": "<f2", "DoubleStorage": "<f8", "BFloat16Storage": "<u2"}


class TensorUnpickler(pickle.Unpickler):
    """Reads a dictionary of tensors whose numbers are other parts of the file."""

    def __init__(self, archive: zipfile.ZipFile, name: str) -> None:
        self.archive, self.folder = archive, name.removesuffix("data.pkl")
        super().__init__(archive.open(name))

    def find_class(self, module: str, name: str) -> Any:
        """Return what makes a tensor or a dictionary; refuse all else."""
        if (module, name) == ("collections", "OrderedDict"):
            return OrderedDict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return rebuilt
        if module == "torch" and name in STORAGES:
            return name
        raise pickle.UnpicklingError(f"{module}.{name} is no tensor")

    def persistent_load(self, pid: Any) -> Array:
        """Return the numbers of a storage, ``(n_numbers,)``, widening bfloat16."""
        _, kind, key, *_ = pid
        numbers = np.frombuffer(self.archive.read(f"{self.folder}data/{key}"), STORAGES[kind])
        return from_bfloat16(numbers) if kind == "BFloat16Storage" else numbers


def rebuilt(
    storage: Array, offset: int, shape: tuple[int, ...], strides: tuple[int, ...], *_: object
) -> Array:
    """Return the tensor that begins at a place of a storage, where it lies row by row."""
    steps = (prod(shape[place:]) for place in range(1, len(shape) + 1))
    if any(n > 1 and own != step for n, own, step in zip(shape, strides, steps, strict=True)):
        raise pickle.UnpicklingError("a tensor does not lie row by row")
    return storage[offset : offset + prod(shape)].reshape(shape)


def read_pickled(path: Path) -> dict[str, Array]:
    """Read the tensors of a file; raise `ModelFileError` for one that holds anything else."""
    try:
        with zipfile.ZipFile(path) as archive:
            if max(path.stat().st_size, *(part.file_size for part in archive.infolist())) > MAX_BYTES:
                raise pickle.UnpicklingError(f"it has over {MAX_BYTES:,} bytes")
            [name] = (name for name in archive.namelist() if name.endswith("/data.pkl"))
            found = TensorUnpickler(archive, name).load()
        return {str(key): np.asarray(array) for key, array in found.items()}
    except Exception as error:  # of any kind: pickles and archives that are damaged raise many
        raise ModelFileError(
            f"{path} is no file of PyTorch with only tensors ({error}): download it again, or save it as "
            "safetensors"
        ) from error
