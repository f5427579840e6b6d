"""What several families share: sizes, residuals, attention in packs, feed-forward, traced shapes."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from ..layers.attention import merge_heads, split_heads
from ..layers.linear import Linear
from ..layers.norm import LayerNorm
from ..layers.primitives import DecoderPrimitives, Primitives
from ..layers.tracing import Array, Shapes, Tracer, scoped
from ..weights.tensors import MAX_EPS, config_activation, config_float, config_size
from .kv_cache import CacheSizes

Ops = Primitives | DecoderPrimitives

# The sizes that most families have in config.json, by their names here.
SIZES = {
    "vocab_size": "vocab_size",
    "d_model": "hidden_size",
    "n_layers": "num_hidden_layers",
    "n_heads": "num_attention_heads",
    "d_ff": "intermediate_size",
    "max_positions": "max_position_embeddings",
}


class LayerSizes(CacheSizes, Protocol):
    """The sizes of the layers, which all families have."""

    @property
    def d_model(self) -> int: ...  # noqa: D102
    @property
    def n_heads(self) -> int: ...  # noqa: D102
    @property
    def d_ff(self) -> int: ...  # noqa: D102


def config_fields(config: Mapping[str, Any], eps: str, activation: str, **defaults: Any) -> dict[str, Any]:
    """Return the fields of a model's sizes that most families state, by the keys of two that vary.

    ``defaults`` stand in for missing ones.
    """
    fields: dict[str, Any] = {
        field: config_size(config, key, defaults.get(key)) for field, key in SIZES.items()
    }
    fields["norm_eps"] = config_float(config, eps, defaults.get(eps), most=MAX_EPS)
    return fields | {"activation": config_activation(config, activation, defaults.get(activation, "gelu"))}


def run_layers(
    hidden: Array,
    layers: Sequence[Any],
    norm: Callable[[Array, Any], Array],
    attend: Callable[[Array, Any, int, Tracer], Array],
    transform: Callable[[Array, Any, Tracer], Array],
    add: Callable[[Array, Array], Array],
    trace: Tracer,
) -> Array:
    """``x += attend(norm(x)); x += transform(norm(x))`` for every layer: ``(n_new, d_model)`` to the same.

    The layers have the norms ``attention_norm`` and ``ffn_norm``. ``norm`` takes ``(x, parameters)``,
    ``attend`` ``(normed, layer, number, trace)``, ``transform`` ``(normed, layer, trace)``.
    """
    for number, layer in enumerate(layers):
        layer_trace = scoped(trace, f"layers.{number}")
        normed = layer_trace("attention.norm", norm(hidden, layer.attention_norm))
        hidden = add(hidden, attend(normed, layer, number, scoped(layer_trace, "attention")))
        normed = layer_trace("ffn.norm", norm(hidden, layer.ffn_norm))
        hidden = layer_trace("output", add(hidden, transform(normed, layer, scoped(layer_trace, "ffn"))))
    return hidden


def post_norm_layer(
    hidden: Array,
    layer: Any,
    norm_eps: float,
    attend: Callable[[Array, Tracer], Array],
    transform: Callable[[Array, Tracer], Array],
    ops: Primitives,
    trace: Tracer,
    norm_first: bool = False,
) -> Array:
    """``x = norm(x + attend(x)); x = norm(x + transform(x))``: ``(n_tokens, d_model)`` to the same.

    The layer has the norms ``attention_norm`` and ``output_norm``; ``norm_first`` moves them in front.
    """

    def norm(x: Array, parameters: LayerNorm) -> Array:
        return ops.layer_norm(x, *parameters, norm_eps)

    def attention_norm(x: Array) -> Array:
        return trace("attention.norm", norm(x, layer.attention_norm))

    attention_trace, ffn_trace = scoped(trace, "attention"), scoped(trace, "ffn")
    if norm_first:
        hidden = hidden + attend(attention_norm(hidden.copy()), attention_trace)
        return trace("output", hidden + transform(norm(hidden.copy(), layer.output_norm), ffn_trace))
    hidden = attention_norm(hidden + attend(hidden, attention_trace))
    return trace("output", norm(hidden + transform(hidden, ffn_trace), layer.output_norm))


def rotary_attention(
    hidden: Array,
    layer: Any,
    n_heads: int,
    rope: tuple[Array, Array],
    spans: Sequence[slice],
    ops: Primitives,
    trace: Tracer,
    reach: int | None = None,
) -> Array:
    """Multi-head self-attention with RoPE within each text of a pack: ``(n_tokens, d_model)`` to the same.

    The weight of ``layer.query_key_value`` is ``(3 d_model, d_model)``. A token sees at most ``reach`` tokens
    to each side, all for None.
    """
    heads = split_heads(ops.linear(hidden, *layer.query_key_value), 3 * n_heads)
    rotated = ops.apply_rope(heads[: 2 * n_heads], *rope)
    query, key = trace("query", rotated[:n_heads]), trace("key", rotated[n_heads:])
    value = trace("value", heads[2 * n_heads :])  # (n_heads, n_tokens, d_head)

    def attend(s: slice) -> Array:
        of_text = query[:, s], key[:, s], value[:, s]
        if reach is None:
            return ops.attention(*of_text, None, trace)
        return ops.windowed_attention(*of_text, reach, reach, trace)

    return attention_output([attend(s) for s in spans], layer.attention_output, ops, trace)


def attention_output(contexts: Sequence[Array], output: Linear, ops: Ops, trace: Tracer) -> Array:
    """Merge the heads of each text's context, and map them: ``(n_tokens, d_model)``."""
    merged = np.concatenate([merge_heads(context) for context in contexts])
    return trace("output", ops.linear(merged, *output))


def feed_forward(hidden: Array, layer: Any, activation: str, ops: Ops, trace: Tracer) -> Array:
    """``W2 act(W1 x + b1) + b2``: ``(n_tokens, d_model) -> (n_tokens, d_ff) -> (n_tokens, d_model)``."""
    inner = trace("hidden", ops.linear(hidden, *layer.ffn_hidden))
    activated = trace("activation", ops.activations[activation].forward(inner))
    return trace("output", ops.linear(activated, *layer.ffn_output))


def gated_feed_forward(hidden: Array, layer: Any, function: str, ops: Ops, trace: Tracer) -> Array:
    """``W_down (f(W_gate x) * W_up x)`` (Shazeer 2020): ``(n_tokens, d_model)`` to the same.

    ``function`` names f: ``silu`` makes it SwiGLU, ``gelu`` GeGLU. The weight of ``layer.gate_up`` is
    ``(2 d_ff, d_model)``.
    """
    gate_up = ops.linear(hidden, *layer.gate_up)  # (n_tokens, 2 d_ff)
    d_ff = gate_up.shape[1] // 2
    return gated_output(gate_up[:, :d_ff], gate_up[:, d_ff:], layer.ffn_output, function, ops, trace)


def gated_output(gate: Array, up: Array, output: Linear, function: str, ops: Ops, trace: Tracer) -> Array:
    """``W_down (f(gate) * up)``: ``(n_tokens, d_ff)`` twice to ``(n_tokens, d_model)``."""
    gate, up = trace("gate", gate), trace("hidden", up)
    activation = trace("activation", ops.gated(gate, up, function))
    return trace("output", ops.linear(activation, *output))


def layer_trace_shapes(
    config: LayerSizes,
    n_tokens: int,
    embeddings: Iterable[str],
    hidden: Iterable[str],
    norms: Iterable[str] = ("attention.norm", "ffn.norm"),
    head_norms: bool = False,
    final_norm: bool = True,
) -> Shapes:
    """Shapes that a pass over one text traces, given the names of embeddings and of d_ff-wide arrays.

    ``norms`` are the names of a layer's norms; with ``head_norms``, queries and keys are normed before they
    are rotated; with ``final_norm``, there is a norm behind the last layer.
    """
    vectors, maps = (n_tokens, config.d_model), (config.n_heads, n_tokens, n_tokens)
    heads, kv_heads = ((n, n_tokens, config.d_head) for n in (config.n_heads, config.n_kv_heads))
    layer: Shapes = {
        **dict.fromkeys(norms, vectors),
        **({"attention.query_norm": heads, "attention.key_norm": kv_heads} if head_norms else {}),
        "attention.query": heads,
        "attention.key": kv_heads,
        "attention.value": kv_heads,
        "attention.scores": maps,
        "attention.weights": maps,
        "attention.context": heads,
        "attention.output": vectors,
        **dict.fromkeys((f"ffn.{name}" for name in hidden), (n_tokens, config.d_ff)),
        "ffn.output": vectors,
        "output": vectors,
    }
    shapes: Shapes = {f"embeddings.{name}": vectors for name in embeddings}
    for i in range(config.n_layers):
        shapes |= {f"layers.{i}.{name}": shape for name, shape in layer.items()}
    return shapes | ({"norm": vectors} if final_norm else {})
