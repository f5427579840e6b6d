"""Ablations and faults of an encoder, to show the purpose of each part.

A tracer receives every array of the forward pass and returns the one to continue with, so a fault only
replaces arrays, and the model's code stays unchanged.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import cycle

import numpy as np

from ...layers.norm import l2_normalize
from ...layers.pooling import mean_pooling
from ...layers.tracing import Array, Tracer, no_trace
from ...models.bert import encoder_forward
from ...models.encoder import BATCH_TOKENS, Encoder, check_bert
from ...models.parallel import run_packs
from ...trace import Trace
from ...weights.fetch import Progress

# Length that shorter texts are padded to, as in a batch with one text of that length.
PAD_TOKENS = 128


@dataclass(frozen=True)
class Faults:
    """Which faults are present; any number at once."""

    no_scaling: bool = False  # attention scores are not divided by ``sqrt(d_head)``
    no_residual: bool = False  # neither part of a layer has its input added back to its output
    no_positions: bool = False  # the position embeddings are zero
    norm_first: bool = False  # layer norms come before the parts of a layer (pre-norm), not after
    # texts are padded to `PAD_TOKENS`, and the mean includes the padding. Attention masks it correctly.
    pad_mean: bool = False


def broken_trace(encoder: Encoder, text: str, faults: Faults, keep: Sequence[str] = ("*",)) -> Trace:
    """Run one text with faults and trace each stage after the fault.

    The names are those of `Encoder.trace`, without ``tokens``. With ``pad_mean`` the arrays have rows
    for the padding, after those of the text.
    """
    ids = encoder.truncate(encoder.tokenizer.encode(text).ids)
    padded = padded_ids(ids, encoder, faults)
    trace = Trace(keep)
    trace("ids", np.array(padded))
    fault = fault_tracer(faults, encoder, [len(ids)], trace)
    with_faults(encoder, faults).inspect(padded, fault, "mean")
    return trace


def broken_vectors(
    encoder: Encoder, texts: Sequence[str], faults: Faults, on_progress: Progress | None = None
) -> Array:
    """Embed texts with faults: ``(n_texts, d_model)``, mean-pooled and of length 1.

    Without faults they equal `Encoder.encode`. ``on_progress`` is called with texts done and all texts.
    """
    config = with_faults(encoder, faults).config
    sequences = [encoder.truncate(ids) for ids in encoder.tokenizer.ids_batch(texts)]
    padded = [padded_ids(ids, encoder, faults) for ids in sequences]

    def embed(batch: slice) -> list[Array]:
        fault = fault_tracer(faults, encoder, [len(ids) for ids in sequences[batch]])
        token_vectors = encoder_forward(padded[batch], encoder.weights, config, fault)
        return [mean_pooling(tokens) for tokens in token_vectors]

    return embed_packs(encoder, padded, embed, on_progress)


def embed_packs(
    encoder: Encoder,
    sequences: Sequence[Sequence[int]],
    embed: Callable[[slice], Sequence[Array]],
    on_progress: Progress | None = None,
) -> Array:
    """Embed tokenized texts pack by pack in parallel: ``(n_texts, d_model)``, rows of length 1.

    ``embed`` returns the vectors of a pack.
    """
    vectors = np.empty((len(sequences), encoder.config.d_model), encoder.dtype)

    def fill(batch: slice) -> None:
        vectors[batch] = embed(batch)

    run_packs(fill, sequences, BATCH_TOKENS, on_progress)
    return l2_normalize(vectors)


def with_faults(encoder: Encoder, faults: Faults) -> Encoder:
    """Return the encoder with pre-norm or post-norm as the faults say."""
    return replace(encoder, config=replace(encoder.config, norm_first=faults.norm_first))


def padded_ids(ids: list[int], encoder: Encoder, faults: Faults) -> list[int]:
    """Return the ids of a text, padded with ``pad_mean``."""
    n_pads = min(PAD_TOKENS, encoder.config.max_positions) - len(ids) if faults.pad_mean else 0
    return ids + [encoder.tokenizer.pad_id] * n_pads


def fault_tracer(faults: Faults, encoder: Encoder, n_real: Sequence[int], trace: Tracer = no_trace) -> Tracer:
    """Return a tracer that applies faults to one forward pass over a pack of texts.

    ``n_real`` are the tokens of each text, without padding; ``trace`` is called with every array after the
    fault.
    """
    check_bert(encoder, "a fault in its forward pass")
    root_d_head = np.sqrt(encoder.config.d_model // encoder.config.n_heads)
    texts = cycle(n_real)  # each layer computes the scores text by text
    stream = np.empty(0)  # the residual stream (n_tokens, d_model)

    def residual(output: Array) -> Array:
        """Track the residual stream after a part; subtract the residual that the model is about to add."""
        nonlocal stream
        added = output - stream if faults.no_residual else output
        stream = stream + added
        return added

    def fault(name: str, value: Array) -> Array:
        nonlocal stream
        if name == "embeddings.position" and faults.no_positions:
            value = np.zeros_like(value)
        elif name.endswith("attention.scores"):  # (n_heads, n_query, n_key)
            if faults.no_scaling:
                value = value * value.dtype.type(root_d_head)
            if faults.pad_mean:
                is_pad = np.arange(value.shape[-1]) >= next(texts)
                value = np.where(is_pad, value.dtype.type(-np.inf), value)
        trace(name, value)
        if name.endswith(("attention.output", "ffn.output")):
            return residual(value)
        if name.endswith(".output") or (name.endswith("attention.norm") and not faults.norm_first):
            stream = value
        return value

    return fault


def stage_drift(intact: Trace, broken: Trace, n_layers: int) -> dict[str, float]:
    """Cosine distance between the intact and the broken pass at each stage of a text.

    The stages are ``embeddings.output`` and every ``layers.{i}.output``, both as a mean over the tokens of
    the text, and ``normalized``, the vector of the text.
    """
    stages = ["embeddings.output", *(f"layers.{i}.output" for i in range(n_layers)), "normalized"]
    return {
        stage: mean_cosine_distance(intact[stage], broken[stage][: len(intact[stage])])  # without padding
        for stage in stages
    }


def mean_cosine_distance(a: Array, b: Array) -> float:
    """Mean of 1 minus the cosine of the rows of two arrays ``(..., d_model)``."""
    a, b = l2_normalize(a.astype(np.float64)), l2_normalize(b.astype(np.float64))
    return float(np.maximum(1 - (a * b).sum(axis=-1), 0).mean())
