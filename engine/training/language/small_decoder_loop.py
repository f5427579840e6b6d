"""Training loop of the small decoder: loss, gradients, clipping, an update of AdamW, a report."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import ceil, sqrt
from statistics import fmean
from time import perf_counter

import numpy as np

from ...errors import InputError
from ...kernels.primitives import compiled_training
from ...layers.primitives import TrainingPrimitives
from ...models.small_decoder import SmallDecoderConfig, forward
from ...models.small_decoder_params import init_params
from ..backward.small_decoder import SHARE, loss_and_gradients
from ..losses import cross_entropy
from ..optimizers import Moments, Parameters, adamw, clip_gradients, copied, no_moments, warmup_cosine
from .text_stream import Batch

KEEP_EVERY = 10  # updates between two copies of weights that are known to be good
# Tokens over which the loss is averaged before it is called diverging: that of one small batch varies by
# more than a nat from batch to batch.
STEADY_TOKENS = 1024


@dataclass(frozen=True)
class TrainingSettings:
    """How to train."""

    n_steps: int = 1000  # at the last update the learning rate is 0
    learning_rate: float = 2e-3  # reached after ``n_warmup`` updates; falls along half a cosine
    n_warmup: int = 20
    weight_decay: float = 0.01
    betas: tuple[float, float] = (0.9, 0.99)
    max_norm: float = 1.0  # to which longer gradients are clipped
    held_out_every: int = 25  # updates between two held-out losses
    # nats above the lowest mean loss over `STEADY_TOKENS` tokens, at which training ends as diverged, as it
    # does where the loss is not finite
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
class UpdateReport:
    """One optimiser update."""

    update: int  # from 1
    loss: float  # the batch's before the update, in nats a token
    held_out_loss: float | None  # None if it was not due
    tokens_per_s: float
    grad_norm: float  # L2 norm of the gradients before clipping
    learning_rate: float
    diverged: str | None = None  # the reason why training ended early


@dataclass
class TrainingState:
    """A model in training, changed in place by each update; ``lowest`` is the lowest mean loss so far."""

    config: SmallDecoderConfig
    params: Parameters
    moments: Moments
    lowest: float = float("inf")
    ops: TrainingPrimitives = field(default_factory=compiled_training)

    @classmethod
    def fresh(cls, config: SmallDecoderConfig, seed: int) -> "TrainingState":
        """Return an untrained model."""
        params = init_params(config, seed)
        return cls(config, params, no_moments(params))

    @property
    def n_updates(self) -> int:
        """Updates made."""
        return self.moments.n_updates


def train(
    state: TrainingState, batches: Iterator[Batch], held_out: Batch, settings: TrainingSettings
) -> Iterator[UpdateReport]:
    """Train on one batch after another and report every update; to pause, stop iterating.

    ``state`` is trained in place, from the updates that it already made. Batches, also ``held_out`` of the
    held-out loss, are inputs and targets, ``(n_sequences, n_tokens)`` each. If training diverges, the last
    report says so, and the state is set back to the last weights known to be good.
    """
    good = copied(state.params), state.moments.copied()
    recent: list[float] = []  # losses of the last updates, over `STEADY_TOKENS` tokens
    while state.n_updates < settings.n_steps:
        inputs, targets = next(batches)
        began, before = perf_counter(), state.n_updates
        rng = np.random.default_rng([settings.seed, before]) if state.config.dropout else None
        loss, grads = loss_and_gradients(state.params, inputs, targets, state.config, rng, state.ops)
        norm = clip_gradients(grads, settings.max_norm)
        rate = learning_rate(before, settings)
        n_recent = ceil(STEADY_TOKENS / inputs.size)
        recent = [*recent, loss][-n_recent:]
        mean = fmean(recent)
        margin = settings.divergence * sqrt(n_recent / len(recent))  # fewer losses vary more
        diverged = why_diverged(mean, norm, state.lowest, margin)
        if diverged is None:
            if before % KEEP_EVERY == 0 and mean < state.lowest + settings.divergence / 2:
                good = copied(state.params), state.moments.copied()
            state.lowest = min(state.lowest, mean)
            decay = settings.weight_decay
            adamw(state.params, grads, state.moments, rate, settings.betas, weight_decay=decay)
        else:
            state.params, state.moments = good
            diverged += f"; the weights are those of step {state.n_updates}: go on with a lower learning rate"
        per_s = inputs.size / (perf_counter() - began)
        is_due = state.n_updates % settings.held_out_every == 0 or state.n_updates in (1, settings.n_steps)
        measured = held_out_loss(state, held_out) if is_due and diverged is None else None
        yield UpdateReport(before + 1, loss, measured, per_s, norm, rate, diverged)
        if diverged is not None:
            return


def learning_rate(update: int, settings: TrainingSettings) -> float:
    """Learning rate of an update, counted from 0; the first is above 0, so that no update is lost."""
    return settings.learning_rate * warmup_cosine(update + 1, settings.n_warmup + 1, settings.n_steps + 1)


def why_diverged(loss: float, norm: float, lowest: float, margin: float) -> str | None:
    """Return the reason why an update must not be made, or None if it may."""
    if not np.isfinite(loss) or not np.isfinite(norm):
        return f"the loss became {loss:g} and the length of its gradient {norm:g}"
    if loss > lowest + margin:
        return f"the loss rose to {loss:.2f} from {lowest:.2f}, more than {margin:.2g} nats"
    return None


def held_out_loss(state: TrainingState, held_out: Batch) -> float:
    """Mean cross-entropy of held-out tokens, in nats, `SHARE` sequences at a time."""
    inputs, targets = held_out
    total = 0.0
    for first in range(0, len(inputs), SHARE):
        rows = slice(first, first + SHARE)
        logits = forward(state.params, inputs[rows], state.config, ops=state.ops)
        total += cross_entropy(logits, targets[rows])[0] * len(inputs[rows])
    return total / len(inputs)
