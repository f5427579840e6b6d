"""One forward pass, held as a page shows it: one layer whole, all layers in outline."""

from dataclasses import dataclass

import numpy as np

from engine.generation.decoder import Decoder
from engine.inspection.attention import AttentionSummary
from engine.layers.tracing import Array, Tracer
from engine.models.encoder import Encoder
from engine.tokenizers.encoding import Encoding
from engine.trace import Trace

OUTLINE = ("embeddings.*", "layers.*.output", "norm", "pooled.*", "normalized")


@dataclass(frozen=True)
class Look:
    """What one pass over a text left behind.

    Attributes
    ----------
    encoding
        What the model read.
    tokens
        Its tokens as a person reads them: those of a byte-level vocabulary decoded.
    n_whole
        How many tokens the whole text has, read or not.
    special
        Which of them stand for no text, boolean ``(n_tokens,)``.
    trace
        One layer whole, and the vectors between all layers.
    attention
        All layers' attention in outline.
    """

    encoding: Encoding
    tokens: list[str]
    n_whole: int
    special: Array
    trace: Trace
    attention: AttentionSummary

    def states(self, token: int) -> Array:
        """Return a token's vector before the first and after every layer: ``(n_layers + 1, d_model)``."""
        n_layers = len(self.attention.maps)
        names = ["embeddings.output", *(f"layers.{i}.output" for i in range(n_layers))]
        return np.stack([self.trace[name][token] for name in names])


def look_into_encoder(
    encoder: Encoder,
    text: str,
    layer: int,
    pair: str | None = None,
    max_tokens: int | None = None,
    without_special: bool = False,
) -> Look:
    """Run a text, or a pair, through the encoder; keep ``layer`` whole.

    ``without_special`` leaves [CLS] and [SEP] out of the attention's outline.
    """
    whole = encoder.tokenizer.encode(text) if pair is None else encoder.read(text, pair, max_tokens)
    encoding = encoder.cut(whole, max_tokens)
    special = np.array([start == end for start, end in encoding.offsets])
    trace = Trace([*OUTLINE, f"layers.{layer}.*"])
    summary = AttentionSummary(special & without_special, special)
    encoder.inspect(encoding.ids, both(trace, summary), type_ids=encoding.type_ids)
    return Look(encoding, encoding.tokens, len(whole), special, trace, summary)


def look_into_decoder(
    decoder: Decoder, text: str, layer: int, max_tokens: int, without_first: bool = False
) -> Look:
    """Run the first ``max_tokens`` of a text through the decoder; keep ``layer`` whole.

    Decoders park attention they have no use for on the first token, as encoders do on [CLS] and
    [SEP] (Xiao et al. 2024); it counts as special here, and ``without_first`` leaves it out.
    """
    whole, read = decoder.tokenizer.encode(text), slice(max_tokens)
    encoding = Encoding(whole.ids[read], whole.tokens[read], whole.offsets[read])
    first = np.arange(len(encoding)) == 0
    trace = Trace([*OUTLINE, f"layers.{layer}.*"])
    summary = AttentionSummary(first & without_first, first)
    decoder.inspect(encoding.ids, both(trace, summary))
    tokens = [decoder.token_text(number) for number in encoding.ids]
    return Look(encoding, tokens, len(whole), first, trace, summary)


def both(first: Tracer, second: Tracer) -> Tracer:
    """Return a tracer that shows every array to two."""
    return lambda name, value: second(name, first(name, value))
