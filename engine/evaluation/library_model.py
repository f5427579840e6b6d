"""Models of other architectures than the engine's, run by sentence-transformers.

The library only computes vectors, in a child process that ends once nothing is embedded for a minute.
Documents are cut and tokens counted by the model's own tokenizer, which the engine runs; where it does not,
by that of the default encoder, so that the model may read fewer or more tokens of a chunk than its size.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Lock
from typing import ClassVar

from ..errors import InputError, ModelFileError, ModelUnavailableError
from ..layers.tracing import Array
from ..library_process import LibraryProcess, require_library
from ..models.encoder import Encoder
from ..models.prompts import Prompts, Role
from ..retrieval.embedding_model import BlackBoxModel, Model
from ..tokenizers.text_tokenizer import TextTokenizer
from ..tokenizers.tokenizer_file import read_tokenizer
from ..tokenizers.wordpiece import WordPieceTokenizer
from ..weights.catalog import DEFAULT_ENCODER
from ..weights.fetch import Progress, model_path
from ..wording import model_name
from .embedding_server import EmbeddingServer, is_server

FEWEST_TOKENS = 3  # two of them special
BLOCK_TEXTS = 256  # between reports of progress
PROGRAM = Path(__file__).with_name("library_program.py")
IDLE_S = 60.0  # after the last texts
SECONDS = 600  # of computing, for `BLOCK_TEXTS` texts


@dataclass(frozen=True)
class LibraryModel(BlackBoxModel):
    """A model of sentence-transformers, with the pooling defined in its files: a black box."""

    sets_limit: ClassVar[bool] = True
    block_texts: ClassVar[int] = BLOCK_TEXTS

    name: str
    process: LibraryProcess = field(repr=False, compare=False)  # holds the library and its model
    tokenizer: TextTokenizer = field(repr=False)
    d_model: int
    fingerprint: str  # SHA-256 over all weights and the modules' settings
    most_tokens: int | None  # its own limit, None if it has none
    prompts: Prompts = field(default_factory=Prompts)
    similarity_fn_name: str = "cosine"
    reason: str = ""  # why the engine does not run it
    # locked while texts are embedded: texts at once would start a second process
    in_use: Lock = field(default_factory=Lock, repr=False, compare=False)

    @classmethod
    def load(cls, source: str | Path, tokenizer: TextTokenizer, reason: str = "") -> "LibraryModel":
        """Load a model by its name or from its folder, on the CPU; its own code is never run."""
        require_library(
            str(source), "pip install sentence-transformers, or choose a model of the BERT family"
        )
        process = LibraryProcess.of(PROGRAM, str(source), SECONDS, IDLE_S)
        about, _ = process.ask(source=str(source))
        return cls(
            str(source),
            process,
            tokenizer,
            about["d_model"],
            about["fingerprint"],
            about["max_tokens"],
            Prompts(about["prompts"]),
            about["similarity"],
            reason,
        )

    def with_prompts(self, use: str) -> "LibraryModel":
        """Return this model with its prompts or none, by a key of `PROMPT_USES`."""
        return replace(self, prompts=self.prompts.used(use))

    def token_limit(self, max_tokens: int | None) -> int:
        """Return ``max_tokens``, or the model's own limit for None."""
        most = self.most_tokens
        limit = most if max_tokens is None else max_tokens
        if limit is None:
            raise InputError(f"{model_name(self.name)} names no limit of tokens: give max_tokens")
        if limit < FEWEST_TOKENS or (most is not None and limit > most):
            raise InputError(
                f"max_tokens is {limit}: {model_name(self.name)} takes {FEWEST_TOKENS} to {most or 'any'}"
            )
        return int(limit)

    @contextmanager
    def embedder(self, role: Role, max_tokens: int | None) -> Iterator[Callable[[list[str]], Array]]:
        """Embed in the child process."""
        request = {
            "source": self.name,
            "fingerprint": self.fingerprint,
            "prompt": self.prompts.of(role),
            "max_tokens": max_tokens,
        }
        with self.in_use:
            yield lambda block: self.process.ask(**request, texts=block)[1]["vectors"]


def load_model(source: str, on_progress: Progress | None = None, api_key: str = "") -> Model:
    """Load a model with the engine or, for other architectures, with the library, or connect to a server.

    ``source`` is as for `Encoder.load` or `LibraryModel.load`, or an address as for
    `EmbeddingServer.connect`, with the server's ``api_key``. Documents are cut by the model's own tokenizer;
    for models on servers, and those of the library whose tokenizer is not read, by that of the default
    encoder. ``on_progress`` is called with bytes done and total bytes of a download.
    """
    if is_server(source):
        return EmbeddingServer.connect(source, default_tokenizer(), api_key)
    try:
        return Encoder.load(source, on_progress=on_progress)
    except ModelFileError as error:
        try:
            return LibraryModel.load(source, own_tokenizer(source) or default_tokenizer(), str(error))
        except ModelUnavailableError as second:
            raise ModelUnavailableError(f"{error}; {second}") from error


def own_tokenizer(source: str | Path) -> TextTokenizer | None:
    """Return the tokenizer in the files of a model, None if there is none that is read."""
    folder = model_path(source)
    for part in ("", "0_Transformer"):  # where older files of sentence-transformers have the model
        path = folder / part / "tokenizer.json"
        with suppress(ModelFileError):
            return read_tokenizer(path)
    return None


def default_tokenizer() -> WordPieceTokenizer:
    """Return the tokenizer of the default encoder, by which documents are cut for other models."""
    return WordPieceTokenizer(model_path(DEFAULT_ENCODER) / "tokenizer.json")
