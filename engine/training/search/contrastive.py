"""Contrastive loss of a batch of questions and chunks, and its gradients by an encoder's last layers.

Questions and chunks share the layers; `info_nce` compares their mean vectors.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ...layers.tracing import Array
from ...models.bert import EncoderConfig
from ...models.parallel import even_packs, run_parallel
from ..backward.encoder import KeptLayer, layers_backward, layers_forward, mean_pooling_backward, named_layers
from ..losses import info_nce
from ..optimizers import Parameters
from .frozen_layers import PACK_TOKENS, FrozenStates


@dataclass(frozen=True)
class TrainingTexts:
    """Questions and chunks after the frozen layers, and how they belong together."""

    questions: FrozenStates
    chunks: FrozenStates
    relevant: Array = field(repr=False)  # bool ``(n_questions, n_chunks)``
    negatives: Sequence[Array] = field(repr=False)  # places of each question's hard ones


@dataclass(frozen=True)
class ContrastiveBatch:
    """Places of questions and chunks, and their relevance, bool ``(n_questions, n_chunks)``."""

    questions: Array
    chunks: Array
    relevant: Array


@dataclass
class PackPass:
    """One pack of texts in the last layers, with the arrays kept for the backward pass."""

    hidden: Array
    spans: list[slice]
    vectors: Array = field(init=False)
    kept: list[KeptLayer] = field(init=False)


def draw_batch(
    rows: Array, texts: TrainingTexts, seen: Array, n_hard: int, rng: np.random.Generator
) -> ContrastiveBatch:
    """Draw for each question one relevant chunk and hard negatives, only from the chunks ``seen``."""
    drawn: set[int] = set()
    allowed = np.zeros(texts.relevant.shape[1], bool)
    allowed[seen] = True
    for row in rows:
        drawn.add(int(rng.choice(np.flatnonzero(texts.relevant[row] & allowed))))
        hard = texts.negatives[row][allowed[texts.negatives[row]]]
        drawn.update(rng.choice(hard, min(n_hard, len(hard)), replace=False).tolist())
    chunks = np.array(sorted(drawn))
    return ContrastiveBatch(rows, chunks, texts.relevant[np.ix_(rows, chunks)])


def mean_vectors(
    frozen: FrozenStates, numbers: Sequence[int], params: Parameters, config: EncoderConfig, dtype: np.dtype
) -> tuple[Array, list[PackPass]]:
    """Run texts through the trained layers: mean vectors ``(n_texts, d_model)``, not normalised."""
    layers = named_layers(params)
    lengths = [frozen.spans[number].stop - frozen.spans[number].start for number in numbers]
    # The same packs on every machine, as the gradients are summed by packs.
    batches = even_packs(lengths, PACK_TOKENS, n_workers=1)
    passes = [PackPass(*frozen.states_of(numbers[batch], dtype)) for batch in batches]

    def run(one: PackPass) -> None:
        hidden, one.kept = layers_forward(one.hidden, layers, config, one.spans)
        one.vectors = np.stack([hidden[span].mean(axis=0) for span in one.spans])

    for _ in run_parallel(run, passes):
        pass
    return np.concatenate([one.vectors for one in passes]), passes


def mean_vectors_backward(
    d_vectors: Array, passes: Sequence[PackPass], params: Parameters, config: EncoderConfig
) -> Parameters:
    """Gradients of `mean_vectors` by the parameters."""
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
    for number in range(1, len(passes)):  # in order, so that rounding is the same in every run
        for name, grad in found[number].items():
            grads[name] += grad
    return grads


def loss_and_gradients(
    texts: TrainingTexts, batch: ContrastiveBatch, params: Parameters, config: EncoderConfig
) -> tuple[float, Parameters]:
    """Loss of a batch and its gradients by the parameters of the last layers."""
    loss, d_vectors, passes = batch_loss(texts, batch, params, config)
    return loss, mean_vectors_backward(d_vectors, passes, params, config)


def batch_loss(
    texts: TrainingTexts, batch: ContrastiveBatch, params: Parameters, config: EncoderConfig
) -> tuple[float, Array, list[PackPass]]:
    """Loss of a batch, its gradient by the mean vectors of questions then chunks, and their passes."""
    dtype = next(iter(params.values())).dtype
    queries, query_passes = mean_vectors(texts.questions, batch.questions.tolist(), params, config, dtype)
    keys, key_passes = mean_vectors(texts.chunks, batch.chunks.tolist(), params, config, dtype)
    loss, d_queries, d_keys = info_nce(queries, keys, batch.relevant)
    return loss, np.concatenate([d_queries, d_keys]), [*query_passes, *key_passes]
