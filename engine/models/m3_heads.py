"""Two more heads of BGE-M3 (Chen et al. 2024): a weight for each token of a text, and a vector for each.

The weight of a token is ``ReLU(w x + b)``; one that occurs twice counts with its larger weight, and a text is
not expanded by words that it does not hold. The vectors of late interaction are ``W x + b`` at length 1, of
all tokens but the first. FlagEmbedding keeps both next to the weights, in small files of PyTorch.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..layers.activation import relu
from ..layers.linear import Linear, linear
from ..layers.tracing import Array
from ..weights.pickled import read_pickled
from ..weights.tensors import TensorReader, read_optional, read_safetensors
from .transformer import Transformer

SPARSE, COLBERT = "sparse_linear", "colbert_linear"
# Tokens without a weight, by their names in tokenizer_config.json, and those of models that state none.
UNWEIGHTED = {"cls_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}


@dataclass(frozen=True)
class TokenHead:
    """From token vectors to weights of the vocabulary's tokens, those of ``unweighted`` ids being 0."""

    dense: Linear  # (1, d_model)
    unweighted: tuple[int, ...]
    vocab_size: int

    def weights(self, vectors: Array, ids: Array) -> Array:
        """``(n_tokens, d_model)`` and ``(n_tokens,)`` to ``(n_tokens,)``."""
        return relu(linear(vectors, *self.dense))[:, 0] * ~np.isin(ids, self.unweighted)

    def word_weights(self, vectors: Array, ids: Array) -> Array:
        """As `weights`, to ``(vocab_size,)``: the largest of each token."""
        largest = np.zeros(self.vocab_size, vectors.dtype)
        np.maximum.at(largest, ids, self.weights(vectors, ids))
        return largest

    def strongest(self, vectors: Array, ids: Array) -> Array:
        """Return the place that gives each token of the vocabulary most: ``(vocab_size,)``."""
        places, order = np.zeros(self.vocab_size, int), np.argsort(self.weights(vectors, ids))
        places[ids[order]] = order  # the last of equal ids stays
        return places


def head_file(folder: Path, name: str) -> Path | None:
    """Return the file of a head, of safetensors or of PyTorch; None where the folder has none."""
    return next((path for end in ("safetensors", "pt") if (path := folder / f"{name}.{end}").is_file()), None)


def read_linear(path: Path, d_model: int, dtype: np.dtype, d_out: int | None = None) -> Linear:
    """Read the linear layer of a head; ``d_out`` is that of its weight where it is None."""
    name = path.stem
    tensors = read_pickled(path) if path.suffix == ".pt" else read_safetensors(path)
    tensors = {f"{name}.{part}": array for part, array in tensors.items()}
    width = len(tensors.get(f"{name}.weight", ())) if d_out is None else d_out
    return TensorReader(tensors, dtype).dense(name, d_model, width)


def read_token_head(path: Path, transformer: Transformer) -> TokenHead:
    """Read the head that weighs tokens."""
    config, tokenizer = transformer.config, transformer.tokenizer
    dense = read_linear(path, config.d_model, transformer.weights.token_table.dtype, 1)
    usage = UNWEIGHTED | read_optional(path.parent / "tokenizer_config.json")
    tokens = (token["content"] if isinstance(token := usage[key], dict) else token for key in UNWEIGHTED)
    ids = (tokenizer.id_of(token) for token in tokens if isinstance(token, str))
    return TokenHead(dense, tuple(number for number in ids if number is not None), config.vocab_size)
