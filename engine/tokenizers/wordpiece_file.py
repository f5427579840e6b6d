"""Read a WordPiece tokenizer from tokenizer.json."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.errors import ModelFileError
from engine.tokenizers.normalization import BertNormalizer
from engine.tokenizers.templates import checked
from engine.tokenizers.text_tokenizer import SharedSettings, read_shared
from engine.weights.tensors import read_json


@dataclass(frozen=True)
class WordPieceSettings:
    """The data of a WordPiece tokenizer.

    ``continuation`` is the prefix of tokens within a word; a word with more than ``max_characters``, or with
    a part that is not in the vocabulary, becomes ``unknown``.
    """

    shared: SharedSettings
    normalizer: BertNormalizer
    unknown: str
    continuation: str
    max_characters: int


def read_wordpiece(path: Path, lower_case: bool = False) -> WordPieceSettings:
    """Read a tokenizer.json file; ``lower_case`` lowers letters also where the file does not."""
    content = read_json(path)
    normalizer = section(content, "normalizer", "BertNormalizer", path)
    section(content, "pre_tokenizer", "BertPreTokenizer", path)
    model = section(content, "model", "WordPiece", path)
    try:
        vocabulary = {checked(token, str): checked(number, int) for token, number in model["vocab"].items()}
        unknown = checked(model["unk_token"], str)
        vocabulary[unknown]  # a KeyError here is better than one in the middle of a text
        lowercase = checked(normalizer["lowercase"], bool)
        strip_accents = checked(normalizer.get("strip_accents"), bool | None)
        return WordPieceSettings(
            shared=read_shared(content, vocabulary, path),
            normalizer=BertNormalizer(
                clean_text=checked(normalizer["clean_text"], bool),
                handle_chinese_chars=checked(normalizer["handle_chinese_chars"], bool),
                strip_accents=lowercase if strip_accents is None else strip_accents,
                lowercase=lowercase or lower_case,
            ),
            unknown=unknown,
            continuation=checked(model["continuing_subword_prefix"], str),
            max_characters=checked(model["max_input_chars_per_word"], int),
        )
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise ModelFileError(f"{path} is not a readable tokenizer ({error!r}): download it again") from error


def section(content: Mapping[str, Any], name: str, kind: str, path: Path) -> Mapping[str, Any]:
    """Return a section of tokenizer.json, checked to be of one kind."""
    part = content.get(name)
    found = part.get("type", kind) if isinstance(part, dict) else "missing"  # early files name no type
    if not isinstance(part, dict) or found != kind:
        raise ModelFileError(
            f"{path} is not a readable tokenizer: its {name} is {found}, only {kind} is read: "
            f"use a model with BERT's tokenizer"
        )
    return part
