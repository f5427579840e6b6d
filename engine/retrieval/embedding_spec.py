"""How vectors were made: only vectors with equal specs can be compared."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256

from engine.layers.tracing import Array
from engine.models.embedding_head import OWN
from engine.models.encoder import Encoder
from engine.models.prompts import Prompts
from engine.retrieval.fingerprint import fingerprint, head_digest

NO_LIMIT = sys.maxsize  # tokens read of a text, where the model's limit is not known


@dataclass(frozen=True)
class EmbeddingSpec:
    """How vectors were made. Only vectors with equal specs can be compared, whatever their shapes.

    ``model`` is the `fingerprint` of the encoder (with its prompts, and the word weights if the pooling has
    any), ``name`` its name for people, ``d_model`` the length of a vector; ``max_tokens`` may be `NO_LIMIT`.
    """

    model: str
    pooling: str
    max_tokens: int
    d_model: int
    name: str = field(default="", compare=False)

    @classmethod
    def of(
        cls, encoder: Encoder, pooling: str | None = None, max_tokens: int | None = None
    ) -> "EmbeddingSpec":
        """Return the spec of an encoder's vectors; arguments and errors are those of `Encoder.encode`.

        A model's own head has the name of the strategy that it is, or "own" if it is more than one.
        """
        encoder.check_poolings(pooling)
        pooling = encoder.pooling if pooling is None or pooling == OWN else pooling
        limit, d_model = encoder.token_limit(max_tokens), encoder.width(pooling)
        model = fingerprint(encoder)
        model = prompted_digest(model, encoder.prompts)
        name = encoder.name if encoder.precision == "float32" else f"{encoder.name} in {encoder.precision}"
        name = f"{name} with its prompts" if encoder.prompts.in_search else name
        if pooling == OWN:
            model = sha256(f"{model} {head_digest(encoder.head)}".encode()).hexdigest()
        if pooling == "idf":
            assert encoder.idf is not None, "checked by check_poolings"
            model = sha256(model.encode() + encoder.idf.tobytes()).hexdigest()
        return cls(model, pooling, limit, d_model, name)

    def keys(self, texts: Sequence[str]) -> list[bytes]:
        """Return the cache key of each text's vector."""
        stamp = f"{self.model} {self.pooling} {self.max_tokens} {self.d_model} ".encode()
        hashes = (sha256(text.encode("utf-8", "surrogatepass")).digest() for text in texts)
        return [sha256(stamp + text_hash).digest() for text_hash in hashes]

    def __str__(self) -> str:
        """``all-MiniLM-L6-v2, pooling mean, 256 tokens, weights 1a2b3c``."""
        limit = "no known limit" if self.max_tokens == NO_LIMIT else f"{self.max_tokens} tokens"
        return f"{self.name}, pooling {self.pooling}, {limit}, weights {self.model[:6]}"


def prompted_digest(model: str, prompts: Prompts) -> str:
    """Return a model's fingerprint with the prompts before questions and documents; itself without any."""
    return sha256(f"{model} {prompts.in_search}".encode()).hexdigest() if prompts.in_search else model


@dataclass(frozen=True)
class Query:
    """A question's vector ``(d_model,)``, of length 1, and how it was made."""

    vector: Array
    spec: EmbeddingSpec
