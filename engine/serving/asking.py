"""The routes that need a corpus: search, and answers as a stream of events."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from fastapi import APIRouter, Response
from fastapi.responses import StreamingResponse
from pydantic_core import to_json

from ..cores import n_cores
from ..errors import GlassboxError
from ..generation.answer import Answer
from ..generation.answer_json import answer_json, found_answer_json, found_json
from ..generation.answering import add_text, find_answer
from ..generation.conversation import Turn, follow_up
from ..generation.passage_search import retrieve
from ..generation.settings import AnswerSettings, SearchSettings
from .bodies import (
    UNAVAILABLE,
    AskBody,
    RequestError,
    SearchBody,
    error_content,
    failure_content,
    json_response,
    overloaded,
    warned,
)
from .guard import FAILED, log_failure
from .reading import in_thread, read_texts
from .served import ANSWER_S, QUEUED_ANSWERS, TOGETHER, Searched, Served

T = TypeVar("T")
Event = tuple[str, dict[str, Any]]  # its name, and its content
LAST_EVENTS = ("answer", "error")


class EventStream:
    """The events of an answer, put into a queue by a task and its threads; the last is one of `LAST_EVENTS`.

    ``run`` puts them. Its errors become the event ``error``, and are logged for the operator under ``path``.
    """

    def __init__(self, run: "Run", path: str, seconds: float) -> None:
        self._loop, self._deadline = asyncio.get_running_loop(), time.monotonic() + seconds
        self._events: asyncio.Queue[Event] = asyncio.Queue()
        self._cancelled = threading.Event()
        self.task = self._loop.create_task(self._run(run, path))

    def cancel(self) -> None:
        """End the answer, after its current token if it is being written."""
        self._cancelled.set()
        self.task.cancel()

    def is_over(self) -> bool:
        """Whether the answer was cancelled, or has taken all of its seconds."""
        return self._cancelled.is_set() or time.monotonic() > self._deadline

    async def next(self) -> Event:
        """Return the next event; cancel the answer where its client leaves before."""
        try:
            return await self._events.get()
        except BaseException:
            self.cancel()
            raise

    async def last(self) -> dict[str, Any]:
        """Return the content of the last event."""
        while True:
            name, content = await self.next()
            if name in LAST_EVENTS:
                return content

    def put(self, name: str, content: dict[str, Any]) -> None:
        """Put an event, from any thread."""
        if not self._cancelled.is_set():
            self._loop.call_soon_threadsafe(self._events.put_nowait, (name, content))

    async def _run(self, run: "Run", path: str) -> None:
        try:
            await run(self)
        except GlassboxError as error:
            self.put("error", failure_content(error)[0])
        except Exception as error:  # of any kind: client and log get one line
            log_failure(path, error)
            self.put("error", error_content(500, FAILED))


Run = Callable[[EventStream], Awaitable[None]]


class Threads:
    """The threads that answer: searches and the reader on every core, texts `TOGETHER` at a time.

    Answers whose text is written, or waits for the language model, are counted.
    """

    def __init__(self) -> None:
        self._searching = ThreadPoolExecutor(n_cores(), "search")
        self._writing = ThreadPoolExecutor(TOGETHER, "answer")
        self._waiting: set[asyncio.Task[None]] = set()

    def stream(self, run: Run, path: str, seconds: float, writes: bool) -> EventStream:
        """Begin an answer; raise `RequestError` where it ``writes``, and as many wait for that as may."""
        if writes and (n := len(self._waiting)) >= QUEUED_ANSWERS:
            raise overloaded(f"{n} questions wait for the language model", ANSWER_S * n)
        stream = EventStream(run, path, seconds)
        if writes:
            self._waiting.add(stream.task)
            stream.task.add_done_callback(self._waiting.discard)
        return stream

    async def search(self, find: Callable[[], T]) -> T:
        """Search in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._searching, find)

    async def write(self, write: Callable[[], T]) -> T:
        """Have the language model write, in step with its other texts."""
        return await asyncio.get_running_loop().run_in_executor(self._writing, write)


def find(
    question: str, turns: Sequence[Turn], settings: AnswerSettings, served: Served, searched: Searched
) -> tuple[Answer, tuple[Turn, ...]]:
    """Return the answer before a text is written, and the turns that the question follows on."""
    index, encoder, null_scores = searched.index, served.encoder, searched.null_scores
    question, turns = follow_up(question, turns, index, encoder, null_scores)
    return find_answer(question, index, encoder, settings, null_scores, searched.reader), turns


def answer_stream(
    question: str,
    turns: Sequence[Turn],
    settings: AnswerSettings,
    served: Served,
    searched: Searched,
    threads: Threads,
) -> EventStream:
    """Return the events of an answer: ``found``, pieces of ``thought`` and ``text``, ``answer`` or ``error``.

    ``found`` are the words that answer and the quotes; the text, where one is written, is cut off at the
    limit of seconds; ``answer`` holds the checks of its sentences.
    """

    async def run(stream: EventStream) -> None:
        def put_text(kind: str, text: str) -> None:
            stream.put(kind, {"text": text})

        answer, follows = await threads.search(partial(find, question, turns, settings, served, searched))
        stream.put("found", found_answer_json(answer))
        if settings.write and answer.retrieved.relevant:
            assert searched.writer is not None, "checked before the question is read"
            write = partial(add_text, answer, served.encoder, searched.writer, settings, turns=follows)
            write = partial(write, on_text=partial(put_text, "text"), on_thought=partial(put_text, "thought"))
            answer = await threads.write(partial(write, stop=stream.is_over))
        stream.put("answer", answer_json(answer))

    return threads.stream(run, "/ask", served.limits.seconds, settings.write)


async def server_sent_events(first: Event, answer: EventStream) -> AsyncIterator[bytes]:
    """Yield the events of an answer as they are sent; cancel it when the client disconnects."""
    event = first
    try:
        while True:
            yield b"event: %s\ndata: %s\n\n" % (event[0].encode(), to_json(event[1]))
            if event[0] in LAST_EVENTS:
                return
            event = await answer.next()
    finally:
        answer.cancel()


async def read_question(
    question: str, served: Served, truncate: bool | None, field: str
) -> tuple[str, dict[str, Any]]:
    """Return the characters of a question that are read, and the field of the response that says so."""
    reading = await in_thread(len(question), read_texts, [question], served, truncate, field)
    cut = reading.cut.get(0)
    return question if cut is None else question[: cut.n_tokenized], reading.truncation()


def asking_routes(served: Served, searched: Searched, threads: Threads) -> APIRouter:
    """Return the routes of a corpus."""
    router = APIRouter()

    def search_settings(k: int | None, retriever: str | None) -> SearchSettings:
        own = searched.settings.search
        return replace(own, k=k or own.k, retriever=own.retriever if retriever is None else retriever)

    def answer_settings(body: AskBody) -> AnswerSettings:
        write = searched.settings.write if body.write is None else body.write
        if write and searched.writer is None:
            raise RequestError(
                400, "this server has no language model: leave write out, or start it with --write", "write"
            )
        return replace(searched.settings, search=search_settings(body.k, body.retriever), write=write)

    @router.post("/search")
    async def search(body: SearchBody) -> Response:
        """Find the best passages for a question."""
        query, truncation = await read_question(body.query, served, body.truncate, "query")
        settings = search_settings(body.k, body.retriever)
        search_of = (query, searched.index, served.encoder, settings, searched.null_scores)
        found = await threads.search(partial(retrieve, *search_of))
        extra = {"retriever": settings.retriever, **truncation, **warned(body.warnings)}
        return json_response({**found_json(query, found), **extra})

    @router.post("/ask")
    async def answer(body: AskBody) -> Response:
        """Answer a question: a stream of server-sent events, or one object with ``"stream": false``."""
        question, truncation = await read_question(body.question, served, body.truncate, "question")
        extra = {**truncation, **warned(body.warnings)}
        turns = [Turn(turn.question, turn.answer) for turn in body.after]
        stream = answer_stream(question, turns, answer_settings(body), served, searched, threads)
        if not body.stream:
            return whole(await stream.last(), extra)
        name, content = await stream.next()
        if name == "error":
            return whole(content)
        events = server_sent_events((name, {**content, **extra}), stream)
        return StreamingResponse(events, media_type="text/event-stream")

    return router


def whole(content: dict[str, Any], extra: Mapping[str, Any] = {}) -> Response:
    """Return the response with the content of a last event, and the fields of ``extra``."""
    if "error" not in content:
        return json_response({**content, **extra})
    is_wrong, code = content["error"]["type"] == "invalid_request_error", content["error"]["code"]
    return json_response(content, 400 if is_wrong else 503 if code == UNAVAILABLE else 500)
