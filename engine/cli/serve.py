"""The commands that serve the engine over HTTP, ``serve``, and its tools to an assistant, ``mcp``."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from ..documents.loaders import BUNDLED_CORPUS
from ..errors import InputError
from ..generation.sampling import GREEDY, Sampling
from ..generation.settings import AnswerSettings
from ..installed import install_command
from ..kernels.primitives import prepare_compiled
from ..models.encoder import Encoder
from ..progress import say
from ..retrieval.embedding_model import Model
from ..serving.served import RequestLimits, Searched, Served
from ..wording import counted, model_name
from .loading import load_reader, load_search_model, load_searched, load_writer, null_scores_in
from .main import answer_settings, app
from .options import AnsweringOptions, SearchedOptions, SearchOptions, grouped

API_KEY = "GLASSBOX_API_KEY"
ANY_ADDRESS = ("0.0.0.0", "::")
PACKAGES = ("fastapi", "uvicorn", "prometheus_client", "mcp")


@dataclass(frozen=True)
class ServerOptions:
    """Where a server listens, who may use it, and the most that requests may take."""

    host: Annotated[
        str, typer.Option(help="The address to listen on; 0.0.0.0 is every one of this machine.")
    ] = "127.0.0.1"
    port: Annotated[int, typer.Option(help="The port; 0 is any free one.", min=0, max=65535)] = 8000
    allowed_host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A host name under which the server is reached, * for any; may be given several times.",
            show_default="this machine's",
        ),
    ] = None
    api_key: Annotated[
        str,
        typer.Option(
            help=f"What requests have to send as Authorization: Bearer KEY. Better in {API_KEY}, which no "
            "list of processes shows.",
            show_default="none",
        ),
    ] = ""
    truncate: Annotated[
        bool,
        typer.Option(
            "--truncate", help="Cut texts beyond the token limit, and say so in the answer; else refuse them."
        ),
    ] = False
    matryoshka: Annotated[
        bool, typer.Option("--matryoshka", help="Requests may cut vectors, for which the model was trained.")
    ] = False
    tools: Annotated[
        bool,
        typer.Option(
            "--tools", help="Serve search, ask and list_documents at /mcp, for assistants that speak MCP."
        ),
    ] = False
    max_body_mb: Annotated[float, typer.Option(help="Megabytes of a request.", min=0.001)] = (
        RequestLimits.body_mb
    )
    max_texts: Annotated[int, typer.Option(help="Texts of a request.", min=1)] = RequestLimits.texts
    max_request_tokens: Annotated[int, typer.Option(help="Tokens of a request.", min=1)] = (
        RequestLimits.tokens
    )
    max_requests: Annotated[int, typer.Option(help="Requests at work or waiting.", min=1)] = (
        RequestLimits.requests
    )
    max_seconds: Annotated[float, typer.Option(help="Seconds of a request.", min=0.1)] = RequestLimits.seconds
    drain_seconds: Annotated[
        int, typer.Option(help="Seconds in which requests are still answered after SIGTERM.", min=0)
    ] = RequestLimits.drain_s

    @property
    def limits(self) -> RequestLimits:
        """The most that requests may take."""
        return RequestLimits(
            self.max_body_mb,
            self.max_texts,
            self.max_request_tokens,
            self.max_requests,
            self.max_seconds,
            self.drain_seconds,
        )


IndexOption = Annotated[
    Path | None,
    typer.Option(help="A folder that the command `index` wrote, to search and ask in place of a corpus."),
]


@app.command(name="serve")
@grouped
def serve_command(
    server: ServerOptions,
    search: SearchOptions,
    answering: AnsweringOptions,
    corpus: Annotated[
        Path | None,
        typer.Argument(help="A file or a folder to search and ask.", show_default="none: only embeddings"),
    ] = None,
    index: IndexOption = None,
    sampling: Sampling = GREEDY,
) -> None:
    """Serve the engine over HTTP: embeddings, reranking, search, answers and chats, for OpenAI's clients.

    /v1/embeddings, /api/embed, /v1/models and /rerank are always there, /search, /ask and the model
    glassbox-index of /v1/chat/completions with a corpus or an index, its language model with --write; /health
    and /metrics are for its operator. SIGTERM ends it once the requests at work are answered.
    """
    with needed_packages():
        from ..serving.app import LOCAL_HOSTS
        from ..serving.server import address_of, listening, run

        if server.tools:
            import mcp  # noqa: F401
    has_documents = corpus is not None or index is not None
    if server.tools and not has_documents:
        raise InputError("--tools are those of documents: give CORPUS or --index")
    api_key = server.api_key or os.environ.get(API_KEY, "")
    options = searched_options(search, corpus, index)
    with listening(server.host, server.port) as listener:  # first, since models take a while to load
        settings = answer_settings(answering, sampling)
        served = load_served(options, settings, answering, has_documents)
        served = replace(
            served,
            truncate=server.truncate,
            matryoshka=server.matryoshka,
            limits=server.limits,
            tools=server.tools,
        )
        if server.host not in LOCAL_HOSTS and not api_key:
            say(f"warning: whoever reaches {server.host} may use this server: set {API_KEY} to ask for a key")
        say(f"Serving {served.encoder.name} on {address_of(listener)}")
        hosts = {*LOCAL_HOSTS, *(server.allowed_host or ()), *({server.host} - set(ANY_ADDRESS))}
        n_left = run(served, listener, hosts, api_key)
    if n_left:
        say(f"warning: {counted(n_left, 'request')} not answered within {server.drain_seconds} s")
    say("Ended" if n_left else "Ended, with every request answered")


@app.command(name="mcp")
@grouped
def mcp_command(
    search: SearchOptions,
    answering: AnsweringOptions,
    corpus: Annotated[
        Path | None,
        typer.Argument(help="A file or a folder to search and ask.", show_default="the bundled documents"),
    ] = None,
    index: IndexOption = None,
) -> None:
    """Serve search, ask and list_documents as tools to the assistant that started this command.

    It speaks the Model Context Protocol over standard input and output; `serve --tools` does over HTTP.
    """
    with needed_packages():
        import mcp  # noqa: F401

        from ..serving.tools import tool_server
    if answering.write:
        raise InputError("tools write no text: leave out --write")
    options = searched_options(search, corpus, index)
    served = load_served(options, answer_settings(answering, GREEDY), answering, True)
    assert served.searched is not None, "there is a corpus or an index"
    say("Serving tools on standard input and output")
    tool_server(served, served.searched).run()


@contextmanager
def needed_packages() -> Iterator[None]:
    """Raise `InputError` where an import within fails, for want of one of `PACKAGES`."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name not in PACKAGES:
            raise
        why = f"serving needs {error.name}, which is not installed: {install_command('serve')}"
        raise InputError(why) from error


def searched_options(search: SearchOptions, corpus: Path | None, index: Path | None) -> SearchedOptions:
    """Return the options of what is searched: a corpus, by default the bundled one, or an index."""
    if corpus is not None and index is not None:
        raise InputError(f"both {corpus} and --index {index} are given: leave out one of them")
    return SearchedOptions(**asdict(search), corpus=corpus or BUNDLED_CORPUS, index=index)


def load_served(
    options: SearchedOptions, settings: AnswerSettings, answering: AnsweringOptions, has_documents: bool
) -> Served:
    """Load the models, and index or open the documents, if any are served."""
    writer, searched = load_writer(answering, settings), None
    if not has_documents:
        encoder, pooling = own_encoder(load_search_model(options, options.named)), options.pooling
        encoder.check_poolings(pooling)
        if encoder.reranker is None:
            load_reader(encoder)  # which orders documents then
    else:
        model, chunks, unrelated, _ = load_searched(options, settings.search.retriever)
        encoder, pooling = own_encoder(chunks.encoder(model)), chunks.spec.pooling
        null_scores = null_scores_in(chunks, encoder, unrelated)
        searched = Searched(chunks, null_scores, settings, load_reader(encoder), writer)
    prepare_compiled().join()
    if writer is not None:
        writer = replace(writer, decoder=replace(writer.decoder, name=public_name(writer.decoder.name)))
    return Served(named(encoder), pooling, searched=searched, writer=writer)


def own_encoder(model: Model) -> Encoder:
    """Return a model of the engine; raise `InputError` for one that another library or server runs."""
    if (encoder := model.as_encoder) is not None:
        return encoder
    raise InputError(
        f"{model_name(model.name)} is run by another program: give an encoder of the engine's families"
    )


def named(encoder: Encoder) -> Encoder:
    """Return an encoder, with its reranker, under names that tell clients no path of this machine."""
    reranker = encoder.reranker
    if reranker is not None:
        reranker = replace(reranker, name=public_name(reranker.name))
    return replace(encoder, name=public_name(encoder.name), reranker=reranker)


def public_name(name: str) -> str:
    """Return the name of a model for clients: of a path its last part."""
    return Path(name).resolve().name if Path(name).exists() else name
