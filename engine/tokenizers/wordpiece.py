"""WordPiece, the tokenizer of BERT (Devlin et al. 2019).

A text is normalised and cut into words and punctuation, and each word into the longest pieces that the
vocabulary has, from left to right.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import ModelFileError
from engine.tokenizers.added_tokens import AddedVocabulary, Segment
from engine.tokenizers.encoding import Encoding, TokenSpan, check_text, remembering
from engine.tokenizers.normalization import words
from engine.tokenizers.normalized import Normalized
from engine.tokenizers.templates import assemble
from engine.tokenizers.wordpiece_file import read_wordpiece

if TYPE_CHECKING:
    import tokenizers


@dataclass(frozen=True)
class Piece:
    """A token of a word: ``word[start:end]`` of the normalised word.

    ``tried`` is what was looked for in the vocabulary, from the longest candidate to the one found; for
    an unknown word, all that was looked for until nothing was left to try.
    """

    token: str
    id: int
    start: int
    end: int
    tried: list[str]
    unknown: bool = False


@dataclass(frozen=True)
class WordSteps:
    """How one word of a text became tokens.

    ``text[start:end]`` of the whole text is ``original``; ``offsets`` are the spans of the pieces in the
    whole text. A ``special`` word is an added token that the text spells out, such as ``[MASK]``: it is
    taken as it is, and nothing is looked for.
    """

    original: str
    start: int
    end: int
    normalized: str
    pieces: list[Piece]
    offsets: list[tuple[int, int]]
    special: bool


class WordPieceTokenizer:
    """The tokenizer.json of a BERT-family model; never truncates and never pads.

    `encode`, `encode_pair` and `steps` run what is written here; `encode_batch` and `ids_batch` give
    the same for very many texts, through the compiled `tokenizers` library.
    """

    def __init__(self, path: Path) -> None:
        settings = read_wordpiece(path)
        self._path = path
        self._normalizer = settings.normalizer
        self._vocabulary = settings.vocabulary
        self._longest = max(map(len, settings.vocabulary))
        self._unknown = settings.unknown
        self._max_characters = settings.max_characters
        self._single, self._pair = settings.single, settings.pair
        self.continuation = settings.continuation

        added = settings.added
        self._added = AddedVocabulary(added, self._normalized)
        self._ids = {**settings.vocabulary, **{token.content: token.id for token in added}}
        self._texts = {number: token for token, number in self._ids.items()}
        self.special_ids = frozenset(token.id for token in added if token.special)
        self.n_special = sum(len(part.ids) for part in self._single)
        self.pad_id = self._ids.get(settings.padding, 0)
        self._remembered = remembering(self._spans)

    @property
    def vocab_size(self) -> int:
        """One more than the largest token id."""
        return max(self._texts) + 1

    def token(self, number: int) -> str:
        """Return the token that has an id."""
        return self._texts[number]

    def encode(self, text: str) -> Encoding:
        """Return all tokens of a text, [CLS] and [SEP] included.

        Raises
        ------
        InputError
            The text is not a string, or holds half of a surrogate pair.
        """
        check_text(text, "the text")
        return assemble(self._single, [self._encode_plain(text)])

    def encode_pair(self, first: str, second: str) -> Encoding:
        """Return all tokens of two texts, ``[CLS] first [SEP] second [SEP]``, as a cross-encoder reads them.

        ``type_ids`` tells the texts apart; the offsets of each point into its own.
        """
        check_text(first, "the first text")
        check_text(second, "the second text")
        return assemble(self._pair, [self._encode_plain(first), self._encode_plain(second)])

    def encode_batch(self, texts: Sequence[str]) -> list[Encoding]:
        """Tokenize many texts at once.

        Raises
        ------
        InputError
            A text is not a string, or holds half of a surrogate pair.
        """
        encodings = self._library.encode_batch(checked_texts(texts))
        return [Encoding(e.ids, e.tokens, e.offsets, e.type_ids) for e in encodings]

    def ids_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids alone of many texts, which is quicker still; errors are those of `encode_batch`."""
        return [e.ids for e in self._library.encode_batch_fast(checked_texts(texts))]

    def steps(self, text: str) -> list[WordSteps]:
        """Tell how each word of a text becomes tokens; [CLS] and [SEP] around the text are no words."""
        check_text(text, "the text")
        return [self._explain(word, text) for word in self._words(text)]

    def _explain(self, word: Segment, text: str) -> WordSteps:
        pieces = (
            self._match(word.text)
            if word.added is None
            else [Piece(word.text, word.added.id, 0, len(word.text), [])]
        )
        start, end = word.span(0, word.end - word.start)
        offsets = [word.span(piece.start, piece.end) for piece in pieces]
        return WordSteps(text[start:end], start, end, word.text, pieces, offsets, word.added is not None)

    def _encode_plain(self, text: str) -> Encoding:
        """Return the tokens of a text, nothing around them."""
        ids, tokens, offsets = [], [], []
        for word in self._words(text):
            for token, number, start, end in self._tokens_of(word):
                ids.append(number)
                tokens.append(token)
                offsets.append(word.span(start, end))
        return Encoding(ids, tokens, offsets)

    def _tokens_of(self, word: Segment) -> tuple[TokenSpan, ...]:
        """Return the tokens of a word, from memory where it was met before."""
        text = word.text
        if word.added is not None:
            return ((text, word.added.id, 0, len(text)),)
        return self._remembered(text)

    def _words(self, text: str) -> Iterator[Segment]:
        """Yield the words of a text, and the added tokens that it spells out."""
        for segment in self._added.split(text):
            if segment.added is not None:
                yield segment
            else:
                for start, end in words(segment.normalized.text, segment.start, segment.end):
                    yield Segment(segment.normalized, start, end)

    def _normalized(self, text: Normalized) -> Normalized:
        """Normalise a stretch of a text as it was written."""
        return self._normalizer(text.text, text.starts[0])

    def _spans(self, word: str) -> tuple[TokenSpan, ...]:
        """Return what `encode` needs of the pieces of a word."""
        return tuple((piece.token, piece.id, piece.start, piece.end) for piece in self._match(word))

    def _match(self, word: str) -> list[Piece]:
        """Cut a word into the longest pieces that have a token; where one has none, all of it is unknown."""
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
        """Yield tokens that ``word[start:]`` may begin with, from the longest to the first that exists."""
        prefix = self.continuation if start else ""
        for end in range(min(len(word), start + self._longest), start, -1):
            candidate = prefix + word[start:end]
            yield candidate
            if candidate in self._vocabulary:
                return

    @cached_property
    def _library(self) -> "tokenizers.Tokenizer":
        """The same tokenizer in the `tokenizers` library."""
        import tokenizers

        try:
            library = tokenizers.Tokenizer.from_file(str(self._path))
        except Exception as error:  # the library raises bare Exception
            raise ModelFileError(
                f"{self._path} is not a readable tokenizer ({error}): download it again"
            ) from error
        library.no_truncation()
        library.no_padding()
        return library


def checked_texts(texts: Sequence[str]) -> list[str]:
    """Return the texts as a list, or raise `InputError` for one that is none."""
    texts = list(texts)
    for number, text in enumerate(texts):
        check_text(text, f"text {number}")
    return texts
