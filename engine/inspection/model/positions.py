"""How each positional encoding changes the attention score of two equal tokens with their distance."""

from dataclasses import dataclass

import numpy as np

from ...errors import InputError
from ...generation.decoder import Decoder
from ...layers.positions import alibi_slopes, rope_frequencies, sinusoidal
from ...layers.tracing import Array
from ...models.gemma3 import Gemma3Config
from ...models.gpt2 import GPT2Weights
from ...models.llama import LlamaConfig
from ...wording import model_name

ROPE_THETA = 10000.0  # base of the frequencies


@dataclass(frozen=True)
class DistanceScores:
    """Change of an attention score with the distance, as lines to draw.

    Two tokens with the same vector x are at positions i and j. The change is their score minus the mean of
    their scores with themselves: 0 at distance 0; a change of -0.69, which is -ln 2, halves the attention
    weight. x is both query and key, without trained matrices, in one head as wide as the vector; RoPE has
    ``d_head`` dimensions, and its line is the mean over vectors x with independent entries of variance
    1, as after a norm. For the others x cancels out.
    """

    scheme: str  # "learned", "sinusoidal", "RoPE" or "ALiBi"
    lines: tuple[str, ...]  # name of each line: one of the scheme, or one of each head or kind of layers
    distances: Array  # number of tokens between the two, ``(n_distances,)``, from 0
    # score at each distance minus that at distance 0, ``(n_lines, n_distances)``; NaN beyond a window
    change: Array
    # the lowest and highest change over all pairs of positions at each distance. They equal ``change`` except
    # for learned positions.
    lowest: Array
    highest: Array


def score_by_distance(
    n_distances: int, d_model: int, n_heads: int
) -> tuple[DistanceScores, DistanceScores, DistanceScores, DistanceScores]:
    """Return the lines of four schemes: learned (untrained), sinusoidal, RoPE and ALiBi."""
    if d_model % (2 * n_heads):
        raise InputError(
            f"{n_heads} heads cannot share {d_model} dimensions in pairs: give a multiple of {2 * n_heads}"
        )
    # learned positions before training: normal noise of variance 1
    untrained = np.random.default_rng(0).standard_normal((2 * n_distances, d_model), np.float32)
    return (
        learned_scores(untrained, n_distances),
        sinusoidal_scores(d_model, n_distances),
        rope_scores(rope_frequencies(d_model // n_heads, ROPE_THETA), n_distances, d_model // n_heads),
        alibi_scores(n_heads, n_distances),
    )


def decoder_score_by_distance(decoder: Decoder, n_distances: int) -> DistanceScores:
    """Return the lines of a decoder's own positions: RoPE with its frequencies, or its learned table.

    A learned table is scaled by the token embeddings that it is added to. The model's norms and matrices
    are not included.
    """
    config, weights = decoder.config, decoder.weights
    if isinstance(config, LlamaConfig):
        rope = config.rope
        frequencies = rope_frequencies(2 * len(rope.factors), rope.theta, rope.factors)
        scores = rope_scores(frequencies, n_distances, config.d_head, rope.scale)
        if not isinstance(config, Gemma3Config):
            return scores
        rope = config.local_rope
        frequencies = rope_frequencies(config.d_head, rope.theta, rope.factors)
        local = rope_scores(frequencies, n_distances, config.d_head)
        change = np.concatenate([scores.change, local.change])
        change[1, max(filter(None, config.windows), default=0) :] = np.nan
        return same_at_all_positions("RoPE", ("layers that see all tokens", "layers with a window"), change)
    if not isinstance(weights, GPT2Weights):
        raise InputError(
            f"{model_name(decoder.name)} has positions that are not shown yet: choose another decoder"
        )
    root_mean_square = np.sqrt(np.square(weights.token_table.T).mean())
    return learned_scores(weights.position_table / root_mean_square, n_distances)


def learned_scores(table: Array, n_distances: int) -> DistanceScores:
    """``-|p_i - p_j|^2 / (2 sqrt(d_model))``: mean, minimum and maximum over all positions i and j.

    That is ``(x + p_i) (x + p_j)`` minus half of ``(x + p_i)^2 + (x + p_j)^2``, as scores are scaled.
    """
    n_positions, d_model = table.shape
    if not 1 <= n_distances <= n_positions:
        raise InputError(f"{n_distances} distances asked for: give 1 to {n_positions}, the learned positions")
    scores = [
        -0.5 * np.square(table[: n_positions - distance] - table[distance:]).sum(axis=-1) / np.sqrt(d_model)
        for distance in range(n_distances)
    ]  # (n_pairs,) each
    low, mean, high = (np.array([[pick(pairs) for pairs in scores]]) for pick in (np.min, np.mean, np.max))
    return DistanceScores("learned", ("learned",), np.arange(n_distances), mean, low, high)


def sinusoidal_scores(d_model: int, n_distances: int) -> DistanceScores:
    """Equal to `learned_scores` of the sinusoidal table, which depends only on the distance.

    ``p_i p_j`` is the sum of ``cos(distance * frequency)`` over the frequencies.
    """
    vectors = sinusoidal(np.arange(n_distances), d_model, np.dtype(np.float64))
    change = (vectors - vectors[0]) @ vectors[0] / np.sqrt(d_model)
    return same_at_all_positions("sinusoidal", ("sinusoidal",), change[None])


def rope_scores(frequencies: Array, n_distances: int, d_head: int, scale: float = 1.0) -> DistanceScores:
    """``scale^2 x (R(distance) - 1) x / sqrt(d_head)``: the mean over x.

    That is ``2 scale^2 / sqrt(d_head)`` times the sum of ``cos(distance * frequency) - 1`` over the
    ``frequencies``, one for each pair of dimensions that is rotated.
    """
    angle = np.arange(n_distances)[:, None] * frequencies.astype(np.float64)  # (n_distances, d_rotary / 2)
    change = 2 * scale**2 / np.sqrt(d_head) * (np.cos(angle) - 1).sum(axis=-1)
    return same_at_all_positions("RoPE", ("RoPE",), change[None])


def alibi_scores(n_heads: int, n_distances: int) -> DistanceScores:
    """``-slope * distance``, a line for each head."""
    slopes = alibi_slopes(n_heads)
    lines = tuple(f"head {head}, slope {slope:.3g}" for head, slope in enumerate(slopes))
    return same_at_all_positions("ALiBi", lines, -slopes[:, None] * np.arange(n_distances))


def same_at_all_positions(scheme: str, lines: tuple[str, ...], change: Array) -> DistanceScores:
    """Return the lines of a scheme whose score depends only on the distance."""
    return DistanceScores(scheme, lines, np.arange(change.shape[1]), change, change, change)
