"""Checkpoints: weights and Adam's state in one .safetensors file, everything else as JSON in its header.

One file, so that weights and sizes always belong together.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from engine.errors import InputError, ModelFileError
from engine.layers.tracing import Array, Shapes
from engine.training.optimizers import Moments, Parameters
from engine.wording import reason_of

KEY = "glassbox"  # of the JSON in the header's metadata
PARTS = ("params", "mean", "square")


def file_bytes(params: Parameters, moments: Moments, about: Mapping[str, Any]) -> bytes:
    """Return the content of a file with these tensors and the header ``about``."""
    parts = zip(PARTS, (params, moments.mean, moments.square), strict=True)
    tensors = {f"{part}.{name}": array for part, tree in parts for name, array in tree.items()}
    return save(tensors, {KEY: json.dumps(about)})


def read_about(content: bytes, file_format: str, what: str) -> Mapping[str, Any]:
    """Read a file's header: 8 bytes of length, then JSON (the safetensors format)."""
    length = int.from_bytes(content[:8], "little")
    try:
        about = json.loads(json.loads(content[8 : 8 + length])["__metadata__"][KEY])
        if about["format"] != file_format:
            raise ValueError(f"format {about['format']!r}, not {file_format!r}")
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        reason = f"{type(error).__name__}: {reason_of(error)}"
        raise ModelFileError(
            f"this is no checkpoint of {what} ({reason}): give a file that was saved here"
        ) from error
    return about


@contextmanager
def reading_header() -> Iterator[None]:
    """Raise `ModelFileError` for header values that are missing or wrong."""
    try:
        yield
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ModelFileError(
            f"the checkpoint's header cannot be understood ({reason_of(error)}): give another"
        ) from error


def read_trees(content: bytes, shapes: Shapes, n_updates: int) -> tuple[Parameters, Moments]:
    """Read writable weights and moments of these shapes, after ``n_updates`` updates."""
    try:
        tensors = load(content)
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise ModelFileError(f"the checkpoint is damaged ({reason_of(error)}): save it again") from error
    params, mean, square = (
        {name: _tensor(tensors, f"{part}.{name}", shape) for name, shape in shapes.items()} for part in PARTS
    )
    return params, Moments(n_updates, mean, square)


def check_sizes(config: Any, expected: Any) -> None:
    """Raise `InputError` naming the sizes in which two configurations differ; None accepts any."""
    found, wanted = asdict(config), {} if expected is None else asdict(expected)
    others = [
        f"{name} {found[name]} instead of {wanted[name]}" for name in wanted if wanted[name] != found[name]
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
