"""Read a SentencePiece Unigram tokenizer from tokenizer.json."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import regex

from ..errors import ModelFileError
from .bpe_json import PREFIXES
from .normalized import Change, Normalized, apply, replace
from .normalizers import parts_of, read_normalizer
from .patterns import BLANK, WORD_WITH_BLANK, cut
from .templates import checked
from .text_tokenizer import SharedSettings, read_shared
from .unicode import WHITE_SPACE, character_class

# One step of splitting a text into words.
Split = Callable[[Normalized], list[Normalized]]

NO_BLANKS = regex.compile(f"[^{character_class(WHITE_SPACE)}]+")
BLANK_WORDS = regex.compile(WORD_WITH_BLANK)


@dataclass(frozen=True)
class UnigramSettings:
    """The data of a Unigram tokenizer."""

    shared: SharedSettings
    scores: Mapping[str, float]  # log-probabilities of the pieces
    unknown: int  # id of text without a piece
    byte_fallback: bool  # such text becomes the pieces of its bytes
    normalization: Sequence[Change]
    split: Sequence[Split]  # steps, each of which cuts the parts of the one before


def read_unigram(content: Mapping[str, Any], path: Path) -> UnigramSettings:
    """Read the content of tokenizer.json."""
    try:
        model = content["model"]
        pieces = [(checked(piece, str), float(score)) for piece, score in model["vocab"]]
        tokens = {piece: number for number, (piece, _) in enumerate(pieces)}
        unknown = checked(model.get("unk_id"), int)
        pieces[unknown]  # an IndexError here is better than one in the middle of a text
        return UnigramSettings(
            shared=read_shared(content, tokens, path),
            scores={piece: pieces[number][1] for piece, number in tokens.items()},
            unknown=unknown,
            byte_fallback=bool(model.get("byte_fallback")),
            normalization=read_normalizer(content, path),
            split=read_split(content, path),
        )
    except (LookupError, TypeError, ValueError, AttributeError, regex.error) as error:
        raise ModelFileError(f"{path} is not a readable tokenizer ({error!r}): download it again") from error


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
