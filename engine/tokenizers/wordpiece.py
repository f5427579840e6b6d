"""WordPiece, the tokenizer of BERT (Devlin et al. 2019).

A text is normalised and split into words and punctuation, and each word, from left to right, into the
longest pieces in the vocabulary.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import ModelFileError
from engine.tokenizers.added_tokens import AddedVocabulary, Segment, encode_words
from engine.tokenizers.encoding import Encoding, TokenSpan, cached_words, check_text
from engine.tokenizers.normalization import words
from engine.tokenizers.normalized import Normalized
from engine.tokenizers.templates import assemble, cut_longest_first
from engine.tokenizers.wordpiece_file import read_wordpiece

if TYPE_CHECKING:
    import tokenizers


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


class WordPieceTokenizer:
    """The tokenizer.json of a BERT-family model; never truncates and never pads.

    With ``lower_case``, texts are lower-cased whatever the file says, as sentence-transformers'
    ``do_lower_case`` asks. `encode`, `encode_pair` and `stages` use the Python code here; `encode_batch` and
    `ids_batch` give the same results for many texts through the compiled `tokenizers` library.
    """

    def __init__(self, path: Path, lower_case: bool = False) -> None:
        settings = read_wordpiece(path, lower_case)
        self._path, self._lower_case = path, lower_case
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
        self._cached_tokens = cached_words(self._spans)

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

    def encode_pair(self, first: str, second: str, max_tokens: int | None = None) -> Encoding:
        """Return the tokens of two texts, ``[CLS] first [SEP] second [SEP]``, the input of a cross-encoder.

        ``type_ids`` tells the texts apart; offsets are spans of a token's own text. With ``max_tokens`` the
        longer text is cut first.
        """
        check_text(first, "the first text")
        check_text(second, "the second text")
        texts = [self._encode_plain(first), self._encode_plain(second)]
        if max_tokens is not None:
            texts = cut_longest_first(texts, max_tokens - sum(len(part.ids) for part in self._pair))
        return assemble(self._pair, texts)

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
        """Return only the ids of many texts, which is faster; errors are those of `encode_batch`."""
        return [e.ids for e in self._library.encode_batch_fast(checked_texts(texts))]

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

    @cached_property
    def _library(self) -> "tokenizers.Tokenizer":
        """The same tokenizer in the `tokenizers` library."""
        import tokenizers
        from tokenizers import normalizers

        try:
            library = tokenizers.Tokenizer.from_file(str(self._path))
        except Exception as error:  # the library raises bare Exception
            raise ModelFileError(
                f"{self._path} is not a readable tokenizer ({error}): download it again"
            ) from error
        if self._lower_case:
            steps = [normalizers.Lowercase(), *([library.normalizer] if library.normalizer else [])]
            library.normalizer = normalizers.Sequence(steps)
        library.no_truncation()
        library.no_padding()
        return library


def checked_texts(texts: Sequence[str]) -> list[str]:
    """Return the texts as a list, or raise `InputError` for one that is not a text."""
    texts = list(texts)
    for number, text in enumerate(texts):
        check_text(text, f"text {number}")
    return texts
