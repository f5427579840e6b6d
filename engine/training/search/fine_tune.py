"""Fine-tuning of an encoder's last layers on labelled questions, by hand-written backward passes.

The layers below are frozen, so every text runs through them once (`frozen_layers`); each update runs
only the last layers.
"""

from dataclasses import dataclass, field

import numpy as np

from ...layers.tracing import Array
from ...models.encoder import Encoder
from ...weights.fetch import Progress
from ..backward.encoder import layer_parameters, with_parameters
from ..optimizers import Parameters, adamw, clip_gradients, copied, no_moments, warmup_linear
from .contrastive import ContrastiveBatch, TrainingTexts, batch_loss, draw_batch, loss_and_gradients
from .cross_validation import FoldResult, FoldTrainer, Losses
from .folds import Fold, hold_out
from .frozen_layers import vectors_from_frozen

INNER_SHARE = 5  # one in five training questions is held out for early stopping
MAX_NORM = 1.0  # of all gradients together


@dataclass(frozen=True)
class FineTuning:
    """How the last layers are trained, by AdamW: a tenth of the updates warms up, then the rate decays.

    An epoch takes every question once, with one of its chunks.
    """

    n_last: int = 1  # layers that are trained
    n_epochs: int = 4  # at most
    batch_size: int = 16  # questions an update; the chunks of the others are negatives too
    n_hard: int = 1  # hard negatives of each question
    learning_rate: float = 2e-4
    patience: int = 2  # epochs without a lower loss on held-out questions after which training ends
    seed: int = 0  # of the order of the questions and of the chunks drawn


@dataclass(frozen=True)
class FineTuned:
    """Parameters of the best epoch, ``n_epochs``, and the losses by epoch."""

    params: Parameters = field(repr=False)
    n_epochs: int
    losses: Losses
    validation_losses: Losses


def fine_tune(
    encoder: Encoder,
    texts: TrainingTexts,
    fold: Fold,
    settings: FineTuning,
    on_progress: Progress | None = None,
) -> FineTuned:
    """Train the last layers on a fold's questions and chunks, and return those of the best epoch.

    It has the lowest loss on one in five of the questions, held out; epoch 0, before training, counts too.
    """
    rng = np.random.default_rng(settings.seed)
    fitted, held_out = hold_out(fold.train, INNER_SHARE, settings.seed)

    def drawn(rows: Array) -> ContrastiveBatch:
        return draw_batch(rows, texts, fold.seen, settings.n_hard, rng)

    config, validation = encoder.config, drawn(held_out)
    params = layer_parameters(encoder.weights, settings.n_last)
    moments, best = no_moments(params), copied(params)
    n_batches = -(-len(fitted) // settings.batch_size)
    n_steps = settings.n_epochs * n_batches
    losses = list[tuple[int, float]]()
    validated = [batch_loss(texts, validation, params, config)[0]]
    for epoch in range(1, settings.n_epochs + 1):
        batch_losses = []
        for rows in np.array_split(rng.permutation(fitted), n_batches):
            loss, grads = loss_and_gradients(texts, drawn(rows), params, config)
            clip_gradients(grads, MAX_NORM)
            factor = warmup_linear(moments.n_updates + 1, n_steps // 10 + 1, n_steps + 1)
            adamw(params, grads, moments, settings.learning_rate * factor)
            batch_losses.append(loss)
            if on_progress is not None:
                on_progress(moments.n_updates, n_steps)
        losses.append((epoch, float(np.mean(batch_losses))))
        validated.append(batch_loss(texts, validation, params, config)[0])
        n_since = epoch - int(np.argmin(validated))
        if n_since == 0:
            best = copied(params)
        if n_since >= settings.patience:
            break
    return FineTuned(best, int(np.argmin(validated)), tuple(losses), tuple(enumerate(validated)))


def fine_tuning_trainer(encoder: Encoder, texts: TrainingTexts, settings: FineTuning) -> FoldTrainer:
    """Return the function that fine-tunes on a fold, for `cross_validate`."""

    def fit(fold: Fold, on_progress: Progress) -> FoldResult:
        tuned = fine_tune(encoder, texts, fold, settings, on_progress)
        weights = with_parameters(encoder.weights, tuned.params)
        asked = vectors_from_frozen(texts.questions, encoder, weights, settings.n_last)
        return FoldResult(
            asked[fold.test],
            vectors_from_frozen(texts.chunks, encoder, weights, settings.n_last),
            tuned.losses,
            tuned.validation_losses,
        )

    return fit
