"""Folders of late-interaction models: ColBERT's own, PyLate's, sentence-transformers', and BGE-M3's."""

import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import ModelFileError
from ..layers.linear import Linear
from ..layers.tracing import Array
from ..tokenizers.text_tokenizer import TextTokenizer
from ..weights.tensors import TensorReader, config_size, read_json, read_optional
from .embedding_head import Dense, EmbeddingHead, check_widths
from .m3_heads import COLBERT, head_file, read_linear
from .sentence_transformer_folder import LIBRARY, list_modules, read_dense, read_settings
from .transformer import Transformer

MODULE_KINDS = ("Transformer", "Dense", "MultiVectorMask", "Normalize")
LIBRARIES = (LIBRARY, "pylate.")
STANFORD = "HF_ColBERT"  # the architecture in folders of ColBERT's own library
LENGTHS = ("query_length", "document_length", "query_expansion")
QUERY_LENGTH = 32  # of folders that state none
TOKENS = "token_embeddings"  # what the modules of late interaction work on


@dataclass(frozen=True)
class TextForm:
    """How questions, or documents, are read."""

    marker: int | None  # the id behind the first special tokens; None for none
    prefix: str  # a text before each, empty for none
    max_tokens: int  # the most tokens of one, special ones and marker included
    skipped: frozenset[int] = frozenset()  # ids whose vectors are left out
    n_skipped: int = 0  # first tokens whose vectors are left out


@dataclass(frozen=True)
class Expansion:
    """Tokens that fill up a question to ``length``; ``attended`` says whether its own tokens see them."""

    length: int
    token: int
    attended: bool = False


@dataclass(frozen=True)
class Settings:
    """What a folder states of questions and documents, whichever library wrote it."""

    markers: Mapping[str, str]  # by role; one that the vocabulary lacks is read as text
    prompts: Mapping[str, str]  # by role
    lengths: Mapping[str, Any]
    # of sentence-transformers: ``strategy``, ``length``, ``attend`` and ``token``, or None
    expansion: Mapping[str, Any] | None
    skipped: Sequence[str]
    skipped_in: Sequence[str] = ("document",)
    n_skipped: int = 0
    normalize: bool = True
    counts_expansion: bool = True

    @classmethod
    def read(
        cls, folder: Path, modules: Sequence[tuple[str, str]], transformer: Mapping[str, Any]
    ) -> "Settings":
        """Read the settings of a folder, given its modules and the settings of the first."""
        if head_file(folder, COLBERT):
            return cls({}, prompts={}, lengths={}, expansion=None, skipped=(), n_skipped=1)
        if not modules:
            if STANFORD not in (read_json(folder / "config.json").get("architectures") or []):
                raise ModelFileError(
                    f"{folder} is no late-interaction model: it has no modules.json, and its architecture "
                    f"is not {STANFORD}"
                )
            return cls.of_stanford(read_optional(folder / "artifact.metadata"))
        top, prompts = read_settings(folder)
        places = dict(modules)
        if top.get("model_type") != "ColBERT" and "query_prefix" not in top:  # as PyLate writes them
            place = places.get("MultiVectorMask")
            mask = {} if place is None else read_json(folder / place / "config.json")
            expansion = transformer.get("query_expansion")
            if mask.get("keep_only_token_ids"):
                raise ModelFileError(f"{folder} keeps vectors only of images: text is read")
            if place is None and expansion and expansion.get("attend"):
                raise ModelFileError(
                    f"{folder} fills up questions by tokens that no MultiVectorMask lets count: add one, or "
                    "set attend to false"
                )
            return cls(
                {},
                prompts.named,
                lengths=transformer,
                expansion=expansion,
                counts_expansion=place is not None,
                skipped=mask.get("skiplist_words") or (),
                skipped_in=mask.get("skiplist_tasks") or ("document",),
                normalize="Normalize" in places,
            )
        expansion = top.get("query_expansion")
        if top.get("do_query_expansion") is not False and "query_expansion" not in top:
            attend = top.get("attend_to_expansion_tokens", top.get("attend_to_mask_tokens"))
            expansion = {"length": top.get("query_length") or QUERY_LENGTH, "attend": bool(attend)}
        markers = {role: top.get(f"{role}_prefix") or "" for role in ("query", "document")}
        words = top.get("skiplist_words")
        return cls(
            markers,
            {role: text.removeprefix(markers.get(role, "")) for role, text in prompts.named.items()},
            lengths=top,
            expansion=expansion,
            skipped=string.punctuation if words is None else words,
        )

    @classmethod
    def of_stanford(cls, metadata: Mapping[str, Any]) -> "Settings":
        """Read the settings of ColBERT's own library, with its defaults."""
        return cls(
            {
                "query": metadata.get("query_token_id") or "[unused0]",
                "document": metadata.get("doc_token_id") or "[unused1]",
            },
            prompts={},
            lengths={"document_length": metadata.get("doc_maxlen")},
            expansion={
                "length": metadata.get("query_maxlen") or QUERY_LENGTH,
                "attend": metadata.get("attend_to_mask_tokens", False),
            },
            skipped=string.punctuation if metadata.get("mask_punctuation", True) else "",
        )

    def forms(self, transformer: Transformer, folder: Path) -> tuple[TextForm, TextForm, Expansion | None]:
        """Return how questions and documents are read, and what fills up questions."""
        tokenizer, most = transformer.tokenizer, transformer.config.max_positions
        expansion, query_length = None, self.length("query", transformer)
        if self.expansion is not None:
            length = config_size(self.expansion, "length", most=most)
            token = mask_id(tokenizer, folder, self.expansion.get("token"))
            expansion = Expansion(length, token, self.expansion.get("attend") is True)
            fixed = self.expansion.get("strategy", "fixed") == "fixed"
            stated = self.lengths.get("query_length") is not None
            query_length = length if fixed else max(length, query_length) if stated else query_length
        ids = map(tokenizer.id_of, self.skipped)
        skipped = frozenset(number for number in ids if number is not None)
        forms: dict[str, TextForm] = {}
        for role, length in (("query", query_length), ("document", self.length("document", transformer))):
            marker, prompt = self.markers.get(role, ""), self.prompts.get(role, "")
            number = marker_id(marker, tokenizer)
            skips = skipped if role in self.skipped_in else frozenset()
            text = prompt if number is not None else marker + prompt
            forms[role] = TextForm(number, text, length, skips, self.n_skipped)
        return forms["query"], forms["document"], expansion if self.counts_expansion else None

    def length(self, role: str, transformer: Transformer) -> int:
        """Return the most tokens of questions or of documents."""
        key = f"{role}_length"
        if self.lengths.get(key) is None:
            return transformer.max_tokens
        return min(config_size(self.lengths, key), transformer.config.max_positions)


def read_modules(folder: Path) -> list[tuple[str, str]]:
    """Return kind and relative path of every module; BGE-M3's are those of its vectors of whole texts."""
    return [] if head_file(folder, COLBERT) else list_modules(folder, MODULE_KINDS, LIBRARIES)


def read_layers(
    folder: Path,
    modules: Sequence[tuple[str, str]],
    tensors: Mapping[str, Array],
    d_model: int,
    dtype: np.dtype,
) -> tuple[Dense, ...]:
    """Read the linear layers behind the token vectors; raise `ModelFileError` for a folder without any."""
    layers = [read_dense(folder / place, dtype, TOKENS) for kind, place in modules if kind == "Dense"]
    if not modules and "linear.weight" in tensors:
        width = len(tensors["linear.weight"])
        weight = TensorReader(tensors, dtype).tensor("linear.weight", width, d_model)
        layers = [Dense(Linear(weight, None), "Identity")]
    if head := head_file(folder, COLBERT):
        layers = [Dense(read_linear(head, d_model, dtype), "Identity")]
    if not layers:
        raise ModelFileError(
            f"{folder} has no linear layer behind its token vectors: give a model that has one, such "
            "as colbert-ir/colbertv2.0"
        )
    check_widths(EmbeddingHead(steps=tuple(layers)), d_model, folder)
    return tuple(layers)


def marker_id(marker: str, tokenizer: TextTokenizer) -> int | None:
    """Return the id of a marker, such as ``[unused0]``; None for one that is read as text before others."""
    whole = tokenizer.id_of(marker)
    number = tokenizer.id_of(marker.strip()) if whole is None else whole
    return None if tokenizer.around(tokenizer.encode(marker).ids)[1] == [number] else number


def mask_id(tokenizer: TextTokenizer, folder: Path, named: object) -> int:
    """Return the id of the token that fills up questions: the named one, or that of masked words."""
    usage = read_optional(folder / "tokenizer_config.json")
    tokens = [named, usage.get("mask_token"), "[MASK]", "<mask>", usage.get("eos_token")]
    for token in tokens:
        token = token.get("content") if isinstance(token, dict) else token
        if isinstance(token, str) and (number := tokenizer.id_of(token)) is not None:
            return number
    raise ModelFileError(f"{folder} has no token that fills up questions: its tokenizer knows no [MASK]")
