"""Fine-tuning of an encoder's last layers on labelled questions, by hand-written backward passes.

The layers below stay as they are, so every text runs through them once; what they give is kept, and
only the last layers are run again at every step. Questions and chunks go through the same layers.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from engine.errors import InputError
from engine.layers.norm import l2_normalize
from engine.layers.primitives import NUMPY, best_primitives
from engine.layers.tracing import Array
from engine.models.bert import EncoderConfig, EncoderWeights, encoder_forward, encoder_layer
from engine.models.encoder import Encoder, packs
from engine.models.parallel import run_parallel
from engine.training.encoder_backward import (
    Kept,
    layer_parameters,
    layers_backward,
    layers_forward,
    mean_pooling_backward,
    named_layers,
    with_parameters,
)
from engine.training.folds import Fit, Fitted, Fold, Labelled, Losses, inner_folds
from engine.training.losses import info_nce
from engine.training.optimizers import Parameters, adamw, clip_gradients, no_moments
from engine.training.schedules import warmup_linear
from engine.weights.fetch import Progress

PACK_TOKENS = 1024  # that one core reads at once
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
class Frozen:
    """What the layers that stay give of texts: the tokens of all, one below the other.

    ``hidden`` is float16 ``(n_tokens, d_model)``, to take half the memory; ``spans`` are the texts'.
    """

    hidden: Array = field(repr=False)
    spans: tuple[slice, ...] = field(repr=False)

    def take(self, numbers: Sequence[int], dtype: np.dtype) -> tuple[Array, list[slice]]:
        """Return the tokens of some texts, one below the other, and where each begins and ends."""
        parts = [self.hidden[self.spans[number]] for number in numbers]
        return np.concatenate(parts).astype(dtype), consecutive([len(part) for part in parts])


@dataclass(frozen=True)
class FineTuned:
    """Trained parameters by name, as after ``n_epochs``, and the losses by epoch: see `fine_tune`."""

    params: Parameters = field(repr=False)
    n_epochs: int
    losses: Losses
    validation_losses: Losses


@dataclass(frozen=True)
class Batch:
    """Numbers of questions and of chunks, and bool ``(n_questions, n_chunks)`` of what is relevant."""

    questions: Array
    chunks: Array
    relevant: Array


def consecutive(lengths: Sequence[int]) -> list[slice]:
    """Spans of these lengths, one after the other."""
    ends = np.cumsum(lengths).tolist()
    return [slice(end - length, end) for end, length in zip(ends, lengths, strict=True)]


def freeze(
    encoder: Encoder,
    texts: Sequence[str],
    n_last: int,
    max_tokens: int | None = None,
    on_progress: Progress | None = None,
) -> Frozen:
    """Run texts through all layers but the last ``n_last``, once.

    Raises
    ------
    InputError
        The encoder has not so many layers, or norms in front of them, which the backward pass knows not.
    """
    n_layers = encoder.config.n_layers
    if not 1 <= n_last <= n_layers or encoder.config.norm_first:
        raise InputError(f"the last {n_last} of {n_layers} layers cannot be trained: take 1 to {n_layers}")
    limit = encoder.token_limit(max_tokens)
    sequences = [encoder.truncate(ids, limit) for ids in encoder.tokenizer.ids_batch(list(texts))]
    weights = replace(encoder.weights, layers=encoder.weights.layers[:-n_last])
    ops = best_primitives() if encoder.compiled else NUMPY
    spans = consecutive([len(ids) for ids in sequences])
    # float16 keeps three digits, more than the noise of training; the trained encoder itself reads exactly.
    hidden = np.empty((spans[-1].stop, encoder.config.d_model), np.float16)

    def run(batch: slice) -> None:
        found = encoder_forward(sequences[batch], weights, encoder.config, ops=ops)
        hidden[spans[batch.start].start : spans[batch.stop - 1].stop] = np.concatenate(found)

    n_done = 0
    for batch in run_parallel(run, list(packs(sequences, PACK_TOKENS))):
        n_done += batch.stop - batch.start
        if on_progress is not None:
            on_progress(n_done, len(texts))
    return Frozen(hidden, tuple(spans))


def frozen_vectors(frozen: Frozen, encoder: Encoder, weights: EncoderWeights, n_last: int) -> Array:
    """Embed texts from where they were frozen: mean pooling, rows of length 1, ``(n_texts, d_model)``."""
    ops = best_primitives() if encoder.compiled else NUMPY
    vectors = np.empty((len(frozen.spans), encoder.config.d_model), encoder.dtype)

    def run(batch: slice) -> None:
        hidden, spans = frozen.take(range(batch.start, batch.stop), encoder.dtype)
        for layer in weights.layers[-n_last:]:
            hidden = encoder_layer(hidden, layer, encoder.config, spans, ops, lambda _, array: array)
        vectors[batch] = [hidden[span].mean(axis=0) for span in spans]

    lengths = [range(span.stop - span.start) for span in frozen.spans]
    for _ in run_parallel(run, list(packs(lengths, PACK_TOKENS))):
        pass
    return l2_normalize(vectors)


@dataclass
class Pass:
    """Texts on their way through the last layers: what the forward kept for the backward."""

    hidden: Array
    spans: list[slice]
    vectors: Array = field(init=False)
    kept: list[Kept] = field(init=False)


def embed(
    frozen: Frozen, numbers: Sequence[int], params: Parameters, config: EncoderConfig, dtype: np.dtype
) -> tuple[Array, list[Pass]]:
    """Run texts through the layers that are trained: mean vectors ``(n_texts, d_model)``, not of length 1."""
    layers = named_layers(params)
    lengths = [range(frozen.spans[number].stop - frozen.spans[number].start) for number in numbers]
    passes = [Pass(*frozen.take(numbers[batch], dtype)) for batch in packs(lengths, PACK_TOKENS)]

    def run(one: Pass) -> None:
        hidden, one.kept = layers_forward(one.hidden, layers, config, one.spans)
        one.vectors = np.stack([hidden[span].mean(axis=0) for span in one.spans])

    for _ in run_parallel(run, passes):
        pass
    return np.concatenate([one.vectors for one in passes]), passes


def embed_backward(
    d_vectors: Array, passes: Sequence[Pass], params: Parameters, config: EncoderConfig
) -> Parameters:
    """Gradients of `embed` by the parameters."""
    layers = named_layers(params)
    starts = np.cumsum([0, *(len(one.spans) for one in passes)])
    found: dict[int, Parameters] = {}

    def run(number: int) -> None:
        one = passes[number]
        d_hidden = mean_pooling_backward(d_vectors[starts[number] : starts[number + 1]], one.spans)
        found[number] = layers_backward(d_hidden, one.kept, layers, config, one.spans)[1]

    for _ in run_parallel(run, range(len(passes))):
        pass
    grads = found[0]
    for number in range(1, len(passes)):  # in order, so that sums round alike at every run
        for name, grad in found[number].items():
            grads[name] += grad
    return grads


def gradients(
    questions: Frozen, chunks: Frozen, batch: Batch, params: Parameters, config: EncoderConfig
) -> tuple[float, Parameters]:
    """Loss of a batch and its gradients by the parameters of the last layers."""
    dtype = next(iter(params.values())).dtype
    query_vectors, query_passes = embed(questions, batch.questions.tolist(), params, config, dtype)
    key_vectors, key_passes = embed(chunks, batch.chunks.tolist(), params, config, dtype)
    loss, d_queries, d_keys = info_nce(query_vectors, key_vectors, relevant=batch.relevant)
    d_vectors = np.concatenate([d_queries, d_keys])
    return loss, embed_backward(d_vectors, [*query_passes, *key_passes], params, config)


def draw_batch(
    rows: Array,
    relevant: Array,
    seen: Array,
    negatives: Sequence[Array],
    n_hard: int,
    rng: np.random.Generator,
) -> Batch:
    """Draw for each question one of its chunks and hard negatives of it, of those that may be seen."""
    drawn: set[int] = set()
    allowed = np.zeros(relevant.shape[1], bool)
    allowed[seen] = True
    for row in rows:
        drawn.add(int(rng.choice(np.flatnonzero(relevant[row] & allowed))))
        hard = negatives[row][allowed[negatives[row]]]
        drawn.update(rng.choice(hard, min(n_hard, len(hard)), replace=False).tolist())
    chunks = np.array(sorted(drawn))
    return Batch(rows, chunks, relevant[np.ix_(rows, chunks)])


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


def validation_loss(
    questions: Frozen, chunks: Frozen, batch: Batch, params: Parameters, config: EncoderConfig
) -> float:
    """Loss of a batch, without gradients."""
    dtype = next(iter(params.values())).dtype
    query_vectors, _ = embed(questions, batch.questions.tolist(), params, config, dtype)
    key_vectors, _ = embed(chunks, batch.chunks.tolist(), params, config, dtype)
    return info_nce(query_vectors, key_vectors, relevant=batch.relevant)[0]


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
