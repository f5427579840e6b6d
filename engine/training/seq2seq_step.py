"""The gradients of the encoder-decoder, by hand: each part backward, in the order opposite to the forward.

A forward pass of `engine.models.seq2seq` leaves its arrays in ``kept``, under the names of its trace;
every part reads what it needs there and puts the gradients of its parameters into ``grads``, under theirs.
"""

import numpy as np

from engine.layers.activation import relu_backward
from engine.layers.attention import attention_backward, merge_heads, split_heads
from engine.layers.embedding import embedding_backward
from engine.layers.linear import linear_backward
from engine.layers.norm import layer_norm_backward
from engine.layers.tracing import Array
from engine.models.seq2seq import Params, Seq2SeqConfig, decode, encode
from engine.training.losses import cross_entropy

Arrays = dict[str, Array]


def loss_and_gradients(
    source: Array, target: Array, params: Params, config: Seq2SeqConfig, label_smoothing: float = 0.0
) -> tuple[float, Arrays]:
    """Loss of telling each target token from those before it, and its gradient by every parameter.

    Parameters
    ----------
    source
        Ids ``(n_pairs, n_source)``, filled up with ``pad_id`` at their ends.
    target
        Ids ``(n_pairs, n_target)``, each from ``bos_id`` to ``eos_id``, filled up likewise. The decoder
        reads all but the last of a row, and is to give all but the first.
    params
        By name, as `engine.models.seq2seq_params.init_params` makes them.
    config
        Sizes.
    label_smoothing
        As in `engine.training.losses.cross_entropy`.

    Returns
    -------
    tuple of float and dict
        The loss in nats a token, padding not counted, and the gradients, of the parameters' names and shapes.
    """
    kept: Arrays = {}

    def keep(name: str, value: Array) -> Array:  # nothing later works in place, so no copy is needed
        kept[name] = value
        return value

    read = target[:, :-1]
    memory = encode(source, params, config, keep)  # (n_pairs, n_source, d_model)
    logits = decode(read, memory, source, params, config, keep)  # (n_pairs, n_target - 1, vocab_size)
    loss, d_logits = cross_entropy(logits, target[:, 1:], label_smoothing, config.pad_id)
    grads: Arrays = {}
    d_memory, d_read = decode_backward(d_logits, memory, kept, params, config, grads)
    d_source = encode_backward(d_memory, kept, params, config, grads)
    # One table embeds both sides and gives the logits, so its gradient has three parts.
    grads["embedding.weight"] += embed_backward(d_read, read, config) + embed_backward(
        d_source, source, config
    )
    return loss, grads


def encode_backward(
    d_memory: Array, kept: Arrays, params: Params, config: Seq2SeqConfig, grads: Arrays
) -> Array:
    """Gradient of what the encoder reads: ``(..., n_source, d_model)`` to the same."""
    d_x = d_memory
    for i in reversed(range(config.n_encoder_layers)):
        d_x = encoder_layer_backward(d_x, layer_input(kept, "encoder", i), kept, params, i, config, grads)
    return d_x


def decode_backward(
    d_logits: Array, memory: Array, kept: Arrays, params: Params, config: Seq2SeqConfig, grads: Arrays
) -> tuple[Array, Array]:
    """Gradients of the memory and of what the decoder reads: of ``(..., n_target, vocab_size)``.

    The table's gradient as the logits' matrix is put into ``grads`` under its name.
    """
    output = layer_input(kept, "decoder", config.n_decoder_layers)  # (..., n_target, d_model)
    d_x, grads["embedding.weight"], _ = linear_backward(d_logits, output, params["embedding.weight"])
    d_memory = np.zeros_like(memory)
    for i in reversed(range(config.n_decoder_layers)):
        x = layer_input(kept, "decoder", i)
        d_x, d_source = decoder_layer_backward(d_x, x, memory, kept, params, i, config, grads)
        d_memory += d_source  # every layer reads it
    return d_memory, d_x


def layer_input(kept: Arrays, side: str, layer: int) -> Array:
    """What a layer read: the embeddings, or the output of the layer before."""
    return kept[f"{side}.layers.{layer - 1}.output" if layer else f"{side}.embeddings.output"]


def embed_backward(d_x: Array, ids: Array, config: Seq2SeqConfig) -> Array:
    """Gradient of the table, ``(vocab_size, d_model)``; positions are not trained."""
    return embedding_backward(d_x * d_x.dtype.type(np.sqrt(config.d_model)), ids, config.vocab_size)


def encoder_layer_backward(
    d_y: Array, x: Array, kept: Arrays, params: Params, layer: int, config: Seq2SeqConfig, grads: Arrays
) -> Array:
    """Gradient of an encoder layer's input ``x``: feed-forward first, then self-attention."""
    name = f"encoder.layers.{layer}"
    d_normed = ffn_part_backward(d_y, kept[f"{name}.attention.norm"], kept, params, name, config, grads)
    d_x, d_self = attention_part_backward(d_normed, x, x, kept, params, f"{name}.attention", config, grads)
    return d_x + d_self


def decoder_layer_backward(
    d_y: Array,
    x: Array,
    memory: Array,
    kept: Arrays,
    params: Params,
    layer: int,
    config: Seq2SeqConfig,
    grads: Arrays,
) -> tuple[Array, Array]:
    """Gradients of a decoder layer's input ``x`` and of the memory, from the last part to the first."""
    name = f"decoder.layers.{layer}"
    cross, own = f"{name}.cross_attention", f"{name}.attention"
    d_normed = ffn_part_backward(d_y, kept[f"{cross}.norm"], kept, params, name, config, grads)
    d_normed, d_memory = attention_part_backward(
        d_normed, kept[f"{own}.norm"], memory, kept, params, cross, config, grads
    )
    d_x, d_self = attention_part_backward(d_normed, x, x, kept, params, own, config, grads)
    return d_x + d_self, d_memory


def ffn_part_backward(
    d_y: Array, x: Array, kept: Arrays, params: Params, layer: str, config: Seq2SeqConfig, grads: Arrays
) -> Array:
    """Gradient of ``x`` in ``LayerNorm(x + max(0, x W1 + b1) W2 + b2)``, as in `feed_forward`."""
    name = f"{layer}.ffn"
    d_sum = add_and_norm_backward(d_y, kept, params, name, config, grads)
    d_activation = affine_backward(d_sum, kept[f"{name}.activation"], params, f"{name}.output", grads)
    d_hidden = relu_backward(d_activation, kept[f"{name}.hidden"])  # (..., n_tokens, d_ff)
    d_x = affine_backward(d_hidden, x, params, f"{name}.hidden", grads)
    return d_x + d_sum if config.residual else d_x


def attention_part_backward(
    d_y: Array,
    x: Array,
    source: Array,
    kept: Arrays,
    params: Params,
    name: str,
    config: Seq2SeqConfig,
    grads: Arrays,
) -> tuple[Array, Array]:
    """Gradients of ``x`` and ``source`` in ``LayerNorm(x + MultiHead(x, source, source))``.

    The keys and values are of ``source``; in self-attention that is ``x`` again, and both
    gradients are of it.
    """
    d_sum = add_and_norm_backward(d_y, kept, params, name, config, grads)
    d_merged = affine_backward(d_sum, kept[f"{name}.merged"], params, f"{name}.output", grads)
    d_query, d_key, d_value = attention_backward(
        split_heads(d_merged, config.n_heads),
        *(kept[f"{name}.{of}"] for of in ("query", "key", "value", "weights")),
    )
    d_x = affine_backward(merge_heads(d_query), x, params, f"{name}.query", grads)
    d_source = affine_backward(merge_heads(d_key), source, params, f"{name}.key", grads)
    d_source += affine_backward(merge_heads(d_value), source, params, f"{name}.value", grads)
    return (d_x + d_sum if config.residual else d_x), d_source


def add_and_norm_backward(
    d_y: Array, kept: Arrays, params: Params, name: str, config: Seq2SeqConfig, grads: Arrays
) -> Array:
    """Gradient of the sum ``x + Sublayer(x)``, which is that of either summand."""
    if config.norm == "none":
        return d_y
    weight = params[f"{name}.norm.weight"]
    d_sum, grads[f"{name}.norm.weight"], grads[f"{name}.norm.bias"] = layer_norm_backward(
        d_y, kept[f"{name}.sum"], weight, config.norm_eps
    )
    return d_sum


def affine_backward(d_y: Array, x: Array, params: Params, name: str, grads: Arrays) -> Array:
    """Gradient of the input of the affine map of that name."""
    d_x, grads[f"{name}.weight"], grads[f"{name}.bias"] = linear_backward(d_y, x, params[f"{name}.weight"])
    return d_x
