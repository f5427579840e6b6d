"""Fine-tuning of an encoder's last layers on labelled questions, by hand-written backward passes.

The layers below stay as they are, so every text runs through them once (`engine.training.frozen_layers`);
what they give is kept, and only the last layers are run again at every step.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from engine.errors import InputError
from engine.layers.tracing import Array
from engine.models.encoder import Encoder
from engine.training.contrastive_step import Batch, draw_batch, gradients, validation_loss
from engine.training.cross_validation import Fit, Fitted, Losses
from engine.training.encoder_backward import layer_parameters, with_parameters
from engine.training.folds import Fold, Labelled, inner_folds
from engine.training.frozen_layers import Frozen, frozen_vectors
from engine.training.optimizers import Parameters, adamw, clip_gradients, no_moments
from engine.training.schedules import warmup_linear
from engine.weights.fetch import Progress

INNER_SHARE = 5  # one in so many of the questions trained on is held out to stop by
MAX_NORM = 1.0  # of all gradients together


@dataclass(frozen=True)
class FineTuning:
    """How the last layers are trained.

    Attributes
    ----------
    n_last
        How many of the layers.
    n_epochs
        The most; in each, every question comes once, with one of its chunks.
    batch_size, n_hard
        Questions a step, and hard negatives of each; the chunks of the others are negatives too.
    learning_rate
        Of AdamW, after a warm-up over a tenth of the steps and before a straight way down to 0.
    patience
        Epochs without a lower loss on held-out questions after which training ends.
    seed
        Of the order, and of which chunks are drawn.
    """

    n_last: int = 1
    n_epochs: int = 4
    batch_size: int = 16
    n_hard: int = 1
    learning_rate: float = 2e-4
    patience: int = 2
    seed: int = 0


@dataclass(frozen=True)
class FineTuned:
    """Trained parameters by name, as after ``n_epochs``, and the losses by epoch: see `fine_tune`."""

    params: Parameters = field(repr=False)
    n_epochs: int
    losses: Losses
    validation_losses: Losses


def fine_tune(
    encoder: Encoder,
    questions: Frozen,
    chunks: Frozen,
    relevant: Array,
    negatives: Sequence[Array],
    fold: Fold,
    settings: FineTuning,
    on_progress: Progress | None = None,
) -> FineTuned:
    """Train the last layers on a fold's questions, and return them as they were at their best epoch.

    The best epoch is that of the lowest loss on held-out questions, one in five of those trained on; it
    may be the one before all training.

    Parameters
    ----------
    encoder
        The model as it is.
    questions, chunks
        What `freeze` gave of all texts.
    relevant
        Bool ``(n_questions, n_chunks)``.
    negatives
        Numbers of hard negatives of each question, as of `hard_negatives`.
    fold
        Whose ``train`` and ``seen`` say what is trained on.
    settings
        How.
    on_progress
        Called with steps done and the most steps there may be.

    Raises
    ------
    InputError
        A setting is out of its range, or there are fewer than two questions to train on.
    """
    check(settings)
    rng = np.random.default_rng(settings.seed)
    fitted, held_out = (
        fold.train[part] for part in inner_folds(len(fold.train), INNER_SHARE, settings.seed)[0]
    )

    def drawn(rows: Array) -> Batch:
        return draw_batch(rows, relevant, fold.seen, negatives, settings.n_hard, rng)

    config, validation = encoder.config, drawn(held_out)
    params = layer_parameters(encoder.weights, settings.n_last)
    moments, best = no_moments(params), copied(params)
    n_batches = -(-len(fitted) // settings.batch_size)
    n_steps = settings.n_epochs * n_batches
    losses = list[tuple[int, float]]()
    validated = [validation_loss(questions, chunks, validation, params, config)]
    for epoch in range(1, settings.n_epochs + 1):
        of_steps = []
        for rows in np.array_split(rng.permutation(fitted), n_batches):
            loss, grads = gradients(questions, chunks, drawn(rows), params, config)
            clip_gradients(grads, MAX_NORM)
            factor = warmup_linear(moments.step + 1, n_steps // 10 + 1, n_steps + 1)
            adamw(params, grads, moments, settings.learning_rate * factor)
            of_steps.append(loss)
            if on_progress is not None:
                on_progress(moments.step, n_steps)
        losses.append((epoch, float(np.mean(of_steps))))
        validated.append(validation_loss(questions, chunks, validation, params, config))
        n_since = epoch - int(np.argmin(validated))
        if n_since == 0:
            best = copied(params)
        if n_since >= settings.patience:
            break
    return FineTuned(best, int(np.argmin(validated)), tuple(losses), tuple(enumerate(validated)))


def check(settings: FineTuning) -> None:
    """Raise `InputError` where nothing can be trained with the settings."""
    smallest = {name: getattr(settings, name) for name in ("n_epochs", "batch_size", "patience")}
    for name, value in smallest.items():
        if value < 1:
            raise InputError(f"{name} is {value}: give 1 or more")
    if settings.n_hard < 0 or not 0 < settings.learning_rate < np.inf:
        raise InputError(
            f"n_hard is {settings.n_hard} and the learning rate {settings.learning_rate}: give 0 or more, "
            "and a number above 0 such as 1e-4"
        )


def copied(params: Parameters) -> Parameters:
    """Copy parameters, which training goes on to change in place."""
    return {name: array.copy() for name, array in params.items()}


def tuned_encoder(encoder: Encoder, params: Parameters) -> Encoder:
    """Return an encoder with other parameters for its last layers."""
    return replace(encoder, weights=with_parameters(encoder.weights, params))


def fine_tuning_fit(
    encoder: Encoder,
    questions: Frozen,
    chunks: Frozen,
    labelled: Labelled,
    negatives: Sequence[Array],
    settings: FineTuning,
) -> Fit:
    """Return what fine-tunes on a fold, for `cross_validate`."""

    def fit(fold: Fold, on_progress: Progress) -> Fitted:
        tuned = fine_tune(
            encoder, questions, chunks, labelled.relevant, negatives, fold, settings, on_progress
        )
        weights = with_parameters(encoder.weights, tuned.params)
        asked = frozen_vectors(questions, encoder, weights, settings.n_last)
        return Fitted(
            asked[fold.test],
            frozen_vectors(chunks, encoder, weights, settings.n_last),
            tuned.losses,
            tuned.validation_losses,
            f"{tuned.n_epochs} epochs",
        )

    return fit
