"""A training as one .safetensors file: weights and what Adam remembers, all the rest as JSON in its header.

One file, since weights and sizes that are of two different moments are of no use.
"""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from engine.errors import InputError, ModelFileError
from engine.layers.tracing import Array, Shapes
from engine.training.optimizers import Moments, Parameters

KEY = "glassbox"  # of the JSON in the file's header
PARTS = ("params", "mean", "square")


def file_bytes(params: Parameters, moments: Moments, about: Mapping[str, Any]) -> bytes:
    """Return the content of a file with these tensors, and with ``about`` as JSON in its header."""
    parts = zip(PARTS, (params, moments.mean, moments.square), strict=True)
    tensors = {f"{part}.{name}": array for part, tree in parts for name, array in tree.items()}
    return save(tensors, {KEY: json.dumps(about)})


def read_about(content: bytes, file_format: str, what: str) -> Mapping[str, Any]:
    """Return what a file says of itself: 8 bytes of length, then JSON (the safetensors format).

    Raises
    ------
    ModelFileError
        It is no such file, or not of the format that a checkpoint of ``what`` has.
    """
    length = int.from_bytes(content[:8], "little")
    try:
        about = json.loads(json.loads(content[8 : 8 + length])["__metadata__"][KEY])
        if about["format"] != file_format:
            raise ValueError(f"format {about['format']!r}, not {file_format!r}")
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise ModelFileError(
            f"this is no checkpoint of {what} ({error!r}): give a file that was saved here"
        ) from error
    return about


def read_trees(content: bytes, shapes: Shapes, step: int) -> tuple[Parameters, Moments]:
    """Return weights and moments, writable, each tensor of the shape that the sizes ask for.

    Raises
    ------
    ModelFileError
        The file is damaged, or a tensor is missing, of another shape, or not finite.
    """
    try:
        tensors = load(content)
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise ModelFileError(f"the checkpoint is damaged ({error}): save it again") from error
    params, mean, square = (
        {name: _tensor(tensors, f"{part}.{name}", shape) for name, shape in shapes.items()} for part in PARTS
    )
    return params, Moments(step, mean, square)


def check_sizes(found: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    """Raise `InputError` where a checkpoint is of a model with other sizes, naming them."""
    others = [
        f"{name} {found[name]} instead of {expected[name]}"
        for name in expected
        if expected[name] != found[name]
    ]
    if others:
        raise InputError(
            f"the checkpoint is of another model ({', '.join(others)}): give one of these sizes, or forget "
            "the model that is there before loading it"
        )


def _tensor(tensors: Mapping[str, Array], name: str, shape: tuple[int, ...]) -> Array:
    if name not in tensors:
        raise ModelFileError(f"the checkpoint has no tensor {name!r}: its file is incomplete; save it again")
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
