"""Models that the engine does not write by hand, run by sentence-transformers.

Only their vectors come from there. Documents are cut, and the tokens of chunks counted, by a tokenizer of
ours, so that a model with another one may read fewer or more tokens of a chunk than its size says.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from engine.errors import InputError, ModelFileError, ModelUnavailableError
from engine.layers.tracing import Array
from engine.models.encoder import Encoder, check_several
from engine.retrieval.vector_kind import VectorKind
from engine.tokenizers.wordpiece import WordPieceTokenizer
from engine.weights.catalog import DEFAULT_ENCODER
from engine.weights.fetch import Progress, model_path

OWN = "own"  # the pooling that a model of the library brings with it
FEWEST_TOKENS = 3  # of which two are special
BLOCK_TEXTS = 256  # after which progress is told


@dataclass(frozen=True)
class LibraryModel:
    """A model of sentence-transformers, with the pooling that its files say.

    Attributes
    ----------
    name
        The folder or the Hugging Face id that it was loaded from.
    model
        The library's ``SentenceTransformer``.
    tokenizer
        A tokenizer of ours, by which documents are cut.
    d_model
        Numbers of a vector.
    fingerprint
        A SHA-256 over all weights and the modules' settings.
    most_tokens
        Its own limit of tokens, None where it names none.
    in_use
        Held while texts are embedded: the limit at work is the library's state, and threads share it.
    """

    name: str
    model: Any = field(repr=False)
    tokenizer: WordPieceTokenizer = field(repr=False)
    d_model: int
    fingerprint: str
    most_tokens: int | None
    in_use: Lock = field(default_factory=Lock, repr=False, compare=False)

    @classmethod
    def load(cls, source: str | Path, tokenizer: WordPieceTokenizer) -> "LibraryModel":
        """Load a model by its name or from its folder, on the processor.

        Nothing is asked of the network where ``HF_HUB_OFFLINE`` is set, and no code that comes with a
        model is run.

        Raises
        ------
        ModelUnavailableError
            The library is not installed, the model is not there or not one of its, or it has no limit of
            tokens that could be set.
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
        except Exception as error:  # whatever the library and those below it raise
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
        return cls(str(source), model, tokenizer, d_model, weights_digest(model), model.max_seq_length)

    def token_limit(self, max_tokens: int | None) -> int:
        """Return ``max_tokens``, or the model's own limit for None, which it cannot exceed.

        Raises
        ------
        InputError
            It does, or leaves no room for a token.
        """
        most = self.most_tokens
        limit = most if max_tokens is None else max_tokens
        if limit is None:
            raise InputError(f"{self.name} names no limit of tokens: give max_tokens")
        if limit < FEWEST_TOKENS or (most is not None and limit > most):
            raise InputError(f"max_tokens is {limit}: {self.name} takes {FEWEST_TOKENS} to {most or 'any'}")
        return int(limit)

    def vector_kind(self, pooling: str = OWN, max_tokens: int | None = None) -> VectorKind:
        """Return the stamp of the vectors that `encode` makes; the errors are the same."""
        if pooling != OWN:
            raise InputError(f"{self.name} is run by the library, with its own pooling: give {OWN!r}")
        return VectorKind(self.fingerprint, OWN, self.token_limit(max_tokens), self.d_model, self.name)

    def encode(
        self,
        texts: Sequence[str],
        pooling: list[str],
        max_tokens: int | None = None,
        on_progress: Progress | None = None,
    ) -> dict[str, Array]:
        """Embed texts, as `Encoder.encode` does for a list of poolings, of which there is just ``"own"``.

        The prompts that some models want before questions are not put there, unless the model's files say
        that one stands before every text.

        Returns
        -------
        dict
            ``{"own": vectors}``, float32 ``(n_texts, d_model)``, rows of length 1.

        Raises
        ------
        InputError
            Another pooling, or a limit beyond the model's own.
        """
        check_several(texts)
        for strategy in pooling:
            self.vector_kind(strategy, max_tokens)
        blocks = [np.empty((0, self.d_model), np.float32)]
        with self.in_use:
            self.model.max_seq_length = self.token_limit(max_tokens)
            try:
                for start in range(0, len(texts), BLOCK_TEXTS):
                    block = list(texts[start : start + BLOCK_TEXTS])
                    vectors = self.model.encode(block, normalize_embeddings=True, show_progress_bar=False)
                    blocks.append(np.asarray(vectors, np.float32))
                    if on_progress is not None:
                        on_progress(start + len(block), len(texts))
            finally:
                self.model.max_seq_length = self.most_tokens
        return {OWN: np.concatenate(blocks)}


Model = Encoder | LibraryModel


def load_model(source: str, on_progress: Progress | None = None) -> Model:
    """Load a model by the engine, or one of an architecture that the engine has not by the library.

    For the latter documents are cut by the tokenizer of the default encoder.

    Parameters
    ----------
    source
        As `Encoder.load` takes it, or as the library does.
    on_progress
        Called with bytes done and bytes in all while the engine downloads.

    Raises
    ------
    ModelUnavailableError
        Neither finds the model, or can read it.
    """
    try:
        return Encoder.load(source, on_progress=on_progress)
    except ModelFileError as error:
        try:
            tokenizer = WordPieceTokenizer(model_path(DEFAULT_ENCODER) / "tokenizer.json")
            return LibraryModel.load(source, tokenizer)
        except ModelUnavailableError as second:
            raise ModelUnavailableError(f"{error}; {second}") from error


def vector_kind(model: Model, pooling: str, max_tokens: int | None) -> VectorKind:
    """Return the stamp of the vectors that a model makes; it raises as its `encode` does."""
    if isinstance(model, LibraryModel):
        return model.vector_kind(pooling, max_tokens)
    return VectorKind.of(model, pooling, max_tokens)


def weights_digest(model: Any) -> str:
    """Hash every tensor of a model of the library, its modules' settings and its vocabulary."""
    import torch

    digest = sha256(repr(model).encode())
    for name, tensor in model.state_dict().items():
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.detach().cpu().reshape(-1).contiguous().view(torch.uint8).numpy().tobytes())
    vocabulary: dict[str, int] = getattr(model.tokenizer, "get_vocab", dict)()
    digest.update(repr(sorted(vocabulary.items(), key=str)).encode())
    return digest.hexdigest()
