"""Whether tuning helps on questions and documents that it has not seen: cross-validation and its verdict."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from engine.errors import InputError
from engine.evaluation.metrics import ndcg, recall, reciprocal_rank
from engine.evaluation.significance import Comparison, compare
from engine.layers.tracing import Array
from engine.training.alignment import alignment, uniformity
from engine.weights.fetch import Progress

DEPTH = 10  # places of a ranking that are judged
MAIN = f"nDCG@{DEPTH}"  # the metric that decides, fixed beforehand
METRICS = {MAIN: ndcg, f"recall@{DEPTH}": recall, f"MRR@{DEPTH}": reciprocal_rank}
Losses = tuple[tuple[int, float], ...]  # epochs, and the loss after each
ALPHA = 0.05  # the p-value below which a difference counts


@dataclass(frozen=True)
class Labelled:
    """Texts with what is relevant: every question has a chunk that answers it.

    Attributes
    ----------
    questions, chunks
        Their texts.
    documents
        Name of the document of each chunk.
    relevant
        Bool ``(n_questions, n_chunks)``.

    Raises
    ------
    InputError
        The sizes do not agree, or nothing answers one of the questions.
    """

    questions: tuple[str, ...] = field(repr=False)
    chunks: tuple[str, ...] = field(repr=False)
    documents: tuple[str, ...] = field(repr=False)
    relevant: Array = field(repr=False)

    def __post_init__(self) -> None:
        sizes = (len(self.questions), len(self.chunks))
        if self.relevant.shape != sizes or len(self.documents) != sizes[1]:
            raise InputError(
                f"relevance of shape {self.relevant.shape} and {len(self.documents)} names of documents for "
                f"{sizes[0]} questions and {sizes[1]} chunks: give a row a question, and a column and a "
                "name a chunk"
            )
        if unanswered := int((~self.relevant.any(axis=1)).sum()):
            raise InputError(f"{unanswered} questions have no relevant chunk: leave them out")


@dataclass(frozen=True)
class Fold:
    """What is trained on and what is tested: numbers of questions, and of the chunks training may see."""

    train: Array
    test: Array
    seen: Array


@dataclass(frozen=True)
class Fitted:
    """What a tuned model makes of a fold.

    Attributes
    ----------
    question_vectors
        Of the fold's test questions, rows of length 1.
    chunk_vectors
        Of all chunks, rows of length 1.
    losses, validation_losses
        The loss by epoch, on what was trained on and on what was held out within it.
    choice
        What was chosen without the test questions, in words.
    """

    question_vectors: Array = field(repr=False)
    chunk_vectors: Array = field(repr=False)
    losses: Losses
    validation_losses: Losses
    choice: str


@dataclass(frozen=True)
class Spread:
    """Wang and Isola's two measures of the test questions of a fold; less is better for both."""

    alignment: float
    uniformity: float


@dataclass(frozen=True)
class CrossValidated:
    """Scores of every question by a model that was not trained on it.

    Attributes
    ----------
    before, after
        Cosines with every chunk, ``(n_questions, n_chunks)``.
    spreads
        Of each fold, before and after.
    losses
        Of each fold, by epoch: on what was trained on, and on what was held out within it.
    choices
        What each fold chose without its test questions, in words.
    """

    before: Array = field(repr=False)
    after: Array = field(repr=False)
    spreads: tuple[tuple[Spread, Spread], ...]
    losses: tuple[tuple[Losses, Losses], ...]
    choices: tuple[str, ...]


@dataclass(frozen=True)
class Judged:
    """A metric of every question before and after, ``(n_questions,)``, and their comparison."""

    metric: str
    before: Array = field(repr=False)
    after: Array = field(repr=False)
    comparison: Comparison


# Train on a fold; report steps done and steps in all.
Fit = Callable[[Fold, Progress], Fitted]


def folds_by_question(labelled: Labelled, n_folds: int, seed: int = 0) -> list[Fold]:
    """Deal the questions into folds, each tested once; training sees every chunk.

    Raises
    ------
    InputError
        There are fewer than 2 folds, or fewer questions than folds.
    """
    n_questions, n_chunks = labelled.relevant.shape
    check_folds(n_folds, n_questions, "questions")
    order = np.random.default_rng(seed).permutation(n_questions)
    everything = np.arange(n_chunks)
    return [
        Fold(np.setdiff1d(order, test), np.sort(test), everything) for test in np.array_split(order, n_folds)
    ]


def folds_by_document(labelled: Labelled, n_folds: int, seed: int = 0) -> list[Fold]:
    """Deal the questions into folds so that no document that answers a test question is trained on.

    Questions that the same documents answer stay together. Training sees no chunk of a document that
    answers a test question, neither as right nor as wrong, and leaves out a question that this leaves
    without an answer. With fewer such groups than folds, there are as many folds as groups.

    Raises
    ------
    InputError
        There are fewer than 2 folds or groups, or a fold is left with nothing to train on.
    """
    names = np.array(labelled.documents, object)
    answering = [frozenset(names[row]) for row in labelled.relevant]
    groups: dict[frozenset[str], list[int]] = {}
    for number, found in enumerate(answering):
        groups.setdefault(found, []).append(number)
    n_folds = min(n_folds, len(groups)) if n_folds > 1 else n_folds
    check_folds(n_folds, len(groups), "documents with questions")
    dealt: list[list[int]] = [[] for _ in range(n_folds)]
    members = list(groups.values())
    shuffled = [members[place] for place in np.random.default_rng(seed).permutation(len(members))]
    for group in sorted(shuffled, key=len, reverse=True):  # the largest first, to the smallest fold
        min(dealt, key=len).extend(group)
    return [fold_without(labelled, names, answering, np.array(sorted(test))) for test in dealt]


def fold_without(labelled: Labelled, names: Array, answering: Sequence[frozenset[str]], test: Array) -> Fold:
    """Make the fold whose training knows no document that answers one of the test questions."""
    hidden = frozenset().union(*(answering[number] for number in test))
    seen = np.flatnonzero([name not in hidden for name in names])
    has_answer: Array = np.asarray(labelled.relevant[:, seen].any(axis=1))
    has_answer[test] = False
    if not has_answer.any():
        raise InputError(
            f"the documents that answer {len(test)} test questions answer all the others too: bring "
            "questions about more documents, or take fewer folds"
        )
    return Fold(np.flatnonzero(has_answer), test, seen)


def check_folds(n_folds: int, n_groups: int, what: str) -> None:
    """Raise `InputError` unless there are two folds or more, and something for each."""
    if not 2 <= n_folds <= n_groups:
        raise InputError(
            f"{n_folds} folds of {n_groups} {what}: take 2 folds or more, and at most as many as there are "
            f"{what}"
        )


def inner_folds(n_questions: int, n_folds: int, seed: int) -> list[tuple[Array, Array]]:
    """Deal what is trained on once more: ``(fitted, held out)`` places for each of the inner folds."""
    if n_questions < 2:
        raise InputError(
            f"{n_questions} question is left to train on, and one more has to be held out: bring more "
            "labelled questions"
        )
    order = np.random.default_rng(seed).permutation(n_questions)
    parts = np.array_split(order, min(n_folds, n_questions))
    return [(np.setdiff1d(order, part), np.sort(part)) for part in parts]


def cross_validate(
    question_vectors: Array,
    chunk_vectors: Array,
    labelled: Labelled,
    folds: Sequence[Fold],
    fit: Fit,
    on_progress: Progress | None = None,
) -> CrossValidated:
    """Train on each fold and score the questions that it left out.

    Parameters
    ----------
    question_vectors, chunk_vectors
        Of the model as it is, rows of length 1: ``(n_questions, d_model)``, ``(n_chunks, d_model)``.
    labelled
        Their texts and what is relevant.
    folds
        Whose test questions are all the questions, each once.
    fit
        Trains on a fold.
    on_progress
        Called with parts done and parts in all, 100 a fold.
    """
    before = question_vectors @ chunk_vectors.T  # (n_questions, n_chunks)
    after = np.empty_like(before)
    spreads, losses, choices = [], [], []
    for number, fold in enumerate(folds):

        def report(done: int, total: int, n_before: int = number) -> None:
            if on_progress is not None:
                on_progress(100 * n_before + 100 * done // max(1, total), 100 * len(folds))

        fitted = fit(fold, report)
        after[fold.test] = fitted.question_vectors @ fitted.chunk_vectors.T
        relevant = labelled.relevant[fold.test]
        spreads.append(
            (
                spread(question_vectors[fold.test], chunk_vectors, relevant),
                spread(fitted.question_vectors, fitted.chunk_vectors, relevant),
            )
        )
        losses.append((fitted.losses, fitted.validation_losses))
        choices.append(fitted.choice)
        report(1, 1)
    return CrossValidated(before, after, tuple(spreads), tuple(losses), tuple(choices))


def spread(question_vectors: Array, chunk_vectors: Array, relevant: Array) -> Spread:
    """Measure questions with their chunks, and how evenly the questions lie."""
    return Spread(alignment(question_vectors, chunk_vectors, relevant), uniformity(question_vectors))


def judge(before: Array, after: Array, relevant: Array, seed: int = 0) -> list[Judged]:
    """Compare two score matrices ``(n_questions, n_chunks)`` of the same questions by each of `METRICS`."""
    judged = []
    for name, metric in METRICS.items():
        first, second = metric(before, relevant, DEPTH), metric(after, relevant, DEPTH)
        judged.append(Judged(name, first, second, compare(first, second, seed=seed)))
    return judged


def is_better(comparison: Comparison) -> bool:
    """Whether a difference is a gain beyond noise: its 95 % interval and its test both say so."""
    return comparison.low > 0 and comparison.p_value < ALPHA


def is_worse(comparison: Comparison) -> bool:
    """Whether a difference is a loss beyond noise."""
    return comparison.high < 0 and comparison.p_value < ALPHA


def should_keep(by_question: Comparison, by_document: Comparison | None) -> bool:
    """Whether the tuned model is to take the original's place.

    It must gain beyond noise on new questions, and must not lose beyond noise on new documents, where
    that could be tested.
    """
    return is_better(by_question) and not (by_document is not None and is_worse(by_document))
