"""The official model, run by PyTorch: a program of `engine.library_process`, for `engine.verify`.

It is sentence-transformers on transformers' models, and only transformers for decoders. Hooks on modules
record their outputs, and a function mode the arrays of attention: the inputs and outputs of its products and
of the softmax between.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from .layers.tracing import Array
from .library_process import Arrays, Values, answer_with

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


BATCHED_HEADS = 4  # dimensions of ``(1, n_heads, n_tokens, d_head)``
HEAD_NORMS = ("query_norm", "key_norm")
GATE_UP = "ffn.gate, ffn.hidden"  # one matrix of two stages
# The modules whose outputs are stages, by their paths: the first that a model has.
LAYERS = ("encoder.layer", "transformer.layer", "layers", "h")
OUTPUTS = {
    "embeddings.output": ("embeddings.LayerNorm", "embeddings.norm", "embed_tokens", "drop"),
    "norm": ("final_norm", "norm", "ln_f"),
    "pooled.pooler": ("pooler",),
}
LAYER_OUTPUTS = {
    "attention.query_norm": ("self_attn.q_norm",),
    "attention.key_norm": ("self_attn.k_norm",),
    "attention.output": (
        *("attention.output.dense", "attention.out_lin", "attention.attn.o", "attn.Wo", "self_attn.o_proj"),
        "attn.c_proj",
    ),
    "attention.norm": (
        *("attention.output.LayerNorm", "sa_layer_norm", "attention.LayerNorm", "attn_norm"),
        *("input_layernorm", "ln_1", "post_attention_layernorm"),
    ),
    "attention.post_norm": ("post_attention_layernorm",),
    "ffn.norm": ("mlp_norm", "pre_feedforward_layernorm", "post_attention_layernorm", "ln_2"),
    "ffn.gate": ("mlp.gate_proj",),
    GATE_UP: ("mlp.gate_up_proj", "mlp.Wi"),
    "ffn.hidden": ("intermediate.dense", "ffn.lin1", "mlp.up_proj", "mlp.c_fc"),
    "ffn.output": ("output.dense", "ffn.lin2", "mlp.down_proj", "mlp.Wo", "mlp.c_proj"),
    "ffn.post_norm": ("post_feedforward_layernorm",),
    "output": ("output.LayerNorm", "output_layer_norm", "post_mlp_layernorm", ""),
}


def answer(request: bytes) -> bytes:
    """Answer a request with the stages of a text."""
    return answer_with(stages_of, request)


def stages_of(request: Values) -> tuple[Values, Arrays]:
    """Run the text of a request, if it has one, through the model that it names, loaded once."""
    n_kv_heads = request["n_kv_heads"]
    if "max_tokens" not in request:
        decoder = load_decoder(request["folder"], request["gguf"])
        return {}, decoder_trace(*decoder, request["text"], n_kv_heads) if "text" in request else {}
    model = load_official(request["folder"], request["max_tokens"], request["d_model"], request["dtype"])
    if "text" not in request:
        return {}, {}
    return {}, official_trace(model, request["text"], n_kv_heads, request["pair"], request["limit"])


@lru_cache(maxsize=1)
def load_decoder(folder: str, gguf: str | None) -> tuple[Any, Any]:
    """Load a folder, or a GGUF file in it, with transformers in float32: model and tokenizer."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    file = {"gguf_file": gguf} if gguf else {}
    settings = {"attn_implementation": "eager", "dtype": torch.float32, **file}
    model = AutoModelForCausalLM.from_pretrained(folder, **settings).eval()
    return model, AutoTokenizer.from_pretrained(folder, **file)


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
    limit = max_tokens or model.max_seq_length
    features = model.tokenizer(text, pair, truncation=True, max_length=limit, return_tensors="pt")
    stages = {"ids": features["input_ids"][0].numpy()}
    with recorded(model[0].auto_model, n_kv_heads, stages):
        found = model[1](model[0](dict(features)))
    stages["pooled.mean"] = found["sentence_embedding"][0].numpy()
    return stages | {"normalized": model[2](found)["sentence_embedding"][0].numpy()}


def decoder_trace(model: Any, tokenizer: Any, text: str, n_kv_heads: int) -> dict[str, Array]:
    """Run one text through the official decoder; return its stages under the engine's names."""
    features = tokenizer(text, return_tensors="pt", return_token_type_ids=False)
    stages = {"ids": features["input_ids"][0].numpy()}
    with recorded(model.base_model, n_kv_heads, stages):
        logits = model(**features).logits
    return stages | {"logits": logits[0].numpy()}


@contextmanager
def recorded(transformer: Any, n_kv_heads: int, stages: dict[str, Array]) -> Iterator[None]:
    """Record the stages of the pass that is run in the block."""
    import torch

    tokens_first = transformer.config.model_type != "gemma3_text"  # where heads are normed
    products: list[
        Sequence[Array]
    ] = []  # of attention: (left, right, product); of softmax: (scores, weights)

    def keep(stage: str) -> Callable[..., None]:
        def hook(module: Any, inputs: Any, output: Any) -> None:
            array = (output[0] if isinstance(output, tuple) else output)[0].numpy()  # the batch has one text
            if stage.endswith(GATE_UP):
                prefix = stage.removesuffix(GATE_UP)
                stages.update(
                    zip((prefix + n for n in GATE_UP.split(", ")), np.split(array, 2, -1), strict=True)
                )
                return
            stages[stage] = array.swapaxes(0, 1) if stage.endswith(HEAD_NORMS) and tokens_first else array
            if stage.endswith("ffn.output"):
                stages[stage.replace("output", "activation")] = inputs[0][0].numpy()

        return hook

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
    parts = [("", transformer, OUTPUTS)]
    parts += [(f"layers.{number}.", layer, LAYER_OUTPUTS) for number, layer in enumerate(layers)]
    handles = []
    for prefix, module, outputs in parts:
        for stage, paths in outputs.items():
            found = next((each for path in paths if (each := submodule(module, path)) is not None), None)
            if found is not None:
                handles.append(found.register_forward_hook(keep(prefix + stage)))
    try:
        with torch.inference_mode(), AttentionReader():
            yield
    finally:
        for handle in handles:
            handle.remove()
    # GPT-2 with reorder_and_upcast_attn computes by other functions.
    for number in range(len(layers) if len(products) == 3 * len(layers) else 0):
        found = attention_stages(products[3 * number : 3 * number + 3], n_kv_heads)
        stages.update({f"layers.{number}.attention.{name}": array for name, array in found.items()})


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
