"""One forward pass for display: one layer in full, all layers in outline."""

from dataclasses import dataclass

import numpy as np

from engine.generation.decoder import Decoder
from engine.inspection.model.attention import AttentionSummary
from engine.layers.tracing import Array, Tracer
from engine.models.encoder import Encoder
from engine.tokenizers.encoding import Encoding
from engine.trace import Trace

OUTLINE = ("embeddings.*", "layers.*.output", "norm", "pooled.*", "normalized")


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
    """Run a text, or a pair, through the encoder and record ``layer`` in full.

    ``without_special`` leaves special tokens, such as [CLS] and [SEP], out of the attention summary.
    """
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
