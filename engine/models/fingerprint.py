"""Hashes of an encoder's parts: the same for two models of one content, whatever their names."""

import weakref
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import fields, is_dataclass
from hashlib import sha256

import numpy as np

from ..layers.tracing import Array
from ..tokenizers.text_tokenizer import TextTokenizer
from .embedding_head import EmbeddingHead

# Lower case, accents, Chinese characters, control characters, added tokens, a word that is too long: where
# two tokenizers with one vocabulary may differ.
PROBE = f"Café NAÏVE e\u0301 中文 a\u200bb\x00c [MASK] [mask] don't {'x' * 101}"

_digests: dict[tuple[int, int], str] = {}  # by the ids of weights and tokenizers, which have no hash


def parts_digest(weights: object, tokenizer: TextTokenizer) -> str:
    """Hash every weight, the vocabulary, and the tokens of `PROBE`, once for two parts."""
    key = id(weights), id(tokenizer)
    if key in _digests:
        return _digests[key]
    digest = sha256()
    for array in arrays_in(weights):
        digest.update(f"{array.dtype} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    for number in range(tokenizer.vocab_size):
        with suppress(KeyError):  # a number that no token has
            digest.update(f"{number} {tokenizer.token(number)}\n".encode())
    digest.update(repr(tokenizer.encode(PROBE).ids).encode())
    _digests[key] = digest.hexdigest()
    for part in (weights, tokenizer):
        weakref.finalize(part, _digests.pop, key, None)
    return _digests[key]


def head_digest(head: EmbeddingHead) -> str:
    """Hash everything that a model's head does with its token vectors."""
    digest = sha256(f"{head.poolings} {head.include_prompt} {head.dimensions}".encode())
    for step in head.steps:
        digest.update(getattr(step, "activation", type(step).__name__.lower()).encode())
        for array in arrays_in(step):
            digest.update(f"{array.dtype} {array.shape}".encode())
            digest.update(array.tobytes())
    return digest.hexdigest()


def arrays_in(weights: object) -> Iterator[Array]:
    """Yield every array of nested dataclasses, tuples and lists, in the order of their fields."""
    if isinstance(weights, np.ndarray):
        yield weights
    elif isinstance(weights, list | tuple):
        for part in weights:
            yield from arrays_in(part)
    elif is_dataclass(weights):
        for field in fields(weights):
            yield from arrays_in(getattr(weights, field.name))
