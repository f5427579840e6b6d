"""The embedding models of the commands: by name, folder or Hugging Face id, or behind a server."""

import os

from engine.cli.progress import download_progress, say
from engine.errors import InputError
from engine.evaluation.embedding_server import SERVER_KEY, EmbeddingServer, is_server, server_at
from engine.evaluation.library_model import load_model
from engine.models.precision import AUTO, chosen_precision, is_slower
from engine.models.reranker import Reranker
from engine.retrieval.embedding_model import Model
from engine.weights.catalog import KNOWN_MODELS
from engine.weights.fetch import is_cached

OPENAI_KEY = "OPENAI_API_KEY"
OPENAI_ADDRESSES = ("https://api.openai.com/", "https://api.openai.com#")


def require_accepted(name: str, is_accepted: bool = False) -> None:
    """Raise `InputError` for a model that has terms of use, is not on this machine, and was not accepted."""
    model = KNOWN_MODELS.get(name)
    if model is not None and model.licence.terms and not is_accepted and not is_cached(name):
        raise InputError(
            f"{name} is under the {model.licence.name} licence: read {model.licence.url}, and accept it by "
            f"`download {name} --accept-licence`"
        )


def load_embedding_model(name: str) -> Model:
    """Load a model, or connect to its server; report which tokenizer cuts its chunks."""
    if is_server(name):
        server_at(name)  # before it is printed: an address with a password is refused
    say(f"Loading {name}")
    model = load_model(name, download_progress(name), server_key(name))
    if model.as_encoder is None:
        where = "on a server" if isinstance(model, EmbeddingServer) else "run by sentence-transformers"
        say(f"{name} is {where}, and its chunks are cut by the default encoder's tokenizer")
    return model


def server_key(address: str) -> str:
    """Return the key for servers in the environment, empty if there is none.

    ``OPENAI_API_KEY`` is sent to OpenAI's own server only.
    """
    of_openai = os.environ.get(OPENAI_KEY, "") if address.startswith(OPENAI_ADDRESSES) else ""
    return os.environ.get(SERVER_KEY, "") or of_openai


def say_if_slower(*precisions: str) -> None:
    """Warn of precisions that take longer than float32 on this processor."""
    for name in precisions:
        if name != AUTO and is_slower(chosen_precision(name)):
            say(f"{name} takes longer than float32 on this processor, which has no fast products of it")


def load_reranker(source: str) -> Reranker:
    """Load a cross-encoder by its folder or Hub id."""
    say(f"Loading {source}")
    return Reranker.load(source)
