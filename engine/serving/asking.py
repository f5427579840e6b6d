"""The routes that need a corpus: search, and answers as a stream of events."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import replace
from typing import Any

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
    AskBody,
    RequestError,
    SearchBody,
    TurnBody,
    error_content,
    json_response,
    overloaded,
)
from .guard import FAILED, log_failure
from .reading import in_thread, read_texts
from .served import ANSWER_S, QUEUED_ANSWERS, Searched, Served

Event = tuple[str, dict[str, Any]]  # its name, and its content
LAST_EVENTS = ("answer", "error")


class AnswerStream:
    """The answer to a question, found and written in threads, as a queue of events.

    The events are ``found``, the words that answer and the quotes; where a text is written, ``thought`` and
    ``text``, each a piece; then ``answer`` with the checks of its sentences, or ``error``. The text is cut
    off at the limit of seconds.
    """

    def __init__(
        self,
        question: str,
        after: Sequence[TurnBody],
        settings: AnswerSettings,
        served: Served,
        searched: Searched,
        searching: Executor,
        writing: Executor,
    ) -> None:
        self._question, self._after = question, after
        self._settings, self._served, self._searched = settings, served, searched
        self._loop, self._deadline = asyncio.get_running_loop(), time.monotonic() + served.limits.seconds
        self._events: asyncio.Queue[Event] = asyncio.Queue()
        self._cancelled = threading.Event()
        self._turns: tuple[Turn, ...] = ()  # that the question follows on
        self.task = self._loop.create_task(self._run(searching, writing))

    def cancel(self) -> None:
        """End the answer, after its current token if it is being written."""
        self._cancelled.set()
        self.task.cancel()

    async def next(self) -> Event:
        """Return the next event."""
        return await self._events.get()

    async def _run(self, searching: Executor, writing: Executor) -> None:
        """Find the answer in a thread of the searches, then have the text written in that of the model."""
        try:
            answer = await self._loop.run_in_executor(searching, self._find)
            self._events.put_nowait(("found", found_answer_json(answer)))
            if self._settings.write and answer.retrieved.relevant:
                answer = await self._loop.run_in_executor(writing, self._write, answer)
            self._events.put_nowait(("answer", answer_json(answer)))
        except GlassboxError as error:
            self._events.put_nowait(("error", error_content(400, str(error))))
        except Exception as error:  # of any kind: client and log get one line
            log_failure("/ask", error)
            self._events.put_nowait(("error", error_content(500, FAILED)))

    def _find(self) -> Answer:
        searched, encoder = self._searched, self._served.encoder
        turns = [Turn(turn.question, turn.answer) for turn in self._after]
        follows = follow_up(self._question, turns, searched.index, encoder, searched.null_scores)
        question, self._turns = follows
        return find_answer(
            question, searched.index, encoder, self._settings, searched.null_scores, searched.reader
        )

    def _write(self, answer: Answer) -> Answer:
        assert self._searched.writer is not None, "checked before the question is read"
        return add_text(
            answer,
            self._served.encoder,
            self._searched.writer,
            self._settings,
            on_text=lambda text: self._put("text", text),
            stop=lambda: self._cancelled.is_set() or time.monotonic() > self._deadline,
            turns=self._turns,
            on_thought=lambda text: self._put("thought", text),
        )

    def _put(self, name: str, text: str) -> None:
        if not self._cancelled.is_set():
            self._loop.call_soon_threadsafe(self._events.put_nowait, (name, {"text": text}))


async def server_sent_events(first: Event, answer: AnswerStream) -> AsyncIterator[bytes]:
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


def asking_routes(served: Served, searched: Searched) -> APIRouter:
    """Return the routes of a corpus. Searches and the reader run on every core, texts one after the other."""
    router = APIRouter()
    searching = ThreadPoolExecutor(n_cores(), "search")
    writing = ThreadPoolExecutor(1, "answer")
    waiting: set[asyncio.Task[None]] = set()  # answers with a text, at work or waiting for the language model

    def search_settings(k: int | None, retriever: str | None) -> SearchSettings:
        own = searched.settings.search
        return replace(own, k=k or own.k, retriever=retriever or own.retriever)

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
        found = await asyncio.get_running_loop().run_in_executor(searching, retrieve, *search_of)
        return json_response({**found_json(query, found), "retriever": settings.retriever, **truncation})

    @router.post("/ask")
    async def answer(body: AskBody) -> Response:
        """Answer a question: a stream of server-sent events, or one object with ``"stream": false``."""
        question, truncation = await read_question(body.question, served, body.truncate, "question")
        settings = answer_settings(body)
        if settings.write and len(waiting) >= QUEUED_ANSWERS:
            raise overloaded(f"{len(waiting)} questions wait for the language model", ANSWER_S * len(waiting))
        stream = AnswerStream(question, body.after, settings, served, searched, searching, writing)
        if settings.write:
            waiting.add(stream.task)
            stream.task.add_done_callback(waiting.discard)
        try:
            name, content = await stream.next()
            while not body.stream and name not in LAST_EVENTS:
                name, content = await stream.next()
        except BaseException:  # such as the cancellation of a request that took too long
            stream.cancel()
            raise
        if name == "error":
            status = 400 if content["error"]["type"] == "invalid_request_error" else 500
            return json_response(content, status)
        if not body.stream:
            return json_response({**content, **truncation})
        events = server_sent_events((name, {**content, **truncation}), stream)
        return StreamingResponse(events, media_type="text/event-stream")

    return router
