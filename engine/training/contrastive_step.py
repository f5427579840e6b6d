"""Loss and gradients of one batch of questions and chunks, by the parameters of an encoder's last layers.

Questions and chunks go through the same layers; `info_nce` compares their mean vectors.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from engine.layers.tracing import Array
from engine.models.bert import EncoderConfig
from engine.models.encoder import packs
from engine.models.parallel import run_parallel
from engine.training.encoder_backward import (
    Kept,
    layers_backward,
    layers_forward,
    mean_pooling_backward,
    named_layers,
)
from engine.training.frozen_layers import PACK_TOKENS, Frozen
from engine.training.losses import info_nce
from engine.training.optimizers import Parameters


@dataclass(frozen=True)
class Batch:
    """Numbers of questions and of chunks, and bool ``(n_questions, n_chunks)`` of what is relevant."""

    questions: Array
    chunks: Array
    relevant: Array


@dataclass
class Pass:
    """Texts on their way through the last layers: what the forward kept for the backward."""

    hidden: Array
    spans: list[slice]
    vectors: Array = field(init=False)
    kept: list[Kept] = field(init=False)


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


def validation_loss(
    questions: Frozen, chunks: Frozen, batch: Batch, params: Parameters, config: EncoderConfig
) -> float:
    """Loss of a batch, without gradients."""
    dtype = next(iter(params.values())).dtype
    query_vectors, _ = embed(questions, batch.questions.tolist(), params, config, dtype)
    key_vectors, _ = embed(chunks, batch.chunks.tolist(), params, config, dtype)
    return info_nce(query_vectors, key_vectors, relevant=batch.relevant)[0]
