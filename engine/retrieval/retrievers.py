"""Ways to score chunks for questions: one table, and one function that all go through."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..errors import InputError, check_choice
from ..installed import row_of
from ..layers.tracing import Array
from ..models.encoder import Encoder
from ..models.multi_vector import MultiVectorEncoder
from ..models.reader import shipped_reader
from ..models.second_models import SECOND_MODELS
from ..models.sparse_encoder import SparseEncoder
from ..weights.fetch import Progress
from ..wording import model_name
from .bm25 import Bm25
from .embedding_model import Model, needs_encoder_message
from .embedding_spec import Query
from .fusion import reciprocal_rank_fusion, weighted_fusion
from .index import Index, MappedTexts
from .mmr import mmr_scores
from .ranking import top
from .rerank import RERANK_DEPTH, LateMaxSim, LateVectors, MaxSim, TokenVectors, cross_rerank, rerank
from .sparse_index import SparseIndex

# Of the weighted score, 0 to 1, added to the reader's, which is a difference of logits.
FIRST_STAGE_WEIGHT = 50.0
READER_DEPTH = 8  # chunks that the reader reorders: the best of 16 are no better
ORDERED = 10_000  # chunks that a search orders; several may be parts of one passage
# Of an approximate index: candidates by each score, at least, by vectors only and for each passage, and how
# much more thorough their search is than one for ten passages. With 200 in place of 1,000 candidates,
# reciprocal rank fusion has a recall@10 of 0.87 in place of 0.97 (150,000 chunks of `benchmarks.search`).
CANDIDATES, FEW_CANDIDATES, CANDIDATES_PER, THOROUGHLY = 1000, 100, 8, 4
READ_WHOLE = 3000  # chunks at most whose tokens are all compared: 1 MB for each ten


def dense_scores(question_vectors: Array, chunk_vectors: Array) -> Array:
    """Inner products ``(n_questions, n_chunks)``, float32: cosines, for vectors of length 1."""
    if question_vectors.shape[1:] != chunk_vectors.shape[1:]:
        raise InputError(
            f"the vectors have shapes {question_vectors.shape} and {chunk_vectors.shape}: embed questions "
            f"and chunks with one model"
        )
    return (question_vectors @ chunk_vectors.T).astype(np.float32)


@dataclass(frozen=True)
class SearchTexts:
    """Texts of questions and chunks, and the scores that depend only on texts, each computed on demand.

    BM25's index of the chunks (``words``), their token vectors, and what the other models computed of them
    (``expanded``, ``late``) are given if they are known, and so are the scores by words of every question
    with every chunk, as for some chunks of many.
    """

    questions: tuple[str, ...] = field(repr=False)
    chunks: Sequence[str] = field(repr=False)
    encoder: Encoder | None = None  # for MaxSim, and its second models; other retrievers do not need it
    max_tokens: int | None = None  # of each text; None for the encoder's own limit
    words: Bm25 | None = field(default=None, repr=False, compare=False)
    tokens: TokenVectors | None = field(default=None, repr=False, compare=False)
    expanded: SparseIndex | None = field(default=None, repr=False, compare=False)
    late: LateVectors | None = field(default=None, repr=False, compare=False)
    known_bm25: Array | None = field(default=None, repr=False, compare=False)
    known_sparse: Array | None = field(default=None, repr=False, compare=False)

    @cached_property
    def bm25(self) -> Array:
        """BM25 of every question with every chunk: float32 ``(n_questions, n_chunks)``."""
        if self.known_bm25 is not None:
            return self.known_bm25
        words = Bm25(self.chunks) if self.words is None else self.words
        return words.scores(self.questions)

    @cached_property
    def maxsim(self) -> MaxSim:
        """MaxSim of the questions with the chunks, computed chunk by chunk on demand."""
        if self.encoder is None:
            raise InputError("retriever 'maxsim' reads the chunks' tokens: give the encoder with the texts")
        return MaxSim(self.questions, self.chunks, self.encoder, self.max_tokens, self.tokens)

    @cached_property
    def sparse(self) -> Array:
        """Inner products of the weights of words by the sparse model: ``(n_questions, n_chunks)``."""
        if self.known_sparse is not None:
            return self.known_sparse
        model: SparseEncoder = second_model("sparse", self.encoder)
        index = SparseIndex.of(self.chunks, model) if self.expanded is None else self.expanded
        return index.scores(self.questions, model)

    @cached_property
    def late_maxsim(self) -> LateMaxSim:
        """Scores by the late-interaction model, computed chunk by chunk on demand."""
        model: MultiVectorEncoder = second_model("multi_vector", self.encoder)
        return LateMaxSim(self.questions, LateVectors(self.chunks, model) if self.late is None else self.late)


def second_model(kind: str, encoder: Encoder | None) -> Any:
    """Return an encoder's model of `SECOND_MODELS`; raise `InputError` where none is loaded."""
    model = None if encoder is None else getattr(encoder, kind)
    if model is None:
        each = SECOND_MODELS[kind]
        raise InputError(
            f"this retriever needs a {each.label}: load one, such as {each.example}, into the field {kind} "
            f"of the encoder ({option_of(kind)} on the command line)"
        )
    return model


def option_of(kind: str) -> str:
    """Return the option of the command line that names a model of `SECOND_MODELS`."""
    return f"--{kind.replace('_', '-')}"


@dataclass(frozen=True)
class SearchInputs:
    """Input of every retriever: texts, which inputs may share, and their vectors, rows of length 1."""

    texts: SearchTexts
    question_vectors: Array = field(repr=False)  # ``(n_questions, d_model)``
    chunk_vectors: Array = field(repr=False)  # ``(n_chunks, d_model)``

    def __post_init__(self) -> None:
        n_texts = (len(self.texts.questions), len(self.texts.chunks))
        n_vectors = (len(self.question_vectors), len(self.chunk_vectors))
        if n_texts != n_vectors:
            raise InputError(
                f"there are {n_texts[0]} questions and {n_texts[1]} chunks, but vectors of {n_vectors[0]} "
                f"and {n_vectors[1]}: embed each text once, in their order"
            )

    def of(self, rows: slice) -> "SearchInputs":
        """Return the inputs of some questions, for which nothing is computed yet."""
        texts = replace(self.texts, questions=self.texts.questions[rows])
        return replace(self, texts=texts, question_vectors=self.question_vectors[rows])

    @cached_property
    def dense(self) -> Array:
        """Cosine of every question with every chunk: float32 ``(n_questions, n_chunks)``."""
        return dense_scores(self.question_vectors, self.chunk_vectors)


def above_0(scores: Array) -> Array:
    """Leave out chunks that score 0: they share no word with the question."""
    return np.where(scores > 0, scores, np.float32(-np.inf))


def weighted(inputs: SearchInputs) -> Array:
    """Fuse the scores of dense and BM25."""
    return weighted_fusion(inputs.dense, inputs.texts.bm25)


def cross_encoder(inputs: SearchInputs, on_progress: Progress | None) -> Array:
    """Reorder the best of the weighted hybrid by a cross-encoder."""
    texts, model = inputs.texts, second_model("reranker", inputs.texts.encoder)
    first = weighted(inputs)
    return cross_rerank(first, texts.questions, texts.chunks, model, RERANK_DEPTH, on_progress)


def reader(inputs: SearchInputs, on_progress: Progress | None) -> Array:
    """Reorder the best of the weighted hybrid by its score and how well words of each chunk answer."""
    texts, first = inputs.texts, weighted(inputs)
    model = shipped_reader(texts.encoder)
    return cross_rerank(
        first, texts.questions, texts.chunks, model, READER_DEPTH, on_progress, FIRST_STAGE_WEIGHT
    )


def late(inputs: SearchInputs, on_progress: Progress | None) -> Array:
    """Score every chunk of a small corpus by late interaction."""
    if (n_chunks := len(inputs.texts.chunks)) > READ_WHOLE:
        raise InputError(
            f"retriever 'late' compares the tokens of every chunk, of {READ_WHOLE:,} at most, and there are "
            f"{n_chunks:,}: take 'late-reordered', which reads the best of a hybrid search"
        )
    return inputs.texts.late_maxsim.scores(range(n_chunks), on_progress)


@dataclass(frozen=True)
class Retriever:
    """One way to score chunks, its name and description for people, and what it needs."""

    scores: Callable[[SearchInputs, Progress | None], Array]  # as `retriever_scores`
    label: str
    help: str
    uses_bm25: bool = False  # BM25's index of the chunks
    uses_sparse: bool = False  # the inverted index of the chunks by the learned sparse model
    uses_vectors: bool = True  # of the chunks
    reads_all: bool = False  # every chunk, also where an approximate index finds the nearest
    needs: str = ""  # a key of `SECOND_MODELS`
    pairs: int = 0  # chunks that a model reads together with each question
    needs_tokens: bool = False  # the vectors of tokens, which some models do not give


# To add a retriever, add an entry and its row in data/retrievers.csv: the app and the command line take names
# and descriptions from here.
RETRIEVERS = {
    "dense": Retriever(lambda inputs, _: inputs.dense, **row_of("retrievers.csv", "dense")),
    "bm25": Retriever(
        lambda inputs, _: above_0(inputs.texts.bm25),
        **row_of("retrievers.csv", "bm25"),
        uses_bm25=True,
        uses_vectors=False,
    ),
    "hybrid": Retriever(
        lambda inputs, _: reciprocal_rank_fusion([inputs.dense, inputs.texts.bm25]),
        **row_of("retrievers.csv", "hybrid"),
        uses_bm25=True,
    ),
    "weighted": Retriever(
        lambda inputs, _: weighted(inputs), **row_of("retrievers.csv", "weighted"), uses_bm25=True
    ),
    "mmr": Retriever(
        lambda inputs, _: mmr_scores(inputs.dense, inputs.chunk_vectors), **row_of("retrievers.csv", "mmr")
    ),
    "maxsim": Retriever(
        lambda inputs, on_progress: rerank(inputs.dense, inputs.texts.maxsim, on_progress),
        **row_of("retrievers.csv", "maxsim"),
        needs_tokens=True,
    ),
    "cross-encoder": Retriever(
        cross_encoder,
        **row_of("retrievers.csv", "cross-encoder"),
        uses_bm25=True,
        needs="reranker",
        pairs=RERANK_DEPTH,
    ),
    "reader": Retriever(reader, **row_of("retrievers.csv", "reader"), uses_bm25=True, pairs=READER_DEPTH),
    "sparse": Retriever(
        lambda inputs, _: above_0(inputs.texts.sparse),
        **row_of("retrievers.csv", "sparse"),
        uses_sparse=True,
        uses_vectors=False,
        needs="sparse",
    ),
    "sparse-weighted": Retriever(
        lambda inputs, _: weighted_fusion(inputs.dense, inputs.texts.sparse),
        **row_of("retrievers.csv", "sparse-weighted"),
        uses_sparse=True,
        needs="sparse",
    ),
    "late-reordered": Retriever(
        lambda inputs, on_progress: rerank(weighted(inputs), inputs.texts.late_maxsim, on_progress),
        **row_of("retrievers.csv", "late-reordered"),
        uses_bm25=True,
        needs="multi_vector",
    ),
    "late": Retriever(
        late,
        **row_of("retrievers.csv", "late", chunks=f"{READ_WHOLE:,}"),
        uses_vectors=False,
        reads_all=True,
        needs="multi_vector",
    ),
}


def usable_retrievers(model: Model) -> list[str]:
    """Return the names of `RETRIEVERS` that a model can be searched by."""
    return [name for name in RETRIEVERS if not reason_unavailable(name, model)]


def reason_unavailable(name: str, model: Model) -> str:
    """Return why a model cannot be searched by one of `RETRIEVERS`, empty if it can."""
    if RETRIEVERS[name].needs_tokens and model.as_encoder is None:
        return f"{needs_encoder_message(f'retriever {name}', model)}: choose another"
    needs = RETRIEVERS[name].needs
    if needs and getattr(model.as_encoder, needs, None) is None:
        wanted = f"{SECOND_MODELS[needs].label} besides {model_name(model.name)}"
        return f"retriever {name!r} needs a {wanted}: load one ({option_of(needs)})"
    return ""


# Better than dense on the bundled questions, on Cranfield and on the pages of `benchmarks/pages`.
DEFAULT_RETRIEVER = "weighted"


def retriever_scores(name: str, inputs: SearchInputs, on_progress: Progress | None = None) -> Array:
    """Score every chunk for every question by one of `RETRIEVERS`.

    Returns float32 ``(n_questions, n_chunks)``: larger is better, of equal scores the first chunk is.
    ``-inf`` is a chunk not found, as by ``"bm25"`` where it shares no word with the question. ``inputs`` may
    cache the array: do not write into it. ``on_progress`` is called by ``"maxsim"`` with chunks read and to
    read, by ``"cross-encoder"`` and ``"reader"`` with pairs.
    """
    check_retriever(name)
    return RETRIEVERS[name].scores(inputs, on_progress)


def check_retriever(name: str) -> None:
    """Raise `InputError` for a name that is not one of `RETRIEVERS`."""
    check_choice("retriever", name, RETRIEVERS)


def found_rows(
    name: str, question: str, query: Query, index: Index, encoder: Encoder | None, k: int
) -> Array:
    """Return the rows of the chunks that one of `RETRIEVERS` finds for one question, best first.

    Without an approximate index all chunks are scored, as by `index_scores`. With one, only candidates are:
    those that the vectors, and BM25, put first. Their scores are exact, but a chunk that is far down by both
    may be missing, and ranks are those among the candidates.

    Returns ``(n_found,)``: at least ``ORDERED`` rows of all chunks, and about ``CANDIDATES`` of an
    approximate index; more for ``k`` passages, as several chunks may be parts of one.
    """
    check_retriever(name)
    retriever = RETRIEVERS[name]
    if index.ann is None or retriever.reads_all:
        rows = top(index_scores(name, question, query, index, encoder), max(k, ORDERED))
        return rows if index.allowed is None else rows[np.isin(rows, index.allowed)]
    index.check(query)
    vector = query.vector[None].astype(np.float32)  # (1, d_model)
    bm25 = index.words.scores([question]) if retriever.uses_bm25 else None  # (1, n_chunks)
    sparse = None
    if retriever.uses_sparse:
        model = second_model("sparse", encoder)
        sparse = index.words_of(model).scores([question], model)  # (1, n_chunks)
    by_words = bm25 if sparse is None else sparse
    n = max(CANDIDATES if by_words is not None else FEW_CANDIDATES, CANDIDATES_PER * k)
    rows = candidate_rows(vector, by_words, retriever.uses_vectors, index, n)
    texts = SearchTexts(
        (question,),
        MappedTexts(index.chunks, rows),
        encoder,
        index.spec.max_tokens,
        known_bm25=None if bm25 is None else bm25[:, rows],
        known_sparse=None if sparse is None else sparse[:, rows],
    )
    inputs = SearchInputs(texts, vector, index.vectors_of(rows))
    [scores] = retriever_scores(name, inputs)  # (n_candidates,)
    return rows[top(scores, len(rows))]


def candidate_rows(vector: Array, by_words: Array | None, uses_vectors: bool, index: Index, n: int) -> Array:
    """Return the rows of the chunks that are worth scoring for one question, ascending.

    They are the ``n`` nearest to its vector ``(1, d_model)``, the ``n`` best ``by_words`` ``(1, n_chunks)``,
    and the last by each, since a fusion scales scores by the highest and the lowest.
    """
    found = []
    if uses_vectors and index.ann is not None:
        thorough = replace(index.ann, effort=THOROUGHLY * index.ann.effort)
        near = thorough.candidates(len(index.chunks), vector, min(n, index.n_searched), index.allowed)
        every = np.arange(len(index.chunks)) if index.allowed is None else index.allowed
        found = [every if near is None else near[near >= 0], index.nearest(-vector, 1)[1][0]]
    if by_words is not None:
        scores = by_words[0] if index.allowed is None else by_words[0, index.allowed]
        best = top(scores, n)
        places = np.append(best[scores[best] > 0], scores.argmin())
        found.append(places if index.allowed is None else index.allowed[places])
    return np.unique(np.concatenate(found))


def index_scores(name: str, question: str, query: Query, index: Index, encoder: Encoder | None) -> Array:
    """Score every chunk of an index for one question, by one of `RETRIEVERS`.

    Whatever does not depend on the question is computed once and cached by the index. The encoder is that of
    the index, None for a model that reads no token vectors. Returns a row of `retriever_scores`
    ``(n_chunks,)``.
    """
    index.check(query)
    [scores] = all_index_scores(name, (question,), query.vector[None], index, encoder, index.tokens)
    return np.asarray(scores)  # (n_chunks,)


def all_index_scores(
    name: str,
    questions: tuple[str, ...],
    vectors: Array,
    index: Index,
    encoder: Encoder | None,
    tokens: TokenVectors | None = None,
    on_progress: Progress | None = None,
) -> Array:
    """Score every chunk of an index for every question, as `retriever_scores`."""
    check_retriever(name)
    retriever = RETRIEVERS[name]
    words = index.words if retriever.uses_bm25 else None
    expanded = index.words_of(second_model("sparse", encoder)) if retriever.uses_sparse else None
    is_late = retriever.needs == "multi_vector"
    late = index.late_tokens(second_model("multi_vector", encoder)) if is_late else None
    texts = SearchTexts(questions, index.texts, encoder, index.spec.max_tokens, words, tokens, expanded, late)
    inputs = SearchInputs(texts, vectors, index.vectors)
    return retriever_scores(name, inputs, on_progress)
