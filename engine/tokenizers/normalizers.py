"""The changes that a tokenizer makes to a text first, as tokenizer.json lists them."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import regex

from ..errors import ModelFileError
from .charsmap import CharsMap
from .normalization import BertNormalizer
from .normalized import Change, lower, normal_form, prepend, replace, replace_matches, strip, strip_accents
from .patterns import KNOWN, compiled
from .templates import checked


def parts_of(part: Mapping[str, Any] | None, name: str) -> Sequence[Mapping[str, Any]]:
    """Return the members of a section of tokenizer.json: none, one, or those of a Sequence."""
    if part is None:
        return []
    if part["type"] != "Sequence":
        return [part]
    return [each for inner in part[name] for each in parts_of(inner, name)]


def read_normalizer(content: Mapping[str, Any], path: Path) -> list[Change]:
    """Read the changes from the content of tokenizer.json."""
    return [read_change(part, path) for part in parts_of(content.get("normalizer"), "normalizers")]


def read_change(part: Mapping[str, Any], path: Path) -> Change:
    """Read one change."""
    match part:
        case {"type": "NFC" | "NFD" | "NFKC" | "NFKD" as form}:
            return partial(normal_form, form=form)
        case {"type": "Lowercase"}:
            return lower
        case {"type": "StripAccents"}:
            return strip_accents
        case {"type": "Strip", "strip_left": bool(left), "strip_right": bool(right)}:
            return partial(strip, left=left, right=right)
        case {"type": "Prepend", "prepend": str(prefix)}:
            return partial(prepend, prefix=prefix)
        case {"type": "Replace", "pattern": {"String": str(old)}, "content": str(new)} if old:
            if len(old) == len(new) == 1:
                return partial(replace, old=old, new=new)
            return partial(replace_matches, pattern=regex.compile(regex.escape(old)), new=new)
        case {"type": "Replace", "pattern": {"Regex": str(pattern)}, "content": str(new)}:
            return partial(replace_matches, pattern=compiled(pattern), new=new)
        case {"type": "Precompiled", "precompiled_charsmap": str(encoded)}:
            return CharsMap(encoded)
        case {"type": "BertNormalizer"}:
            lowercase = checked(part["lowercase"], bool)
            accents = checked(part.get("strip_accents"), bool | None)
            return BertNormalizer(
                clean_text=checked(part["clean_text"], bool),
                handle_chinese_chars=checked(part["handle_chinese_chars"], bool),
                strip_accents=lowercase if accents is None else accents,
                lowercase=lowercase,
            )
    raise ModelFileError(f"{path}: normalizer {part!r} cannot be read: use another model")


def patterns_are_known(content: Mapping[str, Any]) -> bool:
    """Whether the regular expressions of the normalizer take time linear in the text."""
    parts = parts_of(content.get("normalizer"), "normalizers")
    patterns = [part["pattern"] for part in parts if part["type"] == "Replace"]
    return all(pattern["Regex"] in KNOWN for pattern in patterns if "Regex" in pattern)
