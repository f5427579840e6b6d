"""Gradients of the encoder-decoder, written by hand: each part backward, in reverse order.

Arrays of the forward pass of `engine.models.seq2seq` are looked up under the names of its trace.
"""

import numpy as np

from engine.layers.activation import relu_backward
from engine.layers.attention import attention_backward, merge_heads, split_heads
from engine.layers.embedding import embedding_backward
from engine.layers.linear import linear_backward
from engine.layers.tracing import Array
from engine.models.seq2seq import Params, Seq2SeqConfig, decode, encode
from engine.training.backward.recorded import Kept, Recorded
from engine.training.losses import cross_entropy
from engine.training.optimizers import Parameters

Pass = Recorded[Seq2SeqConfig]


def loss_and_gradients(
    source: Array, target: Array, params: Params, config: Seq2SeqConfig, label_smoothing: float = 0.0
) -> tuple[float, Parameters]:
    """Loss of predicting each target token from those before it, and its gradient by every parameter.

    Parameters
    ----------
    source
        Ids ``(n_pairs, n_source)``, padded at the end with ``pad_id``.
    target
        Ids ``(n_pairs, n_target)``, each from ``bos_id`` to ``eos_id``, padded likewise. The decoder
        reads all but the last of a row and predicts all but the first.
    params
        By name, as `engine.models.seq2seq_params.init_params` makes them.
    config
        Sizes.
    label_smoothing
        As in `engine.training.losses.cross_entropy`.

    Returns
    -------
    tuple of float and dict
        The loss in nats a token, padding ignored, and the gradients under the parameters' names.
    """
    run: Pass = Recorded(params, config, Kept())
    decoder_input = target[:, :-1]
    memory = encode(source, params, config, run.kept)  # (n_pairs, n_source, d_model)
    logits = decode(decoder_input, memory, source, params, config, run.kept)  # (n_pairs, n_target - 1, vocab)
    loss, d_logits = cross_entropy(logits, target[:, 1:], label_smoothing, config.pad_id)
    d_memory, d_embedded = decode_backward(d_logits, memory, run)
    d_source = encode_backward(d_memory, run)
    # One table embeds both sides and gives the logits, so its gradient has three parts.
    run.grads["embedding.weight"] += embed_backward(d_embedded, decoder_input, config) + embed_backward(
        d_source, source, config
    )
    return loss, run.grads


def encode_backward(d_memory: Array, run: Pass) -> Array:
    """Gradient of the encoder's embeddings: ``(..., n_source, d_model)`` to the same."""
    d_x = d_memory
    for i in reversed(range(run.config.n_encoder_layers)):
        d_x = encoder_layer_backward(d_x, layer_input(run.kept, "encoder", i), i, run)
    return d_x


def decode_backward(d_logits: Array, memory: Array, run: Pass) -> tuple[Array, Array]:
    """Gradients of the memory and of the decoder's embeddings, from ``(..., n_target, vocab_size)``.

    The gradient of the embedding table as output matrix is put into ``run.grads``.
    """
    n_layers, table = run.config.n_decoder_layers, run.params["embedding.weight"]
    output = layer_input(run.kept, "decoder", n_layers)  # (..., n_target, d_model)
    d_x, run.grads["embedding.weight"], _ = linear_backward(d_logits, output, table)
    d_memory = np.zeros_like(memory)
    for i in reversed(range(n_layers)):
        d_x, d_source = decoder_layer_backward(d_x, layer_input(run.kept, "decoder", i), memory, i, run)
        d_memory += d_source  # every layer attends to it
    return d_memory, d_x


def layer_input(kept: Kept, side: str, layer: int) -> Array:
    """Input of a layer: the embeddings, or the output of the layer before."""
    return kept[f"{side}.layers.{layer - 1}.output" if layer else f"{side}.embeddings.output"]


def embed_backward(d_x: Array, ids: Array, config: Seq2SeqConfig) -> Array:
    """Gradient of the table, ``(vocab_size, d_model)``; positions are not trained."""
    return embedding_backward(d_x * d_x.dtype.type(np.sqrt(config.d_model)), ids, config.vocab_size)


def encoder_layer_backward(d_y: Array, x: Array, layer: int, run: Pass) -> Array:
    """Gradient of an encoder layer's input ``x``: feed-forward first, then self-attention."""
    name = f"encoder.layers.{layer}"
    d_normed = ffn_part_backward(d_y, run.kept[f"{name}.attention.norm"], name, run)
    d_x, d_self = attention_part_backward(d_normed, x, x, f"{name}.attention", run)
    return d_x + d_self


def decoder_layer_backward(d_y: Array, x: Array, memory: Array, layer: int, run: Pass) -> tuple[Array, Array]:
    """Gradients of a decoder layer's input ``x`` and of the memory, from the last part to the first."""
    name = f"decoder.layers.{layer}"
    cross, own = f"{name}.cross_attention", f"{name}.attention"
    d_normed = ffn_part_backward(d_y, run.kept[f"{cross}.norm"], name, run)
    d_normed, d_memory = attention_part_backward(d_normed, run.kept[f"{own}.norm"], memory, cross, run)
    d_x, d_self = attention_part_backward(d_normed, x, x, own, run)
    return d_x + d_self, d_memory


def ffn_part_backward(d_y: Array, x: Array, layer: str, run: Pass) -> Array:
    """Gradient of ``x`` in ``LayerNorm(x + max(0, x W1 + b1) W2 + b2)``, as in `feed_forward`."""
    name = f"{layer}.ffn"
    d_sum = add_and_norm_backward(d_y, name, run)
    d_activation = run.linear_backward(d_sum, run.kept[f"{name}.activation"], f"{name}.output")
    d_hidden = relu_backward(d_activation, run.kept[f"{name}.hidden"])  # (..., n_tokens, d_ff)
    d_x = run.linear_backward(d_hidden, x, f"{name}.hidden")
    return d_x + d_sum if run.config.residual else d_x


def attention_part_backward(d_y: Array, x: Array, source: Array, name: str, run: Pass) -> tuple[Array, Array]:
    """Gradients of ``x`` and ``source`` in ``LayerNorm(x + MultiHead(x, source, source))``.

    Keys and values come from ``source``; in self-attention it is ``x`` itself, whose gradient is the sum
    of both.
    """
    d_sum = add_and_norm_backward(d_y, name, run)
    d_merged = run.linear_backward(d_sum, run.kept[f"{name}.merged"], f"{name}.output")
    d_query, d_key, d_value = attention_backward(
        split_heads(d_merged, run.config.n_heads),
        *(run.kept[f"{name}.{part}"] for part in ("query", "key", "value", "weights")),
    )
    d_x = run.linear_backward(merge_heads(d_query), x, f"{name}.query")
    d_source = run.linear_backward(merge_heads(d_key), source, f"{name}.key")
    d_source += run.linear_backward(merge_heads(d_value), source, f"{name}.value")
    return (d_x + d_sum if run.config.residual else d_x), d_source


def add_and_norm_backward(d_y: Array, name: str, run: Pass) -> Array:
    """Gradient of the sum ``x + Sublayer(x)``, which is that of either summand."""
    if run.config.norm == "none":
        return d_y
    return run.norm_backward(d_y, run.kept[f"{name}.sum"], name, run.config.norm_eps)
