"""Answers from an OpenAI-compatible server: Ollama, vLLM, llama-server and the like, by their address."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar
from urllib.parse import urlsplit

from pydantic import BaseModel

from ..errors import UNREADABLE, InputError, ModelUnavailableError
from ..installed import install_command
from .bounded_response import bounded_client, has_end_mark
from .chat import Message
from .generated_token import FinishReason
from .refused_settings import start_stream
from .sampling import GREEDY, Sampling, server_settings

if TYPE_CHECKING:
    from httpx2 import Request
    from openai import APIStatusError, AsyncOpenAI, AsyncStream
    from openai.types.chat import ChatCompletionChunk

T = TypeVar("T")

CONNECT_S = 4.0
SILENCE_S = 120.0  # a server may have to load the model before its first word
POLL_S = 0.05  # how soon a stop is noticed while the server is silent
# Seconds for a whole answer, whose pieces may come one by one with less silence between them.
LIST_S, EMBEDDINGS_S, ANSWER_S = 30.0, 600.0, 3600.0
MAX_QUOTED = 200  # characters of a server's own explanation
MAX_MODELS, MAX_NAME = 1000, 200  # of a list of models, and characters of a name
MAX_URL = 2000
NO_KEY = "none"  # the client insists on a key; servers without one ignore it

ADVICE = {
    401: "give the key that it asks for",
    403: "give a key that may use this model",
    404: "choose one of its models, and check the address, which mostly ends in /v1",
    429: "wait a little, then ask again",
}
DeltaEnd = FinishReason | Literal["content_filter", "unfinished"]
DELTA_ENDS: dict[str, DeltaEnd] = {  # by the server's reason; any other is "stop"
    "length": "length",
    "max_tokens": "length",
    "content_filter": "content_filter",
    "error": "unfinished",
}


@dataclass(frozen=True)
class TextDelta:
    """Some of the answer's text."""

    text: str
    # comes with the last one; ``unfinished`` where the server ended neither with a reason nor with OpenAI's
    # mark of the end
    finish_reason: DeltaEnd | None


@dataclass(frozen=True)
class Server:
    """A model behind an OpenAI-compatible address such as ``http://localhost:11434/v1``."""

    url: str
    model: str = ""
    api_key: str = field(default="", repr=False)

    def models(self) -> list[str]:
        """Return the names of the server's models."""

        async def listed(client: "AsyncOpenAI") -> list[str]:
            found = (await client.models.list()).data[:MAX_MODELS]
            return sorted(readable(str(model.id)[:MAX_NAME]) for model in found)

        with self.connection() as start, translated_errors(self):
            return start(listed, LIST_S).result()

    @contextmanager
    def connection(self) -> Iterator["Start"]:
        """Open a client of this server; yield a function that sends a request with it.

        Errors in its use are for `translated_errors`. What is under way at the end is cancelled, which closes
        the connection.
        """
        # An asynchronous client, since only that can be stopped between two pieces of a header, and without
        # waiting for the server's next word.
        client, running = self._client(), set[Future[Any]]()
        with loop_in_a_thread() as loop:

            def start(request: Callable[["AsyncOpenAI"], Awaitable[T]], seconds: float) -> Future[T]:
                async def answer() -> T:
                    async with asyncio.timeout(seconds):
                        return await request(client)

                future = asyncio.run_coroutine_threadsafe(answer(), loop)
                running.add(future)
                future.add_done_callback(running.discard)
                return future

            try:
                yield start
            finally:
                for future in [*running]:
                    future.cancel()
                asyncio.run_coroutine_threadsafe(client.close(), loop).result()

    def generate(
        self,
        messages: Sequence[Message],
        max_new_tokens: int = 256,
        sampling: Sampling = GREEDY,
        stop: Sequence[str] = (),
        is_stopped: Callable[[], bool] = lambda: False,
    ) -> Iterator[TextDelta]:
        """Yield the server's answer to chat messages; the last delta has a ``finish_reason``.

        Settings are those of `Decoder.generate` that servers share; their exact effect is up to the server.
        ``is_stopped`` is called while waiting: once it returns true, the connection is closed.
        """
        if not self.model:
            raise InputError(f"no model of {self.url} is chosen: give the name of one")
        request: dict[str, Any] = {
            "messages": list(messages),
            "max_tokens": max_new_tokens,
            **server_settings(sampling),
        }
        request |= {"stop": list(stop)} if stop else {}
        received: SimpleQueue[TextDelta | None] = SimpleQueue()

        async def receive(client: "AsyncOpenAI") -> None:
            reason, n_pieces = None, 0
            try:
                sent = await start_stream(client, self.url, self.model, request)
                async with sent:
                    async for chunk in chunks_of(sent):
                        for choice in choices_of(chunk, sent.response.request):
                            reason = choice.finish_reason or reason
                            if text := text_of(choice):
                                received.put(TextDelta(text, None))
                                n_pieces += 1
                if reason is None and not n_pieces and not has_end_mark(sent.response):
                    raise ModelUnavailableError(
                        f"{self.url} ended its answer before the first word: check that the address is that "
                        "of an OpenAI-compatible server, and ask again"
                    )
                if reason is None and not has_end_mark(sent.response):
                    reason = "error"
                received.put(TextDelta("", DELTA_ENDS.get(reason or "stop", "stop")))
            finally:
                received.put(None)

        with self.connection() as start:
            receiving = start(receive, ANSWER_S)
            while not is_stopped():
                try:
                    delta = received.get(timeout=POLL_S)
                except Empty:
                    continue
                if delta is None:
                    with translated_errors(self):
                        return receiving.result()
                yield delta

    def _client(self) -> "AsyncOpenAI":
        try:
            from openai import AsyncOpenAI, Timeout
        except ModuleNotFoundError as error:
            raise InputError(
                f"models on servers need {error.name}, which is not installed: {install_command('servers')}"
            ) from error
        if not is_web_address(self.url):
            raise InputError(
                f"{self.url!r} is no address of a server: give one that begins with http:// or https://, "
                "like http://localhost:11434/v1"
            )
        if not (self.api_key.isascii() and self.api_key.isprintable()):
            raise InputError("the key has characters that no key has: copy it again")
        timeout = Timeout(SILENCE_S, connect=CONNECT_S)
        return AsyncOpenAI(
            base_url=self.url,
            # Never the key in the environment, which is not for any server.
            api_key=self.api_key or NO_KEY,
            timeout=timeout,
            max_retries=0,
            http_client=bounded_client(timeout),
        )


async def chunks_of(sent: "AsyncStream[ChatCompletionChunk]") -> AsyncIterator[Any]:
    """Yield the chunks of an answer, or all of it from a server that does not stream."""
    if sent.response.headers.get("content-type", "").startswith("application/json"):
        from httpx2 import HTTPError
        from openai import APIConnectionError
        from openai.types.chat import ChatCompletion

        try:
            content = await sent.response.aread()
        except HTTPError as error:
            raise APIConnectionError(request=sent.response.request) from error
        yield ChatCompletion.construct(**json.loads(content))
        return
    async for chunk in sent:
        yield chunk


def choices_of(chunk: Any, request: "Request") -> list[Any]:
    """Return the first choice of a chunk, none of one that has other news, such as the usage."""
    if not isinstance(chunk, BaseModel):
        raise TypeError(f"an event is of the type {type(chunk).__name__}")
    choices = getattr(chunk, "choices", None)
    reason = getattr(chunk, "message", None) or getattr(chunk, "detail", None)
    if choices is None and reason:  # so vLLM and FastAPI report an error within a stream
        from openai import APIError

        raise APIError(str(reason), request, body=None)
    return (choices or [])[:1]


def text_of(choice: Any) -> str:
    """Return the text of a choice, which may come as a list of parts; empty where there is none."""
    message = getattr(choice, "delta", None) or getattr(choice, "message", None)
    content = getattr(message, "content", None) or ""
    parts = content if isinstance(content, list) else [content]
    return "".join(readable(part.get("text") or "" if isinstance(part, dict) else part) for part in parts)


def readable(text: Any) -> str:
    """Return a text of JSON with a replacement character for each half of a surrogate pair."""
    if not isinstance(text, str):
        raise TypeError(f"its text is of the type {type(text).__name__}")
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


class Start(Protocol):
    """Sends a request with a client."""

    def __call__(self, request: Callable[["AsyncOpenAI"], Awaitable[T]], seconds: float) -> Future[T]:
        """Return the result to come of ``request``: `TimeoutError` after so many seconds."""


@contextmanager
def loop_in_a_thread() -> Iterator[asyncio.AbstractEventLoop]:
    """Run an event loop in a thread of its own: the caller's may have one already, as in a notebook."""
    ready: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def run_until_left() -> None:
        left = asyncio.Event()
        ready.set_result((asyncio.get_running_loop(), left))
        await left.wait()
        # Generators that the client dropped are closed by tasks, each freeing the next; leaving before
        # they are done would have them all closed at once, and one inside another cannot be.
        await asyncio.sleep(0)
        while others := asyncio.all_tasks() - {asyncio.current_task()}:
            await asyncio.wait(others)

    thread = Thread(target=lambda: asyncio.run(run_until_left()), name="server", daemon=True)
    thread.start()
    loop, left = ready.result()
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(left.set)
        thread.join()


def is_web_address(url: str) -> bool:
    """Whether ``url`` has http or https, a host, and a port that there is, and the client takes it."""
    from httpx2 import URL, InvalidURL

    if len(url) > MAX_URL or not url.isprintable():
        return False
    try:
        URL(url)  # whose host may have no digits of other scripts
        parts = urlsplit(url)
        (parts.hostname or "").encode("idna")  # labels of 1 to 63 characters
        has_host = bool(parts.hostname) and not set(parts.hostname or "") & set(' <>"^`{|}\\%')
        return parts.scheme in ("http", "https") and has_host and parts.port != 0
    except (ValueError, InvalidURL):  # of the port, a bracket, or a label
        return False


@contextmanager
def translated_errors(server: Server, advice: Mapping[int, str] = ADVICE) -> Iterator[None]:
    """Turn the client's errors into `ModelUnavailableError`, each with what to do: ``advice`` by status."""
    from openai import APIConnectionError, APIError, APIStatusError, APITimeoutError

    try:
        yield
    except (APITimeoutError, TimeoutError) as error:
        raise ModelUnavailableError(
            f"{server.url} did not answer in time ({CONNECT_S:.0f} s to connect, {SILENCE_S:.0f} s of "
            "silence, or too long in all): check the address, or that the model is not too large for it"
        ) from error
    except APIConnectionError as error:
        words = quoted(str(error.__cause__ or error), server)
        raise ModelUnavailableError(
            f"the connection to {server.url} failed ({words}): check that the server is running and that "
            "this is its address"
        ) from error
    except APIStatusError as error:
        raise ModelUnavailableError(server_error(server, error, advice)) from error
    except APIError as error:
        words = error.body if isinstance(error.body, str) else error.message
        raise ModelUnavailableError(f"{server.url} broke off its answer: {quoted(words, server)}") from error
    except UNREADABLE as error:
        words = quoted(str(error), server)
        raise ModelUnavailableError(
            f"{server.url} does not speak as OpenAI's servers do ({words}): check the address, which mostly "
            "ends in /v1"
        ) from error


def server_error(server: Server, error: "APIStatusError", advice: Mapping[int, str]) -> str:
    """Say why a server refused, in its own words, and what to do."""
    wanted = f"the model {server.model!r}" if server.model else "a list of its models"
    words = error.body.get("message") if isinstance(error.body, dict) else None
    words = quoted(str(words or error.message), server)
    then = advice.get(error.status_code, "change the request, or see the server's log")
    if 300 <= error.status_code < 400:
        then = "it names another address, which is not asked in its place: give that one"
    return f"{server.url} refused {wanted} ({error.status_code}, {words!r}): {then}"


def quoted(words: str, server: Server) -> str:
    """Return the beginning of a server's words on one line, without the key, which some servers repeat."""
    words = words.replace(server.api_key, "[key]") if server.api_key else words
    words = " ".join(words[: 10 * MAX_QUOTED].split())[:MAX_QUOTED]
    return "".join(sign if sign.isprintable() else "\ufffd" for sign in words)
