"""What a BPE tokenizer is made of, whichever file it was read from."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.errors import ModelFileError
from engine.tokenizers.added_tokens import AddedToken
from engine.tokenizers.byte_level import byte_symbols, symbol_bytes
from engine.tokenizers.merging import Rank
from engine.tokenizers.normalized import Change
from engine.tokenizers.sentencepiece import (
    BYTE_TOKENS,
    WORD_WITH_BLANKS,
    character_symbols,
    piece_bytes,
    within_words,
)


@dataclass(frozen=True)
class Alphabet:
    """How a text is written in symbols, ``spell``, and which bytes a token stands for, ``token_bytes``."""

    spell: Callable[[str], Sequence[str]]
    token_bytes: Callable[[str], bytes]


@dataclass(frozen=True)
class BPEVocabulary:
    """What a BPE tokenizer is made of.

    ``tokens`` maps a token to its id; ``added`` tokens are matched as a whole before anything else.
    What lies between them goes through ``normalization`` and ``preparation``, which differ in that added
    tokens may be looked for between the two, and is cut into words by regular expressions, ``patterns``, each
    applied within the pieces of the one before. A word is spelled in the ``alphabet`` and merged by
    ``rank``; with ``ignore_merges``, one that has a token is taken whole. A symbol without a token
    becomes the token ``unknown``, and is left out where that is None.

    ``start_ids`` are the tokens that the model expects before a text, and ``drops_blank`` says that
    decoding leaves out the blank that a text begins with.
    """

    tokens: Mapping[str, int]
    added: Sequence[AddedToken]
    alphabet: Alphabet
    rank: Rank
    normalization: Sequence[Change] = ()
    preparation: Sequence[Change] = ()
    patterns: Sequence[str] = ()
    ignore_merges: bool = False
    unknown: str | None = None
    start_ids: Sequence[int] = ()
    drops_blank: bool = False


BYTE_LEVEL = Alphabet(byte_symbols, symbol_bytes)


def sentencepiece(tokens: Mapping[str, int], path: Path) -> Alphabet:
    """Return the alphabet of a SentencePiece vocabulary, which must have a token for every byte."""
    missing = [token for token in BYTE_TOKENS if token not in tokens]
    if missing:
        raise ModelFileError(
            f"{path}: its tokenizer has no token {missing[0]} and {len(missing)} of the 256 byte tokens are "
            f"missing: use a model whose SentencePiece tokenizer falls back to bytes"
        )
    return Alphabet(lambda text: character_symbols(text, tokens), piece_bytes)


def word_patterns(tokens: Mapping[str, int]) -> list[str]:
    """Return the pattern by which a SentencePiece text may be cut with the same result, if there is one."""
    return [WORD_WITH_BLANKS] if within_words(tokens) else []


def learnt_order(
    merges: Sequence[str], tokens: Mapping[str, int], added: Sequence[AddedToken], path: Path
) -> Rank:
    """Rank pairs by when they were learnt; ``merges`` are lines ``left right`` from the first to the last.

    A pair that makes a control token has no rank: what a text spells out is no control token.
    """
    for line in merges:
        left, _, right = line.partition(" ")
        if not (left in tokens and right in tokens and left + right in tokens):
            raise ModelFileError(
                f"{path}: its tokenizer merges {line!r}, which is not two tokens that make a third: "
                f"download it again"
            )
    ranks = dict(zip(merges, range(len(merges)), strict=True))
    for content in (token.content for token in added if token.special):
        for middle in range(1, len(content)):
            ranks.pop(f"{content[:middle]} {content[middle:]}", None)
    return lambda left, right: ranks.get(f"{left} {right}")


def best_score(scores: Mapping[str, float]) -> Rank:
    """Rank pairs by the score of the token they make, the highest first, as SentencePiece does."""
    places = {score: place for place, score in enumerate(sorted(set(scores.values()), reverse=True))}
    ranks = {token: places[score] for token, score in scores.items()}
    return lambda left, right: ranks.get(left + right)
