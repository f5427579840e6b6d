"""The tokenizer of an encoder from its tokenizer.json, of any kind."""

from collections.abc import Callable
from pathlib import Path

from engine.errors import ModelFileError
from engine.tokenizers.byte_pair_encoder import BytePairEncoderTokenizer
from engine.tokenizers.text_tokenizer import TextTokenizer
from engine.tokenizers.unigram import UnigramTokenizer
from engine.tokenizers.wordpiece import WordPieceTokenizer
from engine.weights.tensors import read_json

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
