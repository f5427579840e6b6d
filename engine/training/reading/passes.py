"""Forward and backward of a span reader: an encoder whose tokens each get a score as start and as end.

The reader of Devlin et al. 2019, section 4.2: ``logits = H W^T + b`` with two rows of ``W``, and softmaxes
over the tokens of a passage and [CLS], which stands for "no answer" (section 4.3).
"""

from collections.abc import Sequence

import numpy as np

from ...layers.activation import log_softmax
from ...layers.dropout import dropout
from ...layers.linear import linear_backward
from ...layers.primitives import NUMPY, NUMPY_TRAINING, Primitives, TrainingPrimitives
from ...layers.tracing import Array, no_trace
from ...models.bert import EncoderConfig, EncoderWeights, embed, encoder_layer
from ...models.parallel import packed
from ..backward.encoder import layers_backward, layers_forward, named_layers
from ..optimizers import Parameters
from .examples import ReadingBatch

HEAD = "head"  # name of the two rows of scores among the parameters


def init_head(d_model: int, seed: int) -> Parameters:
    """Draw the weights of start and end from N(0, 0.02), as BERT's new layers are drawn."""
    rng = np.random.default_rng(seed)
    weight = rng.normal(0, 0.02, (2, d_model)).astype(np.float32)
    return {f"{HEAD}.weight": weight, f"{HEAD}.bias": np.zeros(2, np.float32)}


def span_loss(
    logits: Array, spans: Sequence[slice], types: Sequence[Sequence[int]], targets: Array
) -> tuple[float, Array]:
    """Mean cross-entropy of starts and ends, and its gradient by the logits, ``(n_tokens, 2)``.

    Each text's softmaxes are over [CLS], its first token, and its passage, the tokens of type 1 but for the
    last, [SEP].
    """
    loss, d_logits = 0.0, np.zeros_like(logits)
    for span, type_ids, target in zip(spans, types, targets, strict=True):
        allowed = np.concatenate([[0], np.flatnonzero(type_ids)[:-1]])  # rows within the text
        rows = span.start + allowed
        log_probs = log_softmax(logits[rows].T)  # (2, n_allowed)
        places = np.searchsorted(allowed, target)  # (2,)
        loss -= float(log_probs[[0, 1], places].sum())
        gradient = np.exp(log_probs)
        gradient[[0, 1], places] -= 1
        d_logits[rows] = gradient.T
    n_terms = 2 * len(spans)
    d_logits /= logits.dtype.type(n_terms)
    return loss / n_terms, d_logits


def loss_and_gradients(
    batch: ReadingBatch,
    weights: EncoderWeights,
    params: Parameters,
    config: EncoderConfig,
    dropout_rate: float = 0.0,
    rng: np.random.Generator | None = None,
    ops: tuple[Primitives, TrainingPrimitives] = (NUMPY, NUMPY_TRAINING),
) -> tuple[float, Parameters]:
    """Loss of a batch, and its gradients by ``params``, the last layers and the head."""
    forward, backward = ops
    ids, positions, spans = packed(batch.sequences)
    layers = named_layers({name: array for name, array in params.items() if not name.startswith(HEAD)})
    types = np.concatenate(batch.types)
    hidden = embed(ids, positions, types, weights, config.norm_eps, forward, no_trace)  # (n_tokens, d_model)
    for layer in weights.layers[: config.n_layers - len(layers)]:
        hidden = encoder_layer(hidden, layer, config, spans, forward, no_trace)
    if rng is not None:
        hidden, _ = dropout(hidden, dropout_rate, rng)
    hidden, kept = layers_forward(hidden, layers, config, spans, dropout_rate, rng, forward)
    weight = params[f"{HEAD}.weight"]
    logits = hidden @ weight.T + params[f"{HEAD}.bias"]  # (n_tokens, 2)
    loss, d_logits = span_loss(logits, spans, batch.types, batch.targets)
    d_hidden, d_weight, d_bias = linear_backward(d_logits, hidden, weight)
    _, grads = layers_backward(d_hidden, kept, layers, config, spans, backward)
    return loss, grads | {f"{HEAD}.weight": d_weight, f"{HEAD}.bias": d_bias}
