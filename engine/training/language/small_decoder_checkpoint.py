"""Checkpoint of a small decoder in training: one .safetensors file.

Its tensors are the weights and Adam's state. Sizes, vocabulary and progress stand as JSON in its header, so
that they always belong to the weights.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Literal

import numpy as np
from pydantic import TypeAdapter
from safetensors import SafetensorError
from safetensors.numpy import load, save

from engine.errors import UNREADABLE, InputError, ModelFileError
from engine.layers.tracing import Array
from engine.models.small_decoder import SmallDecoderConfig
from engine.models.small_decoder_params import parameter_shapes
from engine.training.language.small_decoder_loop import TrainingState
from engine.training.language.vocabulary import Vocabulary
from engine.training.optimizers import Moments
from engine.wording import reason_of

KEY = "glassbox"  # of the JSON in the header's metadata
PARTS = ("params", "mean", "square")


@dataclass(frozen=True)
class Checkpoint:
    """A model in training, and the vocabulary of its ids."""

    state: TrainingState
    vocabulary: Vocabulary


@dataclass(frozen=True)
class Header:
    """The JSON of a checkpoint; ``lowest`` is None before the first update."""

    format: Literal["glassbox-small-decoder-1"]
    config: SmallDecoderConfig
    step: int
    lowest: float | None
    vocabulary: Vocabulary


def checkpoint_bytes(checkpoint: Checkpoint) -> bytes:
    """Return a checkpoint as the content of a .safetensors file."""
    state = checkpoint.state
    lowest = state.lowest if np.isfinite(state.lowest) else None
    header = Header("glassbox-small-decoder-1", state.config, state.n_updates, lowest, checkpoint.vocabulary)
    parts = zip(PARTS, (state.params, state.moments.mean, state.moments.square), strict=True)
    tensors = {f"{part}.{name}": array for part, arrays in parts for name, array in arrays.items()}
    return save(tensors, {KEY: json.dumps(asdict(header))})


def read_checkpoint(content: bytes, expected: SmallDecoderConfig | None = None) -> Checkpoint:
    """Read a checkpoint from the content of its file.

    Raises
    ------
    ModelFileError
        It is not a checkpoint, is damaged, or has a tensor of another shape than its sizes say.
    InputError
        Its sizes are not the ``expected`` ones.
    """
    header = read_header(content)
    if header.vocabulary.size != header.config.vocab_size or header.step < 0:
        raise ModelFileError(
            f"the checkpoint has {header.vocabulary.size} tokens, its model {header.config.vocab_size}, at "
            f"step {header.step}: it was put together from two; give another"
        )
    check_sizes(header.config, expected or header.config)
    try:
        tensors = load(content)
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise ModelFileError(f"the checkpoint is damaged ({reason_of(error)}): save it again") from error
    shapes = parameter_shapes(header.config)
    params, mean, square = (
        {name: read_tensor(tensors, f"{part}.{name}", shape) for name, shape in shapes.items()}
        for part in PARTS
    )
    lowest = float("inf") if header.lowest is None else header.lowest
    state = TrainingState(header.config, params, Moments(header.step, mean, square), lowest)
    return Checkpoint(state, header.vocabulary)


def read_header(content: bytes) -> Header:
    """Read a file's header: 8 bytes of length, then JSON (the safetensors format)."""
    length = int.from_bytes(content[:8], "little")
    try:
        text = json.loads(content[8 : 8 + length])["__metadata__"][KEY]
        return TypeAdapter(Header).validate_json(text, strict=True)
    except UNREADABLE as error:
        reason = f"{type(error).__name__}: {reason_of(error)}"
        raise ModelFileError(
            f"this is no checkpoint of a small decoder ({reason}): give a file that was saved here"
        ) from error


def check_sizes(config: SmallDecoderConfig, expected: SmallDecoderConfig) -> None:
    """Raise `InputError` naming the sizes in which two configurations differ."""
    found, wanted = asdict(config), asdict(expected)
    others = [
        f"{name} {found[name]} instead of {wanted[name]}" for name in wanted if wanted[name] != found[name]
    ]
    if others:
        raise InputError(
            f"the checkpoint is of another model ({', '.join(others)}): give one of these sizes, or forget "
            "the model that is there before loading it"
        )


def read_tensor(tensors: Mapping[str, Array], name: str, shape: tuple[int, ...]) -> Array:
    """Return a writable copy of a tensor, which must be finite float32 of this shape."""
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
