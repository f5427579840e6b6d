"""Ablations and faults of an encoder, to show the purpose of each part.

A tracer receives every array of the forward pass and returns the one to continue with, so a fault only
replaces arrays, and the model's code stays unchanged.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from hashlib import sha256
from types import SimpleNamespace
from typing import Any

import numpy as np

from ...layers.norm import l2_normalize
from ...layers.primitives import NUMPY, Primitives
from ...layers.tracing import Array, Tracer, no_trace
from ...models.bert import EncoderConfig, EncoderWeights, encoder_forward, trace_shapes
from ...models.encoder import Encoder, check_bert
from ...trace import Trace

MASKED = -1e9  # added to the scores of padding
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


@dataclass(frozen=True)
class BrokenEncoder(Encoder):
    """An encoder of BERT with faults, which embeds and is traced as any other.

    Compiled steps take no fault away: each is in what is traced between them, or in the masks.
    """

    faults: Faults = Faults()

    @property
    def fingerprint(self) -> str:
        """That of the intact encoder, with the faults."""
        return sha256(f"{super().fingerprint} {self.faults!r}".encode()).hexdigest()

    @property
    def family(self) -> Any:
        """The forward pass with the faults, in place of BERT's module."""
        forward = partial(broken_forward, faults=self.faults, pad_id=self.tokenizer.pad_id)
        return SimpleNamespace(encoder_forward=forward, trace_shapes=trace_shapes)

    def _embed(self, sequences: Sequence[Sequence[int]], *args: Any) -> dict[str, Array]:
        return super()._embed([padded_ids(ids, self, self.faults) for ids in sequences], *args)


def broken(encoder: Encoder, faults: Faults) -> BrokenEncoder:
    """Return an encoder with faults; raise `InputError` unless it is BERT."""
    check_bert(encoder, "a fault in its forward pass")
    parts = {field.name: getattr(encoder, field.name) for field in fields(encoder)}
    parts["config"] = replace(encoder.config, norm_first=faults.norm_first)
    return BrokenEncoder(**parts, faults=faults)


def broken_trace(encoder: Encoder, text: str, faults: Faults, keep: Sequence[str] = ("*",)) -> Trace:
    """Run one text with faults and trace each stage after the fault, by the names of `Encoder.trace`.

    With ``pad_mean`` the arrays have rows for the padding, after those of the text.
    """
    ids = padded_ids(encoder.truncate(encoder.tokenizer.encode(text).ids), encoder, faults)
    trace = Trace(keep)
    trace("ids", np.array(ids))
    broken(encoder, faults).inspect(ids, trace, "mean")
    return trace


def padded_ids(ids: Sequence[int], encoder: Encoder, faults: Faults) -> list[int]:
    """Return the ids of a text, padded with ``pad_mean``."""
    n_pads = min(PAD_TOKENS, encoder.config.max_positions) - len(ids) if faults.pad_mean else 0
    return [*ids, *[encoder.tokenizer.pad_id] * n_pads]


def broken_forward(
    sequences: Sequence[Sequence[int]],
    weights: EncoderWeights,
    config: EncoderConfig,
    trace: Tracer = no_trace,
    ops: Primitives = NUMPY,
    type_ids: Sequence[Sequence[int]] | None = None,
    *,
    faults: Faults,
    pad_id: int,
) -> list[Array]:
    """BERT's `encoder_forward` with faults; texts that end in ``pad_id`` are padded."""
    masks = None
    if faults.pad_mean:
        dtype = weights.token_table.dtype
        masks = [np.where(np.equal(ids, pad_id), MASKED, 0).astype(dtype)[None, None] for ids in sequences]
    tracer = fault_tracer(faults, np.sqrt(config.d_head), trace)
    return encoder_forward(sequences, weights, config, tracer, ops, type_ids, masks=masks)


def fault_tracer(faults: Faults, root_d_head: float, trace: Tracer) -> Tracer:
    """Return a tracer that applies faults to one forward pass, and calls ``trace`` with arrays after them."""
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
        elif name.endswith("attention.query") and faults.no_scaling:
            value = value * value.dtype.type(root_d_head)
        value = trace(name, value)
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
