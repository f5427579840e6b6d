"""Read a SentencePiece Unigram tokenizer from tokenizer.json."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import regex

from ..errors import ModelFileError
from ..weights.tensors import read_json
from .bpe_json import parts_of
from .charsmap import CharsMap
from .normalized import (
    Change,
    Normalized,
    apply,
    compose,
    lower,
    prepend_missing,
    prepend_missing_at_start,
    replace,
    replace_matches,
    strip,
)
from .patterns import BLANK, BLANK_RUN, KNOWN, WORD_WITH_BLANK, compiled, cut
from .templates import checked
from .text_tokenizer import SharedSettings, read_shared
from .unicode import WHITE_SPACE, character_class

# One step of splitting a text into words.
Split = Callable[[Normalized], list[Normalized]]

PREFIXES: dict[str, list[Change]] = {
    "always": [partial(prepend_missing, prefix=BLANK, shares_span=True)],
    "first": [partial(prepend_missing_at_start, prefix=BLANK, shares_span=True)],
    "never": [],
}
NO_BLANKS = regex.compile(f"[^{character_class(WHITE_SPACE)}]+")
BLANK_WORDS = regex.compile(WORD_WITH_BLANK)


@dataclass(frozen=True)
class UnigramSettings:
    """The data of a Unigram tokenizer.

    ``scores`` are the log-probabilities of the pieces, ``unknown`` is the id of text without a piece; with
    ``byte_fallback`` such text becomes the pieces of its bytes. A text goes through ``normalization``, and
    each step of ``split`` cuts the parts of the one before. ``known_patterns`` tells whether its regular
    expressions are in `KNOWN`.
    """

    shared: SharedSettings
    scores: Mapping[str, float]
    unknown: int
    byte_fallback: bool
    normalization: Sequence[Change]
    split: Sequence[Split]
    known_patterns: bool


def read_unigram(path: Path, lower_case: bool = False) -> UnigramSettings:
    """Read a tokenizer.json file; ``lower_case`` lowers letters also where the file does not."""
    content = read_json(path)
    try:
        model = content["model"]
        pieces = [(checked(piece, str), float(score)) for piece, score in model["vocab"]]
        tokens = {piece: number for number, (piece, _) in enumerate(pieces)}
        unknown = checked(model.get("unk_id"), int)
        pieces[unknown]  # an IndexError here is better than one in the middle of a text
        normalization = read_normalization(content, path)
        return UnigramSettings(
            shared=read_shared(content, tokens, path),
            scores={piece: pieces[number][1] for piece, number in tokens.items()},
            unknown=unknown,
            byte_fallback=bool(model.get("byte_fallback")),
            normalization=[lower, *normalization] if lower_case else normalization,
            split=read_split(content, path),
            known_patterns=all(
                part["pattern"].get("Regex", BLANK_RUN) in KNOWN
                for part in parts_of(content.get("normalizer"), "normalizers")
                if part["type"] == "Replace"
            ),
        )
    except (LookupError, TypeError, ValueError, AttributeError, regex.error) as error:
        raise ModelFileError(f"{path} is not a readable tokenizer ({error!r}): download it again") from error


def read_normalization(content: Mapping[str, Any], path: Path) -> list[Change]:
    """Read the changes made to a text first."""
    changes: list[Change] = []
    for part in parts_of(content.get("normalizer"), "normalizers"):
        match part:
            case {"type": "Precompiled", "precompiled_charsmap": str(encoded)}:
                changes.append(CharsMap(encoded))
            case {"type": "Replace", "pattern": {"Regex": str(pattern)}, "content": str(new)}:
                changes.append(partial(replace_matches, pattern=compiled(pattern), new=new))
            case {"type": "Replace", "pattern": {"String": str(old)}, "content": str(new)}:
                changes.append(partial(replace_matches, pattern=regex.compile(regex.escape(old)), new=new))
            case {"type": "Strip", "strip_left": bool(left), "strip_right": bool(right)}:
                changes.append(partial(strip, left=left, right=right))
            case {"type": "NFC"}:
                changes.append(compose)
            case {"type": "Lowercase"}:
                changes.append(lower)
            case _:
                raise ModelFileError(f"{path}: normalizer {part!r} cannot be read: use another model")
    return changes


def read_split(content: Mapping[str, Any], path: Path) -> list[Split]:
    """Read the steps that split a text into words."""
    steps: list[Split] = []
    for part in parts_of(content.get("pre_tokenizer"), "pretokenizers"):
        match part:
            case {"type": "WhitespaceSplit"}:
                steps.append(between_blanks)
            case {"type": "Metaspace", "replacement": "▁"}:
                prefixed = part.get("add_prefix_space", True)
                scheme = part.get("prepend_scheme", "always") if prefixed else "never"
                steps.append(partial(marked_words, prefix=PREFIXES[scheme], splits=part.get("split", True)))
            case _:
                raise ModelFileError(f"{path}: pre-tokenizer {part!r} cannot be read: use another model")
    return steps


def between_blanks(text: Normalized) -> list[Normalized]:
    """Cut a text at white space, which is dropped."""
    return [text.part(*match.span()) for match in NO_BLANKS.finditer(text.text)]


def marked_words(text: Normalized, prefix: Sequence[Change], splits: bool) -> list[Normalized]:
    """Write spaces as ``▁``, put one before the text, and cut it in front of each."""
    marked = apply(prefix, replace(text, " ", BLANK))
    spans = cut(BLANK_WORDS, marked.text, 0, len(marked.text)) if splits else [(0, len(marked.text))]
    return [marked.part(*span) for span in spans]
