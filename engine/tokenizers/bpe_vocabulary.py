"""The data of a BPE tokenizer, independent of its file format."""

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
    """``spell`` writes a text in symbols, ``token_bytes`` returns the bytes of a token."""

    spell: Callable[[str], Sequence[str]]
    token_bytes: Callable[[str], bytes]


@dataclass(frozen=True)
class BPEVocabulary:
    """The data of a BPE tokenizer.

    ``tokens`` maps a token to its id; ``added`` tokens are matched as a whole before anything else.
    The text between them goes through ``normalization``, a second match of added tokens, and
    ``preparation``, and is split into words by the regular expressions ``patterns``, each applied to the
    pieces of the one before. A word is spelled in the ``alphabet`` and merged by ``rank``; with
    ``ignore_merges``, a word that is a token is not merged. A symbol without a token becomes ``unknown``,
    or is dropped if that is None.

    ``start_ids`` are the tokens before every text; with ``drops_blank``, decoding removes the space that
    a text begins with.
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
    """Return the pattern that splits a SentencePiece text without changing the result, if there is one."""
    return [WORD_WITH_BLANKS] if within_words(tokens) else []


def learnt_order(
    merges: Sequence[str], tokens: Mapping[str, int], added: Sequence[AddedToken], path: Path
) -> Rank:
    """Rank pairs by the order of ``merges``, lines ``left right``.

    A pair that would make a control token has no rank: merging never produces one.
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
