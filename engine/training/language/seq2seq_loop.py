"""Training loop of the encoder-decoder on a task with generated pairs, and its held-out examination."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from engine.errors import InputError
from engine.models.parallel import single_threaded_blas
from engine.models.seq2seq import Seq2SeqConfig, greedy_decode
from engine.models.seq2seq_params import init_params
from engine.training.backward.seq2seq import loss_and_gradients
from engine.training.language.tasks import MAX_TOKENS, Pair, Task, batch, draw_pairs
from engine.training.optimizers import Moments, Parameters, adam, clip_gradients, copied, no_moments
from engine.training.schedules import warmup_cosine

BETAS = (0.9, 0.98)  # as in Vaswani et al. 2017, section 5.3
MAX_NORM = 1.0  # of the gradients
DIVERGED = 2.0  # times the loss of equal probabilities, above which training has diverged
EXAM_SEED = 2**31  # the same examination for all trainings


@dataclass(frozen=True)
class Recipe:
    """Sizes of a model and how it is trained.

    Attributes
    ----------
    n_layers
        Layers of the encoder, and of the decoder.
    n_steps
        Optimiser updates in all; at the last the learning rate is back at 0.
    n_warmup
        Updates in which the learning rate rises to ``learning_rate``.
    label_smoothing
        As in section 5.4 of the paper.
    report_every
        Updates from one report, with its examination, to the next.
    n_exam
        Held-out pairs that an examination translates.
    """

    seed: int = 0
    d_model: int = 64
    n_heads: int = 4
    d_ff: int = 256
    n_layers: int = 2
    batch_size: int = 64
    n_steps: int = 800
    n_warmup: int = 100
    learning_rate: float = 2e-3
    label_smoothing: float = 0.1
    report_every: int = 20
    n_exam: int = 100

    def __post_init__(self) -> None:
        for name in ("batch_size", "n_steps", "n_warmup", "report_every", "n_exam"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} {getattr(self, name)} is below 1: give a positive number")
        if self.d_model % self.n_heads:
            raise InputError(
                f"d_model {self.d_model} is not a multiple of {self.n_heads} heads: change one of them"
            )
        if not 0 < self.learning_rate < math.inf or not 0 <= self.label_smoothing < 1:
            raise InputError(
                f"learning rate {self.learning_rate:g} and label smoothing {self.label_smoothing:g}: give a "
                "learning rate above 0, and a smoothing of at least 0 and below 1"
            )

    def config(self, vocab_size: int) -> Seq2SeqConfig:
        """Sizes of the model."""
        return Seq2SeqConfig(
            vocab_size,
            self.d_model,
            self.n_heads,
            self.d_model // self.n_heads,
            self.d_ff,
            self.n_layers,
            self.n_layers,
            MAX_TOKENS,
        )


@dataclass(frozen=True)
class Translation:
    """A model's translation of a pair's source."""

    pair: Pair
    output: str

    @property
    def right(self) -> bool:
        """Whether it equals the target."""
        return self.output == self.pair.target


@dataclass(frozen=True)
class ExamReport:
    """State of a training after some updates.

    Attributes
    ----------
    n_updates
        Optimiser updates made.
    loss
        Mean loss of the updates since the last report, in nats a token.
    learning_rate, gradient_norm
        Of the last update; the norm before clipping.
    seconds
        Time spent on updates and examinations so far, without pauses.
    exam
        The held-out pairs and the model's translations.
    """

    n_updates: int
    loss: float
    learning_rate: float
    gradient_norm: float
    seconds: float
    exam: tuple[Translation, ...]

    @property
    def exact(self) -> float:
        """Share of the held-out pairs that are translated exactly."""
        return sum(one.right for one in self.exam) / len(self.exam)


class Training:
    """A model in training, and everything that its next update depends on.

    Attributes
    ----------
    params, moments, rng
        Changed by every update: the weights, Adam's state, and the generator that draws the pairs.
    good, good_moments, good_draws
        Copies of these at the last report (of ``rng`` its state), which later updates do not change.
    reports
        All reports so far.
    failure
        Why the training ended early, if it did.
    """

    def __init__(self, task: Task, recipe: Recipe) -> None:
        self.task, self.recipe = task, recipe
        self.config = recipe.config(len(task.words))
        self.params: Parameters = init_params(self.config, recipe.seed)
        self.moments: Moments = no_moments(self.params)
        self.rng = np.random.default_rng(recipe.seed)
        self.exam = draw_pairs(task, np.random.default_rng(EXAM_SEED), recipe.n_exam, held_out=True)
        self.keep()
        self.reports: list[ExamReport] = []
        self.failure: str | None = None

    def keep(self) -> None:
        """Copy the current state for `go_back`."""
        self.good: Parameters = copied(self.params)
        self.good_moments = self.moments.copied()
        self.good_draws: dict[str, Any] = dict(self.rng.bit_generator.state)

    def go_back(self) -> None:
        """Undo the updates since the last report."""
        self.params, self.moments = copied(self.good), self.good_moments.copied()
        self.rng.bit_generator.state = self.good_draws

    @property
    def done(self) -> bool:
        """Whether there is no update left to make."""
        return self.failure is not None or self.moments.n_updates >= self.recipe.n_steps


def train(training: Training) -> Iterator[ExamReport]:
    """Continue a training to its last update, yielding one report at a time.

    To pause, stop iterating; the next call continues and ends with the same weights as without a pause.
    If the loss diverges, the weights are set back to those of the last report, `Training.failure` says
    so, and the training is over.
    """
    recipe = training.recipe
    while not training.done:
        started, losses = perf_counter(), []
        ends = min(training.moments.n_updates + recipe.report_every, recipe.n_steps)
        with single_threaded_blas():  # matrices this small gain nothing from a second thread
            while training.moments.n_updates < ends:
                loss, norm = update(training)
                if has_diverged(loss, norm, training.config.vocab_size):
                    fail(training, loss)
                    return
                losses.append(loss)
            training.keep()
            exam = translate_pairs(training.task, training.exam, training.good, training.config)
        before = training.reports[-1].seconds if training.reports else 0.0
        seconds = before + perf_counter() - started
        rate = learning_rate(recipe, ends)
        training.reports.append(ExamReport(ends, float(np.mean(losses)), rate, norm, seconds, exam))
        yield training.reports[-1]


def update(training: Training) -> tuple[float, float]:
    """Make one optimiser update; return the loss and the gradients' norm before it."""
    recipe = training.recipe
    pairs = draw_pairs(training.task, training.rng, recipe.batch_size)
    with np.errstate(over="ignore", invalid="ignore"):  # `train` checks the loss
        loss, grads = loss_and_gradients(
            *batch(training.task, pairs), training.params, training.config, recipe.label_smoothing
        )
        norm = clip_gradients(grads, MAX_NORM)
        rate = learning_rate(recipe, training.moments.n_updates + 1)
        adam(training.params, grads, training.moments, rate, BETAS)
    return loss, norm


def learning_rate(recipe: Recipe, number: int) -> float:
    """Learning rate of an update, counted from 1: up during the warm-up, then down half a cosine."""
    return recipe.learning_rate * warmup_cosine(
        number, recipe.n_warmup, max(recipe.n_steps, recipe.n_warmup + 1)
    )


def has_diverged(loss: float, norm: float, vocab_size: int) -> bool:
    """Whether the loss or the gradient is not finite, or the loss far above that of equal probabilities."""
    return not math.isfinite(norm) or not loss < DIVERGED * math.log(vocab_size)


def fail(training: Training, loss: float) -> None:
    """End a training, with the weights of its last report."""
    failed = training.moments.n_updates
    training.go_back()
    training.failure = (
        f"the loss came to {loss:.3g} at step {failed}, far above the "
        f"{math.log(training.config.vocab_size):.2f} of a model that knows nothing: the weights of step "
        f"{training.moments.n_updates} are kept; begin again with a learning rate below "
        f"{training.recipe.learning_rate:g}"
    )


def translate_pairs(
    task: Task, pairs: Sequence[Pair], params: Parameters, config: Seq2SeqConfig
) -> tuple[Translation, ...]:
    """Translate the sources of pairs in one batch, greedily."""
    source, _ = batch(task, pairs)
    found = greedy_decode(source, params, config, MAX_TOKENS - 1)  # (n_pairs, n_new)
    return tuple(Translation(pair, task.text(ids)) for pair, ids in zip(pairs, found.tolist(), strict=True))


def least_loss(label_smoothing: float, vocab_size: int) -> float:
    """Lowest possible loss, in nats a token: the entropy of the smoothed targets."""
    other = label_smoothing / vocab_size
    right = 1 - label_smoothing + other
    return -right * math.log(right) - (vocab_size - 1) * (other * math.log(other) if other else 0.0)
