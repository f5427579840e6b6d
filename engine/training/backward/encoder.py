"""Backward through the last layers of a BERT encoder, on texts concatenated along the token axis.

The forward pass is the model's own; a tracer keeps the arrays that the gradients need. Parameters and
gradients are flat dictionaries by name, such as ``layers.5.attention.query.weight``.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ...layers.attention import merge_heads, split_heads
from ...layers.dropout import dropout, dropout_backward
from ...layers.linear import Linear, linear_backward
from ...layers.norm import LayerNorm
from ...layers.primitives import NUMPY, NUMPY_TRAINING, Primitives, TrainingPrimitives
from ...layers.tracing import Array
from ...models.bert import EncoderConfig, EncoderLayer, EncoderWeights, encoder_layer
from ..optimizers import Parameters

LINEARS = {
    "query": "attention.query",
    "key": "attention.key",
    "value": "attention.value",
    "attention_output": "attention.output",
    "ffn_hidden": "ffn.hidden",
    "ffn_output": "ffn.output",
}
NORMS = {"attention_norm": "attention.norm", "output_norm": "norm"}
KEPT = frozenset(
    f"attention.{name}" for name in ("query", "key", "value", "weights", "context", "output", "norm")
) | {"ffn.hidden", "ffn.activation", "ffn.output"}
DROPPED = frozenset({"attention.output", "ffn.output"})


@dataclass
class KeptLayer:
    """A tracer that keeps a layer's input, and the arrays of its forward pass by name.

    ``attention.weights`` and ``attention.context`` are recorded once a text, all others once. With a rate and
    a generator, dropout is applied to the output of both parts, as BERT does before each residual.
    """

    hidden: Array
    dropout_rate: float = 0.0
    rng: np.random.Generator | None = None
    arrays: dict[str, list[Array]] = field(default_factory=dict)
    masks: dict[str, Array] = field(default_factory=dict)

    def __call__(self, name: str, array: Array) -> Array:
        """Keep one array; dropout may set a share of it to 0."""
        if name in DROPPED and self.rng is not None:
            array, self.masks[name] = dropout(array, self.dropout_rate, self.rng)
        if name in KEPT:
            self.arrays.setdefault(name, []).append(array)
        return array

    def __getitem__(self, name: str) -> Array:
        return self.arrays[name][0]

    def dropout_backward(self, d_y: Array, name: str) -> Array:
        """Gradient before the dropout of an array."""
        return dropout_backward(d_y, self.masks[name]) if name in self.masks else d_y


def layers_forward(
    hidden: Array,
    layers: Sequence[EncoderLayer],
    config: EncoderConfig,
    spans: Sequence[slice],
    dropout_rate: float = 0.0,
    rng: np.random.Generator | None = None,
    ops: Primitives = NUMPY,
) -> tuple[Array, list[KeptLayer]]:
    """Run layers in order: ``(n_tokens, d_model)`` to the same, and the arrays each layer kept."""
    kept = []
    for layer in layers:
        kept.append(KeptLayer(hidden, dropout_rate, rng))
        hidden = encoder_layer(hidden, layer, config, spans, ops, kept[-1])
    return hidden, kept


def layers_backward(
    d_hidden: Array,
    kept: Sequence[KeptLayer],
    layers: Sequence[EncoderLayer],
    config: EncoderConfig,
    spans: Sequence[slice],
    ops: TrainingPrimitives = NUMPY_TRAINING,
) -> tuple[Array, Parameters]:
    """Gradients of `layers_forward` by its input and by the parameters, named as in `layer_parameters`.

    Of ``out = norm(a + ffn(a))``, ``a = norm(x + attention(x))``: each residual adds its gradient to its
    sublayer's.
    """
    grads: Parameters = {}
    first = config.n_layers - len(layers)
    for number, own, layer in reversed([*zip(range(first, config.n_layers), kept, layers, strict=True)]):
        of_layer: Parameters = {}
        attended, eps = own["attention.norm"], config.norm_eps
        d_sum, *d_norm = ops.layer_norm_backward(
            d_hidden, attended + own["ffn.output"], layer.output_norm.weight, eps
        )
        put(of_layer, "norm", d_norm)
        d_output = own.dropout_backward(d_sum, "ffn.output")
        activated, weight = own["ffn.activation"], np.asarray(layer.ffn_output.weight)
        d_activated, *d_linear = linear_backward(d_output, activated, weight)
        put(of_layer, "ffn.output", d_linear)
        d_inner = ops.activations[config.activation].backward(d_activated, own["ffn.hidden"])
        d_x, *d_linear = linear_backward(d_inner, attended, np.asarray(layer.ffn_hidden.weight))
        put(of_layer, "ffn.hidden", d_linear)
        d_sum, *d_norm = ops.layer_norm_backward(
            d_sum + d_x, own.hidden + own["attention.output"], layer.attention_norm.weight, eps
        )
        put(of_layer, "attention.norm", d_norm)
        d_output = own.dropout_backward(d_sum, "attention.output")
        d_hidden = d_sum + self_attention_backward(d_output, own, layer, config.n_heads, spans, ops, of_layer)
        grads |= {f"layers.{number}.{name}": grad for name, grad in of_layer.items()}
    return d_hidden, grads


def self_attention_backward(
    d_y: Array,
    kept: KeptLayer,
    layer: EncoderLayer,
    n_heads: int,
    spans: Sequence[slice],
    ops: TrainingPrimitives,
    grads: Parameters,
) -> Array:
    """Gradient of the attention of `encoder_layer` by its input, text by text between the linear maps."""
    merged = np.concatenate([merge_heads(context) for context in kept.arrays["attention.context"]])
    d_merged, *d_output = linear_backward(d_y, merged, np.asarray(layer.attention_output.weight))
    put(grads, "attention.output", d_output)
    d_contexts = split_heads(d_merged, n_heads)  # (n_heads, n_tokens, d_head)
    parts = {name: kept[f"attention.{name}"] for name in ("query", "key", "value")}
    of_texts = [
        ops.attention_backward(
            d_contexts[:, s], parts["query"][:, s], parts["key"][:, s], parts["value"][:, s], weights
        )
        for s, weights in zip(spans, kept.arrays["attention.weights"], strict=True)
    ]
    d_x = np.zeros_like(kept.hidden)
    for name, d_heads in zip(parts, zip(*of_texts, strict=True), strict=True):
        d_part = np.concatenate([merge_heads(d_text) for d_text in d_heads])  # (n_tokens, d_model)
        d_hidden, *d_linear = linear_backward(d_part, kept.hidden, getattr(layer, name).weight)
        put(grads, f"attention.{name}", d_linear)
        d_x += d_hidden
    return d_x


def put(grads: Parameters, name: str, gradients: Sequence[Array]) -> None:
    """Name the gradients of a weight and its bias."""
    grads[f"{name}.weight"], grads[f"{name}.bias"] = gradients


def mean_pooling_backward(d_vectors: Array, spans: Sequence[slice]) -> Array:
    """Divide a text's gradient among its tokens: ``(n_texts, d_model) -> (n_tokens, d_model)``."""
    lengths = np.array([span.stop - span.start for span in spans])
    return np.repeat(d_vectors / lengths[:, None].astype(d_vectors.dtype), lengths, axis=0)


def layer_parameters(weights: EncoderWeights, n_last: int) -> Parameters:
    """Copy the parameters of the last layers into a dictionary, to be trained in place."""
    params: Parameters = {}
    for number in range(len(weights.layers) - n_last, len(weights.layers)):
        for part, name in (LINEARS | NORMS).items():
            weight, bias = getattr(weights.layers[number], part)
            params[f"layers.{number}.{name}.weight"] = np.array(weight, order="C")
            params[f"layers.{number}.{name}.bias"] = np.array(bias)
    return params


def named_layers(params: Parameters) -> tuple[EncoderLayer, ...]:
    """Return the layers that have these parameters, in order; they share the parameters' memory."""
    numbers = sorted({int(name.split(".")[1]) for name in params})

    def layer(number: int) -> EncoderLayer:
        def pair(name: str) -> tuple[Array, Array]:
            return params[f"layers.{number}.{name}.weight"], params[f"layers.{number}.{name}.bias"]

        parts: dict[str, Any] = {part: Linear(*pair(name)) for part, name in LINEARS.items()}
        parts |= {part: LayerNorm(*pair(name)) for part, name in NORMS.items()}
        return EncoderLayer(**parts)

    return tuple(layer(number) for number in numbers)


def with_parameters(weights: EncoderWeights, params: Parameters) -> EncoderWeights:
    """Return an encoder's weights with the last layers replaced by copies of ``params``."""
    # In the memory order of `bert.read_weights`.
    layers = named_layers({name: np.array(array, order="F") for name, array in params.items()})
    return replace(weights, layers=weights.layers[: -len(layers)] + layers)
