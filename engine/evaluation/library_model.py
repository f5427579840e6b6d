"""Models of other architectures than the engine's, run by sentence-transformers.

The library only computes vectors. Documents are cut and tokens counted by a tokenizer of the engine, so a
model with another tokenizer may read fewer or more tokens of a chunk than its size.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any, ClassVar

import numpy as np

from engine.errors import InputError, ModelFileError, ModelUnavailableError
from engine.evaluation.embedding_server import EmbeddingServer, is_server
from engine.layers.tracing import Array
from engine.models.embedding_head import OWN as OWN
from engine.models.encoder import Encoder, check_several
from engine.models.prompts import Prompts, Role
from engine.retrieval.embedding_model import Model, embed_blocks
from engine.retrieval.embedding_spec import EmbeddingSpec, prompted_digest
from engine.tokenizers.text_tokenizer import TextTokenizer
from engine.tokenizers.wordpiece import WordPieceTokenizer
from engine.weights.catalog import DEFAULT_ENCODER
from engine.weights.fetch import Progress, model_path

FEWEST_TOKENS = 3  # two of them special
BLOCK_TEXTS = 256  # between reports of progress


@dataclass(frozen=True)
class LibraryModel:
    """A model of sentence-transformers, with the pooling defined in its files: a black box.

    Attributes
    ----------
    name
        The folder or the Hugging Face id from which it was loaded.
    model
        The library's ``SentenceTransformer``.
    tokenizer
        The engine's tokenizer, by which documents are cut.
    d_model
        Length of a vector.
    fingerprint
        A SHA-256 over all weights and the modules' settings.
    most_tokens
        Its own token limit, None if it has none.
    prompts
        The prompts in its files.
    in_use
        Lock held while texts are embedded: the token limit is shared state of the library's model.
    """

    sets_limit: ClassVar[bool] = True
    block_texts: ClassVar[int] = BLOCK_TEXTS

    name: str
    model: Any = field(repr=False)
    tokenizer: TextTokenizer = field(repr=False)
    d_model: int
    fingerprint: str
    most_tokens: int | None
    prompts: Prompts = field(default_factory=Prompts)
    in_use: Lock = field(default_factory=Lock, repr=False, compare=False)

    @classmethod
    def load(cls, source: str | Path, tokenizer: TextTokenizer) -> "LibraryModel":
        """Load a model by its name or from its folder, on the CPU.

        The network is not used if ``HF_HUB_OFFLINE`` is set, and a model's own code is never run.

        Raises
        ------
        ModelUnavailableError
            The library is not installed, does not find or cannot load the model, or the model has no token
            limit that can be set.
        """
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError as error:
            raise ModelUnavailableError(
                f"{source} needs sentence-transformers, which is not installed: pip install "
                f"sentence-transformers, or choose a model of the BERT family"
            ) from error
        offline = os.environ.get("HF_HUB_OFFLINE", "").upper() in {"1", "ON", "YES", "TRUE"}
        try:
            model = SentenceTransformer(str(source), device="cpu", local_files_only=offline)
            d_model = int(model.get_embedding_dimension() or model.encode(["text"]).shape[1])
        except Exception as error:  # of any kind: the library and its dependencies raise many
            reason = str(error).strip().split("\n")[0] or type(error).__name__
            where = (
                "on this machine (HF_HUB_OFFLINE is set)" if offline else "here or on the Hugging Face Hub"
            )
            raise ModelUnavailableError(
                f"sentence-transformers finds no model {source} {where}: {reason[:200]}"
            ) from error
        try:
            model.max_seq_length = model.max_seq_length
        except AttributeError as error:  # static embeddings
            raise ModelUnavailableError(
                f"{source} reads texts of any length, and how many tokens it reads cannot be set: choose "
                f"a model with layers"
            ) from error
        prompts = Prompts({prompt: text for prompt, text in model.prompts.items() if text})
        digest = weights_digest(model)
        return cls(str(source), model, tokenizer, d_model, digest, model.max_seq_length, prompts)

    def with_prompts(self, use: str) -> "LibraryModel":
        """Return this model with its prompts or none, by a key of `PROMPT_USES`."""
        return replace(self, prompts=self.prompts.used(use))

    def token_limit(self, max_tokens: int | None) -> int:
        """Return ``max_tokens``, or the model's own limit for None.

        Raises
        ------
        InputError
            It exceeds the model's own limit, or leaves no room for a token.
        """
        most = self.most_tokens
        limit = most if max_tokens is None else max_tokens
        if limit is None:
            raise InputError(f"{self.name} names no limit of tokens: give max_tokens")
        if limit < FEWEST_TOKENS or (most is not None and limit > most):
            raise InputError(f"max_tokens is {limit}: {self.name} takes {FEWEST_TOKENS} to {most or 'any'}")
        return int(limit)

    def embedding_spec(self, pooling: str = OWN, max_tokens: int | None = None) -> EmbeddingSpec:
        """Return the stamp of the vectors that `encode` makes; the errors are the same."""
        if pooling != OWN:
            raise InputError(f"{self.name} is run by the library, with its own pooling: give {OWN!r}")
        model = prompted_digest(self.fingerprint, self.prompts)
        return EmbeddingSpec(model, OWN, self.token_limit(max_tokens), self.d_model, self.name)

    def encode_as(
        self,
        role: Role,
        texts: Sequence[str],
        pooling: list[str],
        max_tokens: int | None = None,
        on_progress: Progress | None = None,
    ) -> dict[str, Array]:
        """Embed texts like `Encoder.encode_as` with a list of poolings; the only one is ``"own"``.

        Returns
        -------
        dict
            ``{"own": vectors}``, float32 ``(n_texts, d_model)``, rows of length 1.

        Raises
        ------
        InputError
            Another pooling, or a limit above the model's own.
        """
        check_several(texts)
        for strategy in pooling:
            self.embedding_spec(strategy, max_tokens)
        prompt = self.prompts.of(role)

        def embed(block: list[str]) -> Array:
            vectors = self.model.encode(
                block, prompt=prompt, normalize_embeddings=True, show_progress_bar=False
            )
            return np.asarray(vectors, np.float32)

        with self.in_use:
            self.model.max_seq_length = self.token_limit(max_tokens)
            try:
                return embed_blocks(texts, self, embed, on_progress)
            finally:
                self.model.max_seq_length = self.most_tokens


def load_model(source: str, on_progress: Progress | None = None, api_key: str = "") -> Model:
    """Load a model with the engine or, for other architectures, with the library, or connect to a server.

    For models of the library and of servers documents are cut by the tokenizer of the default encoder.

    Parameters
    ----------
    source
        As for `Encoder.load` or `LibraryModel.load`; or the address of a server, as for
        `EmbeddingServer.connect`.
    on_progress
        Called with bytes done and total bytes of a download.
    api_key
        The server's key, empty if it has none.

    Raises
    ------
    InputError
        The address of a server has another form.
    ModelUnavailableError
        Neither finds the model or can read it, or the server cannot be used.
    """
    if is_server(source):
        return EmbeddingServer.connect(source, default_tokenizer(), api_key)
    try:
        return Encoder.load(source, on_progress=on_progress)
    except ModelFileError as error:
        try:
            return LibraryModel.load(source, default_tokenizer())
        except ModelUnavailableError as second:
            raise ModelUnavailableError(f"{error}; {second}") from error


def default_tokenizer() -> WordPieceTokenizer:
    """Return the tokenizer of the default encoder, by which documents are cut for other models."""
    return WordPieceTokenizer(model_path(DEFAULT_ENCODER) / "tokenizer.json")


def weights_digest(model: Any) -> str:
    """Hash all tensors of a library model, its modules' settings and its vocabulary."""
    import torch

    digest = sha256(repr(model).encode())
    for name, tensor in model.state_dict().items():
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.detach().cpu().reshape(-1).contiguous().view(torch.uint8).numpy().tobytes())
    vocabulary: dict[str, int] = getattr(model.tokenizer, "get_vocab", dict)()
    digest.update(repr(sorted(vocabulary.items(), key=str)).encode())
    return digest.hexdigest()
