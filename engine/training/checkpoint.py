"""A training in one file: weights and what AdamW remembers as safetensors, all the rest as its JSON header.

One file, since weights and sizes that are of two different moments are of no use.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from engine.errors import InputError, ModelFileError
from engine.layers.tracing import Array
from engine.models.small_decoder import SmallDecoderConfig, parameter_shapes
from engine.training.loop import Trainee
from engine.training.optimizers import Moments, Parameters
from engine.training.vocabulary import Vocabulary

FORMAT = "glassbox-small-decoder-1"
KEY = "glassbox"  # of the JSON in the file's header
PARTS = ("params", "mean", "square")


@dataclass(frozen=True)
class Checkpoint:
    """A model in training, and the vocabulary of its ids."""

    trainee: Trainee
    vocabulary: Vocabulary


def checkpoint_bytes(checkpoint: Checkpoint) -> bytes:
    """Return a checkpoint as the content of a .safetensors file."""
    trainee = checkpoint.trainee
    parts = zip(PARTS, (trainee.params, trainee.moments.mean, trainee.moments.square), strict=True)
    tensors = {f"{part}.{name}": array for part, tree in parts for name, array in tree.items()}
    about = {
        "format": FORMAT,
        "config": asdict(trainee.config),
        "step": trainee.step,
        "lowest": trainee.lowest if np.isfinite(trainee.lowest) else None,
        "vocabulary": asdict(checkpoint.vocabulary),
    }
    return save(tensors, {KEY: json.dumps(about)})


def save_checkpoint(checkpoint: Checkpoint, path: Path) -> None:
    """Write a checkpoint; whoever looks finds the old file or the new one, never a part of it."""
    with NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
        written = Path(file.name)
        try:
            file.write(checkpoint_bytes(checkpoint))
            file.flush()
            os.fsync(file.fileno())
        except BaseException:
            written.unlink()
            raise
    written.replace(path)


def load_checkpoint(path: Path, expected: SmallDecoderConfig | None = None) -> Checkpoint:
    """Read a checkpoint file; parameters and errors are those of `read_checkpoint`."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ModelFileError(
            f"{path.name} cannot be read ({error.strerror}): give a checkpoint file"
        ) from error
    return read_checkpoint(content, expected)


def read_checkpoint(content: bytes, expected: SmallDecoderConfig | None = None) -> Checkpoint:
    """Read what `checkpoint_bytes` gave.

    Parameters
    ----------
    content
        The file's.
    expected
        The sizes that it must have, or None where any will do.

    Raises
    ------
    ModelFileError
        It is no checkpoint, it is damaged, or one tensor has not the shape that its own sizes ask for.
    InputError
        Its sizes are not the expected ones.
    """
    about = _header(content)
    try:
        config = SmallDecoderConfig(**about["config"])
        vocabulary = Vocabulary.from_json(about["vocabulary"])
        step, lowest = int(about["step"]), about["lowest"]
        lowest = float("inf") if lowest is None else float(lowest)
    except (KeyError, TypeError, ValueError) as error:
        raise ModelFileError(
            f"the checkpoint's header cannot be understood ({error}): give another"
        ) from error
    if vocabulary.size != config.vocab_size or step < 0:
        raise ModelFileError(
            f"the checkpoint has {vocabulary.size} tokens, its model {config.vocab_size}, at step {step}: "
            "it was put together from two; give another"
        )
    if expected is not None:
        check_sizes(config, expected)
    trees = _trees(content, config)
    moments = Moments(step, trees["mean"], trees["square"])
    return Checkpoint(Trainee(config, trees["params"], moments, lowest), vocabulary)


def check_sizes(found: SmallDecoderConfig, expected: SmallDecoderConfig) -> None:
    """Raise `InputError` where a checkpoint is of a model with other sizes, naming them."""
    ours, theirs = asdict(expected), asdict(found)
    others = [f"{name} {theirs[name]} instead of {ours[name]}" for name in ours if ours[name] != theirs[name]]
    if others:
        raise InputError(
            f"the checkpoint is of another model ({', '.join(others)}): choose its sizes, or start afresh"
        )


def _header(content: bytes) -> Mapping[str, Any]:
    """What the file says of itself: 8 bytes of length, then JSON (the safetensors format)."""
    length = int.from_bytes(content[:8], "little")
    try:
        about = json.loads(json.loads(content[8 : 8 + length])["__metadata__"][KEY])
        if about["format"] != FORMAT:
            raise ValueError(f"format {about['format']!r}, not {FORMAT!r}")
    except (KeyError, TypeError, ValueError) as error:
        raise ModelFileError(
            f"this is no checkpoint of a small decoder ({error!r}): give a file that was saved here"
        ) from error
    return about


def _trees(content: bytes, config: SmallDecoderConfig) -> dict[str, Parameters]:
    """Tensors of each part, writable, each of the shape that the sizes ask for."""
    try:
        tensors = load(content)
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise ModelFileError(f"the checkpoint is damaged ({error}): save it again") from error
    shapes = parameter_shapes(config)
    return {
        part: {name: _tensor(tensors, f"{part}.{name}", shape) for name, shape in shapes.items()}
        for part in PARTS
    }


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
