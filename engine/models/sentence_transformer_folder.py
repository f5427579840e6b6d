"""A folder of sentence-transformers besides the weights: its modules, prompts and token limit.

Versions 2 to 6 of the library write it; the names of files and keys changed. A folder without modules.json
is a plain model of transformers. Nothing in a folder is ever run: it is read as data, or refused.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import ModelFileError
from ..layers.linear import Linear
from ..layers.tracing import Array
from ..weights.catalog import DEFAULT_ENCODER
from ..weights.fetch import cache_folder
from ..weights.mapped import map_safetensors
from ..weights.model_cards import model_card
from ..weights.sources import MODULES
from ..weights.tensors import (
    MAX_JSON,
    TensorReader,
    config_size,
    parse_json,
    read_json,
    read_optional,
    read_safetensors,
    read_text,
)
from .decoders import shards
from .embedding_head import DENSE_ACTIVATIONS, SIMILARITIES, Dense, EmbeddingHead, Norm, Normalize, Step
from .prompts import Prompts

LIBRARY = "sentence_transformers."
WEIGHTS = "model.safetensors"
SETTINGS_FILE = "config_sentence_transformers.json"
READ_MODULES = ("Transformer", "Pooling", "Dense", "LayerNorm", "Dropout", "Normalize")
# In the order in which vectors are concatenated; the keys are those of versions before 5.
POOLING_KEYS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
POOLING_MODES = tuple(POOLING_KEYS.values())
TRANSFORMER_FILES = [
    f"sentence_{name}_config.json"
    for name in ("bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet")
]
# Settings of the Transformer module that change its output, with the only values that are read.
PLAIN_SETTINGS: dict[str, tuple[Any, ...] | None] = {
    "transformer_task": (None, "feature-extraction"),
    "module_output_name": (None, "token_embeddings"),
    "processing_kwargs": (None, {}),
    "query_length": (None,),
    "document_length": (None,),
    "query_expansion": (None,),
}


@dataclass(frozen=True)
class SentenceTransformerFolder:
    """The settings that the files state besides the weights."""

    model: Path  # the folder of config.json and the weights
    head: EmbeddingHead  # from token vectors to a text's vector
    prompts: Prompts
    settings: dict[str, Any]  # of the Transformer module


def read_folder(folder: Path, dtype: np.dtype) -> SentenceTransformerFolder:
    """Read the files of a model's folder, in the precision ``dtype``."""
    settings, prompts = read_settings(folder)
    kind = settings.get("model_type", "SentenceTransformer")
    if kind != "SentenceTransformer":
        raise ModelFileError(
            f"{folder} is a {kind}, which does not give one vector a text: give a SentenceTransformer"
        )
    modules = read_modules(folder)
    model = folder / modules[0][1] if modules else folder
    transformer = read_transformer_settings(model)
    config = read_json(model / "config.json")
    card = model_card(folder, config)
    if modules:
        head = read_head(folder, modules[1:], dtype, settings)
    elif card is not None:
        head = EmbeddingHead((card.pooling,), normalize=card.normalize)
    else:
        head = EmbeddingHead((default_pooling(config, folder),))
    head = replace(head, similarity=read_similarity(settings, head.normalize, folder))
    if not prompts.named and card is not None:
        prompts = Prompts(card.prompts)
    return SentenceTransformerFolder(model, head, prompts, transformer)


def read_modules(folder: Path) -> list[tuple[str, str]]:
    """Return kind and relative path of every module of an embedding model, [] without modules.json."""
    modules = list_modules(folder, READ_MODULES)
    kinds = [kind for kind, _ in modules]
    is_read = kinds[:2] == ["Transformer", "Pooling"] and set(kinds[2:]) <= set(READ_MODULES[2:])
    if (folder / MODULES).is_file() and not is_read:
        raise ModelFileError(
            f"{folder / MODULES} has the modules {', '.join(kinds) or 'none'}: only Transformer, Pooling, "
            "then Dense, LayerNorm, Dropout and Normalize are read"
        )
    return modules


def list_modules(
    folder: Path, known: Sequence[str], libraries: tuple[str, ...] = (LIBRARY,)
) -> list[tuple[str, str]]:
    """Return kind, one of ``known``, and relative path of every module of modules.json, if there is one."""
    path = folder / MODULES
    if not path.is_file():
        return []
    try:
        content = parse_json(path, read_text(path, MAX_JSON))
        entries = [(str(entry["type"]), str(entry["path"])) for entry in content]
    except (LookupError, TypeError) as error:
        raise ModelFileError(f"{path} is no list of modules ({error!r}): download it again") from error
    for _, place in entries:
        if Path(place).is_absolute() or ".." in Path(place).parts:
            raise ModelFileError(f"{path} has a module in {place!r}, outside the folder: download it again")
    return [(module_kind(name, path, known, libraries), place) for name, place in entries]


def module_kind(name: str, path: Path, known: Sequence[str], libraries: tuple[str, ...]) -> str:
    """Return the class of a module; raise `ModelFileError` for one that is not read."""
    kind = name.rpartition(".")[2]
    if not name.startswith(libraries):
        raise ModelFileError(
            f"{path} has the module {name!r}, code of its own, which is never run: give a model of the "
            f"library's modules {', '.join(known)}"
        )
    if kind not in known:
        raise ModelFileError(f"{path} has the module {kind}: only {', '.join(known)} are read")
    return kind


def read_transformer_settings(model: Path, **others: tuple[Any, ...] | None) -> dict[str, Any]:
    """Read the settings of the Transformer module; ``others`` are values that are read, None for any."""
    path = next((model / name for name in TRANSFORMER_FILES if (model / name).is_file()), None)
    settings = {} if path is None else read_json(path)
    for key, values in (PLAIN_SETTINGS | others).items():
        if values is not None and settings.get(key) not in values:
            raise ModelFileError(
                f"{path} sets {key} to {settings[key]!r}, which is not read: use a model without it"
            )
    if not set(settings.get("modality_config") or {"text": {}}) <= {"text"}:
        raise ModelFileError(
            f"{path} reads {', '.join(settings['modality_config'])}: only models of plain text are read"
        )
    return settings


def read_max_tokens(model: Path, settings: Mapping[str, Any]) -> int | None:
    """Return the token limit of the Transformer module, or of the tokenizer; None if neither has one."""
    if settings.get("max_seq_length") is not None:
        return config_size(settings, "max_seq_length", most=sys.maxsize)
    limit = read_optional(model / "tokenizer_config.json").get("model_max_length")
    # transformers writes 1e30 for no limit.
    return int(limit) if isinstance(limit, int | float) and 0 < limit < 1e9 else None


def default_pooling(config: Mapping[str, Any], folder: Path) -> str:
    """Return the pooling of a folder without modules: the last token of a causal model, else the mean."""
    architecture = (config.get("architectures") or [""])[0]
    if architecture.endswith("ForSequenceClassification"):
        raise ModelFileError(
            f"{folder} holds a {architecture}, a classifier or cross-encoder, whose vectors are not made for "
            f"search: give a SentenceTransformer, or this one as the reranker"
        )
    return "lasttoken" if architecture.endswith("ForCausalLM") and config.get("is_causal", True) else "mean"


def read_settings(folder: Path) -> tuple[dict[str, Any], Prompts]:
    """Read the settings of a folder, {} if it states none, and the prompts among them."""
    settings = read_optional(folder / SETTINGS_FILE)
    return settings, read_prompts(settings, folder)


def read_prompts(settings: Mapping[str, Any], folder: Path) -> Prompts:
    """Read the prompts; empty ones, which the library writes where there is none, are left out."""
    named, default = settings.get("prompts") or {}, settings.get("default_prompt_name")
    if not isinstance(named, dict) or not all(isinstance(text, str | None) for text in named.values()):
        raise ModelFileError(f"{folder}: prompts is {named!r}, not texts by name: download it again")
    if default is not None and default not in named:
        raise ModelFileError(f"{folder}: default_prompt_name is {default!r}, which is none of its prompts")
    named = {name: text for name, text in named.items() if text}
    return Prompts(named, default if default in named else None)


def read_similarity(settings: Mapping[str, Any], normalize: bool, folder: Path) -> str:
    """Return the measure by which the model's files compare, "cosine" where that orders alike."""
    name = settings.get("similarity_fn_name") or "cosine"
    if name not in SIMILARITIES:
        raise ModelFileError(f"{folder}: similarity_fn_name is {name!r}, none of {', '.join(SIMILARITIES)}")
    return "cosine" if normalize and name in ("dot", "euclidean") else str(name)


def read_head(
    folder: Path, modules: Sequence[tuple[str, str]], dtype: np.dtype, settings: Mapping[str, Any]
) -> EmbeddingHead:
    """Read Pooling and the modules behind it."""
    poolings, include_prompt = read_pooling(folder / modules[0][1])
    steps = [step for kind, place in modules[1:] for step in read_step(kind, folder / place, dtype)]
    normalize = bool(steps) and isinstance(steps[-1], Normalize)
    dimensions = settings.get("truncate_dim")
    return EmbeddingHead(
        poolings,
        tuple(steps[:-1] if normalize else steps),
        normalize,
        include_prompt,
        None if dimensions is None else config_size(settings, "truncate_dim"),
    )


def read_step(kind: str, folder: Path, dtype: np.dtype) -> list[Step]:
    """Read a module behind the pooling; there is none of Dropout, which changes only training."""
    if kind == "Dense":
        return [read_dense(folder, dtype)]
    if kind == "LayerNorm":
        width = config_size(read_json(folder / "config.json"), "dimension")
        return [Norm(TensorReader(read_safetensors(folder / WEIGHTS), dtype).norm("norm", width))]
    return [Normalize()] if kind == "Normalize" else []


def read_pooling(folder: Path) -> tuple[tuple[str, ...], bool]:
    """Return the strategies of a Pooling module, and whether it pools the tokens of a prompt."""
    settings = read_json(folder / "config.json")
    if "pooling_mode" in settings:
        modes = settings["pooling_mode"]
        modes = [modes] if isinstance(modes, str) else modes
    else:
        modes = [mode for key, mode in POOLING_KEYS.items() if settings.get(key)] or ["mean"]
    if not isinstance(modes, list) or not modes or not all(mode in POOLING_MODES for mode in modes):
        raise ModelFileError(f"{folder} pools by {modes!r}: only {', '.join(POOLING_MODES)} are read")
    return tuple(modes), settings.get("include_prompt", True) is not False


def read_dense(folder: Path, dtype: np.dtype, reads: str = "sentence_embedding") -> Dense:
    """Read a Dense module that works on a text's vector, or on what else it ``reads``."""
    settings = read_json(folder / "config.json")
    name = settings.get("activation_function", "torch.nn.modules.activation.Tanh")
    activation = str(name).rpartition(".")[2]
    if not str(name).startswith("torch.nn.") or activation not in DENSE_ACTIVATIONS:
        raise ModelFileError(f"{folder}: activation {name!r} is not one of {', '.join(DENSE_ACTIVATIONS)}")
    for key in ("module_input_name", "module_output_name"):
        if settings.get(key) not in (None, reads):
            raise ModelFileError(f"{folder} works on {settings[key]!r}: only {reads} is read")
    d_in, d_out = config_size(settings, "in_features"), config_size(settings, "out_features")
    read = TensorReader(read_safetensors(folder / WEIGHTS), dtype)
    weight = read.tensor("linear.weight", d_out, d_in)
    bias = read.tensor("linear.bias", d_out) if settings.get("bias", True) else None
    residual = None
    if settings.get("use_residual"):
        residual = np.eye(d_in, dtype=dtype) if d_in == d_out else read.tensor("residual.weight", d_out, d_in)
    return Dense(Linear(weight, bias), activation, residual)


def read_tensors(model: Path) -> dict[str, Array]:
    """Read the weights of a model: model.safetensors, or the several files that its index lists.

    Those of the default encoder in the cache, which nobody writes to, are mapped into memory.
    """
    if model == cache_folder() / DEFAULT_ENCODER:
        return map_safetensors(model / WEIGHTS)
    index = model / "model.safetensors.index.json"
    is_whole = (model / WEIGHTS).is_file() or not index.is_file()
    files = [model / WEIGHTS] if is_whole else [model / name for name in shards(index)]
    return {current(name): array for file in files for name, array in read_safetensors(file).items()}


def current(name: str) -> str:
    """``LayerNorm.gamma -> LayerNorm.weight``: a tensor's name today, from that of the first BERT models."""
    return name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")
