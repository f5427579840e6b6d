"""From the vectors of a text's tokens to one vector of the text.

Most strategies are a weighted sum over tokens, ``weights @ token_vectors``: they differ in the weights, and
in the layers whose vectors are summed. `POOLINGS` lists all of them, by the names of sentence-transformers'
Pooling where it has the strategy. To add one, write its function and an entry of the table.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from .linear import Linear, linear
from .tracing import Array


@dataclass(frozen=True)
class TokenStates:
    """One text's tokens after the layers, with the inputs that some poolings need."""

    ids: Array  # ``(n_tokens,)``
    vectors: Array  # of the last layer, ``(n_tokens, d_model)``
    # of every layer, ``(n_layers, n_tokens, d_model)``, for poolings that need "layers"
    layers: Array | None = None
    # attention that each token receives in the last layer, ``(n_tokens,)``, for "attention"
    received: Array | None = None


def mean_weights(mask: Array) -> Array:
    """``1 / n`` for each of the ``n`` tokens in the mask: ``(n_tokens,)``."""
    return mask / mask.sum()


def weight_at(place: int, mask: Array) -> Array:
    """1 for one token and 0 for others: ``(n_tokens,)``."""
    return np.eye(1, len(mask), place, dtype=mask.dtype)[0]


def normalized_weights(mask: Array, weights: Array) -> Array:
    """Non-negative weights in the mask over their sum; equal weights if all are 0: ``(n_tokens,)``."""
    kept = mask * weights
    total = kept.sum()
    return kept / total if total > 0 else mean_weights(mask)


def idf_weights(mask: Array, states: TokenStates, idf: Array | None) -> Array:
    """Weights proportional to each token's `idf`: ``(n_tokens,)``."""
    assert idf is not None, "checked by Encoder.check_poolings"
    return normalized_weights(mask, idf[states.ids].astype(mask.dtype))


def received_weights(mask: Array, states: TokenStates, idf: Array | None) -> Array:
    """Weights proportional to the attention that each token receives: ``(n_tokens,)``."""
    assert states.received is not None, "kept by token_states"
    return normalized_weights(mask, states.received)


def max_pooling(states: TokenStates, mask: Array, pooler: Linear | None = None) -> Array:
    """Largest value of each dimension over the tokens in the mask: ``(d_model,)``."""
    kept = np.where(mask[:, None] > 0, states.vectors, -np.inf)  # (n_tokens, d_model)
    return kept.max(axis=0).astype(states.vectors.dtype)


def pooler_pooling(states: TokenStates, mask: Array, pooler: Linear | None) -> Array:
    """BERT's pooler (Devlin et al. 2019): ``tanh(W x_CLS + b)``, ``(d_model,)``."""
    assert pooler is not None, "checked by Encoder.check_poolings"
    return np.tanh(linear(states.vectors[0], *pooler))


def mean_of_last_4_layers(states: TokenStates) -> Array:
    """A token's mean vector over the last four layers, or all of a smaller model: ``(n_tokens, d_model)``."""
    assert states.layers is not None, "kept by token_states"
    return states.layers[-4:].mean(axis=0)


def mean_of_first_and_last_layer(states: TokenStates) -> Array:
    """SimCSE's "avg_first_last" (Gao et al. 2021): ``(n_tokens, d_model)``."""
    assert states.layers is not None, "kept by token_states"
    return states.layers[[0, -1]].mean(axis=0)


BY_THE_LIBRARY = ""  # the script of a strategy that sentence-transformers' Pooling has by the same name


@dataclass(frozen=True)
class Pooling:
    """A pooling strategy."""

    label: str  # its name for people
    help: str  # one sentence for people
    equation: str  # LaTeX of the vector ``v`` by the token vectors ``x``
    # body of a function of a ``text`` in PyTorch, for exported scripts: ``read(text, **options)`` gives its
    # ids and the model's output
    script: str
    # of a weighted sum, from ``(mask, states, idf)``: ``(n_tokens,)``; None if it is no sum
    weights: Callable[[Array, TokenStates, Array | None], Array] | None = None
    vectors: Callable[[TokenStates], Array] = lambda states: states.vectors  # to sum, of the last layer
    # the vector of a strategy that is no sum, from ``(states, mask, pooler)``: ``(d_model,)``
    pool: Callable[[TokenStates, Array, Linear | None], Array] | None = None
    # an input besides the last layer's vectors: all "layers", "attention" of the last layer, the weights of
    # BERT's "pooler", or the "idf" of every token in a corpus
    needs: Literal["layers", "attention", "pooler", "idf"] | None = None


POOLINGS = {
    "mean": Pooling(
        "mean",
        "Every token counts the same. The default model was trained for it.",
        r"v = \frac{1}{n} \sum_t x_t",
        BY_THE_LIBRARY,
        lambda mask, states, idf: mean_weights(mask),
    ),
    "cls": Pooling(
        "[CLS]",
        "The vector of the first token, [CLS] in BERT. Models trained for it put the text's meaning "
        "there; the default model was not.",
        r"v = x_0",
        BY_THE_LIBRARY,
        lambda mask, states, idf: weight_at(int(np.argmax(mask > 0)), mask),
    ),
    "pooler": Pooling(
        "BERT pooler",
        "[CLS] through one more layer (a matrix and tanh), left over from BERT's pre-training.",
        r"v = \tanh(W_p x_0 + b_p)",
        "_, out = read(text)\nreturn out.pooler_output[0]",
        pool=pooler_pooling,
        needs="pooler",
    ),
    "max": Pooling(
        "max",
        "The largest value of each dimension over all tokens.",
        r"v_j = \max_t x_{tj}",
        BY_THE_LIBRARY,
        pool=max_pooling,
    ),
    "mean_sqrt_len_tokens": Pooling(
        "sum / √length",
        "The sum of the tokens over the square root of their number. Its direction, and so every cosine, is "
        "that of the mean; only lengths differ.",
        r"v = \frac{1}{\sqrt n} \sum_t x_t",
        BY_THE_LIBRARY,
        lambda mask, states, idf: mask / np.sqrt(mask.sum()),
    ),
    "weightedmean": Pooling(
        "mean, later tokens more",
        "The mean with weights 1, 2, 3 …: made for models whose later tokens have read more.",
        r"v = \frac{\sum_t (t + 1)\, x_t}{\sum_t (t + 1)}",
        BY_THE_LIBRARY,
        lambda mask, states, idf: normalized_weights(mask, np.arange(1, len(mask) + 1, dtype=mask.dtype)),
    ),
    "lasttoken": Pooling(
        "last token",
        "The vector of the last token, [SEP] in BERT. Made for models that read left to right.",
        r"v = x_{n-1}",
        BY_THE_LIBRARY,
        lambda mask, states, idf: weight_at(int(np.flatnonzero(mask)[-1]), mask),
    ),
    "idf": Pooling(
        "mean, rare words more (IDF)",
        "The mean with weights ln((1 + N) / (1 + df)): the fewer of the chunks hold a word, the more it "
        "counts. Special tokens, which all have, count nothing.",
        r"v = \frac{\sum_t \mathrm{idf}_t\, x_t}{\sum_t \mathrm{idf}_t}",
        (
            "ids, out = read(text)\n"
            "weights = torch.tensor([idf.get(token, idf[None]) for token in ids])  # (n_tokens,)\n"
            "if not weights.sum():\n"
            "    weights = torch.ones(len(ids))\n"
            "return weights @ out.last_hidden_state[0]"
        ),
        idf_weights,
        needs="idf",
    ),
    "attention": Pooling(
        "mean, by attention received",
        "The mean with weights by the attention that each token receives in the last layer.",
        r"v = \frac{\sum_t a_t x_t}{\sum_t a_t}, \quad a_t = \overline{A_{\cdot \cdot t}}",
        (
            "_, out = read(text, output_attentions=True)\n"
            "received = out.attentions[-1][0].mean(dim=(0, 1))  # (n_tokens,)\n"
            "return received @ out.last_hidden_state[0]"
        ),
        received_weights,
        needs="attention",
    ),
    "last4": Pooling(
        "mean of last 4 layers",
        "The mean over tokens of the average of the last four layers.",
        r"v = \frac{1}{n} \sum_t \frac{1}{4} \sum_{l = L - 3}^{L} x_t^{(l)}",
        (
            "_, out = read(text, output_hidden_states=True)\n"
            "return torch.stack(out.hidden_states[1:][-4:]).mean(dim=0)[0].mean(dim=0)"
        ),
        lambda mask, states, idf: mean_weights(mask),
        mean_of_last_4_layers,
        needs="layers",
    ),
    "first_last": Pooling(
        "mean of first and last layer",
        "The mean over tokens of the average of the first and the last layer.",
        r"v = \frac{1}{n} \sum_t \frac{1}{2} (x_t^{(1)} + x_t^{(L)})",
        (
            "_, out = read(text, output_hidden_states=True)\n"
            "return (out.hidden_states[1] + out.hidden_states[-1])[0].mean(dim=0)"
        ),
        lambda mask, states, idf: mean_weights(mask),
        mean_of_first_and_last_layer,
        needs="layers",
    ),
}


def pooling_label(name: str) -> str:
    """Label of a strategy of `POOLINGS`, or of the model's own head; other names are returned unchanged."""
    return POOLINGS[name].label if name in POOLINGS else "the model's own" if name == "own" else name


def mean_pooling(token_vectors: Array) -> Array:
    """Average over all tokens: ``(n_tokens, d_model) -> (d_model,)``."""
    return mean_weights(np.ones(len(token_vectors), token_vectors.dtype)) @ token_vectors


def attention_received(weights: Array) -> Array:
    """Mean attention of all heads and queries to each token: ``(n_heads, n_query, n_key) -> (n_key,)``."""
    return weights.mean(axis=(0, 1))


def idf(document_frequency: Array, n_documents: int) -> Array:
    """``ln((1 + N) / (1 + df))``, 0 for tokens in every text, as [CLS]: ``(vocab_size,)``.

    Smoothed as in scikit-learn's TfidfTransformer, without the 1 that it adds.
    """
    return np.log((1 + n_documents) / (1 + document_frequency))
