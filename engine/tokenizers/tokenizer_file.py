"""The tokenizer of an encoder from its tokenizer.json, of any kind."""

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import regex

from ..errors import ModelFileError
from ..weights.tensors import read_json
from .bpe import BPEStages, BPETokenizer
from .bpe_json import read_bpe_json
from .encoding import Encoding
from .normalized import compose, lower
from .patterns import KNOWN
from .text_tokenizer import TextTokenizer, checked_texts, read_shared
from .unigram import UnigramTokenizer
from .wordpiece import WordPieceTokenizer


class BytePairEncoderTokenizer(TextTokenizer):
    """A tokenizer.json of byte-level BPE, as RoBERTa, ModernBERT and Qwen3-Embedding have it.

    Special tokens stand around texts; it never truncates and never pads.
    """

    def __init__(self, path: Path, lower_case: bool = False) -> None:
        vocabulary = read_bpe_json(path, shares_span=True)
        try:
            shared = read_shared(read_json(path), vocabulary.tokens, path)
            if lower_case:
                vocabulary = replace(vocabulary, normalization=[lower, *vocabulary.normalization])
            self._bpe = BPETokenizer(vocabulary)
        except (LookupError, TypeError, ValueError, AttributeError, regex.error) as error:
            raise ModelFileError(
                f"{path} is not a readable tokenizer ({error!r}): download it again"
            ) from error
        super().__init__(path, shared, lower_case)
        self.in_library = KNOWN.issuperset(vocabulary.patterns)
        self._composes = compose in vocabulary.normalization

    def encode_batch(self, texts: Sequence[str]) -> list[Encoding]:
        """Tokenize many texts at once; the rest is as in `TextTokenizer.encode_batch`.

        Where letters and their accents are composed (NFC), the library's offsets leave out the accents, and
        the engine's do not: such texts are tokenized here.
        """
        texts = checked_texts(texts)
        encodings = super().encode_batch(texts)
        if not self._composes:
            return encodings
        return [
            encoding if unicodedata.is_normalized("NFC", text) else self.encode(text)
            for text, encoding in zip(texts, encodings, strict=True)
        ]

    def readable(self, number: int) -> str:
        """Return the text of a token, with parts of a character as numbers; special tokens as written."""
        known = number in self._texts and number not in self.special_ids
        text = self._bpe.token_bytes(number).decode("utf-8", "backslashreplace") if known else ""
        return text or super().readable(number)

    def readable_tokens(self, encoding: Encoding) -> list[str]:
        """Return the tokens of an encoding with their bytes decoded."""
        return [self.readable(number) for number in encoding.ids]

    def stages(self, text: str) -> Sequence[BPEStages]:
        """Return the stages of each word of a text, without special tokens around it."""
        return self._bpe.stages(text)

    def _encode_plain(self, text: str) -> Encoding:
        return self._bpe.encode(text)


# By the type of the model in tokenizer.json.
TOKENIZERS: dict[str, Callable[[Path, bool], TextTokenizer]] = {
    "WordPiece": WordPieceTokenizer,
    "BPE": BytePairEncoderTokenizer,
    "Unigram": UnigramTokenizer,
}


def read_tokenizer(path: Path, lower_case: bool = False) -> TextTokenizer:
    """Read a tokenizer.json file; ``lower_case`` lower-cases texts even if the file does not ask for it."""
    model = read_json(path).get("model")
    kind = model.get("type") if isinstance(model, dict) else None
    if kind is None:  # early files name no type
        kind = "BPE" if isinstance(model, dict) and "merges" in model else "WordPiece"
    if kind not in TOKENIZERS:
        raise ModelFileError(f"{path} is a {kind} tokenizer: only {', '.join(TOKENIZERS)} are read")
    return TOKENIZERS[kind](path, lower_case)
