"""The gradients of a small decoder by hand: its forward pass, backwards, step by step.

`backward` reads like `engine.models.small_decoder.forward` from its last line to its first. What a step
kept is looked up by the name that the forward pass told.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from engine.layers.cores import n_cores
from engine.layers.dropout import dropout_backward
from engine.layers.embedding import embedding_backward
from engine.layers.linear import linear_backward
from engine.layers.positions import rope_backward, rope_tables
from engine.layers.tracing import Array
from engine.layers.training_primitives import NUMPY_TRAINING, TrainingPrimitives
from engine.models.parallel import single_threaded_blas
from engine.models.small_decoder import NORM_EPS, ROPE_THETA, Params, SmallDecoderConfig, forward, token_scale
from engine.training.losses import cross_entropy

Kept = Mapping[str, Array]
Gradients = dict[str, Array]

# Sequences that go through the model together. What a layer makes of so many stays near the core.
SHARE = 4


def loss_and_gradients(
    params: Params,
    inputs: Array,
    targets: Array,
    config: SmallDecoderConfig,
    rng: np.random.Generator | None = None,
    ops: TrainingPrimitives = NUMPY_TRAINING,
) -> tuple[float, Gradients]:
    """Mean cross-entropy of the next tokens, and its gradient by every parameter.

    The batch is cut into shares of a few sequences, which the cores take side by side, each with a BLAS
    of one thread; their sums are added in the order of the shares, so that the number of cores changes
    nothing.

    Parameters
    ----------
    inputs, targets
        ``(n_sequences, n_tokens)``, the targets one token later.
    rng
        What dropout draws from, or None without.
    ops
        The steps as NumPy says them, or their compiled twins for float32.

    Raises
    ------
    InputError
        For ids that the model cannot read.
    """
    firsts = range(0, len(inputs), SHARE)
    rngs = [None] * len(firsts) if rng is None else rng.spawn(len(firsts))

    def work(number: int) -> tuple[float, Gradients]:
        rows = slice(firsts[number], firsts[number] + SHARE)
        weight = len(inputs[rows]) / len(inputs)
        with np.errstate(over="ignore", invalid="ignore"):  # a training that diverges finds out by its loss
            return _share(params, inputs[rows], targets[rows], weight, config, rngs[number], ops)

    with single_threaded_blas(), ThreadPoolExecutor(max_workers=n_cores()) as pool:
        return _sum(list(pool.map(work, range(len(firsts)))))


def _share(
    params: Params,
    inputs: Array,
    targets: Array,
    weight: float,
    config: SmallDecoderConfig,
    rng: np.random.Generator | None,
    ops: TrainingPrimitives,
) -> tuple[float, Gradients]:
    """What some sequences, a share ``weight`` of the batch, add to the loss and its gradients."""
    kept: dict[str, Array] = {}

    def keep(name: str, value: Array) -> Array:
        kept[name] = value
        return value

    logits = forward(params, inputs, config, keep, rng=rng, ops=ops)
    loss, d_logits = cross_entropy(logits, targets)
    d_logits *= weight
    return loss * weight, backward(d_logits, inputs, params, config, kept, ops)


def _sum(shares: Sequence[tuple[float, Gradients]]) -> tuple[float, Gradients]:
    (loss, grads), *others = shares
    for other_loss, other_grads in others:
        loss += other_loss
        for name, grad in other_grads.items():
            grads[name] += grad
    return loss, grads


def backward(
    d_logits: Array,
    ids: Array,
    params: Params,
    config: SmallDecoderConfig,
    kept: Kept,
    ops: TrainingPrimitives = NUMPY_TRAINING,
) -> Gradients:
    """Gradient of every parameter, by name.

    Parameters
    ----------
    d_logits
        Gradient of the logits, ``(..., n_tokens, vocab_size)``.
    ids
        What `forward` read, ``(..., n_tokens)``, with no cache.
    params, config
        What it read them with.
    kept
        What it told its tracer, by name.
    ops
        The steps it was made of.
    """
    grads: Gradients = {}
    last = kept["final.output"] if config.norm_first else kept[f"layers.{config.n_layers - 1}.output"]
    d_x, d_table, _ = linear_backward(d_logits, last, params["embedding.weight"])
    if config.norm_first:
        d_x = _norm_backward(d_x, kept["final.input"], params, "final", grads, ops)
    for i in reversed(range(config.n_layers)):
        for part in ("ffn", "attention"):
            d_x = _part_backward(d_x, f"layers.{i}.{part}", params, config, kept, grads, ops)
    d_x = _dropped_backward(d_x, kept, "embeddings")
    if config.positions == "learned":
        grads["positions.weight"] = np.zeros_like(params["positions.weight"])
        grads["positions.weight"][: ids.shape[-1]] = d_x.reshape(-1, *d_x.shape[-2:]).sum(axis=0)
    if config.positions == "sinusoidal":
        d_x = d_x * token_scale(config, d_x.dtype)
    grads["embedding.weight"] = d_table + embedding_backward(d_x, ids, config.vocab_size)
    return grads


def _part_backward(
    d_x: Array,
    name: str,
    params: Params,
    config: SmallDecoderConfig,
    kept: Kept,
    grads: Gradients,
    ops: TrainingPrimitives,
) -> Array:
    """Gradient of what an attention or feed-forward part was given: ``(..., n_tokens, d_model)``."""
    if not config.norm_first:
        d_x = _norm_backward(d_x, kept[f"{name}.sum"], params, name, grads, ops)
    d_made = _dropped_backward(d_x, kept, name)
    if name.endswith("attention"):
        d_into = _attend_backward(d_made, name, params, config, kept, grads, ops)
    else:
        d_into = _feed_forward_backward(d_made, name, params, config, kept, grads, ops)
    if config.norm_first:
        d_into = _norm_backward(d_into, kept[f"{name}.input"], params, name, grads, ops)
    return d_x + d_into  # x went into the part, and past it


def _feed_forward_backward(
    d_output: Array,
    name: str,
    params: Params,
    config: SmallDecoderConfig,
    kept: Kept,
    grads: Gradients,
    ops: TrainingPrimitives,
) -> Array:
    d_activation = _affine_backward(d_output, kept[f"{name}.activation"], params, f"{name}.output", grads)
    d_hidden = ops.activations_backward[config.activation](d_activation, kept[f"{name}.hidden"])
    return _affine_backward(d_hidden, _into(kept, name), params, f"{name}.hidden", grads)


def _attend_backward(
    d_output: Array,
    name: str,
    params: Params,
    config: SmallDecoderConfig,
    kept: Kept,
    grads: Gradients,
    ops: TrainingPrimitives,
) -> Array:
    d_merged = _affine_backward(d_output, kept[f"{name}.merged"], params, f"{name}.output", grads)
    *batch, n_tokens, _ = d_merged.shape
    d_context = d_merged.reshape(*batch, n_tokens, config.n_heads, config.d_head).swapaxes(-3, -2)
    query, key, value, weights = (kept[f"{name}.{part}"] for part in ("query", "key", "value", "weights"))
    d_query, d_key, d_value = ops.attention_backward(d_context, query, key, value, weights)
    if config.positions == "rope":
        turns = rope_tables(np.arange(n_tokens), config.d_head, ROPE_THETA, d_query.dtype)
        d_query, d_key = rope_backward(d_query, *turns), rope_backward(d_key, *turns)
    d_qkv = np.empty((*batch, n_tokens, 3, config.n_heads, config.d_head), d_query.dtype)
    for j, d_heads in enumerate((d_query, d_key, d_value)):
        d_qkv[..., j, :, :] = d_heads.swapaxes(-3, -2)
    d_qkv = d_qkv.reshape(*batch, n_tokens, 3 * config.d_model)
    return _affine_backward(d_qkv, _into(kept, name), params, f"{name}.qkv", grads)


def _into(kept: Kept, name: str) -> Array:
    """What went into a part: the norm before it, or where that comes later, its input itself."""
    return kept.get(f"{name}.norm", kept[f"{name}.input"])


def _affine_backward(d_y: Array, x: Array, params: Params, name: str, grads: Gradients) -> Array:
    d_x, grads[f"{name}.weight"], grads[f"{name}.bias"] = linear_backward(d_y, x, params[f"{name}.weight"])
    return d_x


def _norm_backward(
    d_y: Array, x: Array, params: Params, name: str, grads: Gradients, ops: TrainingPrimitives
) -> Array:
    weight = params[f"{name}.norm.weight"]
    d_x, grads[f"{name}.norm.weight"], grads[f"{name}.norm.bias"] = ops.layer_norm_backward(
        d_y, x, weight, NORM_EPS
    )
    return d_x


def _dropped_backward(d_x: Array, kept: Kept, name: str) -> Array:
    mask = kept.get(f"{name}.dropout")
    return d_x if mask is None else dropout_backward(d_x, mask)
