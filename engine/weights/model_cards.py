"""Settings that the cards of well-known embedding models state and their files do not."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

BGE_EN = "Represent this sentence for searching relevant passages: "
BGE_ZH = "为这个句子生成表示以用于检索相关文章："
NOMIC = {
    "query": "search_query: ",
    "document": "search_document: ",
    "classification": "classification: ",
    "clustering": "clustering: ",
}


@dataclass(frozen=True)
class ModelCard:
    """The settings that a model's card states."""

    name: str  # regular expression of the model's name, without its owner
    # ``(model_type, hidden_size)`` of its config.json: a folder of the same name with others is no copy
    sizes: frozenset[tuple[str, int]]
    pooling: str  # this and the next used where the folder has no modules.json
    normalize: bool
    source: str  # the card
    prompts: Mapping[str, str] = field(default_factory=dict)  # used where its files state none


MODEL_CARDS = (
    ModelCard(
        "all-MiniLM-L6-v2",
        frozenset({("bert", 384)}),
        "mean",
        True,
        "https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2",
    ),
    ModelCard(
        "e5-(small|base|large)(-v2|-unsupervised)?|multilingual-e5-(small|base|large)",
        frozenset({("bert", 384), *(product(("bert", "xlm-roberta"), (768, 1024)))}),
        "mean",
        True,
        "https://huggingface.co/intfloat/e5-base-v2",
        {"query": "query: ", "passage": "passage: "},
    ),
    ModelCard(
        r"bge-(small|base|large)-en(-v1\.5)?",
        frozenset({("bert", 384), ("bert", 768), ("bert", 1024)}),
        "cls",
        True,
        "https://huggingface.co/BAAI/bge-base-en-v1.5",
        {"query": BGE_EN},
    ),
    ModelCard(
        r"bge-(small|base|large)-zh(-v1\.5)?",
        frozenset({("bert", 512), ("bert", 768), ("bert", 1024)}),
        "cls",
        True,
        "https://huggingface.co/BAAI/bge-base-zh-v1.5",
        {"query": BGE_ZH},
    ),
    ModelCard(
        "bge-m3", frozenset({("xlm-roberta", 1024)}), "cls", True, "https://huggingface.co/BAAI/bge-m3"
    ),
    ModelCard(
        r"nomic-embed-text-v1(\.5)?",
        frozenset({("nomic_bert", 768)}),
        "mean",
        False,
        "https://huggingface.co/nomic-ai/nomic-embed-text-v1.5",
        NOMIC,
    ),
)


def model_card(folder: Path, config: Mapping[str, Any]) -> ModelCard | None:
    """Return the card of the model in a folder, known by the folder's name and its config.json, or None.

    Names are those of a clone (``e5-base-v2``), of the engine's cache (``intfloat--e5-base-v2``) and of the
    Hub's (``models--intfloat--e5-base-v2/snapshots/…``).
    """
    place = folder.resolve()
    place = place.parent.parent if place.parent.name == "snapshots" else place
    name = place.name.rpartition("--")[2]
    size = config.get("model_type"), config.get("hidden_size", config.get("n_embd"))
    return next((card for card in MODEL_CARDS if size in card.sizes and re.fullmatch(card.name, name)), None)
