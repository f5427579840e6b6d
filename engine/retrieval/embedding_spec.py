"""How vectors were made: only vectors with equal specs can be compared."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256

from ..layers.tracing import Array
from ..models.prompts import Prompts
from ..wording import model_name

NO_LIMIT = sys.maxsize  # tokens read of a text, where the model's limit is not known


@dataclass(frozen=True)
class EmbeddingSpec:
    """How vectors were made. Only vectors with equal specs can be compared, whatever their shapes."""

    model: str  # fingerprint of the model, its prompts, and the word weights if the pooling has any
    pooling: str
    max_tokens: int  # may be `NO_LIMIT`
    d_model: int  # length of a vector
    name: str = field(default="", compare=False)  # the model's, for people

    def keys(self, texts: Sequence[str]) -> list[bytes]:
        """Return the cache key of each text's vector."""
        stamp = f"{self.model} {self.pooling} {self.max_tokens} {self.d_model} ".encode()
        hashes = (sha256(text.encode("utf-8", "surrogatepass")).digest() for text in texts)
        return [sha256(stamp + text_hash).digest() for text_hash in hashes]

    def __str__(self) -> str:
        """``all-MiniLM-L6-v2, pooling mean, 256 tokens, weights 1a2b3c``."""
        limit = "no known limit" if self.max_tokens == NO_LIMIT else f"{self.max_tokens} tokens"
        return f"{model_name(self.name)}, pooling {self.pooling}, {limit}, weights {self.model[:6]}"


def prompted_digest(model: str, prompts: Prompts) -> str:
    """Return a model's fingerprint with the prompts before questions and documents; itself without any."""
    return sha256(f"{model} {prompts.in_search}".encode()).hexdigest() if prompts.in_search else model


@dataclass(frozen=True)
class Query:
    """A question's vector ``(d_model,)``, of length 1, and how it was made."""

    vector: Array
    spec: EmbeddingSpec
