"""Compare every stage of the hand-written encoder with the official model.

The official side is sentence-transformers on transformers' BERT. Hooks on its modules record their outputs,
and a function mode records the inputs and outputs of the softmax in attention.
"""

import re
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numpy as np

from engine.errors import ModelUnavailableError
from engine.kernels.primitives import prepare_compiled
from engine.layers.tracing import Array
from engine.models.encoder import Encoder, check_bert, check_float32
from engine.weights.fetch import model_path
from engine.weights.memory import require_memory

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

P = ParamSpec("P")
R = TypeVar("R")

DEFAULT_TEXTS = (
    "Open-source LLMs rock.",
    "The cat sat unhappily on the mat — naïve, perhaps, but 東京 was far away 🙂.",
    "Retrieval fails quietly: a passage is cut at the token limit, and nobody is told. " * 20,
)
STAGE_TOLERANCE = {"float32": 1e-5, "float64": 1e-8}
NORM_TOLERANCE = 1.9e-6
VECTOR_TOLERANCE = 1e-6
COSINE_TOLERANCE = 1e-6
LIBRARY_BYTES = 600_000_000  # of PyTorch, sentence-transformers and the model
# The vector of `Encoder.encode`, by compiled kernels where available; all other stages are traced.
ENCODED = "encode"


@dataclass(frozen=True)
class StageCheck:
    """Difference of one stage from the official model's, over all texts.

    Attributes
    ----------
    stage
        The name of the stage in a trace.
    end_to_end
        Largest absolute difference when both sides run from the text on: it includes the rounding of
        all earlier stages.
    alone
        Largest difference when the stage receives the official model's own input, relative to values
        above 1. Float32 numbers near 30 lie 1.9e-6 apart, and those near
        190, which some feed-forward outputs reach, 1.5e-5.
    tolerance
        The largest passing ``decisive``.
    decisive
        The figure compared with the tolerance: ``alone`` for the stages of a float32 model,
        ``end_to_end`` for its vectors and for everything in float64.
    """

    stage: str
    end_to_end: float
    alone: float
    tolerance: float
    decisive: float

    @property
    def passed(self) -> bool:
        """Whether the difference is within the tolerance (NaN is not)."""
        return self.decisive <= self.tolerance


def verify_encoder(
    encoder: Encoder,
    texts: Sequence[str] = DEFAULT_TEXTS,
    official: "SentenceTransformer | None" = None,
) -> list[StageCheck]:
    """Compare every stage on some texts with the official model in the same precision.

    Parameters
    ----------
    encoder
        A float32 or float64 encoder.
    texts
        The texts, compared one by one.
    official
        The `official_model` of this encoder; None to load it.

    Returns
    -------
    list of StageCheck
        One for each stage, in the order of the forward pass. Tolerances in float32: 1e-5, for layer norms
        1.9e-6, for the final vector, traced (``normalized``) and from ``encode``, 1e-6; in
        float64: 1e-8. ``pooled.pooler.cosine`` is one minus the cosine of the two poolers' outputs
        and may be 1e-6.

    Raises
    ------
    ModelUnavailableError
        sentence-transformers is not installed.
    InputError
        The encoder is of another family than BERT.
    """
    check_bert(encoder, "the comparison of every stage")
    check_float32(encoder, "the comparison of every stage")
    official = official_model(encoder) if official is None else official
    if encoder.compiled:
        prepare_compiled().join()  # compare the kernels that embed documents
    dtype = str(encoder.weights.token_table.dtype)
    end_to_end: dict[str, float] = {}
    alone: dict[str, float] = {}
    for text in texts:
        theirs = official_trace(official, text, encoder.config.n_heads)
        ours = encoder.trace(text, "mean")
        for stage, array in ours.items():
            if stage in theirs:
                raise_to(end_to_end, stage, np.abs(difference(array, theirs[stage])))
        raise_to(end_to_end, ENCODED, np.abs(encoder.encode([text], "mean")[0] - theirs["normalized"]))
        if "pooled.pooler" in theirs:
            gap = 1 - cosine(ours["pooled.pooler"], theirs["pooled.pooler"])
            raise_to(end_to_end, "pooled.pooler.cosine", np.abs(gap))

        def compare(stage: str, array: Array, theirs: dict[str, Array] = theirs) -> Array:
            """Record the difference of the stage, then continue with the official model's value."""
            if stage not in theirs:
                return array
            scale = np.maximum(1, np.abs(theirs[stage]))
            raise_to(alone, stage, np.abs(difference(array, theirs[stage])) / scale)
            return theirs[stage]

        encoder.inspect(ours["ids"].tolist(), compare, "mean")
    return [
        StageCheck(
            stage=stage,
            end_to_end=value,
            alone=alone.get(stage, value),
            tolerance=tolerance(stage, dtype),
            decisive=value if is_vector(stage) or dtype == "float64" else alone.get(stage, value),
        )
        for stage, value in end_to_end.items()
    ]


def raise_to(largest: dict[str, float], stage: str, differences: Array) -> None:
    """Update the largest difference of a stage."""
    largest[stage] = max(largest.get(stage, 0.0), float(np.max(differences)))


def difference(ours: Array, theirs: Array) -> Array:
    """Return the element-wise difference; infinite where the shapes differ."""
    return ours - theirs if ours.shape == theirs.shape else np.array(np.inf)


def is_vector(stage: str) -> bool:
    """Whether a stage is a vector of the whole text, after the last layer."""
    return stage.startswith("pooled.") or stage in ("normalized", ENCODED)


def is_norm(stage: str) -> bool:
    """Whether a stage is the output of a layer norm."""
    return (
        stage == "embeddings.output"
        or re.fullmatch(r"layers\.\d+\.(attention\.norm|output)", stage) is not None
    )


def tolerance(stage: str, dtype: str) -> float:
    """Return the largest difference allowed for a stage in a precision."""
    if stage.endswith(".cosine"):
        return COSINE_TOLERANCE
    if stage in ("normalized", ENCODED):
        return min(VECTOR_TOLERANCE, STAGE_TOLERANCE[dtype])
    return min(NORM_TOLERANCE, STAGE_TOLERANCE[dtype]) if is_norm(stage) else STAGE_TOLERANCE[dtype]


def cosine(a: Array, b: Array) -> float:
    """Cosine of two vectors, in float64 so that the check adds no rounding of its own."""
    a, b = a.astype(np.float64), b.astype(np.float64)
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def official_model(encoder: Encoder) -> "SentenceTransformer":
    """Load the encoder's files with sentence-transformers: mean pooling, then normalisation.

    Raises
    ------
    ModelUnavailableError
        sentence-transformers is not installed.
    MemoryLimitError
        PyTorch is not loaded yet, and would not fit into the memory that is free.
    """
    if "torch" not in sys.modules:
        require_memory(LIBRARY_BYTES, "the official model, run by PyTorch,")
    try:
        import torch
        from sentence_transformers import SentenceTransformer
        from sentence_transformers.sentence_transformer import modules
    except ImportError as error:
        raise ModelUnavailableError(
            "the official model needs sentence-transformers: pip install -r requirements.txt"
        ) from error
    folder: Path = model_path(encoder.name)
    double = encoder.weights.token_table.dtype == np.float64
    transformer = modules.Transformer(
        str(folder),
        max_seq_length=encoder.max_tokens,
        # Only the unfused implementation exposes the attention scores.
        model_kwargs={"attn_implementation": "eager", "dtype": torch.float64 if double else torch.float32},
    )
    pooling = modules.Pooling(encoder.config.d_model, pooling_mode="mean")
    return SentenceTransformer(modules=[transformer, pooling, modules.Normalize()], device="cpu")


def one_at_a_time(function: Callable[P, R]) -> Callable[P, R]:
    """Allow one thread at a time in a function: hooks of another would write into its results."""
    lock = threading.Lock()

    @wraps(function)
    def locked(*args: P.args, **kwargs: P.kwargs) -> R:
        with lock:
            return function(*args, **kwargs)

    return locked


@one_at_a_time
def official_trace(
    model: "SentenceTransformer",
    text: str,
    n_heads: int,
    pair: str | None = None,
    max_tokens: int | None = None,
) -> dict[str, Array]:
    """Run one text, or a pair, through the official model; return its stages under the engine's names.

    ``max_tokens`` defaults to the limit that the model was loaded with.
    """
    import torch

    bert: Any = model[0].auto_model
    stages: dict[str, Array] = {}
    attention_calls: list[tuple[Array, Array]] = []

    def heads(x: Array) -> Array:
        """``(n_tokens, d_model) -> (n_heads, n_tokens, d_head)``."""
        return x.reshape(len(x), n_heads, -1).swapaxes(0, 1)

    def plain(x: Array) -> Array:
        return x

    def keep(stage: str, shape: Callable[[Array], Array] = plain) -> Callable[..., None]:
        def hook(module: Any, inputs: Any, output: Any) -> None:
            stages[stage] = shape(output[0].numpy())  # the batch has one text

        return hook

    def keep_input(stage: str, shape: Callable[[Array], Array]) -> Callable[..., None]:
        def hook(module: Any, inputs: Any) -> None:
            stages[stage] = shape(inputs[0][0].numpy())

        return hook

    class SoftmaxReader(torch.overrides.TorchFunctionMode):  # type: ignore[misc]
        """Records the input and output of every softmax."""

        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = func(*args, **(kwargs or {}))
            if func is torch.nn.functional.softmax:
                attention_calls.append((args[0][0].numpy(), result[0].numpy()))
            return result

    handles = [bert.embeddings.LayerNorm.register_forward_hook(keep("embeddings.output"))]
    for number, layer in enumerate(bert.encoder.layer):
        prefix = f"layers.{number}"
        attention = layer.attention
        handles += [
            attention.self.query.register_forward_hook(keep(f"{prefix}.attention.query", heads)),
            attention.self.key.register_forward_hook(keep(f"{prefix}.attention.key", heads)),
            attention.self.value.register_forward_hook(keep(f"{prefix}.attention.value", heads)),
            attention.output.dense.register_forward_pre_hook(
                keep_input(f"{prefix}.attention.context", heads)
            ),
            attention.output.dense.register_forward_hook(keep(f"{prefix}.attention.output")),
            attention.output.LayerNorm.register_forward_hook(keep(f"{prefix}.attention.norm")),
            layer.intermediate.dense.register_forward_hook(keep(f"{prefix}.ffn.hidden")),
            layer.intermediate.register_forward_hook(keep(f"{prefix}.ffn.activation")),
            layer.output.dense.register_forward_hook(keep(f"{prefix}.ffn.output")),
            layer.output.LayerNorm.register_forward_hook(keep(f"{prefix}.output")),
        ]
    if bert.pooler is not None:
        handles.append(bert.pooler.register_forward_hook(keep("pooled.pooler")))
    handles.append(
        model[1].register_forward_hook(
            lambda module, inputs, output: stages.update(
                {"pooled.mean": output["sentence_embedding"][0].numpy()}
            )
        )
    )
    try:
        with torch.inference_mode(), SoftmaxReader():
            limit = max_tokens or model.max_seq_length
            features = model.tokenizer(text, pair, truncation=True, max_length=limit, return_tensors="pt")
            stages["ids"] = features["input_ids"][0].numpy()
            stages["normalized"] = model(dict(features))["sentence_embedding"][0].numpy()
    finally:
        for handle in handles:
            handle.remove()
    for number, (scores, weights) in enumerate(attention_calls):
        stages[f"layers.{number}.attention.scores"] = scores
        stages[f"layers.{number}.attention.weights"] = weights
    return stages
