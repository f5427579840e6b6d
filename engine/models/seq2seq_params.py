"""The parameters of an encoder-decoder: names, shapes, random initial values, and the cost of each part."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from math import prod

import numpy as np

from ..layers.positions import FLOAT32
from ..layers.tracing import Array, Shapes
from .seq2seq import Seq2SeqConfig


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


def n_parameters(config: Seq2SeqConfig, pattern: str = "*") -> int:
    """Number of parameters of a model, or of those whose names match a pattern."""
    shapes = parameter_shapes(config)
    return sum(prod(shape) for name, shape in shapes.items() if fnmatchcase(name, pattern))


@dataclass(frozen=True)
class PartSize:
    """Parameters and FLOPs of one part of a model, all its layers together.

    A FLOP is a multiplication or an addition. Only matrix products are counted: softmax, norms, biases and
    activations add a fraction of about ``1 / d_model``.
    """

    name: str
    n_parameters: int
    flops: int


def part_sizes(config: Seq2SeqConfig, n_source: int, n_target: int) -> list[PartSize]:
    """Cost of a forward pass over a source of ``n_source`` tokens and a target of ``n_target``.

    The decoder reads its whole target at once, as in training; greedy decoding repeats it for every token.
    """
    n_encoder, n_decoder = config.n_encoder_layers, config.n_decoder_layers
    counted = {
        "Embedding, which gives the logits too": (
            "embedding.*",
            linear_flops(n_target, config.d_model, config.vocab_size),
        ),
        "Encoder: self-attention": (
            "encoder.*.attention.[!n]*",
            n_encoder * attention_flops(config, n_source, n_source),
        ),
        "Encoder: feed-forward": ("encoder.*.ffn.[!n]*", n_encoder * ffn_flops(config, n_source)),
        "Decoder: masked self-attention": (
            "decoder.*.attention.[!n]*",
            n_decoder * attention_flops(config, n_target, n_target),
        ),
        "Decoder: cross-attention": (
            "decoder.*.cross_attention.[!n]*",
            n_decoder * attention_flops(config, n_target, n_source),
        ),
        "Decoder: feed-forward": ("decoder.*.ffn.[!n]*", n_decoder * ffn_flops(config, n_target)),
        "Norms": ("*.norm.*", 0),
    }
    return [
        PartSize(name, n_parameters(config, pattern), flops) for name, (pattern, flops) in counted.items()
    ]


def linear_flops(n_tokens: int, d_in: int, d_out: int) -> int:
    """A multiplication and an addition for each token, input and output."""
    return 2 * n_tokens * d_in * d_out


def attention_flops(config: Seq2SeqConfig, n_query: int, n_key: int) -> int:
    """Projections of queries, keys, values and output; scores; weighted sums of values."""
    width = config.n_heads * config.d_head
    projections = 2 * linear_flops(n_query, config.d_model, width)  # queries and output
    projections += 2 * linear_flops(n_key, config.d_model, width)  # keys and values
    return projections + 2 * linear_flops(n_query, width, n_key)


def ffn_flops(config: Seq2SeqConfig, n_tokens: int) -> int:
    """The two matrices of the feed-forward network."""
    return 2 * linear_flops(n_tokens, config.d_model, config.d_ff)
