"""The error that rounding the matrices of an encoder leaves in every stage of its forward pass."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...layers.norm import SHORTEST, l2_normalize
from ...layers.tracing import Array
from ...models.encoder import Encoder


@dataclass(frozen=True)
class StageError:
    """The difference of a stage from float32."""

    stage: str  # the name in a trace
    relative: float  # ``|x' - x| / |x|``, with the Euclidean norm over all numbers of the stage
    # mean over the tokens of the cosine between a token's two vectors; of a single vector its cosine
    cosine: float


def stage_errors(
    encoder: Encoder, precision: str, text: str, pair: str | None = None, max_tokens: int | None = None
) -> list[StageError]:
    """Run a text, or a pair, in float32 and in another precision, and compare their stages.

    Each pass goes on with its own numbers, so that errors add up, as they do in a search. The stages are the
    embeddings, the outputs of attention and feed-forward in each layer, the sum of both with the layer's
    input, and the text's vector before and after it is scaled to length 1. The encoder is in float32;
    parameters and errors are those of `Encoder.with_precision` and `Encoder.trace`.
    """
    keep = ["embeddings.output", "layers.*.output", f"pooled.{encoder.pooling}", "normalized"]
    exact, rounded = (
        each.trace(text, None, max_tokens, pair, keep)
        for each in (encoder, encoder.with_precision(precision))
    )
    return [
        StageError(stage, relative_error(x, rounded[stage]), mean_cosine(x, rounded[stage]))
        for stage, x in exact.items()
    ]


def relative_error(x: Array, rounded: Array) -> float:
    """``|x' - x| / |x|``, 0 where both are 0."""
    x, rounded = x.astype(np.float64), rounded.astype(np.float64)
    return float(np.linalg.norm(rounded - x) / np.maximum(np.linalg.norm(x), SHORTEST))


def mean_cosine(x: Array, rounded: Array) -> float:
    """Mean cosine of corresponding rows: ``(n_tokens, d_model)`` twice, or ``(d_model,)`` twice."""
    units = l2_normalize(x.astype(np.float64)), l2_normalize(rounded.astype(np.float64))
    return float((units[0] * units[1]).sum(axis=-1).mean())


def largest_in_layers(errors: Sequence[StageError]) -> StageError:
    """Return the stage of the layers with the largest relative error."""
    return max((each for each in errors if each.stage.startswith("layers.")), key=lambda one: one.relative)
