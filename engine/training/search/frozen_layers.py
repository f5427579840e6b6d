"""Outputs of an encoder's frozen layers: computed once, and the input of the layers above."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ...errors import InputError
from ...layers.norm import l2_normalize
from ...layers.tracing import Array
from ...models.bert import EncoderWeights, encoder_forward, encoder_layer
from ...models.encoder import Encoder, check_bert, check_float32
from ...models.parallel import row_spans, run_packs
from ...weights.fetch import Progress

PACK_TOKENS = 1024  # in one pack, which runs on one core


@dataclass(frozen=True)
class FrozenStates:
    """Hidden states of texts after the frozen layers, concatenated along the token axis."""

    hidden: Array = field(repr=False)  # float16 ``(n_tokens, d_model)``, to halve the memory
    spans: tuple[slice, ...] = field(repr=False)  # the texts' rows

    def states_of(self, numbers: Sequence[int], dtype: np.dtype) -> tuple[Array, list[slice]]:
        """Return the concatenated hidden states of some texts, and the rows of each."""
        parts = [self.hidden[self.spans[number]] for number in numbers]
        return np.concatenate(parts).astype(dtype), row_spans([len(part) for part in parts])


def run_frozen_layers(
    encoder: Encoder,
    texts: Sequence[str],
    n_last: int,
    max_tokens: int | None = None,
    on_progress: Progress | None = None,
) -> FrozenStates:
    """Run texts through all layers but the last ``n_last``, once."""
    check_bert(encoder, "fine-tuning")
    check_float32(encoder, "fine-tuning")
    n_layers = encoder.config.n_layers
    if not 1 <= n_last <= n_layers or encoder.config.norm_first:
        raise InputError(f"the last {n_last} of {n_layers} layers cannot be trained: take 1 to {n_layers}")
    limit = encoder.token_limit(max_tokens)
    sequences = [encoder.truncate(ids, limit) for ids in encoder.tokenizer.ids_batch(list(texts))]
    weights = replace(encoder.weights, layers=encoder.weights.layers[:-n_last])
    spans = row_spans([len(ids) for ids in sequences])
    # float16 keeps three digits, enough for training; the tuned encoder itself computes in full precision.
    hidden = np.empty((spans[-1].stop, encoder.config.d_model), np.float16)

    def run(batch: slice) -> None:
        found = encoder_forward(sequences[batch], weights, encoder.config, ops=encoder.ops)
        hidden[spans[batch.start].start : spans[batch.stop - 1].stop] = np.concatenate(found)

    run_packs(run, sequences, PACK_TOKENS, on_progress)
    return FrozenStates(hidden, tuple(spans))


def vectors_from_frozen(
    frozen: FrozenStates, encoder: Encoder, weights: EncoderWeights, n_last: int
) -> Array:
    """Run the last layers on frozen states: mean pooling, rows of length 1, ``(n_texts, d_model)``."""
    vectors = np.empty((len(frozen.spans), encoder.config.d_model), encoder.dtype)

    def run(batch: slice) -> None:
        hidden, spans = frozen.states_of(range(batch.start, batch.stop), encoder.dtype)
        for layer in weights.layers[-n_last:]:
            hidden = encoder_layer(hidden, layer, encoder.config, spans, encoder.ops, lambda _, array: array)
        vectors[batch] = [hidden[span].mean(axis=0) for span in spans]

    lengths = [range(span.stop - span.start) for span in frozen.spans]
    run_packs(run, lengths, PACK_TOKENS)
    return l2_normalize(vectors)
