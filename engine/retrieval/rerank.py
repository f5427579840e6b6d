"""Reranking of the best chunks by MaxSim or by a cross-encoder.

Comparing chunk vectors is fast; reading the tokens of a chunk, with or without the question, takes a pass
through a model. So only the best chunks of a first stage are reordered (Nogueira and Cho 2019).
"""

from collections.abc import Sequence
from threading import Lock

import numpy as np

from ..errors import check_several
from ..layers.tracing import Array
from ..models.encoder import Encoder
from ..models.multi_vector import MultiVectorEncoder, late_scores
from ..models.parallel import row_spans
from ..models.reader import Reader
from ..models.reranker import Reranker
from ..weights.fetch import Progress
from .maxsim import unit_vectors
from .ranking import best_first, ordered_scores, top

RERANK_DEPTH = 50  # chunks that are reordered
READ_AT_ONCE = 256  # chunks
KEPT_TOKENS = 32_768  # vectors in the cache: 50 MB of 384 float32
# Of a late-interaction model, whose vectors are shorter and are to be kept for a whole corpus: 300 MB of 128
# float32.
KEPT_LATE_TOKENS = 600_000


class TokenVectors:
    """Vectors of chunks' tokens, computed on demand and cached.

    Up to ``most`` vectors are cached; the least recently used chunks are dropped first. ``max_tokens``
    are read of each text, [CLS] and [SEP] included; None is the model's own limit.
    """

    def __init__(self, texts: Sequence[str], max_tokens: int | None = None) -> None:
        check_several(texts)
        self.texts, self.max_tokens, self.most = texts, max_tokens, KEPT_TOKENS
        self._kept: dict[int, Array] = {}  # by chunk, (n_tokens, d_model) each; the last used is last
        self._lock = Lock()

    def of(
        self, chunks: Sequence[int], encoder: Encoder | None, on_progress: Progress | None = None
    ) -> list[Array]:
        """Return the unit token vectors of chunks, by their places: ``(n_tokens, d_model)`` each."""
        with self._lock:
            found = {chunk: self._kept.pop(chunk) for chunk in dict.fromkeys(chunks) if chunk in self._kept}
            missing = [chunk for chunk in dict.fromkeys(chunks) if chunk not in found]
            found |= self._read(missing, encoder, on_progress)
            self._kept |= found
            n_tokens = sum(map(len, self._kept.values()))
            while n_tokens > self.most:
                n_tokens -= len(self._kept.pop(next(iter(self._kept))))
        return [found[chunk] for chunk in chunks]

    @property
    def nbytes(self) -> int:
        """Bytes of the vectors in memory."""
        return sum(each.nbytes for each in self._kept.values())

    def _read(
        self, chunks: Sequence[int], encoder: Encoder | None, on_progress: Progress | None
    ) -> dict[int, Array]:
        assert encoder is not None, "given by all who ask for its vectors"
        ids = encoder.tokenizer.ids_batch([self.texts[chunk] for chunk in chunks])
        read = [encoder.truncate(each, self.max_tokens) for each in ids]
        vectors = unit_vectors(read, encoder)  # (tokens of all chunks, d_model)
        # Copies: a view would keep the vectors of all chunks in memory.
        spans = row_spans([len(each) for each in read])
        return {chunk: vectors[span].copy() for chunk, span in zip(chunks, spans, strict=True)}


class LateVectors(TokenVectors):
    """Vectors of chunks' tokens by a late-interaction model, as many as a corpus of medium size has."""

    def __init__(self, texts: Sequence[str], model: MultiVectorEncoder) -> None:
        super().__init__(texts)
        self.model, self.most = model, KEPT_LATE_TOKENS

    def _read(
        self, chunks: Sequence[int], encoder: Encoder | None, on_progress: Progress | None
    ) -> dict[int, Array]:
        texts = [self.texts[chunk] for chunk in chunks]
        return dict(zip(chunks, self.model.vectors(texts, "document", on_progress), strict=True))


class MaxSim:
    """MaxSim of questions with chunks, each chunk scored once, on demand.

    ``max_tokens`` are as of `TokenVectors`. The scores of a chunk stay in memory, ``4 * n_questions`` bytes
    each; its token vectors only do in ``tokens``, for later questions.
    """

    def __init__(
        self,
        questions: Sequence[str],
        texts: Sequence[str],
        encoder: Encoder,
        max_tokens: int | None = None,
        tokens: TokenVectors | None = None,
    ) -> None:
        check_several(questions)
        check_several(texts)
        self.questions, self.texts = tuple(questions), texts
        self.encoder, self.max_tokens, self.tokens = encoder, max_tokens, tokens
        self._columns: dict[int, Array] = {}  # by chunk, (n_questions,) each

    def scores(self, chunks: Sequence[int], on_progress: Progress | None = None) -> Array:
        """Score some chunks, given by their places, for every question: float32 ``(n_questions, n)``."""
        new = [chunk for chunk in dict.fromkeys(chunks) if chunk not in self._columns]
        if new:
            self._columns.update(zip(new, self._read(new, on_progress).T.copy(), strict=True))
        columns = [self._columns[chunk] for chunk in chunks]
        return np.array(columns, np.float32).reshape(len(chunks), len(self.questions)).T

    def _read(self, chunks: Sequence[int], on_progress: Progress | None) -> Array:
        """Score chunks that have no scores yet: ``(n_questions, n)``."""
        tokens = self.tokens or TokenVectors(self.texts, self.max_tokens)
        asked = TokenVectors(self.questions, self.max_tokens).of(range(len(self.questions)), self.encoder)
        if not asked:
            return np.empty((0, len(chunks)), np.float32)
        vectors = np.concatenate(asked)  # (tokens of all questions, d_model)
        lengths = np.array([len(each) for each in asked])
        starts, columns = np.cumsum(lengths) - lengths, []
        for first in range(0, len(chunks), READ_AT_ONCE):
            for each in tokens.of(chunks[first : first + READ_AT_ONCE], self.encoder):
                best = (vectors @ each.T).max(axis=1)  # (tokens of all questions,)
                columns.append(np.add.reduceat(best, starts) / lengths)
            if on_progress is not None:
                on_progress(len(columns), len(chunks))
        return np.array(columns, np.float32).T


class LateMaxSim(MaxSim):
    """The score of a late-interaction model, for questions and the chunks whose vectors are in ``tokens``."""

    def __init__(self, questions: Sequence[str], tokens: LateVectors) -> None:
        check_several(questions)
        self.questions, self.texts, self.late = tuple(questions), tokens.texts, tokens
        self._columns = {}

    def _read(self, chunks: Sequence[int], on_progress: Progress | None) -> Array:
        asked = self.late.model.vectors(self.questions, "query")
        read = self.late.of(chunks, None, on_progress)
        scores = np.array([late_scores(question, read) for question in asked], np.float32)
        return scores.reshape(len(asked), len(read))


def rerank(scores: Array, maxsim: MaxSim, on_progress: Progress | None = None) -> Array:
    """Reorder the best chunks of each question by MaxSim; the others follow in their old order.

    From the scores of the first stage ``(n_questions, n_chunks)`` to minus the new place, float32 of that
    shape; ``-inf`` where the first stage has it. ``on_progress`` is called with chunks read and to read.
    """
    order, near = first_stage(scores, RERANK_DEPTH)
    needed = np.unique(np.concatenate([np.empty(0, int), *near]))  # chunks, ascending
    closer = maxsim.scores(needed.tolist(), on_progress)  # (n_questions, n_needed)
    found = [own[np.searchsorted(needed, chunks)] for chunks, own in zip(near, closer, strict=True)]
    return reordered(order, near, found, scores)


def cross_rerank(
    scores: Array,
    questions: Sequence[str],
    texts: Sequence[str],
    reranker: Reranker | Reader,
    depth: int,
    on_progress: Progress | None = None,
    first_weight: float = 0.0,
) -> Array:
    """Reorder the best chunks of each question by a cross-encoder or the reader; the others follow.

    Arguments and result are as in `rerank`, but for ``on_progress``, which is called with pairs. Scores of
    the first stage are added with ``first_weight`` to those of the model.
    """
    order, near = first_stage(scores, depth)
    total, n_done = sum(map(len, near)), 0
    found = []
    for question, chunks, first in zip(questions, near, scores, strict=True):
        own = reranker.score(question, [texts[chunk] for chunk in chunks.tolist()])
        found.append(own + np.float32(first_weight) * first[chunks])
        n_done += len(chunks)
        if on_progress is not None:
            on_progress(n_done, total)
    return reordered(order, near, found, scores)


def first_stage(scores: Array, depth: int) -> tuple[Array, list[Array]]:
    """Rank all chunks for each question, ``(n_questions, n_chunks)``; return that and the first ``depth``."""
    return best_first(scores), [top(own, depth) for own in scores]


def reordered(order: Array, near: Sequence[Array], found: Sequence[Array], scores: Array) -> Array:
    """Order each question's chunks ``near`` by the scores ``found``; the others keep their order behind."""
    for row, chunks, own in zip(order, near, found, strict=True):
        row[: len(chunks)] = chunks[np.argsort(-own, kind="stable")]
    return ordered_scores(order, scores)
