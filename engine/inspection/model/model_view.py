"""One forward pass for display: one layer in full, all layers in outline, their attention summarised."""

from dataclasses import dataclass, field

import numpy as np

from ...generation.decoder import Decoder
from ...layers.tracing import Array, Tracer
from ...models.encoder import Encoder
from ...tokenizers.encoding import Encoding
from ...trace import Trace

OUTLINE = ("embeddings.*", "layers.*.output", "norm", "pooled.*", "normalized")


def attention_rollout(maps: Array) -> Array:
    """Follow attention through all layers (Abnar & Zuidema 2020).

    A layer mixes tokens half by the residual connection, half by the mean attention of its heads; the
    matrices of successive layers are multiplied.

    ``maps`` are attention weights averaged over heads, ``(n_layers, n_tokens, n_tokens)``. The result,
    ``(n_tokens, n_tokens)``, is the share of each token's last vector (row) that comes from each input token
    (column); rows sum to 1.
    """
    n_tokens = maps.shape[-1]
    rollout = np.eye(n_tokens, dtype=maps.dtype)
    for weights in maps:
        step = 0.5 * weights + 0.5 * np.eye(n_tokens, dtype=maps.dtype)
        rollout = step / step.sum(axis=-1, keepdims=True) @ rollout
    return rollout


def attention_distance(weights: Array) -> Array:
    """Mean distance in tokens between queries and the keys attended to: ``(..., query, key) -> (...)``."""
    n_query, n_key = weights.shape[-2:]
    distance = np.abs(np.arange(n_query)[:, None] - np.arange(n_key))  # (query, key)
    return (weights * distance).sum(axis=-1).mean(axis=-1)


def attention_share(weights: Array, keys: Array) -> Array:
    """Share of the attention that goes to some keys: ``(..., query, key), (key,) -> (...)``."""
    return weights[..., keys].sum(axis=-1).mean(axis=-1)


def without_tokens(weights: Array, left_out: Array) -> Array:
    """Remove tokens, boolean ``(n_tokens,)``, as queries and keys; rows sum to 1 again, or are all 0.

    ``(..., n_tokens, n_tokens) -> (..., n_kept, n_kept)``
    """
    kept = weights[..., ~left_out, :][..., ~left_out]
    total = kept.sum(axis=-1, keepdims=True)
    return kept / np.where(total > 0, total, 1)


@dataclass
class AttentionSummary:
    """A tracer that summarises each layer's attention during the pass, so that long texts fit in memory."""

    left_out: Array  # tokens to leave out as queries and keys, boolean ``(n_tokens,)``
    special: Array  # tokens whose share of the attention is counted, boolean ``(n_tokens,)``
    # a layer's mean over its heads with all tokens, ``(n_tokens, n_tokens)`` each
    maps: list[Array] = field(default_factory=list)
    # a layer's `attention_distance` and `attention_share` per head, ``(n_heads,)`` each; the share includes
    # the tokens that are left out
    distances: list[Array] = field(default_factory=list)
    shares: list[Array] = field(default_factory=list)

    def __call__(self, name: str, value: Array) -> Array:
        """Summarise attention weights; return every value unchanged."""
        if name.endswith("attention.weights"):
            self.maps.append(value.mean(axis=0))
            self.distances.append(attention_distance(without_tokens(value, self.left_out)))
            self.shares.append(attention_share(value, self.special))
        return value

    def rollout(self) -> Array:
        """Return the rollout over all layers without the tokens left out: ``(n_kept, n_kept)``."""
        return without_tokens(attention_rollout(np.stack(self.maps)), self.left_out)


@dataclass(frozen=True)
class ModelView:
    """The recorded arrays of one pass over a text."""

    encoding: Encoding  # the tokens that the model read
    tokens: list[str]  # readable tokens: those of a byte-level vocabulary are decoded
    n_whole: int  # tokens of the whole text, read or not
    special: Array  # whether each token is special, boolean ``(n_tokens,)``
    trace: Trace  # one layer in full, and the residual stream between all layers
    attention: AttentionSummary  # the attention of all layers, summarised

    def states(self, token: int) -> Array:
        """Residual stream of a token before the first and after every layer: ``(n_layers + 1, d_model)``."""
        n_layers = len(self.attention.maps)
        names = ["embeddings.output", *(f"layers.{i}.output" for i in range(n_layers))]
        return np.stack([self.trace[name][token] for name in names])


def view_encoder(
    encoder: Encoder,
    text: str,
    layer: int,
    pair: str | None = None,
    max_tokens: int | None = None,
    without_special: bool = False,
) -> ModelView:
    """Run a text, or a pair, through the encoder and record ``layer`` in full."""
    whole = encoder.tokenizer.encode(text) if pair is None else encoder.read(text, pair, max_tokens)
    encoding = encoder.cut(whole, max_tokens)
    special = np.array([start == end for start, end in encoding.offsets])
    trace = Trace([*OUTLINE, f"layers.{layer}.*"])
    summary = AttentionSummary(special & without_special, special)
    encoder.inspect(encoding.ids, chain_tracers(trace, summary), type_ids=encoding.type_ids)
    tokens = encoder.tokenizer.readable_tokens(encoding)
    return ModelView(encoding, tokens, len(whole), special, trace, summary)


def view_decoder(
    decoder: Decoder, text: str, layer: int, max_tokens: int, without_first: bool = False
) -> ModelView:
    """Run the first ``max_tokens`` of a text through the decoder and record ``layer`` in full.

    The first token of a decoder is an attention sink (Xiao et al. 2024), as [CLS] and [SEP] are for encoders:
    it counts as special, and ``without_first`` leaves it out of the attention summary.
    """
    whole, read = decoder.tokenizer.encode(text), slice(max_tokens)
    encoding = Encoding(whole.ids[read], whole.tokens[read], whole.offsets[read])
    first = np.arange(len(encoding)) == 0
    trace = Trace([*OUTLINE, f"layers.{layer}.*"])
    summary = AttentionSummary(first & without_first, first)
    decoder.inspect(encoding.ids, chain_tracers(trace, summary))
    tokens = [decoder.token_text(number) for number in encoding.ids]
    return ModelView(encoding, tokens, len(whole), first, trace, summary)


def chain_tracers(first: Tracer, second: Tracer) -> Tracer:
    """Return a tracer that passes every array through two tracers."""
    return lambda name, value: second(name, first(name, value))
