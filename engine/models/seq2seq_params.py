"""The parameters of an encoder-decoder: names, shapes, and random initial values."""

from collections.abc import Iterator, Mapping
from math import prod

import numpy as np

from engine.layers.positions import FLOAT32
from engine.layers.tracing import Array, Shapes
from engine.models.seq2seq import Seq2SeqConfig


def parameter_shapes(config: Seq2SeqConfig) -> Shapes:
    """Shape of every parameter by name; matrices are ``(d_out, d_in)``, in the order a forward pass reads."""
    shapes: Shapes = {"embedding.weight": (config.vocab_size, config.d_model)}
    for i in range(config.n_encoder_layers):
        shapes |= attention_shapes(f"encoder.layers.{i}.attention", config)
        shapes |= ffn_shapes(f"encoder.layers.{i}.ffn", config)
    for i in range(config.n_decoder_layers):
        shapes |= attention_shapes(f"decoder.layers.{i}.attention", config)
        shapes |= attention_shapes(f"decoder.layers.{i}.cross_attention", config)
        shapes |= ffn_shapes(f"decoder.layers.{i}.ffn", config)
    return shapes


def attention_shapes(name: str, config: Seq2SeqConfig) -> Shapes:
    """Shapes of W^Q, W^K, W^V (all heads stacked), W^O, and the norm after them."""
    width = config.n_heads * config.d_head
    shapes: Shapes = {}
    for part in ("query", "key", "value"):
        shapes |= {f"{name}.{part}.weight": (width, config.d_model), f"{name}.{part}.bias": (width,)}
    shapes |= {f"{name}.output.weight": (config.d_model, width), f"{name}.output.bias": (config.d_model,)}
    return shapes | norm_shapes(name, config)


def ffn_shapes(name: str, config: Seq2SeqConfig) -> Shapes:
    """Shapes of the two matrices of a feed-forward network, and the norm after it."""
    d_model, d_ff = config.d_model, config.d_ff
    shapes: Shapes = {f"{name}.hidden.weight": (d_ff, d_model), f"{name}.hidden.bias": (d_ff,)}
    shapes |= {f"{name}.output.weight": (d_model, d_ff), f"{name}.output.bias": (d_model,)}
    return shapes | norm_shapes(name, config)


def norm_shapes(name: str, config: Seq2SeqConfig) -> Shapes:
    """Shapes of a layer norm's scale and shift."""
    return {f"{name}.norm.weight": (config.d_model,), f"{name}.norm.bias": (config.d_model,)}


def random_parameter(name: str, shape: tuple[int, ...], rng: np.random.Generator, dtype: np.dtype) -> Array:
    """One random parameter, drawn in float32.

    Matrices are Xavier uniform (Glorot & Bengio 2010), as in ``torch.nn.Transformer``; the embedding
    is normal with standard deviation ``d_model^-0.5``, as tensor2tensor's, so that its vectors times
    ``sqrt(d_model)`` match the positions in size. Biases are 0, the scales of norms 1.
    """
    if name == "embedding.weight":
        x = rng.standard_normal(shape, np.float32)
        x *= np.float32(shape[1] ** -0.5)
    elif len(shape) == 2:
        bound = np.float32(np.sqrt(6 / sum(shape)))
        x = rng.random(shape, np.float32)
        x *= 2 * bound
        x -= bound
    else:
        x = np.full(shape, name.endswith("norm.weight"), np.float32)
    return x.astype(dtype, copy=False)


class RandomParams(Mapping[str, Array]):
    """Random parameters, generated whenever they are read and never stored.

    A parameter depends only on the seed and its index among the names. So models larger than memory can run.
    """

    def __init__(self, config: Seq2SeqConfig, seed: int, dtype: np.dtype = FLOAT32) -> None:
        self.shapes = parameter_shapes(config)
        self._indices = {name: index for index, name in enumerate(self.shapes)}
        self._seed, self._dtype = seed, dtype

    def __getitem__(self, name: str) -> Array:
        rng = np.random.default_rng([self._seed, self._indices[name]])
        return random_parameter(name, self.shapes[name], rng, self._dtype)

    def __iter__(self) -> Iterator[str]:
        return iter(self.shapes)

    def __len__(self) -> int:
        return len(self.shapes)


def n_parameters(config: Seq2SeqConfig) -> int:
    """Number of parameters of a model."""
    return sum(prod(shape) for shape in parameter_shapes(config).values())
