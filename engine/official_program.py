"""The official model, run by PyTorch: a program of `engine.library_process`, for `engine.verify`.

It is sentence-transformers on transformers' models. Hooks on modules record their outputs, and a function
mode the arrays of attention: the inputs and outputs of its products and of the softmax between.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from .layers.tracing import Array
from .library_process import Arrays, Values, answer_with

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


BATCHED_HEADS = 4  # dimensions of ``(1, n_heads, n_tokens, d_head)``
HEAD_NORMS = ("query_norm", "key_norm")
# The modules whose outputs are stages, by their paths: the first that a model has.
LAYERS = ("encoder.layer", "transformer.layer", "layers")
OUTPUTS = {
    "embeddings.output": ("embeddings.LayerNorm", "embeddings.norm", "embed_tokens"),
    "norm": ("final_norm", "norm"),
    "pooled.pooler": ("pooler",),
}
LAYER_OUTPUTS = {
    "attention.query_norm": ("self_attn.q_norm",),
    "attention.key_norm": ("self_attn.k_norm",),
    "attention.output": (
        *("attention.output.dense", "attention.out_lin", "attention.attn.o", "attn.Wo", "self_attn.o_proj"),
    ),
    "attention.norm": (
        *("attention.output.LayerNorm", "sa_layer_norm", "attention.LayerNorm", "attn_norm"),
        *("input_layernorm", "post_attention_layernorm"),
    ),
    "attention.post_norm": ("post_attention_layernorm",),
    "ffn.norm": ("mlp_norm", "pre_feedforward_layernorm", "post_attention_layernorm"),
    "ffn.gate": ("mlp.gate_proj",),
    "ffn.hidden": ("intermediate.dense", "ffn.lin1", "mlp.up_proj"),
    "ffn.output": ("output.dense", "ffn.lin2", "mlp.down_proj", "mlp.Wo"),
    "ffn.post_norm": ("post_feedforward_layernorm",),
    "output": ("output.LayerNorm", "output_layer_norm", "post_mlp_layernorm", ""),
}


def answer(request: bytes) -> bytes:
    """Answer a request with the stages of a text."""
    return answer_with(stages_of, request)


def stages_of(request: Values) -> tuple[Values, Arrays]:
    """Run the text of a request, if it has one, through the model that it names, loaded once."""
    model = load_official(request["folder"], request["max_tokens"], request["d_model"], request["dtype"])
    if "text" not in request:
        return {}, {}
    text, pair, limit = request["text"], request["pair"], request["limit"]
    return {}, official_trace(model, text, request["n_kv_heads"], pair, limit)


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
    n_kv_heads: int,
    pair: str | None = None,
    max_tokens: int | None = None,
) -> dict[str, Array]:
    """Run one text, or a pair, through the official model; return its stages under the engine's names.

    ``max_tokens`` defaults to the limit that the model was loaded with.
    """
    import torch

    transformer: Any = model[0].auto_model
    tokens_first = transformer.config.model_type != "gemma3_text"  # where heads are normed
    stages: dict[str, Array] = {}
    products: list[
        Sequence[Array]
    ] = []  # of attention: (left, right, product); of softmax: (scores, weights)

    def keep(stage: str) -> Callable[..., None]:
        def hook(module: Any, inputs: Any, output: Any) -> None:
            array = (output[0] if isinstance(output, tuple) else output)[0].numpy()  # the batch has one text
            stages[stage] = array.swapaxes(0, 1) if stage.endswith(HEAD_NORMS) and tokens_first else array
            if stage.endswith("ffn.output"):
                stages[stage.replace("output", "activation")] = inputs[0][0].numpy()

        return hook

    def keep_mean(module: Any, inputs: Any, output: Any) -> None:
        stages["pooled.mean"] = output["sentence_embedding"][0].numpy()

    class AttentionReader(torch.overrides.TorchFunctionMode):  # type: ignore[misc]
        """Records the products of attention, and the softmax between."""

        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = func(*args, **(kwargs or {}))
            if func is torch.nn.functional.softmax and args[0].dim() == BATCHED_HEADS:
                products.append((args[0][0].numpy(), result[0].numpy()))
            if func is torch.matmul and args[0].dim() == BATCHED_HEADS:
                products.append(tuple(each[0].numpy() for each in (*args[:2], result)))
            return result

    layers = next(found for path in LAYERS if (found := submodule(transformer, path)) is not None)
    handles = [model[1].register_forward_hook(keep_mean)]
    parts = [("", transformer, OUTPUTS)]
    parts += [(f"layers.{number}.", layer, LAYER_OUTPUTS) for number, layer in enumerate(layers)]
    for prefix, module, outputs in parts:
        for stage, paths in outputs.items():
            found = next((each for path in paths if (each := submodule(module, path)) is not None), None)
            if found is not None:
                handles.append(found.register_forward_hook(keep(prefix + stage)))
    try:
        with torch.inference_mode(), AttentionReader():
            limit = max_tokens or model.max_seq_length
            features = model.tokenizer(text, pair, truncation=True, max_length=limit, return_tensors="pt")
            stages["ids"] = features["input_ids"][0].numpy()
            stages["normalized"] = model(dict(features))["sentence_embedding"][0].numpy()
    finally:
        for handle in handles:
            handle.remove()
    for number in range(len(layers)):
        found = attention_stages(products[3 * number : 3 * number + 3], n_kv_heads)
        stages |= {f"layers.{number}.attention.{name}": array for name, array in found.items()}
    return stages


def submodule(module: Any, path: str) -> Any:
    """Return the module at a path within another, None if there is none."""
    for name in path.split(".") if path else []:
        module = getattr(module, name, None)
    return module


def attention_stages(recorded: Sequence[Sequence[Array]], n_kv_heads: int) -> Mapping[str, Array]:
    """Name the arrays of one layer's attention, ``Q K^T``, the softmax, and the weights times ``V``."""
    (query, key, product), (scores, weights), (_, value, context) = recorded
    group = len(query) // n_kv_heads  # query heads that share a key head, which is repeated for each
    stages = {"query": query, "key": key.swapaxes(-2, -1)[::group], "value": value[::group]}
    stages |= {"weights": weights, "context": context}
    # A mask or a bias may have been added; the engine's scores are those before.
    if np.allclose(scores, product / np.sqrt(query.shape[-1]), rtol=1e-5, atol=1e-5):
        stages["scores"] = scores
    return stages
