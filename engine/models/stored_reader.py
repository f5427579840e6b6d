"""Reads the parameters of a decoder from a folder or a .gguf file, in the types that the file stores."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from ..layers.linear import Matrix
from ..layers.tracing import Array
from ..weights.stored import StoredTensor
from ..weights.tensors import with_shape


@dataclass(frozen=True)
class StoredReader:
    """Tensors by their names in a file, which ``read`` returns; matrices are ``packed``, or float32.

    `engine.weights.tensors.TensorReader` has the same methods, for encoders.
    """

    read: Callable[[str], StoredTensor]
    packed: bool

    def tensor(self, name: str, *shape: int) -> StoredTensor:
        """Return a tensor, after checking its shape and that its numbers are finite."""
        return with_shape(self.read(name), name, shape)

    def vector(self, tensor: StoredTensor) -> Array:
        """Return the numbers of a tensor."""
        return tensor.float32()

    def matrix(self, *parts: StoredTensor) -> Matrix:
        """Return a matrix, or several with the same input stacked; neighbours of one type are packed."""
        if not self.packed:
            return np.concatenate([part.float32() for part in parts])
        from ..kernels.packed import StackedMatrix, pack  # needs numba

        by_kind = groupby(parts, lambda part: part.kind)
        matrices = [pack(kind, stacked([part.rows for part in own])) for kind, own in by_kind]
        return matrices[0] if len(matrices) == 1 else StackedMatrix(tuple(matrices))


def stacked(arrays: Sequence[Array]) -> Array:
    """Return arrays one below the other; a single one is not copied."""
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
