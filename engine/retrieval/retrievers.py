"""Ways to score chunks for questions, all through one function."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from engine.errors import InputError
from engine.layers.tracing import Array
from engine.models.encoder import Encoder
from engine.retrieval.bm25 import Bm25
from engine.retrieval.dense import dense_scores
from engine.retrieval.fusion import RRF_CONSTANT, reciprocal_rank_fusion, weighted_fusion
from engine.retrieval.index import Index
from engine.retrieval.mmr import MMR_DEPTH, MMR_DIVERSITY, MMR_K, mmr_scores
from engine.retrieval.rerank import RERANK_DEPTH, MaxSim, TokenVectors, rerank
from engine.retrieval.vector_kind import Query
from engine.weights.fetch import Progress

RETRIEVERS = ("dense", "bm25", "hybrid", "weighted", "mmr", "maxsim")
OF_WORDS = ("bm25", "hybrid", "weighted")  # those that need BM25's index

# The best nDCG@10 on every other question of Cranfield (0.449 there); on the rest of them it has 0.421, where
# reciprocal rank fusion has 0.409.
DENSE_WEIGHT = 0.7


@dataclass(frozen=True)
class Texts:
    """Questions and chunks, with what is the same for all vectors made of them, each made once when needed.

    Attributes
    ----------
    questions, chunks
        Their texts.
    encoder
        Reads tokens for MaxSim; not needed by the others.
    max_tokens
        Tokens that it reads of each, None for its own limit.
    words, tokens
        BM25's index of the chunks and the vectors of their tokens, where these were made before: they are
        the same for all questions.
    """

    questions: tuple[str, ...] = field(repr=False)
    chunks: tuple[str, ...] = field(repr=False)
    encoder: Encoder | None = None
    max_tokens: int | None = None
    words: Bm25 | None = field(default=None, repr=False, compare=False)
    tokens: TokenVectors | None = field(default=None, repr=False, compare=False)

    @cached_property
    def bm25(self) -> Array:
        """BM25 of every question with every chunk: float32 ``(n_questions, n_chunks)``."""
        words = Bm25(self.chunks) if self.words is None else self.words
        return words.scores(self.questions)

    @cached_property
    def found_by_words(self) -> Array:
        """The same, ``-inf`` where question and chunk share no word."""
        return np.where(self.bm25 > 0, self.bm25, np.float32(-np.inf))

    @cached_property
    def maxsim(self) -> MaxSim:
        """MaxSim of the questions with the chunks, as they are read."""
        if self.encoder is None:
            raise InputError("retriever 'maxsim' reads the chunks' tokens: give the encoder with the texts")
        return MaxSim(self.questions, self.chunks, self.encoder, self.max_tokens, self.tokens)


@dataclass(frozen=True)
class Searched:
    """What is searched and for what: texts, which several may share, and their vectors, rows of length 1.

    Attributes
    ----------
    texts
        Questions and chunks.
    question_vectors, chunk_vectors
        ``(n_questions, d_model)`` and ``(n_chunks, d_model)``.
    """

    texts: Texts
    question_vectors: Array = field(repr=False)
    chunk_vectors: Array = field(repr=False)

    def __post_init__(self) -> None:
        n_texts = (len(self.texts.questions), len(self.texts.chunks))
        n_vectors = (len(self.question_vectors), len(self.chunk_vectors))
        if n_texts != n_vectors:
            raise InputError(
                f"there are {n_texts[0]} questions and {n_texts[1]} chunks, but vectors of {n_vectors[0]} "
                f"and {n_vectors[1]}: embed each text once, in their order"
            )

    @cached_property
    def dense(self) -> Array:
        """Cosine of every question with every chunk: float32 ``(n_questions, n_chunks)``."""
        return dense_scores(self.question_vectors, self.chunk_vectors)


def retriever_scores(
    name: str,
    searched: Searched,
    weight: float = DENSE_WEIGHT,
    constant: float = RRF_CONSTANT,
    diversity: float = MMR_DIVERSITY,
    k: int = MMR_K,
    depth: int | None = None,
    on_progress: Progress | None = None,
) -> Array:
    """Score every chunk for every question by one of `RETRIEVERS`.

    Parameters
    ----------
    name
        ``"dense"`` cosines; ``"bm25"`` words in common; ``"hybrid"`` both by reciprocal rank fusion;
        ``"weighted"`` both by weighted scores; ``"mmr"`` dense with less that is said twice; ``"maxsim"``
        dense with its best ordered anew by their tokens.
    searched
        Questions and chunks.
    weight
        Of dense scores in ``"weighted"``, 0 to 1; those of BM25 have the rest.
    constant
        Of reciprocal rank fusion, for ``"hybrid"``.
    diversity, k
        As in `mmr_scores`, for ``"mmr"``.
    depth
        How many chunks ``"mmr"`` chooses from and ``"maxsim"`` orders; None for the default of each, 50.
    on_progress
        Called by ``"maxsim"`` with chunks read and chunks to read.

    Returns
    -------
    Array
        float32 ``(n_questions, n_chunks)``, larger is better, and of equals the first is; ``-inf`` where a
        chunk is not found, as by ``"bm25"`` where it shares no word with the question. It may be kept by
        ``searched`` for the next call: do not write into it.

    Raises
    ------
    InputError
        An unknown name, a setting outside its range, or no encoder where one is needed.
    """
    check_retriever(name)
    match name:
        case "dense":
            return searched.dense
        case "bm25":
            return searched.texts.found_by_words
        case "hybrid":
            return reciprocal_rank_fusion([searched.dense, searched.texts.bm25], constant)
        case "weighted":
            return weighted_fusion([searched.dense, searched.texts.bm25], [weight, 1 - weight])
        case "mmr":
            near = MMR_DEPTH if depth is None else depth
            return mmr_scores(searched.dense, searched.chunk_vectors, k, diversity, near)
        case _:  # "maxsim"
            near = RERANK_DEPTH if depth is None else depth
            return rerank(searched.dense, searched.texts.maxsim, near, on_progress)


def check_retriever(name: str) -> None:
    """Raise `InputError` for a name that is not one of `RETRIEVERS`."""
    if name not in RETRIEVERS:
        raise InputError(f"retriever {name!r} is not one of {', '.join(RETRIEVERS)}")


def index_scores(name: str, question: str, query: Query, index: Index, encoder: Encoder) -> Array:
    """Score every chunk of an index for one question, by one of `RETRIEVERS`.

    What does not depend on the question is made for the first one and kept by the index.

    Parameters
    ----------
    name
        As in `retriever_scores`.
    question, query
        The question's text and its vector.
    index, encoder
        The chunks, and the encoder of their vectors.

    Returns
    -------
    Array
        float32 ``(n_chunks,)``, larger is better, of equals the first is; ``-inf`` where it is not found.

    Raises
    ------
    InputError
        An unknown name, or a query that does not fit the index.
    """
    index.check(query)
    [scores] = all_index_scores(name, (question,), query.vector[None], index, encoder, index.tokens)
    return np.asarray(scores)  # (n_chunks,)


def all_index_scores(
    name: str,
    questions: tuple[str, ...],
    vectors: Array,
    index: Index,
    encoder: Encoder,
    tokens: TokenVectors | None = None,
    on_progress: Progress | None = None,
) -> Array:
    """Score every chunk of an index for every question, by one of `RETRIEVERS`.

    MMR orders all that it looks at, so that its first k are the same for every k up to `MMR_DEPTH`, as in a
    sweep.

    Parameters
    ----------
    name, on_progress
        As in `retriever_scores`.
    questions, vectors
        Their texts, and their vectors ``(n_questions, d_model)``, embedded as the index was.
    index, encoder
        As in `index_scores`.
    tokens
        As in `Texts`.

    Returns
    -------
    Array
        ``(n_questions, n_chunks)``, as `retriever_scores` gives it.
    """
    words = index.words if name in OF_WORDS else None
    texts = Texts(questions, index.texts, encoder, index.kind.max_tokens, words, tokens)
    searched = Searched(texts, vectors, index.vectors)
    return retriever_scores(name, searched, k=MMR_DEPTH, on_progress=on_progress)
