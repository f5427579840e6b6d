"""The tokenizer of an encoder from its tokenizer.json, of any kind."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import regex

from ..errors import ModelFileError
from ..weights.tensors import read_json, unreadable_tokenizer
from .bpe import BPEStages, BPETokenizer
from .bpe_json import read_bpe
from .configured import kind_of, read_changes
from .encoding import Encoding
from .patterns import KNOWN
from .text_tokenizer import NO_CHANGES, TextTokenizer, read_content, read_shared
from .unigram import UnigramTokenizer
from .wordpiece import WordPieceTokenizer


class BytePairEncoderTokenizer(TextTokenizer):
    """A tokenizer.json of byte-level BPE, as RoBERTa, ModernBERT and Qwen3-Embedding have it.

    Special tokens stand around texts; it never truncates and never pads.
    """

    def __init__(self, path: Path, changes: Mapping[str, Any] = NO_CHANGES) -> None:
        content = read_content(path, changes)
        vocabulary = read_bpe(content, path)
        try:
            shared = read_shared(content, vocabulary.tokens, path)
            self._bpe = BPETokenizer(vocabulary)
        except (LookupError, TypeError, ValueError, AttributeError, regex.error) as error:
            raise unreadable_tokenizer(path, error) from error
        super().__init__(path, shared, changes)
        self.in_library &= KNOWN.issuperset(vocabulary.patterns)

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
TOKENIZERS: dict[str, Callable[[Path, Mapping[str, Any]], TextTokenizer]] = {
    "WordPiece": WordPieceTokenizer,
    "BPE": BytePairEncoderTokenizer,
    "Unigram": UnigramTokenizer,
}


def read_tokenizer(path: Path, lower_case: bool = False) -> TextTokenizer:
    """Read a tokenizer.json file, with the settings of other files in its folder.

    ``lower_case`` lower-cases texts before anything else: ``do_lower_case`` of sentence-transformers.
    """
    content = read_json(path)
    kind = kind_of(content, path)
    if kind not in TOKENIZERS:
        raise ModelFileError(f"{path} is a {kind} tokenizer: only {', '.join(TOKENIZERS)} are read")
    changes = read_changes(content, path)
    if lower_case:
        own = {**content, **changes}["normalizer"]
        steps = [{"type": "Lowercase"}, *([own] if own else [])]
        changes["normalizer"] = {"type": "Sequence", "normalizers": steps}
    return TOKENIZERS[kind](path, changes)
