"""Training loop of a span reader, which goes on where it was stopped."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import Literal

import numpy as np

from ...atomic_write import write_atomically
from ...errors import InputError, ModelFileError
from ...kernels.primitives import encoder_training
from ...layers.linear import Linear
from ...models.encoder import Encoder
from ...models.parallel import run_parallel
from ...models.reader import Reader, Window, window_spans
from ...weights.tensors import read_header
from ...wording import counted
from ..backward.encoder import layer_parameters, with_parameters
from ..checkpoint_file import file_bytes, read_trees
from ..optimizers import Moments, Parameters, adamw, clip_gradients, no_moments
from .examples import ReadingBatch, ReadingSet, batches
from .passes import HEAD, init_head, loss_and_gradients
from .rewording import in_other_words

N_PARTS = 2  # of a batch, on one core each; the same on all machines, so that sums are
READ_AT_ONCE = 16  # questions whose answers are measured
SMOOTHING = 0.97  # weight of the losses so far in their running mean


@dataclass(frozen=True)
class ReadingSettings:
    """How to train a reader."""

    crops: tuple[int, ...] = (112, 112, 192)  # the tokens of a passage that each pass over the examples reads
    batch_size: int = 16  # questions of an update
    # reached after ``n_warmup`` updates, and falls to 0 in the last share of all updates
    learning_rate: float = 1.5e-4
    n_warmup: int = 300
    decay_share: float = 0.25
    # of the outputs of attention and feed-forward, of AdamW, and of all gradients together
    dropout: float = 0.05
    weight_decay: float = 0.01
    max_norm: float = 1.0
    n_last: int = 6  # layers that are trained; those below and the embeddings stay
    seed: int = 0  # of the head, the order, the crops and dropout


@dataclass(frozen=True)
class ReadingReport:
    """One update: its number from 1, of how many, the running mean of the loss, and the speed."""

    update: int
    n_updates: int
    loss: float
    tokens_per_s: float
    learning_rate: float


@dataclass(frozen=True)
class ReadingHeader:
    """The JSON of a checkpoint: updates made, and the running mean of the loss."""

    format: Literal["glassbox-reader-1"]
    step: int
    loss: float | None


@dataclass
class ReadingState:
    """A reader in training, changed in place by each update."""

    params: Parameters
    moments: Moments
    loss: float | None = None

    @classmethod
    def fresh(cls, encoder: Encoder, settings: ReadingSettings) -> "ReadingState":
        """Return the encoder's own last layers below a new head."""
        params = layer_parameters(encoder.weights, settings.n_last)
        params |= init_head(encoder.config.d_model, settings.seed)
        return cls(params, no_moments(params))

    def save(self, path: Path) -> None:
        """Write a checkpoint; where that fails, the one before stays."""
        header = ReadingHeader("glassbox-reader-1", self.moments.n_updates, self.loss)
        write_atomically(path, file_bytes(self.params, self.moments, header))

    def load(self, path: Path) -> None:
        """Go on from a checkpoint of the same sizes.

        Raises `InputError` or `ModelFileError` where it cannot be read, or is no checkpoint of a reader,
        damaged, or of other sizes.
        """
        try:
            content = path.read_bytes()
        except OSError as error:
            raise InputError(f"{path} cannot be read ({error.strerror}): give a checkpoint") from error
        shapes = {name: array.shape for name, array in self.params.items()}
        try:
            header = read_header(content, ReadingHeader, "a reader")
            self.params, self.moments = read_trees(content, shapes, header.step)
        except ModelFileError as error:
            raise ModelFileError(f"{path}: {error}") from error
        self.loss = header.loss

    @classmethod
    def of(cls, reader: Reader, settings: ReadingSettings) -> "ReadingState":
        """Return the layers and the head of a reader, with a fresh optimiser."""
        params = layer_parameters(reader.weights, settings.n_last)
        params |= {f"{HEAD}.{name}": np.array(array) for name, array in reader.head._asdict().items()}
        return cls(params, no_moments(params))

    def averaged_with(self, other: Reader, settings: ReadingSettings) -> "ReadingState":
        """Return the mean of its weights and those of a reader, with a fresh optimiser.

        Two readers that began with the same weights, each trained until the learning rate is 0, find more
        together than either alone (model soups, Wortsman et al. 2022).
        """
        theirs = ReadingState.of(other, settings).params
        params = {name: (array + theirs[name]) / 2 for name, array in self.params.items()}
        return ReadingState(params, no_moments(params), self.loss)

    def reader(self, encoder: Encoder) -> Reader:
        """Return the reader as it is by now, a copy."""
        layers = {name: array for name, array in self.params.items() if not name.startswith(HEAD)}
        head = Linear(self.params[f"{HEAD}.weight"].copy(), self.params[f"{HEAD}.bias"].copy())
        return Reader.of(encoder, with_parameters(encoder.weights, layers), head)


def learning_rate(update: int, n_updates: int, settings: ReadingSettings, start_decay: int = 0) -> float:
    """Rate of an update, from 0: a warm-up, the highest rate, a linear decay from ``start_decay`` on."""
    rise = (update + 1) / max(1, settings.n_warmup)
    fall = (n_updates - update) / max(1.0, settings.decay_share * (n_updates - start_decay))
    return settings.learning_rate * min(1.0, rise, fall)


def train(
    state: ReadingState,
    found: ReadingSet,
    encoder: Encoder,
    settings: ReadingSettings,
    start_decay: int = 0,
    n_updates: int | None = None,
    near: Mapping[int, list[int]] | None = None,
) -> Iterator[ReadingReport]:
    """Train from the updates that the state already made, and report each; to pause, stop iterating.

    It ends with the last pass, or after ``n_updates`` if these are fewer. The learning rate is lowered in the
    last ``decay_share`` of what remains at ``start_decay``, so that a stopped run may go on to another end.
    With ``near`` (`near_tokens`), questions are read in other words, too.
    Raises `InputError` where the loss is no longer a number.
    """
    per_pass = -(-len(found.examples) // settings.batch_size)
    n_updates = min(per_pass * len(settings.crops), n_updates or per_pass * len(settings.crops))
    if n_updates <= start_decay:
        raise InputError(
            f"the decay cannot start at update {start_decay} of {n_updates}: give an earlier one"
        )
    while (done := state.moments.n_updates) < n_updates:
        number = done // per_pass
        order = batches(
            found, encoder.tokenizer, settings.batch_size, settings.crops[number], settings.seed, number
        )
        for batch in islice(order, done % per_pass, n_updates - number * per_pass):
            began, update = perf_counter(), state.moments.n_updates
            if near:
                rng = np.random.default_rng([settings.seed, update])
                batch = in_other_words(batch, near, encoder.tokenizer, rng)
            loss, grads = batch_gradients(batch, state.params, encoder, settings, update)
            norm = clip_gradients(grads, settings.max_norm)
            if not np.isfinite(loss) or not np.isfinite(norm):
                raise InputError(f"the loss became {loss:g} at update {update}: take a lower learning rate")
            rate = learning_rate(update, n_updates, settings, start_decay)
            adamw(state.params, grads, state.moments, rate, weight_decay=settings.weight_decay)
            before = loss if state.loss is None else state.loss
            state.loss = SMOOTHING * before + (1 - SMOOTHING) * loss
            n_tokens = sum(map(len, batch.sequences))
            yield ReadingReport(update + 1, n_updates, state.loss, n_tokens / (perf_counter() - began), rate)


def batch_gradients(
    batch: ReadingBatch, params: Parameters, encoder: Encoder, settings: ReadingSettings, update: int
) -> tuple[float, Parameters]:
    """Loss and gradients of a batch, its parts side by side."""
    n = len(batch.sequences)
    parts = [slice(n * part // N_PARTS, n * (part + 1) // N_PARTS) for part in range(N_PARTS)]
    parts = [part for part in parts if part.stop > part.start]
    results: list[tuple[float, Parameters]] = [(0.0, {})] * len(parts)

    def work(number: int) -> None:
        rng = np.random.default_rng([settings.seed, update, number]) if settings.dropout else None
        results[number] = loss_and_gradients(
            batch.part(parts[number]),
            encoder.weights,
            params,
            encoder.config,
            settings.dropout,
            rng,
            encoder_training(),
        )

    for _ in run_parallel(work, range(len(parts))):
        pass
    shares = [(part.stop - part.start) / n for part in parts]
    loss = sum(share * loss for share, (loss, _) in zip(shares, results, strict=True))
    grads = {name: np.zeros_like(array) for name, array in results[0][1].items()}
    for share, (_, of_part) in zip(shares, results, strict=True):
        for name, grad in of_part.items():
            grad *= share
            grads[name] += grad
    return loss, grads


@dataclass(frozen=True)
class ReadingQuality:
    """How well a reader reads, with None where there are no questions of a kind."""

    n_questions: int
    n_without: int  # without an answer
    f1: float | None  # of the tokens of answers
    refused: float | None  # share of questions without an answer for which [CLS] has the highest score
    # how often a question with an answer has a larger margin, best span over no answer, than one without: 0.5
    # by chance
    auc: float | None

    @property
    def words(self) -> str:
        """``F1 0.610 of 190 answers, 74% of 110 questions without one refused, AUC 0.780``."""
        parts = []
        if self.f1 is not None:
            parts.append(f"F1 {self.f1:.3f} of {counted(self.n_questions - self.n_without, 'answer')}")
        if self.refused is not None:
            parts.append(f"{self.refused:.0%} of {counted(self.n_without, 'question')} without one refused")
        if self.auc is not None:
            parts.append(f"AUC {self.auc:.3f}")
        return ", ".join(parts)


def quality(state: ReadingState, found: ReadingSet, encoder: Encoder) -> ReadingQuality:
    """Read questions that were held out, each with its passage."""
    reader, scores = state.reader(encoder), list[float]()
    margins: tuple[list[float], list[float]] = [], []  # of questions with and without an answer
    n_longest = max(map(len, found.passages))
    for batch in batches(found, encoder.tokenizer, READ_AT_ONCE, n_longest, 0, 0):
        pairs = zip(batch.sequences, batch.types, strict=True)
        windows = [Window(0, ids, types, types.index(1), []) for ids, types in pairs]
        for window, target, logits in zip(windows, batch.targets, reader.logits(windows), strict=True):
            ids, first = window.ids, window.first
            passage = logits[first:-1]  # (n_tokens, 2)
            [(start, end, score)] = window_spans(passage, np.ones(len(passage), bool), 1)
            margins[int(target[0] == 0)].append(score - float(logits[0].sum()))
            if target[0]:
                found_ids, wanted = ids[first + start : first + end + 1], ids[target[0] : target[1] + 1]
                n_common = sum((Counter(found_ids) & Counter(wanted)).values())
                scores.append(2 * n_common / (len(found_ids) + len(wanted)))
    answered, without = (np.array(each) for each in margins)
    f1 = float(np.mean(scores)) if scores else None
    refused = float((without < 0).mean()) if len(without) else None
    auc = float((answered[:, None] > without[None]).mean()) if scores and len(without) else None
    return ReadingQuality(len(found.examples), len(without), f1, refused, auc)
