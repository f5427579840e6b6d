"""Read a BPE tokenizer from a GGUF file's metadata, as llama.cpp does."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from ..errors import ModelFileError
from ..weights.gguf_file import GGUF
from ..wording import reason_of
from .added_tokens import AddedToken
from .bpe_vocabulary import BYTE_LEVEL, BPEVocabulary, best_score, learnt_order, sentencepiece, word_patterns
from .normalized import normal_form, prepend, replace
from .patterns import BLANK, DIGIT, GPT2, GPT4O, LLAMA3, QWEN2, TEKKEN

# The word patterns behind the names that `tokenizer.ggml.pre` may have.
WORD_PATTERNS = {
    "gpt-2": [GPT2],
    "smollm": [DIGIT, GPT2],
    "qwen2": [QWEN2],
    "deepseek-r1-qwen": [QWEN2],
    "llama-bpe": [LLAMA3],
    "llama3": [LLAMA3],
    "llama-v3": [LLAMA3],
    "gpt-4o": [GPT4O],
    "tekken": [TEKKEN],
}
# With these, a word that is a token is not merged, and texts begin with the first token by default.
WHOLE_WORDS = ([LLAMA3], [TEKKEN])
# Values of `tokenizer.ggml.token_type`.
UNKNOWN, CONTROL, USER_DEFINED, BYTE = 2, 3, 4, 6


def read_gguf(file: GGUF) -> BPEVocabulary:
    """Read the tokenizer that a GGUF file holds."""
    kind = file["tokenizer.ggml.model"]
    if kind not in ("gpt2", "llama"):
        raise ModelFileError(
            f"{file.path} has a {kind!r} tokenizer: only byte-level BPE ('gpt2') and SentencePiece BPE "
            f"('llama') are read"
        )
    try:
        texts = file.texts("tokenizer.ggml.tokens")
        types = token_values(file, "tokenizer.ggml.token_type", len(texts))
        read = read_byte_level if kind == "gpt2" else read_sentencepiece
        return read(file, texts, types)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise ModelFileError(
            f"{file.path} has no complete tokenizer ({reason_of(error)}): download it again"
        ) from error


def read_byte_level(file: GGUF, texts: Sequence[str], types: Sequence[int]) -> BPEVocabulary:
    """Read a byte-level BPE tokenizer from its tokens, their types and its merges."""
    name = file.get("tokenizer.ggml.pre", "gpt-2")
    if name not in WORD_PATTERNS:
        raise ModelFileError(
            f"{file.path} splits words by the rules of {name!r}: known are {', '.join(WORD_PATTERNS)}"
        )
    patterns = WORD_PATTERNS[name]
    tokens, added = dict(zip(texts, range(len(texts)), strict=True)), added_tokens(texts, types)
    return BPEVocabulary(
        tokens=tokens,
        added=added,
        alphabet=BYTE_LEVEL,
        rank=learnt_order(file.texts("tokenizer.ggml.merges"), tokens, added, file.path),
        normalization=[partial(normal_form, form="NFC")] if patterns == [QWEN2] else [],
        patterns=patterns,
        ignore_merges=patterns in WHOLE_WORDS,
        start_ids=start_ids(file, by_default=patterns in WHOLE_WORDS, bos=None),
    )


def read_sentencepiece(file: GGUF, texts: Sequence[str], types: Sequence[int]) -> BPEVocabulary:
    """Read a SentencePiece tokenizer from its tokens, their types and their scores."""
    scores = token_values(file, "tokenizer.ggml.scores", len(texts))
    tokens = dict(zip(texts, range(len(texts)), strict=True))
    prefix = file.get("tokenizer.ggml.add_space_prefix", True)
    return BPEVocabulary(
        tokens=tokens,
        added=added_tokens(texts, types),
        alphabet=sentencepiece(tokens, file.path),
        rank=best_score(
            {
                text: float(score)
                for text, score, kind in zip(texts, scores, types, strict=True)
                if kind not in (UNKNOWN, CONTROL, BYTE)
            }
        ),
        normalization=[partial(replace, old=" ", new=BLANK)],
        preparation=[partial(prepend, prefix=BLANK)] if prefix else [],
        patterns=word_patterns(tokens),
        start_ids=start_ids(file, by_default=True, bos=1),
        drops_blank=prefix,
    )


def added_tokens(texts: Sequence[str], types: Sequence[int]) -> list[AddedToken]:
    """Return the added tokens, which are matched as a whole."""
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return [
        AddedToken(text, number, **flags, special=kind != USER_DEFINED)
        for number, (text, kind) in enumerate(zip(texts, types, strict=True))
        if kind in (UNKNOWN, CONTROL, USER_DEFINED)
    ]


def token_values(file: GGUF, key: str, n_tokens: int) -> Sequence[Any]:
    """Return a list of metadata, checked to have one value a token."""
    values: Sequence[Any] = file[key]
    if len(values) != n_tokens:
        raise ModelFileError(
            f"{file.path} has {len(values)} values in {key!r} for {n_tokens} tokens: download it again"
        )
    return values


def start_ids(file: GGUF, by_default: bool, bos: int | None) -> list[int]:
    """Return the tokens before a text: none, or the begin-of-sequence token."""
    bos = file.get("tokenizer.ggml.bos_token_id", bos)  # checked with the decoder's sizes
    return [bos] if file.get("tokenizer.ggml.add_bos_token", by_default) and bos is not None else []
