"""Encoders of the real sizes with random weights, for `benchmarks.families`.

``python -m benchmarks.random_encoders NAME FOLDER`` writes a model, and its export to ONNX if $ONNX_FOLDER is
set. All have the default encoder's tokenizer, so that they read the same tokens.
"""

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.encoders import MAX_TOKENS, export_onnx
from engine.weights.catalog import DEFAULT_ENCODER
from engine.weights.fetch import model_path

VOCAB_SIZE = 30_522  # of the default encoder's tokenizer


@dataclass(frozen=True)
class Architecture:
    """A model of transformers: the prefix of its classes, and the sizes that are not their defaults."""

    classes: str
    sizes: dict[str, Any] = field(default_factory=dict)
    note: str = ""


SMALL = {"hidden_size": 384, "num_attention_heads": 12, "intermediate_size": 1536}
IDS = {"pad_token_id": 0, "cls_token_id": 101, "sep_token_id": 102, "bos_token_id": 101, "eos_token_id": 102}
ENCODERS = {
    "bge-small": Architecture("Bert", {**SMALL, "num_hidden_layers": 12}),
    "e5-base": Architecture("Bert"),
    "mpnet-base": Architecture("MPNet", {"max_position_embeddings": 514}),
    "ModernBERT-base": Architecture("ModernBert", IDS),
    "nomic-embed-text": Architecture("NomicBert"),
    "Qwen3-Embedding-0.6B": Architecture(
        "Qwen3",
        {
            "hidden_size": 1024,
            "intermediate_size": 3072,
            "num_hidden_layers": 4,
            "num_attention_heads": 16,
            "num_key_value_heads": 8,
            "head_dim": 128,
        },
        "4 of its 28 layers",
    ),
}
RERANKER = Architecture("Bert", {**SMALL, "num_hidden_layers": 6, "num_labels": 1})  # ms-marco-MiniLM-L6's


def write_model(architecture: Architecture, folder: Path, kind: str = "Model") -> None:
    """Write a random model of a class such as ``BertModel``, with the default encoder's tokenizer."""
    import torch
    import transformers

    sizes = {"vocab_size": VOCAB_SIZE, **architecture.sizes}
    config = getattr(transformers, f"{architecture.classes}Config")(**sizes)
    torch.manual_seed(0)
    getattr(transformers, f"{architecture.classes}{kind}")(config).eval().save_pretrained(folder)
    transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(model_path(DEFAULT_ENCODER) / "tokenizer.json"),
        model_max_length=MAX_TOKENS,
        pad_token="[PAD]",
    ).save_pretrained(folder)


def write_encoder(name: str, folder: Path) -> None:
    """Write one of `ENCODERS` with mean pooling and vectors of length 1, as sentence-transformers does."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer import modules

    write_model(ENCODERS[name], folder / "base")
    transformer = modules.Transformer(str(folder / "base"))
    pooling = modules.Pooling(transformer.get_embedding_dimension(), pooling_mode="mean")
    SentenceTransformer(modules=[transformer, pooling, modules.Normalize()], device="cpu").save(str(folder))


def main() -> None:
    """Write one model."""
    name, folder = sys.argv[1], Path(sys.argv[2])
    if name == "reranker":
        write_model(RERANKER, folder, "ForSequenceClassification")
        return
    write_encoder(name, folder)
    export_onnx(str(folder), Path(os.environ["ONNX_FOLDER"]))


if __name__ == "__main__":
    main()
