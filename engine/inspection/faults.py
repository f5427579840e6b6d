"""An encoder with parts left out or put in wrongly, to see what each of them is good for.

A tracer sees every array of the forward pass and gives back the one to go on with, so each fault is a
few lines that say which array it replaces, and the model knows of none of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import cycle

import numpy as np

from engine.layers.norm import l2_normalize
from engine.layers.pooling import mean_pooling
from engine.layers.tracing import Array, Tracer, no_trace
from engine.models.bert import encoder_forward
from engine.models.encoder import BATCH_TOKENS, Encoder, packs
from engine.models.parallel import run_parallel
from engine.trace import Trace
from engine.weights.fetch import Progress

# Tokens that shorter texts are padded to, as a batch with one text of that length would pad them.
PAD_TOKENS = 128


@dataclass(frozen=True)
class Faults:
    """What is broken; any number at once.

    Attributes
    ----------
    no_scaling
        Attention scores are not divided by ``sqrt(d_head)``.
    no_residual
        Neither part of a layer has its input added back to its output.
    no_positions
        The position embeddings are zero.
    norm_first
        Layer norms stand in front of the parts of a layer, not behind them.
    pad_mean
        Texts are padded to `PAD_TOKENS` and averaged over the padding too. Attention masks it, as it
        should.
    """

    no_scaling: bool = False
    no_residual: bool = False
    no_positions: bool = False
    norm_first: bool = False
    pad_mean: bool = False


def broken_trace(encoder: Encoder, text: str, faults: Faults, keep: Sequence[str] = ("*",)) -> Trace:
    """Run one text with faults and keep what goes on from each stage.

    The names are those of `Encoder.trace`, without ``tokens``. With ``pad_mean`` the arrays have rows
    for the padding, behind those of the text.
    """
    ids = encoder.truncate(encoder.tokenizer.encode(text).ids)
    padded = padded_ids(ids, encoder, faults)
    trace = Trace(keep)
    trace("ids", np.array(padded))
    fault = fault_tracer(faults, encoder, [len(ids)], trace)
    with_faults(encoder, faults).inspect(padded, fault)
    return trace


def broken_vectors(
    encoder: Encoder, texts: Sequence[str], faults: Faults, on_progress: Progress | None = None
) -> Array:
    """Embed texts with faults: ``(n_texts, d_model)``, mean-pooled and of length 1.

    Without any fault they are those of `Encoder.encode`. ``on_progress`` is called with texts done and
    texts in all.
    """
    config = with_faults(encoder, faults).config
    sequences = [encoder.truncate(ids) for ids in encoder.tokenizer.ids_batch(texts)]
    padded = [padded_ids(ids, encoder, faults) for ids in sequences]
    vectors = np.empty((len(texts), encoder.config.d_model), encoder.dtype)

    def embed(batch: slice) -> None:
        fault = fault_tracer(faults, encoder, [len(ids) for ids in sequences[batch]])
        token_vectors = encoder_forward(padded[batch], encoder.weights, config, fault)
        vectors[batch] = [mean_pooling(tokens) for tokens in token_vectors]

    n_done = 0
    for batch in run_parallel(embed, list(packs(padded, BATCH_TOKENS))):
        n_done += batch.stop - batch.start
        if on_progress is not None:
            on_progress(n_done, len(texts))
    return l2_normalize(vectors)


def with_faults(encoder: Encoder, faults: Faults) -> Encoder:
    """Return the encoder with its norms where the faults put them."""
    return replace(encoder, config=replace(encoder.config, norm_first=faults.norm_first))


def padded_ids(ids: list[int], encoder: Encoder, faults: Faults) -> list[int]:
    """Ids of a text with its padding, if it gets any."""
    n_pads = min(PAD_TOKENS, encoder.config.max_positions) - len(ids) if faults.pad_mean else 0
    return ids + [encoder.tokenizer.pad_id] * n_pads


def fault_tracer(faults: Faults, encoder: Encoder, n_real: Sequence[int], trace: Tracer = no_trace) -> Tracer:
    """Return a tracer that breaks one forward pass over a pack of texts.

    Parameters
    ----------
    faults
        What it breaks.
    encoder
        The encoder.
    n_real
        Tokens of each text of the pack, padding aside.
    trace
        Told of every array, after the fault.
    """
    root_d_head = np.sqrt(encoder.config.d_model // encoder.config.n_heads)
    texts = cycle(n_real)  # each layer makes the scores of one text of the pack after the other
    stream = np.empty(0)  # what is added back to the output of the next part: (n_tokens, d_model)

    def residual(output: Array) -> Array:
        """Keep the stream that follows from a part's output; take off what the model is about to add."""
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


def drift(intact: Trace, broken: Trace, n_layers: int) -> dict[str, float]:
    """How far each stage of a text points from where it did: 1 minus the cosine, by stage.

    The stages are ``embeddings.output``, every ``layers.{i}.output``, both the mean over the tokens of
    the text, and ``normalized``, the vector of the text.
    """
    stages = ["embeddings.output", *(f"layers.{i}.output" for i in range(n_layers)), "normalized"]
    return {
        stage: turned(intact[stage], broken[stage][: len(intact[stage])])  # without padding
        for stage in stages
    }


def turned(a: Array, b: Array) -> float:
    """Mean of 1 minus the cosine of the rows of two arrays ``(..., d_model)``."""
    a, b = l2_normalize(a.astype(np.float64)), l2_normalize(b.astype(np.float64))
    return float(np.maximum(1 - (a * b).sum(axis=-1), 0).mean())


def ranks(scores: Array) -> Array:
    """Place of each score among all, the largest first, counted from 1: ``(n,) -> (n,)``."""
    places = np.empty(len(scores), int)
    places[np.argsort(-scores, kind="stable")] = np.arange(1, len(scores) + 1)
    return places
