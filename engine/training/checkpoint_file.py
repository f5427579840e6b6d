"""Checkpoints: weights and Adam's state in one .safetensors file, everything else as JSON in its header.

One file, so that weights and sizes always belong together.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from ..errors import ModelFileError
from ..layers.tracing import Array, Shapes
from ..weights.tensors import HEADER_KEY
from ..wording import reason_of
from .optimizers import Moments, Parameters

PARTS = ("params", "mean", "square")


def file_bytes(params: Parameters, moments: Moments, header: Any) -> bytes:
    """Return the content of a file with these tensors and this header, a dataclass."""
    parts = zip(PARTS, (params, moments.mean, moments.square), strict=True)
    tensors = {f"{part}.{name}": array for part, arrays in parts for name, array in arrays.items()}
    return save(tensors, {HEADER_KEY: json.dumps(asdict(header))})


def read_trees(content: bytes, shapes: Shapes, n_updates: int) -> tuple[Parameters, Moments]:
    """Read writable weights and moments of these shapes, after ``n_updates`` updates."""
    try:
        tensors = load(content)
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise ModelFileError(f"the checkpoint is damaged ({reason_of(error)}): save it again") from error
    wanted = {f"{part}.{name}" for part in PARTS for name in shapes}
    if others := sorted(tensors.keys() - wanted):
        raise ModelFileError(
            f"the checkpoint has a tensor {others[0]!r}, which its sizes do not have: weights and sizes are "
            "not of one model"
        )
    params, mean, square = (
        {name: read_tensor(tensors, f"{part}.{name}", shape) for name, shape in shapes.items()}
        for part in PARTS
    )
    return params, Moments(n_updates, mean, square)


def read_tensor(tensors: Mapping[str, Array], name: str, shape: tuple[int, ...]) -> Array:
    """Return a writable copy of a tensor, which must be finite float32 of this shape."""
    if name not in tensors:
        raise ModelFileError(
            f"the checkpoint has no tensor {name!r}: it is incomplete, or of a model of other sizes; "
            "give another"
        )
    found = tensors[name]
    if found.shape != shape or found.dtype != np.float32:
        raise ModelFileError(
            f"tensor {name!r} of the checkpoint is {found.dtype} {found.shape}, but its sizes ask for "
            f"float32 {shape}: weights and sizes are not of one model"
        )
    if not np.isfinite(found).all():
        raise ModelFileError(
            f"tensor {name!r} of the checkpoint has values that are no numbers: give another"
        )
    return np.array(found)
