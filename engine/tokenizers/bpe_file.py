"""Read a byte-level BPE tokenizer from a GGUF file's metadata, or from tokenizer.json."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.errors import ModelFileError
from engine.weights.tensors import GGUF, read_json

GPT2_PATTERN = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
DIGIT_PATTERN = r"\p{N}"
# The word patterns that llama.cpp knows by the name stored in `tokenizer.ggml.pre`.
GGUF_PATTERNS = {"gpt-2": [GPT2_PATTERN], "smollm": [DIGIT_PATTERN, GPT2_PATTERN]}
GGUF_CONTROL, GGUF_USER_DEFINED = 3, 4  # values of `tokenizer.ggml.token_type`


@dataclass(frozen=True)
class BPEVocabulary:
    """What a byte-level BPE tokenizer is made of.

    ``tokens`` maps a token to its id, ``merges`` lists pairs from the first learnt to the last,
    ``special`` the tokens matched as a whole before anything else, ``control`` those of them that
    are not shown as text, ``patterns`` the regular expressions that cut a text into words, each
    applied within the pieces of the one before. Not every byte needs to have a token: ``unknown`` is the
    id of those that have none, which are left out where it is None.
    """

    tokens: Mapping[str, int]
    merges: Sequence[tuple[str, str]]
    special: Mapping[str, int]
    control: frozenset[int]
    patterns: Sequence[str]
    ignore_merges: bool = False
    unknown: int | None = None


def read_gguf(file: GGUF) -> BPEVocabulary:
    """Read the tokenizer that a GGUF file holds."""
    if file["tokenizer.ggml.model"] != "gpt2":
        raise ModelFileError(
            f"{file.path} has a {file['tokenizer.ggml.model']!r} tokenizer: only byte-level BPE "
            f"('gpt2') is read"
        )
    kind = file.get("tokenizer.ggml.pre", "gpt-2")
    if kind not in GGUF_PATTERNS:
        raise ModelFileError(
            f"{file.path} cuts words by the rules of {kind!r}: known are {', '.join(GGUF_PATTERNS)}"
        )
    texts, types = file["tokenizer.ggml.tokens"], file["tokenizer.ggml.token_type"]
    return BPEVocabulary(
        tokens={text: number for number, text in enumerate(texts)},
        merges=[split_pair(line) for line in file["tokenizer.ggml.merges"]],
        special={
            text: number
            for number, (text, kind) in enumerate(zip(texts, types, strict=True))
            if kind in (GGUF_CONTROL, GGUF_USER_DEFINED)
        },
        control=frozenset(number for number, kind in enumerate(types) if kind == GGUF_CONTROL),
        patterns=GGUF_PATTERNS[kind],
    )


def read_bpe_json(path: Path) -> dict[str, Any]:
    """Read a tokenizer.json file that must be of a byte-level BPE tokenizer."""
    content = read_json(path)
    model = content.get("model", {})
    if model.get("type") != "BPE" or model.get("byte_fallback") or content.get("normalizer"):
        raise ModelFileError(f"{path} is not a plain byte-level BPE tokenizer: only those are read")
    return content


def split_pair(line: str) -> tuple[str, str]:
    """``"a b" -> ("a", "b")``, a line of a merges file."""
    left, right = line.split(" ")
    return left, right


def word_patterns(pre_tokenizer: Mapping[str, Any] | None, path: Path) -> list[str]:
    """Translate tokenizer.json's pre-tokenizer into the regular expressions it stands for."""
    steps = (pre_tokenizer or {}).get("pretokenizers", [pre_tokenizer])
    patterns = []
    for step in steps:
        match step:
            case {"type": "ByteLevel", "add_prefix_space": False, **rest}:
                patterns += [GPT2_PATTERN] if rest.get("use_regex", True) else []
            case {"type": "Digits", "individual_digits": True}:
                patterns.append(DIGIT_PATTERN)
            case {"type": "Split", "behavior": "Isolated", "pattern": {"Regex": expression}}:
                patterns.append(expression)
            case _:
                raise ModelFileError(f"{path}: pre-tokenizer {step!r} is not one that can be read")
    return patterns


def read_vocabulary(content: Mapping[str, Any], path: Path) -> BPEVocabulary:
    """Read what tokenizer.json says of a byte-level BPE tokenizer."""
    model, added = content["model"], content.get("added_tokens", [])
    return BPEVocabulary(
        tokens=model["vocab"],
        merges=[
            split_pair(pair) if isinstance(pair, str) else (pair[0], pair[1]) for pair in model["merges"]
        ],
        special={token["content"]: token["id"] for token in added},
        control=frozenset(token["id"] for token in added if token["special"]),
        patterns=word_patterns(content.get("pre_tokenizer"), path),
        ignore_merges=model.get("ignore_merges", False),
        unknown=model["vocab"].get(model.get("unk_token")),
    )
