"""The similarity of two texts as a sum of contributions, one for each pair of their tokens.

Where the vectors of two texts are sums over tokens, ``u = sum_i a_i x_i`` and ``v = sum_j b_j y_j``, their
cosine is a sum over pairs of tokens, ``sum_ij (a_i x_i · b_j y_j) / (|u| |v|)``: an identity, no estimate.
Of max pooling, a token's part has the dimensions that it won; MaxSim is a sum over matched pairs. Token
vectors are contextual, so the contribution of a token is not its whole effect: see
`engine.inspection.pooling.occlusion`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Literal

import numpy as np

from ...documents.sentences import sentence_spans
from ...layers.norm import l2_normalize
from ...layers.pooling import TokenStates
from ...layers.tracing import Array
from ...models.encoder import Encoder
from ...retrieval.maxsim import MAXSIM, best_matches
from ...tokenizers.encoding import Encoding
from ...tokenizers.text_tokenizer import TextTokenizer
from .token_contributions import pooled_parts

UnitLevel = Literal["tokens", "words", "sentences"]


@dataclass(frozen=True)
class TokenizedText:
    """A text and the tokens that the model reads of it."""

    text: str
    encoding: Encoding  # the tokens that the model reads
    begins_word: Array = field(repr=False)  # whether each token begins a word, ``(n_tokens,)``
    tokens_truncated: int  # tokens beyond the limit, which are not read

    @property
    def special(self) -> Array:
        """Whether each token is special, such as [CLS] and [SEP]: ``(n_tokens,)``."""
        return np.array([start == end for start, end in self.encoding.offsets])


@dataclass(frozen=True)
class TextUnit:
    """The tokens ``[first, last)`` of a text, and their characters ``[start, end)``."""

    label: str
    first: int
    last: int
    start: int
    end: int
    special: bool


@dataclass(frozen=True)
class Decomposition:
    """The contributions of pairs of tokens to the similarity of two texts."""

    first: TokenizedText
    second: TokenizedText
    strategy: str  # a pooling, or `MAXSIM`
    # cosine of the two pooled vectors, or the mean of MaxSim with the first text as the question
    score: float
    # contribution of each pair of tokens, float64 ``(n_first, n_second)``: its sum is the score
    matrix: Array = field(repr=False)
    # for max pooling, the token of each text with the largest value of a dimension, the first of equals:
    # ``(d_model,)`` twice. None otherwise.
    winners: tuple[Array, Array] | None = field(default=None, repr=False)


def decompose_similarity(
    encoder: Encoder, first: str, second: str, strategy: str = "mean", max_tokens: int | None = None
) -> Decomposition:
    """Decompose the similarity of two texts by pairs of tokens.

    An empty text consists of [CLS] and [SEP]. ``strategy`` is a pooling of `Encoder.poolings` other than
    ``"pooler"``, whose tanh around its sum leaves tokens no share, or `MAXSIM`; ``max_tokens`` is as in
    `Encoder.encode`.
    """
    pooling = "mean" if strategy == MAXSIM else strategy  # MaxSim uses the same token vectors as the mean
    encoder.check_poolings([pooling])
    texts = read_text(encoder, first, max_tokens), read_text(encoder, second, max_tokens)
    x, y = encoder.token_states([text.encoding.ids for text in texts], [pooling])
    if strategy == MAXSIM:
        unit_x, unit_y = l2_normalize(x.vectors), l2_normalize(y.vectors)
        best, cosines = best_matches(unit_x, unit_y)
        matrix = np.zeros((len(unit_x), len(unit_y)))
        matrix[np.arange(len(unit_x)), best] = cosines.astype(np.float64) / len(unit_x)
        return Decomposition(*texts, strategy, float(cosines.mean()), matrix)
    u, v = (unit_parts(states, strategy, encoder.idf) for states in (x, y))  # (n_first, d), (n_second, d)
    winners = (x.vectors.argmax(axis=0), y.vectors.argmax(axis=0)) if strategy == "max" else None
    score = cosine(encoder.pool(x, strategy), encoder.pool(y, strategy))
    return Decomposition(*texts, strategy, score, u @ v.T, winners)


def read_text(encoder: Encoder, text: str, max_tokens: int | None = None) -> TokenizedText:
    """Tokenize a text and cut it at the limit."""
    whole = encoder.tokenizer.encode(text)
    read = encoder.cut(whole, max_tokens)
    begins = encoder.truncate(word_begins(encoder.tokenizer, whole, text), max_tokens)
    read = replace(read, tokens=encoder.tokenizer.readable_tokens(read))
    return TokenizedText(text, read, np.array(begins), len(whole) - len(read))


def word_begins(tokenizer: TextTokenizer, whole: Encoding, text: str) -> list[bool]:
    """Return whether each token of a whole text begins a word, or is special."""
    if tokenizer.continuation:
        return [not token.startswith(tokenizer.continuation) for token in whole.tokens]
    before, _, after = tokenizer.around(whole.tokens)
    own = [not number for word in tokenizer.stages(text) for number in range(len(word.offsets))]
    return [True] * len(before) + own + [True] * len(after)


def cosine(u: Array, v: Array) -> float:
    """``u · v / (|u| |v|)`` in float64; 0 where one is zero."""
    return float(l2_normalize(u.astype(np.float64)) @ l2_normalize(v.astype(np.float64)))


def unit_parts(states: TokenStates, strategy: str, idf: Array | None) -> Array:
    """The parts, one a token, whose sum is the text's unit vector: float64 ``(n_tokens, d_model)``."""
    parts = pooled_parts(states, strategy, idf)
    return parts / np.maximum(np.linalg.norm(parts.sum(axis=0)), 1e-12)


def text_units(read: TokenizedText, level: UnitLevel) -> list[TextUnit]:
    """Group the tokens of a text into words or sentences; special tokens stay on their own.

    Words are those that the tokenizer splits into tokens: of WordPiece, punctuation marks and each part of
    "don't" are words of their own. A token belongs to the sentence in which it starts.
    """
    starts = np.array(read.encoding.offsets, int)[:, 0]  # (n_tokens,)
    special = read.special
    begins = read.begins_word if level == "words" else np.ones(len(starts), bool)
    if level == "sentences":
        sentence = np.searchsorted([start for start, _ in sentence_spans(read.text)], starts, side="right")
        begins = np.diff(sentence, prepend=-1) != 0
    begins = begins | special | np.roll(special, 1)  # roll carries the last to the first, which begins anyway
    borders = [*np.flatnonzero(begins).tolist(), len(starts)]
    return [text_unit(read, first, last, level) for first, last in pairwise(borders)]


def text_unit(read: TokenizedText, first: int, last: int, level: UnitLevel) -> TextUnit:
    """Return the unit of the tokens ``[first, last)``."""
    start, end = read.encoding.offsets[first][0], read.encoding.offsets[last - 1][1]
    special = start == end
    label = read.encoding.tokens[first] if special or level == "tokens" else read.text[start:end]
    return TextUnit(label, first, last, start, end, special)


def sum_by_unit(matrix: Array, rows: Sequence[TextUnit], columns: Sequence[TextUnit]) -> Array:
    """Sum the contributions of tokens over units: ``(n_first, n_second) -> (n_rows, n_columns)``."""
    by_row = np.add.reduceat(matrix, [row.first for row in rows], axis=0)
    return np.add.reduceat(by_row, [column.first for column in columns], axis=1)


def dimensions_won(winners: Array, of_text: Sequence[TextUnit]) -> Array:
    """Count the dimensions of a max-pooled vector that each unit won: ``(d_model,) -> (n_units,)``."""
    by_token = np.bincount(winners, minlength=of_text[-1].last)  # (n_tokens,)
    return np.add.reduceat(by_token, [each.first for each in of_text])
