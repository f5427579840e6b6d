"""Models behind an OpenAI-compatible server (``POST {base}/v1/embeddings``), by their address.

The token limit and the prompts of the server are not known.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import urlsplit

import numpy as np

from ..errors import InputError, ModelUnavailableError
from ..generation.server import ADVICE, EMBEDDINGS_S, Server, Start, translated_errors
from ..layers.norm import l2_normalize
from ..layers.tracing import Array
from ..models.prompts import Prompts, Role
from ..retrieval.embedding_model import BlackBoxModel
from ..retrieval.embedding_spec import NO_LIMIT
from ..tokenizers.wordpiece import WordPieceTokenizer
from ..wording import model_name

if TYPE_CHECKING:
    from openai import AsyncOpenAI
    from openai.types import CreateEmbeddingResponse

REQUEST_TEXTS = 32  # of one request: the most that text-embeddings-inference takes by default
PROBE = "The length of this text's vector is that of all."
TOO_LONG = "if a text is too long for it, lower the chunk size; else see the server's log"
ADVICE_ON_TEXTS = ADVICE | dict.fromkeys((400, 413, 422), TOO_LONG)
SERVER_KEY = "GLASSBOX_SERVER_KEY"  # the environment variable of the command line; the app reads none
FORM = "http://host:port#model-name"


@dataclass(frozen=True)
class EmbeddingServer(BlackBoxModel):
    """A model behind an OpenAI-compatible server, a black box."""

    sets_limit: ClassVar[bool] = False
    block_texts: ClassVar[int] = REQUEST_TEXTS

    name: str  # the address and the model, as they were given
    server: Server
    tokenizer: WordPieceTokenizer = field(repr=False)  # the engine's, by which documents are cut
    d_model: int  # the length of the server's first answer
    fingerprint: str  # SHA-256 of address, model and length: another model of that name is not noticed
    prompts: Prompts = field(default_factory=Prompts)  # the server's own are not known

    @classmethod
    def connect(cls, address: str, tokenizer: WordPieceTokenizer, api_key: str = "") -> "EmbeddingServer":
        """Connect to a model, ``http://host:port#model-name``, and embed one text for its length.

        Documents are cut by the tokenizer. The key is sent to this server only, and never stored.
        """
        server = server_at(address, api_key)
        with server.connection() as start:
            d_model = requested(start, server, [PROBE]).shape[1]
        fingerprint = sha256(f"{server.url} {server.model} {d_model}".encode()).hexdigest()
        return cls(address, server, tokenizer, d_model, fingerprint)

    def with_prompts(self, use: str) -> "EmbeddingServer":
        """Return this model, whose prompts are not known, for any of `PROMPT_USES`."""
        self.prompts.used(use)
        return self

    def token_limit(self, max_tokens: int | None) -> int:
        """Return `NO_LIMIT`: how many tokens the server reads is not known."""
        if max_tokens not in (None, NO_LIMIT):
            raise InputError(
                f"max_tokens is {max_tokens}: how many tokens {model_name(self.name)} reads is up to the "
                "server, leave the limit to it"
            )
        return NO_LIMIT

    @contextmanager
    def embedder(self, role: Role, max_tokens: int | None) -> Iterator[Callable[[list[str]], Array]]:
        """Embed over one connection."""
        with self.server.connection() as start:
            yield lambda block: requested(start, self.server, block, self.d_model)


def is_server(source: str) -> bool:
    """Whether the name of a model is the address of a server."""
    return source.lower().startswith(("http://", "https://"))


def server_at(address: str, api_key: str = "") -> Server:
    """Return the server and the model of an address ``http://host:port#model-name``."""
    url, _, model = (part.strip() for part in address.partition("#"))
    if any(mark in url for mark in "@?"):
        raise InputError(f"the address of the server has a user or a query: give {FORM}, and the key apart")
    if not model:
        raise InputError(f"{address!r} names no model: give {FORM}")
    try:
        is_bare = urlsplit(url).path in ("", "/")
    except ValueError:  # which the server refuses as an address
        is_bare = False
    return Server(f"{url.rstrip('/')}/v1" if is_bare else url, model, api_key)


def requested(start: Start, server: Server, texts: list[str], d_model: int | None = None) -> Array:
    """Have the server embed texts in one request: float32 ``(n_texts, d_model)``, rows of length 1."""

    async def embedded(client: "AsyncOpenAI") -> "CreateEmbeddingResponse":
        return await client.embeddings.create(model=server.model, input=texts, encoding_format="float")

    with translated_errors(server, ADVICE_ON_TEXTS):
        answer = start(embedded, EMBEDDINGS_S).result()
        places = [int(each.index) for each in answer.data]
        rows = [np.array(each.embedding, np.float64) for each in answer.data]
    if sorted(places) != list(range(len(texts))):
        raise ModelUnavailableError(
            f"{server.url} gave {len(rows)} vectors, numbered {str(places)[:40]}, for {len(texts)} texts: "
            f"see the server's log, and check that {server.model!r} is a model for embeddings"
        )
    for row in rows:
        check_row(row, server, d_model or rows[0].size)
    return l2_normalize(np.stack(rows)[np.argsort(places)]).astype(np.float32)


def check_row(row: Array, server: Server, d_model: int) -> None:
    """Raise `ModelUnavailableError` for a row that is no vector of ``d_model`` finite numbers, or is zero."""
    if row.ndim != 1 or not row.size:
        raise ModelUnavailableError(
            f"{server.url} gave an array of shape {row.shape} in place of a vector: choose a model for "
            "embeddings"
        )
    if len(row) != d_model:
        raise ModelUnavailableError(
            f"{server.url} gave a vector of {len(row)} numbers, and of {d_model} before: check that it runs "
            f"one and the same model as {server.model!r}"
        )
    if not 0 < np.linalg.norm(row) < np.inf:  # of NaN neither holds
        raise ModelUnavailableError(
            f"{server.url} gave a vector that is zero or not finite: see the server's log, or choose another "
            "of its models"
        )
