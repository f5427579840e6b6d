"""WordPiece, the tokenizer of BERT (Devlin et al. 2019).

A text is normalised and split into words and punctuation, and each word, from left to right, into the
longest pieces in the vocabulary.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from engine.tokenizers.added_tokens import AddedVocabulary, Segment, encode_words
from engine.tokenizers.encoding import Encoding, TokenSpan, cached_words, check_text
from engine.tokenizers.normalization import words
from engine.tokenizers.normalized import Normalized
from engine.tokenizers.text_tokenizer import TextTokenizer
from engine.tokenizers.wordpiece_file import read_wordpiece


@dataclass(frozen=True)
class Piece:
    """A token of a word: ``word[start:end]`` of the normalised word.

    ``tried`` are the candidates that were looked up, from the longest to the one found; for an unknown
    word, all candidates.
    """

    token: str
    id: int
    start: int
    end: int
    tried: list[str]
    unknown: bool = False


@dataclass(frozen=True)
class WordPieceStages:
    """The stages from one word of a text to its tokens.

    ``original`` is ``text[start:end]`` of the whole text; ``offsets`` are the spans of the pieces in the
    whole text. A ``special`` word is an added token in the text, such as ``[MASK]``, which is not split.
    """

    original: str
    start: int
    end: int
    normalized: str
    pieces: list[Piece]
    offsets: list[tuple[int, int]]
    special: bool


class WordPieceTokenizer(TextTokenizer):
    """The tokenizer.json of a BERT-family model; never truncates and never pads.

    With ``lower_case``, texts are lower-cased even if the file does not ask for it: ``do_lower_case`` of
    sentence-transformers.
    """

    def __init__(self, path: Path, lower_case: bool = False) -> None:
        settings = read_wordpiece(path, lower_case)
        super().__init__(path, settings.shared, lower_case)
        self._normalizer = settings.normalizer
        self._vocabulary = settings.shared.tokens
        self._longest = max(map(len, self._vocabulary))
        self._unknown = settings.unknown
        self._max_characters = settings.max_characters
        self.continuation = settings.continuation
        self._added = AddedVocabulary(settings.shared.added, self._normalized)
        self._cached_tokens = cached_words(self._spans)

    def stages(self, text: str) -> list[WordPieceStages]:
        """Return the stages of each word of a text, without [CLS] and [SEP]."""
        check_text(text, "the text")
        return [self._explain(word, text) for word in self._words(text)]

    def _explain(self, word: Segment, text: str) -> WordPieceStages:
        pieces = (
            self._match(word.text)
            if word.added is None
            else [Piece(word.text, word.added.id, 0, len(word.text), [])]
        )
        start, end = word.span(0, word.end - word.start)
        offsets = [word.span(piece.start, piece.end) for piece in pieces]
        return WordPieceStages(
            text[start:end], start, end, word.text, pieces, offsets, word.added is not None
        )

    def _encode_plain(self, text: str) -> Encoding:
        """Return the tokens of a text without [CLS] and [SEP]."""
        return encode_words(self._words(text), self._cached_tokens)

    def _words(self, text: str) -> Iterator[Segment]:
        """Yield the words and the added tokens of a text."""
        for segment in self._added.split(text):
            if segment.added is not None:
                yield segment
            else:
                for start, end in words(segment.normalized.text, segment.start, segment.end):
                    yield Segment(segment.normalized, start, end)

    def _normalized(self, text: Normalized) -> Normalized:
        """Normalise a part of the original text."""
        return self._normalizer(text.text, text.starts[0])

    def _spans(self, word: str) -> tuple[TokenSpan, ...]:
        """Return the pieces of a word as `encode` needs them."""
        return tuple((piece.token, piece.id, piece.start, piece.end) for piece in self._match(word))

    def _match(self, word: str) -> list[Piece]:
        """Split a word into the longest pieces in the vocabulary; if one is missing, the word is unknown."""
        unknown = self._vocabulary[self._unknown]
        if len(word) > self._max_characters:
            return [Piece(self._unknown, unknown, 0, len(word), [], unknown=True)]
        pieces: list[Piece] = []
        start = 0
        while start < len(word):
            tried = list(self._candidates(word, start))
            token = tried[-1]
            if token not in self._vocabulary:
                all_tried = [candidate for piece in pieces for candidate in piece.tried] + tried
                return [Piece(self._unknown, unknown, 0, len(word), all_tried, unknown=True)]
            end = start + len(token) - len(self.continuation if start else "")
            pieces.append(Piece(token, self._vocabulary[token], start, end, tried))
            start = end
        return pieces

    def _candidates(self, word: str, start: int) -> Iterator[str]:
        """Yield candidates for the start of ``word[start:]``, from the longest to the first token found."""
        prefix = self.continuation if start else ""
        for end in range(min(len(word), start + self._longest), start, -1):
            candidate = prefix + word[start:end]
            yield candidate
            if candidate in self._vocabulary:
                return
