"""Checkpoint of a small decoder in training, in the format of `checkpoint_file`."""

from dataclasses import asdict, dataclass

import numpy as np

from engine.errors import ModelFileError
from engine.models.small_decoder import SmallDecoderConfig
from engine.models.small_decoder_params import parameter_shapes
from engine.training.language.checkpoint_file import (
    check_sizes,
    file_bytes,
    read_about,
    read_trees,
    reading_header,
)
from engine.training.language.small_decoder_loop import TrainingState
from engine.training.language.vocabulary import Vocabulary

FORMAT = "glassbox-small-decoder-1"


@dataclass(frozen=True)
class Checkpoint:
    """A model in training, and the vocabulary of its ids."""

    state: TrainingState
    vocabulary: Vocabulary


def checkpoint_bytes(checkpoint: Checkpoint) -> bytes:
    """Return a checkpoint as the content of a .safetensors file."""
    state = checkpoint.state
    about = {
        "format": FORMAT,
        "config": asdict(state.config),
        "step": state.n_updates,
        "lowest": state.lowest if np.isfinite(state.lowest) else None,
        "vocabulary": asdict(checkpoint.vocabulary),
    }
    return file_bytes(state.params, state.moments, about)


def read_checkpoint(content: bytes, expected: SmallDecoderConfig | None = None) -> Checkpoint:
    """Read a checkpoint from the content of its file; ``expected`` sizes are checked."""
    about = read_about(content, FORMAT, "a small decoder")
    with reading_header():
        config = SmallDecoderConfig(**about["config"])
        vocabulary = Vocabulary.from_json(about["vocabulary"])
        n_updates, lowest = int(about["step"]), about["lowest"]
        lowest = float("inf") if lowest is None else float(lowest)
    if vocabulary.size != config.vocab_size or n_updates < 0:
        raise ModelFileError(
            f"the checkpoint has {vocabulary.size} tokens, its model {config.vocab_size}, at step "
            f"{n_updates}: it was put together from two; give another"
        )
    check_sizes(config, expected)
    params, moments = read_trees(content, parameter_shapes(config), n_updates)
    return Checkpoint(TrainingState(config, params, moments, lowest), vocabulary)
