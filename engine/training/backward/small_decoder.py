"""Gradients of the small decoder, written by hand.

The functions mirror `engine.models.small_decoder`, from its last line to its first. Arrays of the forward
pass are looked up under the names of its trace.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np

from ...cores import n_cores
from ...layers.attention import merge_heads, split_heads
from ...layers.dropout import dropout_backward
from ...layers.embedding import embedding_backward
from ...layers.linear import linear_backward
from ...layers.positions import rope_backward, rope_tables
from ...layers.primitives import NUMPY_TRAINING, TrainingPrimitives
from ...layers.tracing import Array
from ...models.parallel import single_threaded_blas
from ...models.small_decoder import NORM_EPS, ROPE_THETA, Params, SmallDecoderConfig, forward, token_scale
from ..losses import cross_entropy
from ..optimizers import Parameters

SHARE = 4  # sequences in one pass through the model: few enough for a layer's arrays to stay in the cache


class Kept(dict[str, Array]):
    """A tracer that keeps every array under its name, without a copy: nothing later works in place."""

    def __call__(self, name: str, value: Array) -> Array:
        """Keep one array."""
        self[name] = value
        return value


@dataclass(frozen=True)
class Recorded:
    """A recorded forward pass, and the gradients so far, ``grads``, under the names of ``params``."""

    params: Params
    config: SmallDecoderConfig
    kept: Kept
    ops: TrainingPrimitives = NUMPY_TRAINING
    grads: Parameters = field(default_factory=dict)

    def linear_backward(self, d_y: Array, x: Array, name: str) -> Array:
        """Gradient of the input of the affine map ``name``; its parameters' are put into ``grads``."""
        weight = self.params[f"{name}.weight"]
        d_x, self.grads[f"{name}.weight"], self.grads[f"{name}.bias"] = linear_backward(d_y, x, weight)
        return d_x

    def norm_backward(self, d_y: Array, x: Array, name: str, eps: float) -> Array:
        """Gradient of the input of the layer norm of part ``name``, likewise."""
        norm = f"{name}.norm"
        d_x, self.grads[f"{norm}.weight"], self.grads[f"{norm}.bias"] = self.ops.layer_norm_backward(
            d_y, x, self.params[f"{norm}.weight"], eps
        )
        return d_x


def loss_and_gradients(
    params: Params,
    inputs: Array,
    targets: Array,
    config: SmallDecoderConfig,
    rng: np.random.Generator | None = None,
    ops: TrainingPrimitives = NUMPY_TRAINING,
) -> tuple[float, Parameters]:
    """Mean cross-entropy of the next tokens, and its gradient by every parameter.

    The batch is cut into shares of `SHARE` sequences, which run in parallel, each with single-threaded
    BLAS. Their results are summed in order, so the number of cores does not change the result.

    Inputs and targets are ``(n_sequences, n_tokens)``, the targets one token later; ``rng`` gives the dropout
    masks, None for no dropout; ``ops`` are NumPy's, or their compiled twins for float32.
    """
    firsts = range(0, len(inputs), SHARE)
    rngs = [None] * len(firsts) if rng is None else rng.spawn(len(firsts))

    def work(number: int) -> tuple[float, Parameters]:
        rows = slice(firsts[number], firsts[number] + SHARE)
        kept = Kept()
        with np.errstate(over="ignore", invalid="ignore"):  # the training loop checks the loss
            logits = forward(params, inputs[rows], config, kept, rng=rngs[number], ops=ops)
            loss, d_logits = cross_entropy(logits, targets[rows])
            weight = len(inputs[rows]) / len(inputs)
            d_logits *= weight
            return loss * weight, backward(d_logits, inputs[rows], Recorded(params, config, kept, ops))

    with single_threaded_blas(), ThreadPoolExecutor(max_workers=n_cores()) as pool:
        (loss, grads), *others = pool.map(work, range(len(firsts)))
    for other_loss, other_grads in others:
        loss += other_loss
        for name, grad in other_grads.items():
            grads[name] += grad
    return loss, grads


def backward(d_logits: Array, ids: Array, run: Recorded) -> Parameters:
    """Gradients by name, of ``d_logits (..., n_tokens, vocab_size)`` and the ids of a pass without cache."""
    params, config, kept, grads = run.params, run.config, run.kept, run.grads
    last = kept["final.output"] if config.norm_first else kept[f"layers.{config.n_layers - 1}.output"]
    d_x, d_table, _ = linear_backward(d_logits, last, params["embedding.weight"])
    if config.norm_first:
        d_x = run.norm_backward(d_x, kept["final.input"], "final", NORM_EPS)
    for i in reversed(range(config.n_layers)):
        for part in ("ffn", "attention"):
            d_x = _part_backward(d_x, f"layers.{i}.{part}", run)
    d_x = _dropped_backward(d_x, "embeddings", kept)
    if config.positions == "learned":
        grads["positions.weight"] = np.zeros_like(params["positions.weight"])
        grads["positions.weight"][: ids.shape[-1]] = d_x.reshape(-1, *d_x.shape[-2:]).sum(axis=0)
    if config.positions == "sinusoidal":
        d_x = d_x * token_scale(config, d_x.dtype)
    grads["embedding.weight"] = d_table + embedding_backward(d_x, ids, config.vocab_size)
    return grads


def _part_backward(d_x: Array, name: str, run: Recorded) -> Array:
    """Gradient of the input of an attention or feed-forward part: ``(..., n_tokens, d_model)``."""
    if not run.config.norm_first:
        d_x = run.norm_backward(d_x, run.kept[f"{name}.sum"], name, NORM_EPS)
    d_output = _dropped_backward(d_x, name, run.kept)
    part_backward = _attention_backward if name.endswith("attention") else _feed_forward_backward
    d_input = part_backward(d_output, name, run)
    if run.config.norm_first:
        d_input = run.norm_backward(d_input, run.kept[f"{name}.input"], name, NORM_EPS)
    return d_x + d_input  # the residual connection adds x to the part's output


def _feed_forward_backward(d_output: Array, name: str, run: Recorded) -> Array:
    d_activation = run.linear_backward(d_output, run.kept[f"{name}.activation"], f"{name}.output")
    d_hidden = run.ops.activations[run.config.activation].backward(d_activation, run.kept[f"{name}.hidden"])
    return run.linear_backward(d_hidden, _sublayer_input(run.kept, name), f"{name}.hidden")


def _attention_backward(d_output: Array, name: str, run: Recorded) -> Array:
    config, kept = run.config, run.kept
    d_merged = run.linear_backward(d_output, kept[f"{name}.merged"], f"{name}.output")
    d_context = split_heads(d_merged, config.n_heads)
    query, key, value, weights = (kept[f"{name}.{part}"] for part in ("query", "key", "value", "weights"))
    d_query, d_key, d_value = run.ops.attention_backward(d_context, query, key, value, weights)
    if config.positions == "rope":
        tables = rope_tables(np.arange(d_merged.shape[-2]), config.d_head, ROPE_THETA, d_query.dtype)
        d_query, d_key = rope_backward(d_query, *tables), rope_backward(d_key, *tables)
    d_qkv = np.concatenate([merge_heads(d_heads) for d_heads in (d_query, d_key, d_value)], axis=-1)
    return run.linear_backward(d_qkv, _sublayer_input(kept, name), f"{name}.qkv")


def _sublayer_input(kept: Kept, name: str) -> Array:
    """Input of a part's first affine map: the norm's output (pre-norm), else the part's own input."""
    return kept.get(f"{name}.norm", kept[f"{name}.input"])


def _dropped_backward(d_x: Array, name: str, kept: Kept) -> Array:
    mask = kept.get(f"{name}.dropout")
    return d_x if mask is None else dropout_backward(d_x, mask)
