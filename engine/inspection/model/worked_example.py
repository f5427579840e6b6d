"""The Random Transformer: a worked example of an encoder and a decoder, small enough to follow by hand.

Two words of 4 numbers pass through 2 heads of 3. Matrices stand on the right of what they multiply,
``x W``, as in the example and the paper (the engine's own layers hold them transposed). Every function
is a traced step, and `Options` switches between the example and the paper.
Source: ``data/random_transformer.json``, described in ``data/README.md``.
"""

import json
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from ...errors import InputError
from ...installed import bundled
from ...layers.activation import relu, softmax
from ...layers.attention import causal_mask
from ...layers.norm import layer_norm
from ...layers.positions import sinusoidal
from ...layers.tracing import Array, Tracer, no_trace, scoped

FILE = bundled("random_transformer.json")
Matrices = dict[str, Array]  # by name: tokens (n_tokens, d_model), heads.0.query (d_model, d_head), …

WORDS = ("Hello", "World")
TOKENS = np.array([[1, 2, 3, 4], [2, 3, 4, 5]], float)  # (n_tokens, d_model)
# As the example rounds them. Its 0.99 is cos(0.01), where the paper's formula has cos(1) = 0.54.
ROUNDED_POSITIONS = np.array([[0, 1, 0, 1], [0.84, 0.99, 0, 1]])
N_HEADS, D_MODEL, D_HEAD, D_FF = 2, 4, 3, 8
EXAMPLE_DIVISOR = 30.0  # the example divides the scores by it instead of sqrt(d_head)
MAX_NUMBER = 1e6

VOCABULARY = ("<SOS>", "<EOS>", "hello", "world", "hola", "mundo", "how", "are", "you", "?")
SOS, EOS = 0, 1


@dataclass(frozen=True)
class Options:
    """Variants of the steps."""

    divisor: float = EXAMPLE_DIVISOR  # of the scores
    # ``(x - mean) / (std + 1e-6)``, the usual ``(x - mean) / sqrt(var + 1e-5)``, or none
    norm: Literal["example", "usual", "none"] = "example"
    residual: bool = True
    positions: Literal["example", "formula"] = "example"
    shift_softmax: bool = True  # subtract a row's largest score before ``exp``, which only prevents overflow


def reference_arrays() -> dict[str, Array]:
    """Return every array that the example prints, by its name in the file."""
    raw = json.loads(FILE.read_text("utf-8"))
    return {name: np.array(value, float) for name, value in raw.items() if isinstance(value, list)}


def example_matrices(seed: int) -> Matrices:
    """Return the matrices of an encoder block: the example's, and random ones for the FFN.

    Here and below each part has its own random stream for a seed.
    """
    given = reference_arrays()
    matrices = {"tokens": TOKENS.copy()}
    for i in range(N_HEADS):
        for name, letter in (("query", "Q"), ("key", "K"), ("value", "V")):
            matrices[f"heads.{i}.{name}"] = given[f"W{letter}{i + 1}"]
    return matrices | {"output": given["WO"]} | random_ffn(np.random.default_rng([seed, 0]))


def random_attention(rng: np.random.Generator) -> Matrices:
    """Attention matrices of the example's sizes, every number drawn from N(0, 1)."""
    heads = {
        f"heads.{i}.{name}": rng.standard_normal((D_MODEL, D_HEAD))
        for i in range(N_HEADS)
        for name in ("query", "key", "value")
    }
    return heads | {"output": rng.standard_normal((N_HEADS * D_HEAD, D_MODEL))}


def random_ffn(rng: np.random.Generator) -> Matrices:
    """Feed-forward matrices and biases, every number drawn from N(0, 1)."""
    shapes = {
        "ffn.w1": (D_MODEL, D_FF),
        "ffn.b1": (1, D_FF),
        "ffn.w2": (D_FF, D_MODEL),
        "ffn.b2": (1, D_MODEL),
    }
    return {name: rng.standard_normal(shape) for name, shape in shapes.items()}


def check_matrix(name: str, matrix: Array) -> None:
    """Raise `InputError` where an entry of a matrix is not a number or is too large."""
    wrong = np.argwhere(~(np.abs(matrix) <= MAX_NUMBER))
    if len(wrong):
        row, column = wrong[0]
        found = matrix[row, column]
        what = "empty or no number" if np.isnan(found) else f"{found:g}, beyond ±{MAX_NUMBER:,.0f}"
        raise InputError(
            f"{name}, row {row + 1}, column {column + 1} is {what}: enter a number up to {MAX_NUMBER:,.0f}"
        )


def positions(n_tokens: int, options: Options) -> Array:
    """Return the position vectors, ``(n_tokens, d_model)``; the example has two."""
    if options.positions == "example":
        return ROUNDED_POSITIONS[:n_tokens]
    return sinusoidal(np.arange(n_tokens), D_MODEL, np.dtype(float))


def attention_head(
    x: Array, source: Array, m: Matrices, name: str, options: Options, mask: Array | float, trace: Tracer
) -> Array:
    """``softmax(Q K^T / divisor + mask) V`` of one head: ``(n_query, d_head)``."""
    query = trace("query", x @ m[f"{name}.query"])  # (n_query, d_head)
    key = trace("key", source @ m[f"{name}.key"])  # (n_key, d_head)
    value = trace("value", source @ m[f"{name}.value"])
    scores = trace("scores", query @ key.T)  # (n_query, n_key)
    scaled = trace("scaled", scores / scores.dtype.type(options.divisor) + mask)
    if options.shift_softmax:
        weights = softmax(scaled)
    else:  # without the shift that keeps ``exp`` from overflowing
        exponentials = np.exp(scaled)
        weights = exponentials / exponentials.sum(axis=-1, keepdims=True)
    return trace("context", trace("weights", weights) @ value)  # (n_query, d_head)


def multi_head_attention(
    x: Array, source: Array, m: Matrices, name: str, options: Options, mask: Array | float, trace: Tracer
) -> Array:
    """Heads side by side, then the output matrix: ``(n_query, d_model)`` to the same."""
    contexts = [
        attention_head(x, source, m, f"{name}heads.{i}", options, mask, scoped(trace, f"heads.{i}"))
        for i in range(N_HEADS)
    ]
    joined = trace("joined", np.concatenate(contexts, axis=-1))  # (n_query, n_heads * d_head)
    return trace("projected", joined @ m[f"{name}output"])


def normalized(x: Array, options: Options) -> Array:
    """Layer norm without scale and shift, in the form of ``options.norm``."""
    if options.norm == "none":
        return x
    if options.norm == "usual":
        return layer_norm(x, np.ones_like(x[0]), np.zeros_like(x[0]), 1e-5)
    mean, deviation = x.mean(axis=-1, keepdims=True), x.std(axis=-1, keepdims=True)
    return (x - mean) / (deviation + x.dtype.type(1e-6))


def add_and_norm(x: Array, sublayer: Array, options: Options, trace: Tracer) -> Array:
    """``norm(x + sublayer)``, without the residual or the norm where the options say so."""
    total = trace("sum", x + sublayer if options.residual else sublayer)
    return trace("norm", normalized(total, options))


def feed_forward(x: Array, m: Matrices, name: str, trace: Tracer) -> Array:
    """``relu(x W1 + b1) W2 + b2``: ``(n_tokens, d_model) -> (n_tokens, d_ff) -> (n_tokens, d_model)``."""
    hidden = trace("hidden", x @ m[f"{name}ffn.w1"] + m[f"{name}ffn.b1"])
    activation = trace("activation", relu(hidden))
    return trace("output", activation @ m[f"{name}ffn.w2"] + m[f"{name}ffn.b2"])


def encoder_block(x: Array, m: Matrices, options: Options, trace: Tracer = no_trace) -> Array:
    """Attention, add & norm, feed-forward, add & norm: ``(n_tokens, d_model)`` to the same."""
    attended = multi_head_attention(x, x, m, "", options, 0, scoped(trace, "attention"))
    x = add_and_norm(x, attended, options, scoped(trace, "attention"))
    transformed = feed_forward(x, m, "", scoped(trace, "ffn"))
    return add_and_norm(x, transformed, options, scoped(trace, "ffn"))


@dataclass(frozen=True)
class BlockMagnitude:
    """Largest numbers of one block of a stack; NaN where any of them is NaN."""

    largest_score: float
    largest_output: float


def encoder_stack(
    x: Array, m: Matrices, n_blocks: int, seed: int, options: Options, dtype: np.dtype
) -> tuple[Array, list[BlockMagnitude]]:
    """Pass through blocks, the first with the matrices given, the others with random ones.

    Returns the last output, ``(n_tokens, d_model)`` in ``dtype``, and the sizes of every block's numbers.
    """
    rng = np.random.default_rng([seed, 1])
    rounded = {name: matrix.astype(dtype) for name, matrix in m.items()}
    x, sizes = x.astype(dtype), []
    for _ in range(n_blocks):
        largest: dict[str, float] = {}

        def record(name: str, value: Array, largest: dict[str, float] = largest) -> Array:
            largest[name] = float(np.abs(value).max())  # NaN where any is
            return value

        with np.errstate(over="ignore", invalid="ignore"):  # overflow is the point of the example
            x = encoder_block(x, rounded, options, record)
        scores = [largest[f"attention.heads.{i}.scaled"] for i in range(N_HEADS)]
        sizes.append(BlockMagnitude(float(np.max(scores)), largest["ffn.norm"]))
        drawn = random_attention(rng) | random_ffn(rng)
        rounded = {name: matrix.astype(dtype) for name, matrix in drawn.items()}
    return x, sizes


def random_decoder(seed: int) -> Matrices:
    """Return matrices of a decoder block, the embedding ``(vocab_size, d_model)`` and the unembedding."""
    rng = np.random.default_rng([seed, 2])
    own = {f"self.{name}": matrix for name, matrix in random_attention(rng).items()}
    cross = {f"cross.{name}": matrix for name, matrix in random_attention(rng).items()}
    embedding = rng.standard_normal((len(VOCABULARY), D_MODEL))
    logits = rng.standard_normal((D_MODEL, len(VOCABULARY)))
    return own | cross | random_ffn(rng) | {"embedding": embedding, "vocabulary": logits}


def decoder_block(
    ids: list[int], memory: Array, m: Matrices, options: Options, trace: Tracer = no_trace
) -> Array:
    """Logits after each of the ids, ``(n_target, vocab_size)``; ``memory`` is the encoder's output."""
    x = m["embedding"][ids] + positions(len(ids), replace(options, positions="formula"))
    x = trace("embeddings", x)  # (n_target, d_model)
    mask = causal_mask(len(ids), len(ids), x.dtype)
    attended = multi_head_attention(x, x, m, "self.", options, mask, scoped(trace, "self"))
    x = add_and_norm(x, attended, options, scoped(trace, "self"))
    attended = multi_head_attention(x, memory, m, "cross.", options, 0, scoped(trace, "cross"))
    x = add_and_norm(x, attended, options, scoped(trace, "cross"))
    transformed = feed_forward(x, m, "", scoped(trace, "ffn"))
    x = add_and_norm(x, transformed, options, scoped(trace, "ffn"))
    return trace("logits", x @ m["vocabulary"])


def greedy_decode(
    memory: Array, m: Matrices, options: Options, max_new_tokens: int
) -> tuple[list[int], Array]:
    """Decode greedily from SOS to EOS; return the ids and their probabilities, ``(n_new, vocab_size)``."""
    ids: list[int] = [SOS]
    probabilities: list[Array] = []
    while len(probabilities) < max_new_tokens and (len(ids) == 1 or ids[-1] != EOS):
        probabilities.append(softmax(decoder_block(ids, memory, m, options)[-1]))
        ids.append(int(probabilities[-1].argmax()))
    return ids, np.array(probabilities)
