"""The layers of an encoder with their tokenizer, for models that end in another head than an encoder's."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import ModelFileError
from ..kernels.primitives import prepare_compiled
from ..layers.primitives import Primitives
from ..layers.tracing import Array
from ..tokenizers.encoding import check_vocab_size
from ..tokenizers.text_tokenizer import TextTokenizer
from ..tokenizers.tokenizer_file import read_tokenizer
from ..weights.fetch import Progress, model_path
from .bert import EncoderConfig, EncoderWeights
from .encoder_families import FAMILIES, read_model_type
from .prompts import Prompts
from .sentence_transformer_folder import read_max_tokens, read_tensors
from .token_reader import TokenReader


@dataclass(frozen=True)
class Transformer(TokenReader):
    """Layers and tokenizer; ``max_tokens``, ``compiled`` and ``prompts`` are as of an `Encoder`."""

    name: str
    model_type: str
    config: EncoderConfig
    weights: EncoderWeights = field(repr=False)
    tokenizer: TextTokenizer
    max_tokens: int
    compiled: bool = False
    prompts: Prompts = field(default_factory=Prompts, repr=False)

    def ids_of(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of texts, cut at the limit."""
        return [self.truncate(ids) for ids in self.tokenizer.ids_batch(texts)]

    def vectors(self, sequences: Sequence[Sequence[int]], ops: Primitives | None = None) -> list[Array]:
        """Token vectors of a few sequences of ids, read as one pack: ``(n_tokens, d_model)`` each."""
        found: list[Array] = self.family.encoder_forward(
            sequences, self.weights, self.config, ops=ops or self.ops
        )
        return found


def prepared(compiled: bool, dtype: npt.DTypeLike) -> bool:
    """Whether a model runs compiled, if that is wanted: only in float32; start to load what it runs on."""
    if is_compiled := compiled and np.dtype(dtype) == np.float32:
        prepare_compiled()
    return is_compiled


def model_folder(source: str | Path, kind: str, on_progress: Progress | None = None) -> Path:
    """Return the folder of a model, as `model_path`; for a file raise an error that names the ``kind``."""
    folder = model_path(source, on_progress)
    if not folder.is_dir():
        raise ModelFileError(f"{folder} is a file: {kind} is a folder with config.json")
    return folder


def read_transformer(
    source: str | Path,
    folder: Path,
    dtype: np.dtype,
    compiled: bool = False,
    settings: Mapping[str, Any] | None = None,
    prompts: Prompts | None = None,
) -> tuple[Transformer, dict[str, Array]]:
    """Read layers and tokenizer of a folder; return them with all tensors, those of the head among them.

    ``settings`` are those of sentence-transformers' Transformer module, if the folder has any.
    """
    model_type = read_model_type(folder)
    family = FAMILIES[model_type].forward
    config, tensors = family.read_config(folder), read_tensors(folder)
    weights = family.read_weights(tensors, config, dtype)
    settings = settings or {}
    tokenizer = read_tokenizer(folder / "tokenizer.json", settings.get("do_lower_case") is True)
    check_vocab_size(tokenizer.vocab_size, config.vocab_size, folder)
    limit = min(read_max_tokens(folder, settings) or config.max_positions, config.max_positions)
    prompts = prompts or Prompts()
    read = Transformer(str(source), model_type, config, weights, tokenizer, limit, compiled, prompts)
    return read, tensors
