"""What the similarity of two texts is made of: a contribution for each pair of their tokens.

Where the vectors of two texts are sums over tokens, ``u = sum_i a_i x_i`` and ``v = sum_j b_j y_j``, their
cosine is a sum over pairs of tokens, ``sum_ij (a_i x_i · b_j y_j) / (|u| |v|)``: an identity, no estimate.
Max pooling is a sum over dimensions, each won by one token of either text, and MaxSim one over matched
pairs. The vectors themselves are contextual, so that a token's contribution is not all of what the token
does: see `engine.inspection.occlusion`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

import numpy as np

from engine.documents.sentences import sentence_spans
from engine.errors import InputError
from engine.layers.norm import l2_normalize
from engine.layers.tracing import Array
from engine.models.encoder import Encoder
from engine.models.token_states import TokenStates, summed_vectors, token_shares
from engine.retrieval.maxsim import MAXSIM, matches, max_sim
from engine.tokenizers.encoding import Encoding

Level = Literal["tokens", "words", "sentences"]


@dataclass(frozen=True)
class ReadText:
    """A text and the tokens that the model reads of it.

    Attributes
    ----------
    text
        The whole text.
    encoding
        The tokens that are read.
    begins_word
        Whether each begins a word and does not go on with one, ``(n_tokens,)``.
    tokens_lost
        Tokens beyond the limit, which are not read.
    """

    text: str
    encoding: Encoding
    begins_word: Array = field(repr=False)
    tokens_lost: int

    @property
    def special(self) -> Array:
        """Which tokens stand for no text, as [CLS] and [SEP]: ``(n_tokens,)``."""
        return np.array([start == end for start, end in self.encoding.offsets])


@dataclass(frozen=True)
class Unit:
    """A run of a text's tokens, ``first`` to before ``last``, and the characters that they stand for."""

    label: str
    first: int
    last: int
    start: int
    end: int
    special: bool


@dataclass(frozen=True)
class Contributions:
    """What the similarity of two texts is made of.

    Attributes
    ----------
    first, second
        The texts as read.
    strategy
        A pooling, or `MAXSIM`.
    score
        The cosine of the two pooled vectors, or the mean of MaxSim with the first text as the question.
    matrix
        What each pair of tokens contributes, float64 ``(n_first, n_second)``: its sum is the score.
    winners
        For max pooling, the token of each text whose value is the largest of a dimension, the first of
        equals: ``(d_model,)`` twice. None otherwise.
    """

    first: ReadText
    second: ReadText
    strategy: str
    score: float
    matrix: Array = field(repr=False)
    winners: tuple[Array, Array] | None = field(default=None, repr=False)


def contributions(
    encoder: Encoder, first: str, second: str, strategy: str = "mean", max_tokens: int | None = None
) -> Contributions:
    """Take the similarity of two texts apart, token by token.

    Parameters
    ----------
    encoder
        The encoder.
    first, second
        The texts; one without words is its [CLS] and [SEP].
    strategy
        A pooling of `Encoder.poolings` other than ``"pooler"``, or `MAXSIM`.
    max_tokens
        Tokens read of each text; None for the model's own limit.

    Raises
    ------
    InputError
        The strategy is unknown or no sum (BERT's pooler is not), or the limit is beyond the position table.
    """
    pooling = "mean" if strategy == MAXSIM else strategy  # MaxSim wants the vectors that the mean does
    encoder.check_poolings([pooling])
    if strategy == "pooler":
        raise InputError("'pooler' puts a tanh around its sum, which no token has a share in: choose another")
    texts = read_text(encoder, first, max_tokens), read_text(encoder, second, max_tokens)
    x, y = encoder.token_states([text.encoding.ids for text in texts], [pooling])
    if strategy == MAXSIM:
        unit_x, unit_y = l2_normalize(x.vectors), l2_normalize(y.vectors)
        return Contributions(*texts, strategy, max_sim(unit_x, unit_y), match_matrix(unit_x, unit_y))
    score = cosine(encoder.pool(x, strategy), encoder.pool(y, strategy))
    if strategy == "max":
        won = x.vectors.argmax(axis=0), y.vectors.argmax(axis=0)
        return Contributions(*texts, strategy, score, won_matrix(x.vectors, y.vectors, *won), won)
    terms = summands(encoder, x, strategy), summands(encoder, y, strategy)
    return Contributions(*texts, strategy, score, sum_matrix(*terms))


def read_text(encoder: Encoder, text: str, max_tokens: int | None = None) -> ReadText:
    """Tokenize a text as far as it is read."""
    whole = encoder.tokenizer.encode(text)
    read = encoder.cut(whole, max_tokens)
    prefix = encoder.tokenizer.continuation
    begins = np.array([not (prefix and token.startswith(prefix)) for token in read.tokens])
    return ReadText(text, read, begins, len(whole) - len(read))


def cosine(u: Array, v: Array) -> float:
    """``u · v / (|u| |v|)`` in float64; 0 where one is zero."""
    return float(l2_normalize(u.astype(np.float64)) @ l2_normalize(v.astype(np.float64)))


def summands(encoder: Encoder, states: TokenStates, strategy: str) -> Array:
    """What each token adds to the text's vector, of length 1: float64 ``(n_tokens, d_model)``."""
    shares = token_shares(states, strategy, encoder.idf).astype(np.float64)
    terms = shares[:, None] * summed_vectors(states, strategy)  # (n_tokens, d_model)
    return terms / np.maximum(np.linalg.norm(terms.sum(axis=0)), 1e-12)


def sum_matrix(first: Array, second: Array) -> Array:
    """``x_i · y_j``: summands ``(n_first, d), (n_second, d)`` to ``(n_first, n_second)``."""
    return first @ second.T


def won_matrix(first: Array, second: Array, first_won: Array, second_won: Array) -> Array:
    """``u_d v_d / (|u| |v|)`` of every dimension, credited to the two tokens that won it.

    Token vectors ``(n, d_model)`` and winners ``(d_model,)`` of both texts to ``(n_first, n_second)``.
    """
    u, v = first.max(axis=0).astype(np.float64), second.max(axis=0).astype(np.float64)  # (d_model,) each
    matrix = np.zeros((len(first), len(second)))
    np.add.at(matrix, (first_won, second_won), l2_normalize(u) * l2_normalize(v))
    return matrix


def match_matrix(first: Array, second: Array) -> Array:
    """Each question's token's share of MaxSim, with its best match: ``(n_first, n_second)``, else 0."""
    best, cosines = matches(first, second)
    matrix = np.zeros((len(first), len(second)))
    matrix[np.arange(len(first)), best] = cosines.astype(np.float64) / len(first)
    return matrix


def units(read: ReadText, level: Level) -> list[Unit]:
    """Cut what was read of a text into tokens, words or sentences; special tokens stay on their own.

    A word is what WordPiece cuts up: punctuation and each part of "don't" is one of its own. A token
    belongs to the sentence in which it starts.
    """
    starts = np.array(read.encoding.offsets, int)[:, 0]  # (n_tokens,)
    special = read.special
    begins = read.begins_word if level == "words" else np.ones(len(starts), bool)
    if level == "sentences":
        sentence = np.searchsorted([start for start, _ in sentence_spans(read.text)], starts, side="right")
        begins = np.diff(sentence, prepend=-1) != 0
    begins = begins | special | np.roll(special, 1)  # the first token, rolled to from the last, begins anyway
    borders = [*np.flatnonzero(begins).tolist(), len(starts)]
    return [unit(read, first, last, level) for first, last in pairwise(borders)]


def unit(read: ReadText, first: int, last: int, level: Level) -> Unit:
    """Make one unit of the tokens ``first`` to before ``last``."""
    start, end = read.encoding.offsets[first][0], read.encoding.offsets[last - 1][1]
    special = start == end
    label = read.encoding.tokens[first] if special or level == "tokens" else read.text[start:end]
    return Unit(label, first, last, start, end, special)


def rolled_up(matrix: Array, rows: Sequence[Unit], columns: Sequence[Unit]) -> Array:
    """Sum tokens' contributions over units: ``(n_first, n_second) -> (n_rows, n_columns)``."""
    by_row = np.add.reduceat(matrix, [row.first for row in rows], axis=0)
    return np.add.reduceat(by_row, [column.first for column in columns], axis=1)


def dimensions_won(winners: Array, of_text: Sequence[Unit]) -> Array:
    """How many dimensions of a max-pooled vector each unit won: ``(d_model,) -> (n_units,)``."""
    by_token = np.bincount(winners, minlength=of_text[-1].last)  # (n_tokens,)
    return np.add.reduceat(by_token, [each.first for each in of_text])
