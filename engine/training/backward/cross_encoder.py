"""Backward through a BERT cross-encoder: pairs of texts in, a score each, gradients by layers and head.

The embeddings stay as they are. Parameters are those of `layer_parameters`, and of the head: ``pooler`` and
``classifier``, each a weight and a bias.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from engine.layers.linear import linear, linear_backward
from engine.layers.primitives import NUMPY
from engine.layers.tracing import Array, no_trace
from engine.models.bert import EncoderConfig, EncoderWeights, embed
from engine.models.packs import row_spans
from engine.tokenizers.encoding import Encoding
from engine.training.backward.encoder import KeptLayer, layers_backward, layers_forward, named_layers, put
from engine.training.optimizers import Parameters


@dataclass(frozen=True)
class PairPass:
    """A pack of pairs in the model, with the arrays that the backward pass reads.

    ``logits`` are ``(n_pairs,)``, ``first`` and ``pooled`` the vectors of the first tokens before and behind
    the pooler, ``(n_pairs, d_model)``.
    """

    logits: Array
    first: Array = field(repr=False)
    pooled: Array = field(repr=False)
    spans: Sequence[slice] = field(repr=False)
    kept: Sequence[KeptLayer] = field(repr=False)


def pairs_forward(
    pairs: Sequence[Encoding], weights: EncoderWeights, params: Parameters, config: EncoderConfig
) -> PairPass:
    """Score pairs: ``w tanh(W x + b) + c`` of the vector ``x`` of the first token.

    ``weights`` give the embeddings; ``config.n_layers`` is the number of layers in ``params``.
    """
    lengths = [len(pair) for pair in pairs]
    spans = row_spans(lengths)
    hidden = embed(
        np.concatenate([pair.ids for pair in pairs]),
        np.concatenate([np.arange(length) for length in lengths]),
        np.concatenate([pair.type_ids for pair in pairs]),
        weights,
        config.norm_eps,
        NUMPY,
        no_trace,
    )
    hidden, kept = layers_forward(hidden, named_layers(of_layers(params)), config, spans)
    first = hidden[[span.start for span in spans]]  # (n_pairs, d_model)
    pooled = np.tanh(linear(first, params["pooler.weight"], params["pooler.bias"]))
    logits = linear(pooled, params["classifier.weight"], params["classifier.bias"])[:, 0]
    return PairPass(logits, first, pooled, spans, kept)


def pairs_backward(d_logits: Array, run: PairPass, params: Parameters, config: EncoderConfig) -> Parameters:
    """Gradients of `pairs_forward` by the parameters, from those by the logits ``(n_pairs,)``."""
    grads: Parameters = {}
    d_pooled, *d_classifier = linear_backward(d_logits[:, None], run.pooled, params["classifier.weight"])
    d_first, *d_pooler = linear_backward(
        d_pooled * (1 - np.square(run.pooled)), run.first, params["pooler.weight"]
    )
    put(grads, "classifier", d_classifier)
    put(grads, "pooler", d_pooler)
    d_hidden = np.zeros((run.spans[-1].stop, config.d_model), d_first.dtype)
    d_hidden[[span.start for span in run.spans]] = d_first
    layers = named_layers(of_layers(params))
    return grads | layers_backward(d_hidden, run.kept, layers, config, run.spans)[1]


def of_layers(params: Parameters) -> Parameters:
    """Return the parameters of the layers, without the head's."""
    return {name: array for name, array in params.items() if name.startswith("layers.")}
