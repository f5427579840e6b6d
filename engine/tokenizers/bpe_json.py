"""Read a BPE tokenizer from tokenizer.json, as the `tokenizers` library does."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from ..errors import ModelFileError
from ..weights.tensors import unreadable_tokenizer
from .added_tokens import read_added_tokens
from .bpe_vocabulary import BYTE_LEVEL, BPEVocabulary, learnt_order, sentencepiece, word_patterns
from .normalized import Change, prepend_missing, prepend_missing_at_start, replace
from .normalizers import parts_of, read_normalizer
from .patterns import BLANK, DIGIT, GPT2, WORD_WITH_BLANK
from .templates import read_start_ids

# Changes that put a prefix before a text, by `prepend_scheme`.
PREFIXES: dict[str, list[Change]] = {
    "always": [partial(prepend_missing, prefix=BLANK)],
    "first": [partial(prepend_missing_at_start, prefix=BLANK)],
    "never": [],
}


def read_bpe(content: Mapping[str, Any], path: Path) -> BPEVocabulary:
    """Read the vocabulary from the content of tokenizer.json."""
    try:
        model = content["model"]
        check_kind(content, path)
        tokens: dict[str, int] = model["vocab"]
        if set(map(type, tokens.values())) != {int} or min(tokens.values()) < 0:
            raise TypeError("the ids of the vocabulary are not all whole numbers from 0 on")
        added = read_added_tokens(content, tokens)
        unknown, ignore_merges = model.get("unk_token"), bool(model.get("ignore_merges"))
        preparation, patterns = read_pre_tokenizer(content, path)
        fallback = bool(model.get("byte_fallback"))
        # pairs, or in the older format lines of a merges file
        lines = [pair if isinstance(pair, str) else " ".join(pair) for pair in model["merges"]]
        return BPEVocabulary(
            tokens=tokens,
            added=added,
            alphabet=sentencepiece(tokens, path) if fallback else BYTE_LEVEL,
            rank=learnt_order(lines, tokens, added, path),
            normalization=read_normalizer(content, path),
            preparation=preparation,
            patterns=[*patterns, *(word_patterns(tokens) if fallback and not ignore_merges else [])],
            ignore_merges=ignore_merges,
            unknown=unknown if unknown in tokens else None,
            start_ids=read_start_ids(content, path),
            drops_blank=any(map(drops_blank, parts_of(content.get("decoder"), "decoders"))),
        )
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise unreadable_tokenizer(path, error) from error


def check_kind(content: Mapping[str, Any], path: Path) -> None:
    """Raise `ModelFileError` unless it is BPE over bytes, or over characters with byte fallback."""
    model = content["model"]
    kind = model.get("type", "BPE" if "merges" in model else "nameless")  # early files name no type
    parts = parts_of(content.get("pre_tokenizer"), "pretokenizers")
    over_bytes = bool(parts) and parts[-1]["type"] == "ByteLevel"
    if kind != "BPE" or over_bytes == bool(model.get("byte_fallback")):
        raise ModelFileError(
            f"{path} is a {kind} tokenizer, but only byte-level BPE, and SentencePiece BPE with a byte "
            f"fallback, are read"
        )
    for option in ("continuing_subword_prefix", "end_of_word_suffix", "dropout"):
        if model.get(option):
            raise ModelFileError(f"{path} has a {option}, which is not read: use a model without it")
    if model.get("fuse_unk") and model.get("unk_token") in model["vocab"] and over_bytes:
        raise ModelFileError(f"{path} fuses unknown bytes, which is not read: use a model without fuse_unk")


def read_pre_tokenizer(content: Mapping[str, Any], path: Path) -> tuple[list[Change], list[str]]:
    """Read the changes made before a text is split, and the regular expressions that split it into words."""
    changes: list[Change] = []
    patterns: list[str] = []
    normalizers = parts_of(content.get("normalizer"), "normalizers")
    has_blanks = not any(
        part["type"] == "Replace" and part["pattern"] == {"String": " "} for part in normalizers
    )
    for part in parts_of(content.get("pre_tokenizer"), "pretokenizers"):
        match part:
            case {"type": "ByteLevel", "add_prefix_space": bool(prefix)} if not (prefix and patterns):
                changes += [partial(prepend_missing, prefix=" ")] if prefix else []
                patterns += [GPT2] if part.get("use_regex", True) else []
            case {"type": "Digits", "individual_digits": True}:
                patterns.append(DIGIT)
            case {"type": "Split", "behavior": "Isolated", "invert": False, "pattern": {"Regex": expression}}:
                patterns.append(expression)
            case {"type": "Metaspace", "replacement": "▁"} if not patterns:
                prefixed = part.get("add_prefix_space", True)
                scheme = part.get("prepend_scheme", "always") if prefixed else "never"
                changes += [partial(replace, old=" ", new=BLANK), *PREFIXES[scheme]]
                patterns += [WORD_WITH_BLANK] if part.get("split", True) else []
            case {"type": "Split", "pattern": {"String": " "}} if not has_blanks:
                pass  # no space is left to split at (Gemma)
            case _:
                raise ModelFileError(f"{path}: pre-tokenizer {part!r} cannot be read")
    return changes, patterns


def drops_blank(decoder: Mapping[str, Any]) -> bool:
    """Whether a part of the decoder removes the space that a text begins with."""
    match decoder:
        case {"type": "Strip", "content": " ", "start": 1}:
            return True
        case {"type": "Metaspace"}:
            return decoder.get("add_prefix_space", True) and decoder.get("prepend_scheme") != "never"
    return False
