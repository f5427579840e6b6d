"""Checkpoint of a small decoder in training, in the format of `checkpoint_file`."""

from dataclasses import asdict, dataclass
from typing import Literal

import numpy as np

from ...errors import InputError, ModelFileError
from ...models.small_decoder import SmallDecoderConfig
from ...models.small_decoder_params import parameter_shapes
from ...weights.tensors import read_header
from ..checkpoint_file import file_bytes, read_trees
from ..optimizers import Moments, Parameters
from .small_decoder_loop import TrainingState
from .vocabulary import Vocabulary


@dataclass(frozen=True)
class Checkpoint:
    """A model in training, and the vocabulary of its ids."""

    state: TrainingState
    vocabulary: Vocabulary

    def to_bytes(self) -> bytes:
        """Return the content of a .safetensors file."""
        state = self.state
        lowest = state.lowest if np.isfinite(state.lowest) else None
        header = Header("glassbox-small-decoder-1", state.config, state.n_updates, lowest, self.vocabulary)
        return file_bytes(state.params, state.moments, header)


@dataclass(frozen=True)
class Header:
    """The JSON of a checkpoint; ``lowest`` is None before the first update."""

    format: Literal["glassbox-small-decoder-1"]
    config: SmallDecoderConfig
    step: int
    lowest: float | None
    vocabulary: Vocabulary


def read_checkpoint(_name: str, content: bytes) -> tuple[Header, Parameters, Moments]:
    """Read the parts of a checkpoint from a file of some name, which may be a stranger's.

    Raises `ModelFileError` where it is not a checkpoint, is damaged, or has a tensor of another shape than
    its sizes say.
    """
    header = read_header(content, Header, "a small decoder")
    if header.vocabulary.size != header.config.vocab_size or header.step < 0:
        raise ModelFileError(
            f"the checkpoint has {header.vocabulary.size} tokens, its model {header.config.vocab_size}, at "
            f"step {header.step}: it was put together from two; give another"
        )
    return header, *read_trees(content, parameter_shapes(header.config), header.step)


def checkpoint_of(
    header: Header, params: Parameters, moments: Moments, expected: SmallDecoderConfig | None = None
) -> Checkpoint:
    """Put a checkpoint together; raise `InputError` where its sizes are not the ``expected`` ones."""
    found, wanted = asdict(header.config), asdict(expected or header.config)
    others = [f"{key} {found[key]} instead of {wanted[key]}" for key in wanted if wanted[key] != found[key]]
    if others:
        raise InputError(
            f"the checkpoint is of another model ({', '.join(others)}): give one of these sizes, or forget "
            "the model that is there before loading it"
        )
    lowest = float("inf") if header.lowest is None else header.lowest
    state = TrainingState(header.config, params, moments, lowest)
    return Checkpoint(state, header.vocabulary)
