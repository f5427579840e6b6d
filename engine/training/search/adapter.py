"""A linear adapter on question vectors, ``q' = normalize(W q + b)``; the index of chunks stays unchanged.

``W`` starts as the identity and is kept near it by a ridge penalty on ``W - I`` and early stopping, both
chosen by inner cross-validation.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from ...errors import InputError
from ...evaluation.metrics import ndcg
from ...layers.linear import linear
from ...layers.norm import l2_normalize, l2_normalize_backward
from ...layers.tracing import Array
from ...models.parallel import run_parallel, single_threaded_blas
from ...weights.fetch import Progress
from ..losses import SCALE, softmax_loss
from ..optimizers import Parameters, adamw, no_moments
from .cross_validation import DEPTH, FoldResult, FoldTrainer, Losses
from .folds import Fold, LabelledTexts, inner_folds

RIDGES = (0.1, 0.03, 0.01, 0.003)  # strongest first: it wins ties
LEARNING_RATE = 3e-3
N_EPOCHS, EVERY = 40, 5  # epochs at most, and epochs between two candidates for early stopping
N_INNER = 5
N_KEYS = 1000  # chunks in the loss: the relevant ones, and those that score best


@dataclass(frozen=True)
class Adapter:
    """Affine map of question vectors: weight ``(d_model, d_model)``, bias ``(d_model,)``."""

    weight: Array = field(repr=False)
    bias: Array = field(repr=False)

    def __call__(self, question_vectors: Array) -> Array:
        """``normalize(W q + b)``: ``(n_questions, d_model)`` to the same."""
        if question_vectors.shape[-1] != len(self.bias):
            raise InputError(
                f"the adapter takes vectors of {len(self.bias)} numbers, not {question_vectors.shape[-1]}: "
                "use the encoder that it was trained with"
            )
        return l2_normalize(linear(question_vectors, self.weight, self.bias))


@dataclass(frozen=True)
class FittedAdapter:
    """An adapter, and its hyper-parameters as the inner cross-validation chose them."""

    adapter: Adapter
    ridge: float
    n_epochs: int
    losses: Losses  # by epoch, from 0 on
    validation_losses: Losses  # means over the inner folds, every `EVERY` epochs

    @property
    def choice(self) -> str:
        """The chosen hyper-parameters in words."""
        return f"ridge {self.ridge:g}, {self.n_epochs} epochs"


@dataclass(frozen=True)
class AdapterEpoch:
    """An adapter after some epochs of training, and its loss there, without the ridge penalty."""

    epoch: int
    adapter: Adapter
    loss: float


def train_adapter(
    question_vectors: Array, chunk_vectors: Array, relevant: Array, ridge: float, n_epochs: int
) -> Iterator[AdapterEpoch]:
    """Train by Adam with full batches; yield epochs 0 to ``n_epochs``, which share their memory."""
    keys = hardest_chunks(question_vectors @ chunk_vectors.T, relevant)
    key_vectors, relevant = chunk_vectors[keys], relevant[:, keys]
    d_model = question_vectors.shape[1]
    identity = np.eye(d_model, dtype=question_vectors.dtype)
    params: Parameters = {"weight": identity.copy(), "bias": np.zeros_like(identity[0])}
    moments = no_moments(params)
    for epoch in range(n_epochs + 1):
        adapted = linear(question_vectors, params["weight"], params["bias"])
        loss, d_scores = softmax_loss(SCALE * (l2_normalize(adapted) @ key_vectors.T), relevant)
        d_adapted = l2_normalize_backward(SCALE * (d_scores @ key_vectors), adapted)
        yield AdapterEpoch(epoch, Adapter(**params), loss)
        if epoch == n_epochs:
            return
        d_weight = d_adapted.T @ question_vectors + 2 * ridge * (params["weight"] - identity)
        grads = {"weight": d_weight, "bias": d_adapted.sum(axis=0)}
        adamw(params, grads, moments, LEARNING_RATE, weight_decay=0.0)


def hardest_chunks(scores: Array, relevant: Array) -> Array:
    """Return the places of at most `N_KEYS` chunks: all relevant ones, then those that score best."""
    best = np.where(relevant.any(axis=0), np.inf, scores.max(axis=0))  # (n_chunks,)
    n_keys = max(N_KEYS, int(np.isinf(best).sum()))
    return np.sort(np.argsort(-best, kind="stable")[:n_keys])


def fit_adapter(
    question_vectors: Array,
    chunk_vectors: Array,
    relevant: Array,
    n_epochs: int = N_EPOCHS,
    seed: int = 0,
    on_progress: Progress | None = None,
) -> FittedAdapter:
    """Choose ridge and epochs by inner cross-validation, then train on all questions.

    The highest mean nDCG@10 of the held-out questions decides; 0 epochs is among the candidates. Vectors have
    length 1; ``relevant`` is bool ``(n_questions, n_chunks)``, one or more a row.
    """
    if n_epochs < 1:
        raise InputError(f"{n_epochs} epochs: train for 1 or more, such as {N_EPOCHS}")
    epochs = sorted({*range(0, n_epochs, EVERY), n_epochs})
    inner = inner_folds(len(question_vectors), N_INNER, seed)
    jobs = [(place, number) for place in range(len(RIDGES)) for number in range(len(inner))]
    found = np.zeros((len(RIDGES), len(inner), len(epochs)))  # nDCG, summed over the held-out questions
    losses = np.zeros_like(found)

    def run(job: tuple[int, int]) -> None:
        fitted, held_out = inner[job[1]]
        data = question_vectors[fitted], chunk_vectors, relevant[fitted]
        stops = (
            moment for moment in train_adapter(*data, RIDGES[job[0]], n_epochs) if moment.epoch in epochs
        )
        for stop, moment in enumerate(stops):
            scores, right = moment.adapter(question_vectors[held_out]) @ chunk_vectors.T, relevant[held_out]
            found[job][stop] = ndcg(scores, right, DEPTH).sum()
            losses[job][stop] = len(right) * softmax_loss(SCALE * scores, right)[0]

    for n_done, _ in enumerate(run_parallel(run, jobs), 1):
        if on_progress is not None:
            on_progress(n_done, len(jobs) + 1)
    found, losses = found.sum(axis=1), losses.sum(axis=1) / len(question_vectors)
    best, stop = np.unravel_index(found.argmax(), found.shape)
    with single_threaded_blas():
        moments = list(train_adapter(question_vectors, chunk_vectors, relevant, RIDGES[best], epochs[stop]))
    return FittedAdapter(
        moments[-1].adapter,
        RIDGES[best],
        epochs[stop],
        tuple((moment.epoch, moment.loss) for moment in moments),
        tuple(zip(epochs, losses[best].tolist(), strict=True)),
    )


def adapter_trainer(
    question_vectors: Array, chunk_vectors: Array, labelled: LabelledTexts, n_epochs: int = N_EPOCHS
) -> FoldTrainer:
    """Return the function that trains an adapter on a fold, for `cross_validate`."""

    def fit(fold: Fold, on_progress: Progress) -> FoldResult:
        fitted = fit_adapter(
            question_vectors[fold.train],
            chunk_vectors[fold.seen],
            labelled.relevant[np.ix_(fold.train, fold.seen)],
            n_epochs,
            on_progress=on_progress,
        )
        return FoldResult(
            fitted.adapter(question_vectors[fold.test]),
            chunk_vectors,
            fitted.losses,
            fitted.validation_losses,
            fitted.choice,
        )

    return fit
