"""The training of a small decoder in one file: see `engine.training.checkpoint_file`."""

import os
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile

import numpy as np

from engine.errors import ModelFileError
from engine.models.small_decoder import SmallDecoderConfig
from engine.models.small_decoder_params import parameter_shapes
from engine.training.checkpoint_file import check_sizes, file_bytes, read_about, read_trees
from engine.training.loop import Trainee
from engine.training.vocabulary import Vocabulary

FORMAT = "glassbox-small-decoder-1"


@dataclass(frozen=True)
class Checkpoint:
    """A model in training, and the vocabulary of its ids."""

    trainee: Trainee
    vocabulary: Vocabulary


def checkpoint_bytes(checkpoint: Checkpoint) -> bytes:
    """Return a checkpoint as the content of a .safetensors file."""
    trainee = checkpoint.trainee
    about = {
        "format": FORMAT,
        "config": asdict(trainee.config),
        "step": trainee.step,
        "lowest": trainee.lowest if np.isfinite(trainee.lowest) else None,
        "vocabulary": asdict(checkpoint.vocabulary),
    }
    return file_bytes(trainee.params, trainee.moments, about)


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
    about = read_about(content, FORMAT, "a small decoder")
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
        check_sizes(asdict(config), asdict(expected))
    params, moments = read_trees(content, parameter_shapes(config), step)
    return Checkpoint(Trainee(config, params, moments, lowest), vocabulary)
