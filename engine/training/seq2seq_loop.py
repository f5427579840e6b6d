"""Training of the encoder-decoder on a task whose pairs are made as they are needed, and its examination."""

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
from engine.training.optimizers import Moments, Parameters, adam, clip_gradients, no_moments
from engine.training.schedules import warmup_cosine
from engine.training.seq2seq_step import loss_and_gradients
from engine.training.tasks import MAX_TOKENS, Pair, Task, batch, draw_pairs

BETAS = (0.9, 0.98)  # as in Vaswani et al. 2017, section 5.3
MAX_NORM = 1.0  # of the gradients
WORSE_THAN_NOTHING = 2.0  # a loss of more than so many times that of equal probabilities has run away
EXAM_SEED = 2**31  # an examination is the same for all trainings


@dataclass(frozen=True)
class Recipe:
    """Sizes of a model and how it is trained.

    Attributes
    ----------
    n_layers
        Of the encoder, and of the decoder.
    n_steps
        Steps in all; at the last the learning rate is back at 0.
    n_warmup
        Steps in which the learning rate rises to ``learning_rate``.
    label_smoothing
        As in section 5.4 of the paper.
    report_every
        Steps from one report, with its examination, to the next.
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
    """What a model makes of a pair's source."""

    pair: Pair
    output: str

    @property
    def right(self) -> bool:
        """Whether it is the target, to the letter."""
        return self.output == self.pair.target


@dataclass(frozen=True)
class Report:
    """Where a training stands.

    Attributes
    ----------
    step
        Steps made.
    loss
        Mean loss of the steps since the report before, in nats a token.
    learning_rate, gradient_norm
        Of the last step; the norm before clipping.
    seconds
        Time that was spent on steps and examinations so far, pauses not counted.
    exam
        The held-out pairs and what the model makes of them.
    """

    step: int
    loss: float
    learning_rate: float
    gradient_norm: float
    seconds: float
    exam: tuple[Translation, ...]

    @property
    def exact(self) -> float:
        """Share of the held-out pairs whose whole translation is right."""
        return sum(one.right for one in self.exam) / len(self.exam)


class Training:
    """A model in training, and all that its next step depends on.

    Attributes
    ----------
    params, moments, rng
        What the steps change: weights, what Adam remembers, and where the pairs are drawn from.
    good, good_moments, good_draws
        Copies of the weights, of what Adam remembers and of the state of ``rng`` at the last report, which
        no later step changes.
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
        self.reports: list[Report] = []
        self.failure: str | None = None

    def keep(self) -> None:
        """Copy what the next step depends on, to be gone back to."""
        self.good: Parameters = copied(self.params)
        self.good_moments = copied_moments(self.moments)
        self.good_draws: dict[str, Any] = dict(self.rng.bit_generator.state)

    def go_back(self) -> None:
        """Undo the steps since the last report."""
        self.params, self.moments = copied(self.good), copied_moments(self.good_moments)
        self.rng.bit_generator.state = self.good_draws

    @property
    def done(self) -> bool:
        """Whether there is no step left to make."""
        return self.failure is not None or self.moments.step >= self.recipe.n_steps


def train(training: Training) -> Iterator[Report]:
    """Go on with a training, a report at a time, to its last step.

    To pause, ask for no more reports; the next call goes on where this one was, and comes to the same
    weights as if there had been no pause. Where the loss runs away, the weights are set back to those of
    the last report, `Training.failure` says so, and the training is over.
    """
    recipe = training.recipe
    while not training.done:
        started, losses = perf_counter(), []
        ends = min(training.moments.step + recipe.report_every, recipe.n_steps)
        with single_threaded_blas():  # products as small as these only wait for a second thread
            while training.moments.step < ends:
                loss, norm = step(training)
                if ran_away(loss, norm, training.config.vocab_size):
                    fail(training, loss)
                    return
                losses.append(loss)
            training.keep()
            exam = translate_pairs(training.task, training.exam, training.good, training.config)
        before = training.reports[-1].seconds if training.reports else 0.0
        seconds = before + perf_counter() - started
        rate = learning_rate(recipe, ends)
        training.reports.append(Report(ends, float(np.mean(losses)), rate, norm, seconds, exam))
        yield training.reports[-1]


def step(training: Training) -> tuple[float, float]:
    """Make one step; return the loss and the length of the gradients before it."""
    recipe = training.recipe
    pairs = draw_pairs(training.task, training.rng, recipe.batch_size)
    with np.errstate(over="ignore", invalid="ignore"):  # a loss that runs away is told by `ran_away`
        loss, grads = loss_and_gradients(
            *batch(training.task, pairs), training.params, training.config, recipe.label_smoothing
        )
        norm = clip_gradients(grads, MAX_NORM)
        rate = learning_rate(recipe, training.moments.step + 1)
        adam(training.params, grads, training.moments, rate, BETAS)
    return loss, norm


def learning_rate(recipe: Recipe, number: int) -> float:
    """Learning rate of a step, counted from 1: up during the warm-up, then down half a cosine."""
    return recipe.learning_rate * warmup_cosine(
        number, recipe.n_warmup, max(recipe.n_steps, recipe.n_warmup + 1)
    )


def ran_away(loss: float, norm: float, vocab_size: int) -> bool:
    """Whether a loss or gradient is no number, or the loss far above that of knowing nothing."""
    return not math.isfinite(norm) or not loss < WORSE_THAN_NOTHING * math.log(vocab_size)


def fail(training: Training, loss: float) -> None:
    """End a training with the weights of its last report."""
    failed = training.moments.step
    training.go_back()
    training.failure = (
        f"the loss came to {loss:.3g} at step {failed}, far above the "
        f"{math.log(training.config.vocab_size):.2f} of a model that knows nothing: the weights of step "
        f"{training.moments.step} are kept; begin again with a learning rate below "
        f"{training.recipe.learning_rate:g}"
    )


def translate_pairs(
    task: Task, pairs: Sequence[Pair], params: Parameters, config: Seq2SeqConfig
) -> tuple[Translation, ...]:
    """Translate the sources of some pairs, all at once and each token the most probable."""
    source, _ = batch(task, pairs)
    found = greedy_decode(source, params, config, MAX_TOKENS - 1)  # (n_pairs, n_new)
    return tuple(Translation(pair, task.text(ids)) for pair, ids in zip(pairs, found.tolist(), strict=True))


def least_loss(label_smoothing: float, vocab_size: int) -> float:
    """Loss of a model that is never wrong, in nats a token: the entropy of the smoothed targets."""
    other = label_smoothing / vocab_size
    right = 1 - label_smoothing + other
    return -right * math.log(right) - (vocab_size - 1) * (other * math.log(other) if other else 0.0)


def copied(params: Parameters) -> Parameters:
    """Return a copy that shares nothing."""
    return {name: param.copy() for name, param in params.items()}


def copied_moments(moments: Moments) -> Moments:
    """Return a copy that shares nothing."""
    return Moments(moments.step, copied(moments.mean), copied(moments.square))
