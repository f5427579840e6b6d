"""The loop over layers that decoders with norms in front share, and the shapes of its traced arrays."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from engine.layers.primitives import DecoderPrimitives
from engine.layers.tracing import Array, Shapes, Tracer, scoped
from engine.models.kv_cache import CacheSizes


class LayerSizes(CacheSizes, Protocol):
    """The sizes of the layers, which all decoders have."""

    @property
    def d_model(self) -> int: ...  # noqa: D102
    @property
    def n_heads(self) -> int: ...  # noqa: D102
    @property
    def d_ff(self) -> int: ...  # noqa: D102


def run_layers(
    hidden: Array,
    layers: Sequence[Any],
    norm: Callable[[Array, Any], Array],
    attend: Callable[[Array, Any, int, Tracer], Array],
    transform: Callable[[Array, Any, Tracer], Array],
    ops: DecoderPrimitives,
    trace: Tracer,
    first: int = 0,
) -> Array:
    """``x += attend(norm(x)); x += transform(norm(x))`` for every layer: ``(n_new, d_model)`` to the same.

    Parameters
    ----------
    layers
        Parameters of the layers, with the norms ``attention_norm`` and ``ffn_norm``.
    norm
        From ``(x, parameters of a norm)``.
    attend
        Self-attention, from ``(normed, layer, number of the layer, trace)``.
    transform
        Feed-forward network, from ``(normed, layer, trace)``.
    first
        Number of the layer to begin with: ``hidden`` comes from those before it.
    """
    for number, layer in enumerate(layers[first:], first):
        layer_trace = scoped(trace, f"layers.{number}")
        normed = layer_trace("attention.norm", norm(hidden, layer.attention_norm))
        hidden = ops.add(hidden, attend(normed, layer, number, scoped(layer_trace, "attention")))
        normed = layer_trace("ffn.norm", norm(hidden, layer.ffn_norm))
        transformed = transform(normed, layer, scoped(layer_trace, "ffn"))
        hidden = layer_trace("output", ops.add(hidden, transformed))
    return hidden


def layer_trace_shapes(
    config: LayerSizes,
    n_tokens: int,
    embeddings: Iterable[str],
    hidden: Iterable[str],
    head_norms: bool = False,
    post_norms: bool = False,
) -> Shapes:
    """Shapes that a pass over ``n_tokens`` traces, given the names of embeddings and of d_ff-wide arrays.

    With ``head_norms``, queries and keys are normed before they are rotated; with ``post_norms``, the outputs
    of attention and feed-forward network before they are added.
    """
    vectors, maps = (n_tokens, config.d_model), (config.n_heads, n_tokens, n_tokens)
    heads, kv_heads = ((n, n_tokens, config.d_head) for n in (config.n_heads, config.n_kv_heads))
    layer: Shapes = {
        "attention.norm": vectors,
        **({"attention.query_norm": heads, "attention.key_norm": kv_heads} if head_norms else {}),
        "attention.query": heads,
        "attention.key": kv_heads,
        "attention.value": kv_heads,
        "attention.scores": maps,
        "attention.weights": maps,
        "attention.context": heads,
        "attention.output": vectors,
        **({"attention.post_norm": vectors, "ffn.post_norm": vectors} if post_norms else {}),
        "ffn.norm": vectors,
        **dict.fromkeys((f"ffn.{name}" for name in hidden), (n_tokens, config.d_ff)),
        "ffn.output": vectors,
        "output": vectors,
    }
    shapes: Shapes = {f"embeddings.{name}": vectors for name in embeddings}
    for i in range(config.n_layers):
        shapes |= {f"layers.{i}.{name}": shape for name, shape in layer.items()}
    return shapes | {"norm": vectors}
