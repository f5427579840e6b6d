"""WordPiece, the tokenizer of BERT (Devlin et al. 2019)."""

from collections.abc import Sequence
from pathlib import Path

import tokenizers

from engine.errors import ModelFileError
from engine.tokenizers.encoding import Encoding, check_text

CONTINUATION = "##"


class WordPieceTokenizer:
    """The tokenizer.json of a BERT-family model; never truncates and never pads."""

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            raise ModelFileError(f"{path.parent} has no {path.name}: give a complete model folder")
        try:
            self._tokenizer = tokenizers.Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises bare Exception
            raise ModelFileError(
                f"{path} is not a readable tokenizer ({error}): download it again"
            ) from error
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self.n_special = self._tokenizer.num_special_tokens_to_add(is_pair=False)

    @property
    def vocab_size(self) -> int:
        """Number of tokens in the vocabulary."""
        return self._tokenizer.get_vocab_size()

    def encode(self, text: str) -> Encoding:
        """Return all tokens of a text, [CLS] and [SEP] included."""
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: Sequence[str]) -> list[Encoding]:
        """Tokenize many texts at once.

        Raises
        ------
        InputError
            A text is not a string, or holds half of a surrogate pair.
        """
        for number, text in enumerate(texts):
            check_text(text, f"text {number}")
        return [Encoding(e.ids, e.tokens, e.offsets) for e in self._tokenizer.encode_batch(list(texts))]
