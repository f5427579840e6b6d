"""From the vectors of a text's tokens to one vector of the text."""

import numpy as np

from engine.layers.linear import Linear, linear
from engine.layers.tracing import Array

POOLINGS = ("mean", "cls", "pooler")


def mean_pooling(token_vectors: Array) -> Array:
    """Average over tokens: ``(n_tokens, d_model) -> (d_model,)``."""
    return token_vectors.mean(axis=0)


def cls_pooling(token_vectors: Array) -> Array:
    """Vector of the first token: ``(n_tokens, d_model) -> (d_model,)``."""
    return token_vectors[0]


def pooler_pooling(token_vectors: Array, dense: Linear) -> Array:
    """BERT's pooler (Devlin et al. 2019): ``tanh(W x_CLS + b)``, ``(n_tokens, d_model) -> (d_model,)``."""
    return np.tanh(linear(token_vectors[0], *dense))
