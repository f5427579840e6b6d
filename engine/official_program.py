"""The official model, run by PyTorch: a program of `engine.library_process`, for `engine.verify`.

It is sentence-transformers on transformers' BERT. Hooks on its modules record their outputs, and a function
mode records the inputs and outputs of the softmax in attention.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from .layers.tracing import Array
from .library_process import Arrays, Values, answer_with

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


def answer(request: bytes) -> bytes:
    """Answer a request with the stages of a text."""
    return answer_with(stages_of, request)


def stages_of(request: Values) -> tuple[Values, Arrays]:
    """Run the text of a request, if it has one, through the model that it names, loaded once."""
    model = load_official(request["folder"], request["max_tokens"], request["d_model"], request["dtype"])
    if "text" not in request:
        return {}, {}
    text, pair, limit = request["text"], request["pair"], request["limit"]
    return {}, official_trace(model, text, request["n_heads"], pair, limit)


@lru_cache(maxsize=1)
def load_official(folder: str, max_tokens: int, d_model: int, dtype: str) -> "SentenceTransformer":
    """Load a folder with sentence-transformers in a precision: mean pooling, then normalisation."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer import modules

    transformer = modules.Transformer(
        folder,
        max_seq_length=max_tokens,
        # Only the unfused implementation exposes the attention scores.
        model_kwargs={"attn_implementation": "eager", "dtype": getattr(torch, dtype)},
    )
    pooling = modules.Pooling(d_model, pooling_mode="mean")
    return SentenceTransformer(modules=[transformer, pooling, modules.Normalize()], device="cpu")


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

    def keep(stage: str) -> Callable[..., None]:
        def hook(module: Any, inputs: Any, output: Any) -> None:
            stages[stage] = output[0].numpy()  # the batch has one text

        return hook

    def keep_input(stage: str) -> Callable[..., None]:
        def hook(module: Any, inputs: Any) -> None:
            stages[stage] = inputs[0][0].numpy()

        return hook

    def keep_mean(module: Any, inputs: Any, output: Any) -> None:
        stages["pooled.mean"] = output["sentence_embedding"][0].numpy()

    class SoftmaxReader(torch.overrides.TorchFunctionMode):  # type: ignore[misc]
        """Records the input and output of every softmax."""

        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = func(*args, **(kwargs or {}))
            if func is torch.nn.functional.softmax:
                attention_calls.append((args[0][0].numpy(), result[0].numpy()))
            return result

    handles = [model[1].register_forward_hook(keep_mean)]
    outputs = {"embeddings.output": bert.embeddings.LayerNorm}
    for number, layer in enumerate(bert.encoder.layer):
        attention, prefix = layer.attention, f"layers.{number}"
        context = attention.output.dense.register_forward_pre_hook(keep_input(f"{prefix}.attention.context"))
        handles.append(context)
        outputs |= {
            f"{prefix}.attention.query": attention.self.query,
            f"{prefix}.attention.key": attention.self.key,
            f"{prefix}.attention.value": attention.self.value,
            f"{prefix}.attention.output": attention.output.dense,
            f"{prefix}.attention.norm": attention.output.LayerNorm,
            f"{prefix}.ffn.hidden": layer.intermediate.dense,
            f"{prefix}.ffn.activation": layer.intermediate,
            f"{prefix}.ffn.output": layer.output.dense,
            f"{prefix}.output": layer.output.LayerNorm,
        }
    if bert.pooler is not None:
        outputs["pooled.pooler"] = bert.pooler
    handles += [module.register_forward_hook(keep(stage)) for stage, module in outputs.items()]
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
        prefix = f"layers.{number}.attention"
        stages[f"{prefix}.scores"], stages[f"{prefix}.weights"] = scores, weights
        for name in ("query", "key", "value", "context"):
            stages[f"{prefix}.{name}"] = heads(stages[f"{prefix}.{name}"])
    return stages
