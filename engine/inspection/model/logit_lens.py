"""The residual stream through the layers: nearest tokens, and the next tokens that each layer predicts.

The latter is the logit lens (nostalgebraist 2020).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...errors import InputError
from ...generation.decoder import Decoder
from ...layers.activation import log_softmax, softmax
from ...layers.norm import l2_normalize
from ...layers.tracing import Array
from ...models.decoders import final_norm


@dataclass(frozen=True)
class TopTokens:
    """The ``k`` best tokens of a vocabulary for each vector, best first: ``(n_vectors, k)``."""

    ids: Array
    scores: Array  # cosines or probabilities


def pairwise_cosines(vectors: Array) -> Array:
    """Cosine of every pair: ``(n, d) -> (n, n)``."""
    unit = l2_normalize(vectors)
    return unit @ unit.T


def nearest_tokens(vectors: Array, token_table: Array, k: int) -> TopTokens:
    """Return the ``k`` rows of a table ``(vocab_size, d)`` with the highest cosine to ``(n, d)`` vectors."""
    return top_k(l2_normalize(vectors) @ l2_normalize(token_table).T, k)


def top_next_tokens(logits: Array, k: int) -> TopTokens:
    """Return the most probable tokens: ``(n_vectors, vocab_size)`` logits."""
    return top_k(softmax(logits), k)


def top_k(scores: Array, k: int) -> TopTokens:
    """Return the ``k`` largest of each row, best first."""
    some = np.argpartition(-scores, k - 1, axis=-1)[:, :k]
    values = np.take_along_axis(scores, some, axis=-1)
    order = np.argsort(-values, axis=-1, kind="stable")
    return TopTokens(np.take_along_axis(some, order, axis=-1), np.take_along_axis(values, order, axis=-1))


@dataclass(frozen=True)
class LogitLens:
    """Next tokens predicted before the first and after every layer, at some positions."""

    # the ``k`` most probable tokens, best first, ``(n_layers + 1, n_positions, k)``. The last row is the
    # model's own distribution.
    ids: Array
    probabilities: Array
    targets: Array  # the token followed at each position, ``(n_positions,)``
    # its probability, and its rank among all tokens from 1: ``(n_layers + 1, n_positions)``
    target_probabilities: Array
    target_ranks: Array
    # ``KL(last || layer)``, in nats, ``(n_layers + 1, n_positions)``: how far the layer's distribution is
    # from the model's own; 0 in the last row
    divergences: Array

    def settled(self) -> Array:
        """First row from which on the target is most probable, or ``n_layers + 1``: ``(n_positions,)``."""
        is_first = self.target_ranks == 1  # (n_layers + 1, n_positions)
        return len(is_first) - np.logical_and.accumulate(is_first[::-1]).sum(axis=0)


def logit_lens(states: Array, decoder: Decoder, k: int, targets: Sequence[int] | None = None) -> LogitLens:
    """Pass the residual stream of each layer through the final norm and the unembedding.

    These are trained only for the last layer, so that early layers may say less than they know (Belrose et
    al. 2023). The logits of one position are held at a time, ``(n_layers + 1, vocab_size)``.

    ``states`` are the residual stream before the first and after every layer,
    ``(n_layers + 1, n_positions, d_model)``; ``targets`` a token to follow at each position, by default the
    model's most probable one.
    """
    n_positions, vocab_size = states.shape[1], decoder.config.vocab_size
    if not 1 <= k <= vocab_size:
        raise InputError(f"k is {k}: give 1 to {vocab_size}, the tokens of {decoder.name}")
    if targets is not None:
        if len(targets) != n_positions:
            raise InputError(f"{len(targets)} targets for {n_positions} positions: give one for each")
        decoder.check_ids(targets)
    followed, rows = [], []
    for place in range(n_positions):
        normed = final_norm(states[:, place], decoder.weights, decoder.config)
        log_p = log_softmax(decoder.unembed(normed))  # (n_layers + 1, vocab_size)
        p, last = np.exp(log_p), log_p[-1]
        best = top_k(p, k)
        target = int(best.ids[-1, 0]) if targets is None else int(targets[place])
        rank = 1 + (log_p > log_p[:, target, None]).sum(axis=-1)
        divergence = (last - log_p) @ p[-1]
        followed.append(target)
        rows.append((best.ids, best.scores, p[:, target], rank, divergence))
    ids, probabilities, *of_target = (np.stack(one, axis=1) for one in zip(*rows, strict=True))
    return LogitLens(ids, probabilities, np.array(followed), *of_target)
