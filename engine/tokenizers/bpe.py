"""Byte-pair encoding, the tokenizer of GPT-2 (Radford et al. 2019) and of the Llama family.

A text is cut into words, each word is spelled in the symbols of an alphabet, and the symbols are merged
pair by pair, the best pair first. In byte-level BPE the symbols are bytes and the best pair is the one
learnt earliest; in SentencePiece's (Llama 2) they are characters, and its files may give scores instead.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path

import regex

from engine.errors import ModelFileError
from engine.tokenizers.added_tokens import AddedVocabulary, Segment
from engine.tokenizers.bpe_gguf import read_gguf
from engine.tokenizers.bpe_json import read_bpe_json
from engine.tokenizers.bpe_vocabulary import BPEVocabulary
from engine.tokenizers.encoding import Encoding, TokenSpan, check_text, remembering
from engine.tokenizers.merging import merge, merges
from engine.tokenizers.normalized import apply
from engine.tokenizers.patterns import cut
from engine.weights.gguf_file import GGUF


@dataclass(frozen=True)
class Merge:
    """One merge of a word: a ``pair`` of neighbours became one symbol; ``symbols`` are those after it.

    ``rank`` says how early such a pair is merged: 0 is the first.
    """

    pair: tuple[str, str]
    rank: int
    symbols: list[str]


@dataclass(frozen=True)
class WordSteps:
    """How one word of a text became tokens.

    ``original`` is ``text[start:end]`` of the whole text, ``symbols`` how it is spelled, ``merges`` what was
    merged, in order, and ``tokens`` the symbols at the end with their ``ids`` and their spans in the whole
    text. A symbol that has no token is left out before the first merge. A ``special`` word is a token that
    the text spells out, such as ``<|im_end|>``: it is taken as it is, and nothing is merged.
    """

    original: str
    start: int
    end: int
    symbols: list[str]
    merges: list[Merge]
    tokens: list[str]
    ids: list[int]
    offsets: list[tuple[int, int]]
    special: bool


class BPETokenizer:
    """Byte-level or SentencePiece BPE; decoding gives a text back, but for bytes the vocabulary lacks."""

    def __init__(self, vocabulary: BPEVocabulary) -> None:
        self._vocabulary = vocabulary
        self._patterns = [regex.compile(pattern) for pattern in vocabulary.patterns]
        self._added = AddedVocabulary(vocabulary.added, partial(apply, vocabulary.normalization))
        self.special = {token.content: token.id for token in vocabulary.added}
        self.control = frozenset(token.id for token in vocabulary.added if token.special)
        self.start_ids = tuple(vocabulary.start_ids)
        self._texts = {number: token for token, number in vocabulary.tokens.items()}
        self._texts |= {token.id: token.content for token in vocabulary.added}
        # What words are made of, which is never a control token.
        self._ids = {token: n for token, n in vocabulary.tokens.items() if n not in self.control}
        self._remembered = remembering(self._merge_word)

    @classmethod
    def from_gguf(cls, file: GGUF) -> "BPETokenizer":
        """Read the tokenizer from a GGUF file's metadata."""
        return cls(read_gguf(file))

    @classmethod
    def from_json(cls, path: Path) -> "BPETokenizer":
        """Read the tokenizer from a tokenizer.json file."""
        vocabulary = read_bpe_json(path)
        try:
            return cls(vocabulary)
        except regex.error as error:
            raise ModelFileError(f"{path} cuts words by a pattern that cannot be read: {error}") from error

    @property
    def vocab_size(self) -> int:
        """One more than the largest token id."""
        return max(self._texts) + 1

    def encode(self, text: str, literal: Sequence[tuple[int, int]] = ()) -> Encoding:
        """Return all tokens of a text.

        Parameters
        ----------
        text
            The text. Special tokens in it, such as ``<|im_end|>``, become their own id.
        literal
            Spans ``(start, end)`` of the text in which control tokens are plain text, so that
            what a document says cannot end a chat turn.

        Raises
        ------
        InputError
            The text is not a string, or holds half of a surrogate pair.
        """
        check_text(text, "the text")
        ids, tokens, offsets = [], [], []
        for word in self._words(text, literal):
            for token, number, start, end in self._tokens_of(word):
                ids.append(number)
                tokens.append(token)
                offsets.append(word.span(start, end))
        return Encoding(ids, tokens, offsets)

    def steps(self, text: str, literal: Sequence[tuple[int, int]] = ()) -> list[WordSteps]:
        """Tell how each word of a text becomes tokens; parameters and errors are those of `encode`."""
        check_text(text, "the text")
        return [self._explain(word, text) for word in self._words(text, literal)]

    def decode(self, ids: Sequence[int]) -> str:
        """Text of a sequence of ids, control tokens left out; broken UTF-8 becomes U+FFFD.

        A blank that the tokenizer puts before every text is not part of it.
        """
        text = b"".join(map(self.token_bytes, ids)).decode("utf-8", errors="replace")
        return text.removeprefix(" ") if self._vocabulary.drops_blank else text

    def token_bytes(self, number: int) -> bytes:
        """Bytes a token stands for; a control token (end of turn, say) or an unused id stands for none."""
        if number in self.control or number not in self._texts:
            return b""
        token = self._texts[number]
        return token.encode() if token in self.special else self._vocabulary.alphabet.token_bytes(token)

    def _words(self, text: str, literal: Sequence[tuple[int, int]]) -> Iterator[Segment]:
        """Yield the words of a text, and the added tokens that it spells out."""
        for segment in self._added.split(text, literal):
            if segment.added is not None:
                yield segment
                continue
            plain = segment.normalized.part(segment.start, segment.end)
            prepared = apply(self._vocabulary.preparation, plain)
            spans = [(0, len(prepared.text))]
            for pattern in self._patterns:
                spans = [piece for span in spans for piece in cut(pattern, prepared.text, *span)]
            for start, end in spans:
                yield Segment(prepared, start, end)

    def _tokens_of(self, word: Segment) -> tuple[TokenSpan, ...]:
        """Return the tokens of a word, from memory where it was met before."""
        if word.added is not None:
            return ((word.text, word.added.id, 0, word.end - word.start),)
        return self._remembered(word.text)

    def _merge_word(self, word: str) -> tuple[TokenSpan, ...]:
        """Return the tokens of a word and their spans in it."""
        whole = self._whole(word)
        if whole is not None:
            return ((whole, self._ids[whole], 0, len(word)),)
        symbols, places = self._spell(word)
        merged = merge(symbols, self._vocabulary.rank)
        borders = [*(place for place, symbol in enumerate(merged) if symbol), len(merged)]
        return tuple(
            (merged[left], self._vocabulary.tokens[merged[left]], places[left], places[right - 1] + 1)
            for left, right in pairwise(borders)
        )

    def _whole(self, word: str) -> str | None:
        """Return the token that a word is, where such words are not merged."""
        whole = "".join(self._vocabulary.alphabet.spell(word)) if self._vocabulary.ignore_merges else None
        return whole if whole in self._ids else None

    def _spell(self, word: str) -> tuple[list[str], list[int]]:
        """Return the symbols of a word that have a token, and the place of the character each is of."""
        symbols, places = [], []
        for place, character in enumerate(word):
            for symbol in self._vocabulary.alphabet.spell(character):
                known = symbol if symbol in self._ids else self._vocabulary.unknown
                if known is not None:
                    symbols.append(known)
                    places.append(place)
        return symbols, places

    def _explain(self, word: Segment, text: str) -> WordSteps:
        special = word.added is not None
        found = self._tokens_of(word)
        merging = [] if special or self._whole(word.text) else self._spell(word.text)[0]
        start, end = word.span(0, word.end - word.start)
        return WordSteps(
            original=text[start:end],
            start=start,
            end=end,
            symbols=[word.text] if special else list(self._vocabulary.alphabet.spell(word.text)),
            merges=[
                Merge(pair, rank, [symbol for symbol in merging if symbol])
                for pair, rank in merges(merging, self._vocabulary.rank)
            ],
            tokens=[token for token, _, _, _ in found],
            ids=[number for _, number, _, _ in found],
            offsets=[word.span(first, last) for _, _, first, last in found],
            special=special,
        )
