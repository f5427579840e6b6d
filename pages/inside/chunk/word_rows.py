"""How each kind of tokenizer cuts the words of a text into tokens, as rows of a table."""

from collections.abc import Callable, Sequence
from typing import Any

from engine.errors import InputError
from engine.tokenizers.bpe import BPEStages, BPETokenizer
from engine.tokenizers.tokenizer_file import BytePairEncoderTokenizer
from engine.tokenizers.unigram import UnigramStages, UnigramTokenizer
from engine.tokenizers.wordpiece import WordPieceStages, WordPieceTokenizer
from ui.tokens import visible_blanks


def word_piece_rows(words: Sequence[WordPieceStages]) -> list[dict[str, str]]:
    """Return a row per word: its pieces, and the candidates looked up for each, longest first."""
    return [
        {
            "word": word.original,
            "normalised": word.normalized,
            "pieces": "  ".join(piece.token for piece in word.pieces),
            "ids": "  ".join(str(piece.id) for piece in word.pieces),
            "looked for (longest first)": " | ".join(
                " › ".join(abridged(piece.tried)) for piece in word.pieces
            ),
        }
        for word in words
    ]


def byte_pair_rows(words: Sequence[BPEStages]) -> list[dict[str, str]]:
    """Return a row per word: its tokens, and the merges that made them."""
    return [
        {
            "word": visible_blanks(word.original),
            "tokens": "  ".join(word.tokens),
            "ids": "  ".join(map(str, word.ids)),
            "merges, first learnt first (rank)": " › ".join(
                f"{merge.pair[0]}+{merge.pair[1]} ({merge.rank})" for merge in word.merges
            ),
        }
        for word in words
    ]


def unigram_rows(words: Sequence[UnigramStages]) -> list[dict[str, str]]:
    """Return a row per word: its pieces, and the candidates weighed, each with its log-probability."""
    return [
        {
            "word": visible_blanks(word.original),
            "normalised": word.normalized,
            "pieces": "  ".join(word.tokens),
            "ids": "  ".join(map(str, word.ids)),
            "candidates (log-probability)": " › ".join(
                abridged([f"{each.piece} ({each.score:.1f})" for each in word.candidates])
            ),
        }
        for word in words
    ]


def abridged(tried: Sequence[str]) -> list[str]:
    """Return the first four and the last four candidates, with an ellipsis between them."""
    return list(tried) if len(tried) <= 8 else [*tried[:4], "…", *tried[-4:]]


WORD_ROWS: dict[type, Callable[[Sequence[Any]], list[dict[str, str]]]] = {
    WordPieceTokenizer: word_piece_rows,
    BytePairEncoderTokenizer: byte_pair_rows,
    BPETokenizer: byte_pair_rows,
    UnigramTokenizer: unigram_rows,
}


def word_rows(tokenizer: Any, text: str) -> list[dict[str, str]]:
    """Return a row per word of a text, as the tokenizer of an encoder or a decoder cuts it."""
    if type(tokenizer) not in WORD_ROWS:
        raise InputError(f"{type(tokenizer).__name__} has no rows to show yet: write them for WORD_ROWS")
    return WORD_ROWS[type(tokenizer)](tokenizer.stages(text))
