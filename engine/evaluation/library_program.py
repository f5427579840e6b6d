"""A model of sentence-transformers: a program of `engine.library_process`, for `LibraryModel`."""

import os
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ModelUnavailableError
from ..library_process import Arrays, Values, answer_with, first_line

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


def answer(request: bytes) -> bytes:
    """Answer a request with the properties of a model, or with the vectors of texts."""
    return answer_with(properties_or_vectors, request)


def properties_or_vectors(request: Values) -> tuple[Values, Arrays]:
    """Embed the texts of a request, or return the properties of its model if it has none."""
    model, about = loaded(request["source"])
    if "texts" not in request:
        return about, {}
    if about["fingerprint"] != request["fingerprint"]:
        raise ModelUnavailableError("its files have changed since it was loaded: load it again")
    model.max_seq_length = request["max_tokens"]
    vectors = model.encode(
        request["texts"], prompt=request["prompt"], normalize_embeddings=True, show_progress_bar=False
    )
    return {}, {"vectors": np.asarray(vectors, np.float32)}


def refuse_pickle(*arguments: Any, **options: Any) -> Any:
    """Raise an error in place of ``torch.load``: a pickle may run any code when it is opened."""
    raise ModelUnavailableError("it has weights in a pickle, which is not opened: give model.safetensors")


@lru_cache(maxsize=1)
def loaded(source: str) -> tuple["SentenceTransformer", Values]:
    """Load a model on the CPU, once; return it with its properties."""
    import torch
    from sentence_transformers import SentenceTransformer

    torch.load = refuse_pickle
    offline = os.environ.get("HF_HUB_OFFLINE", "").upper() in {"1", "ON", "YES", "TRUE"}
    try:
        model = SentenceTransformer(source, device="cpu", local_files_only=offline)
        d_model = int(model.get_embedding_dimension() or model.encode(["text"]).shape[1])
    except (MemoryError, ModelUnavailableError):
        raise
    except Exception as error:  # of any kind: the library and its dependencies raise many
        where = "on this machine (HF_HUB_OFFLINE is set)" if offline else "here or on the Hugging Face Hub"
        found = "does not read it" if Path(source).is_dir() else f"finds no such model {where}"
        raise ModelUnavailableError(f"sentence-transformers {found}: {first_line(error)[:200]}") from error
    try:
        model.max_seq_length = model.max_seq_length
    except AttributeError as error:  # static embeddings
        raise ModelUnavailableError(
            "it reads texts of any length, and how many tokens it reads cannot be set: choose a model with "
            "layers"
        ) from error
    has_length_1 = type(model[-1]).__name__ == "Normalize"
    return model, {
        "d_model": d_model,
        "similarity": "cosine" if has_length_1 else str(model.similarity_fn_name or "cosine"),
        "max_tokens": model.max_seq_length,
        "prompts": {prompt: text for prompt, text in model.prompts.items() if text},
        "fingerprint": weights_digest(model),
    }


def weights_digest(model: Any) -> str:
    """Hash all tensors of a library model, its modules' settings and its vocabulary."""
    import torch

    digest = sha256(repr(model).encode())
    for name, tensor in model.state_dict().items():
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.detach().cpu().reshape(-1).contiguous().view(torch.uint8).numpy().tobytes())
    vocabulary: dict[str, int] = getattr(model.tokenizer, "get_vocab", dict)()
    digest.update(repr(sorted(vocabulary.items(), key=str)).encode())
    return digest.hexdigest()
