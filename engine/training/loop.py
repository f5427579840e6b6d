"""The loop that trains a small decoder: loss, gradients, clipping, a step of AdamW; and what it tells."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from time import perf_counter

import numpy as np

from engine.errors import InputError
from engine.layers.tracing import Array
from engine.layers.training_primitives import TrainingPrimitives, compiled_training
from engine.models.small_decoder import SmallDecoderConfig, forward
from engine.models.small_decoder_params import init_params
from engine.training.decoder_step import loss_and_gradients
from engine.training.losses import cross_entropy
from engine.training.optimizers import Moments, Parameters, adamw, clip_gradients, no_moments
from engine.training.schedules import warmup_cosine
from engine.training.text_stream import Batch

KEEP_EVERY = 10  # steps between two copies of weights that are known to be good


@dataclass(frozen=True)
class TrainingSettings:
    """How to train.

    ``learning_rate`` is reached after ``n_warmup`` steps and falls to 0 at ``n_steps`` along half a cosine.
    Gradients longer than ``max_norm`` are shortened. The held-out loss is measured every
    ``held_out_every`` steps. Training ends as diverged where the loss is no number, or ``divergence`` nats
    above the lowest so far.

    Raises
    ------
    InputError
        A setting is outside its range.
    """

    n_steps: int = 1000
    learning_rate: float = 2e-3
    n_warmup: int = 20
    weight_decay: float = 0.01
    betas: tuple[float, float] = (0.9, 0.99)
    max_norm: float = 1.0
    held_out_every: int = 25
    divergence: float = 1.5
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("n_steps", "held_out_every"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}: give 1 or more")
        for name in ("learning_rate", "max_norm", "divergence"):
            if not getattr(self, name) > 0:
                raise InputError(f"{name} is {getattr(self, name)}: give a number above 0")


@dataclass(frozen=True)
class StepReport:
    """One step of training.

    ``step`` counts from 1; ``loss`` is that of the step's batch before it, in nats a token, ``grad_norm``
    the length of the gradients before they were clipped; ``held_out_loss`` is there where it was measured.
    ``diverged`` says why training ended before its time.
    """

    step: int
    loss: float
    held_out_loss: float | None
    tokens_per_s: float
    grad_norm: float
    learning_rate: float
    diverged: str | None = None


@dataclass
class Trainee:
    """A model in training: what a checkpoint holds, and a step changes.

    ``lowest`` is the lowest loss so far.
    """

    config: SmallDecoderConfig
    params: Parameters
    moments: Moments
    lowest: float = float("inf")
    ops: TrainingPrimitives = field(default_factory=compiled_training)

    @classmethod
    def fresh(cls, config: SmallDecoderConfig, seed: int) -> "Trainee":
        """Return a model that has learnt nothing yet."""
        params = init_params(config, seed)
        return cls(config, params, no_moments(params))

    @property
    def step(self) -> int:
        """Steps that were made."""
        return self.moments.step


def train(
    trainee: Trainee, batches: Iterator[Batch], held_out: Batch, settings: TrainingSettings
) -> Iterator[StepReport]:
    """Train on batch after batch, and report every step; who asks for no more reports pauses.

    Parameters
    ----------
    trainee
        What learns, in place. Where it has made steps already, it goes on from there.
    batches
        Inputs and targets, ``(n_sequences, n_tokens)`` each.
    held_out
        What the held-out loss is measured on.
    settings
        How to train.

    Yields
    ------
    StepReport
        Of each step. The last one of a training that diverged says so, and the trainee is back at the last
        weights that were known to be good.
    """
    good = _Copy.of(trainee)
    while trainee.step < settings.n_steps:
        inputs, targets = next(batches)
        report = _step(trainee, inputs, targets, settings, good)
        if report.diverged is None and _is_due(trainee.step, settings):
            report = replace(report, held_out_loss=held_out_loss(trainee, held_out))
        yield report
        if report.diverged is not None:
            return


def _step(
    trainee: Trainee, inputs: Array, targets: Array, settings: TrainingSettings, good: "_Copy"
) -> StepReport:
    began, before = perf_counter(), trainee.step
    rng = np.random.default_rng([settings.seed, before]) if trainee.config.dropout else None
    loss, grads = loss_and_gradients(trainee.params, inputs, targets, trainee.config, rng, trainee.ops)
    norm = clip_gradients(grads, settings.max_norm)
    rate = learning_rate(before, settings)
    diverged = why_diverged(loss, norm, trainee.lowest, settings)
    if diverged is None:
        if before % KEEP_EVERY == 0:
            good.take(trainee)
        trainee.lowest = min(trainee.lowest, loss)
        adamw(
            trainee.params, grads, trainee.moments, rate, settings.betas, weight_decay=settings.weight_decay
        )
    else:
        good.give_back(trainee)
        diverged += f"; the weights are those of step {trainee.step}: go on with a lower learning rate"
    per_s = inputs.size / (perf_counter() - began)
    return StepReport(before + 1, loss, None, per_s, norm, rate, diverged)


def learning_rate(step: int, settings: TrainingSettings) -> float:
    """Learning rate of a step, counted from 0; the warm-up's first is not 0, so that no step is lost."""
    return settings.learning_rate * warmup_cosine(step + 1, settings.n_warmup + 1, settings.n_steps + 1)


def why_diverged(loss: float, norm: float, lowest: float, settings: TrainingSettings) -> str | None:
    """Say in words why a step must not be made, or None where it may."""
    if not np.isfinite(loss) or not np.isfinite(norm):
        return f"the loss became {loss:g} and the length of its gradient {norm:g}"
    if loss > lowest + settings.divergence:
        return f"the loss rose to {loss:.2f} from {lowest:.2f}, more than {settings.divergence:g} nats"
    return None


def held_out_loss(trainee: Trainee, held_out: Batch, n_rows: int = 4) -> float:
    """Mean cross-entropy of tokens that are not trained on, in nats, a few sequences at a time."""
    inputs, targets = held_out
    total = 0.0
    for first in range(0, len(inputs), n_rows):
        rows = slice(first, first + n_rows)
        logits = forward(trainee.params, inputs[rows], trainee.config, ops=trainee.ops)
        total += cross_entropy(logits, targets[rows])[0] * len(inputs[rows])
    return total / len(inputs)


def _is_due(step: int, settings: TrainingSettings) -> bool:
    return step % settings.held_out_every == 0 or step in (1, settings.n_steps)


@dataclass
class _Copy:
    """Weights and moments of a step whose loss was good."""

    params: Parameters
    moments: Moments

    @classmethod
    def of(cls, trainee: Trainee) -> "_Copy":
        moments = trainee.moments
        return cls(
            _copied(trainee.params), Moments(moments.step, _copied(moments.mean), _copied(moments.square))
        )

    def take(self, trainee: Trainee) -> None:
        self.moments.step = trainee.moments.step
        self._move(trainee, into_trainee=False)

    def give_back(self, trainee: Trainee) -> None:
        trainee.moments.step = self.moments.step
        self._move(trainee, into_trainee=True)

    def _move(self, trainee: Trainee, into_trainee: bool) -> None:
        for kept, live in (
            (self.params, trainee.params),
            (self.moments.mean, trainee.moments.mean),
            (self.moments.square, trainee.moments.square),
        ):
            source, target = (kept, live) if into_trainee else (live, kept)
            for name, array in source.items():
                np.copyto(target[name], array)


def _copied(params: Parameters) -> Parameters:
    return {name: array.copy() for name, array in params.items()}
