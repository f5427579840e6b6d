"""The routes that need a corpus: search, and answers as a stream of events."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from fastapi import APIRouter, Response
from fastapi.responses import StreamingResponse
from pydantic_core import to_json

from engine.cores import n_cores
from engine.errors import GlassboxError
from engine.generation.answer import Answer
from engine.generation.answer_json import answer_json, found_answer_json, found_json
from engine.generation.answering import ask
from engine.generation.conversation import Turn, follow_up
from engine.generation.passage_search import retrieve
from engine.generation.settings import AnswerSettings
from engine.serving.bodies import AskBody, SearchBody, error_content, json_response, overloaded
from engine.serving.guard import FAILED, log_failure
from engine.serving.reading import read_texts
from engine.serving.served import ANSWER_S, QUEUED_ANSWERS, Searched, Served

Event = tuple[str, dict[str, Any]]  # its name, and its content
LAST_EVENTS = ("answer", "error")


class AnswerStream:
    """The answer of a question, written in a thread, as a queue of events.

    The events are ``found``, the words that answer and the quotes; ``thought`` and ``text``, each a piece;
    then ``answer`` with the checks of its sentences, or ``error``. The text is cut off at the limit of
    seconds.
    """

    def __init__(self, body: AskBody, settings: AnswerSettings, served: Served, searched: Searched) -> None:
        self._body, self._settings, self._served, self._searched = body, settings, served, searched
        self._loop, self._deadline = asyncio.get_running_loop(), time.monotonic() + served.limits.seconds
        self._events: asyncio.Queue[Event] = asyncio.Queue()
        self._cancelled = threading.Event()

    def cancel(self) -> None:
        """End the answer after its current token."""
        self._cancelled.set()

    async def next(self) -> Event:
        """Return the next event."""
        return await self._events.get()

    def run(self) -> None:
        """Answer the question, in a thread."""
        if self._cancelled.is_set():
            return
        try:
            self._put("answer", answer_json(self._answer()))
        except GlassboxError as error:
            self._put("error", error_content(400, str(error)))
        except Exception as error:  # of any kind: client and log get one line
            log_failure("/ask", error)
            self._put("error", error_content(500, FAILED))

    def _answer(self) -> Answer:
        index, null_scores = self._searched.index, self._searched.null_scores
        turns = [Turn(turn.question, turn.answer) for turn in self._body.after]
        question, own_turns = follow_up(self._body.question, turns, index, self._served.encoder, null_scores)
        return ask(
            question,
            index,
            self._served.encoder,
            self._searched.writer,
            self._settings,
            null_scores,
            on_text=lambda text: self._put("text", {"text": text}),
            on_found=lambda found: self._put("found", found_answer_json(found)),
            stop=lambda: self._cancelled.is_set() or time.monotonic() > self._deadline,
            turns=own_turns,
            on_thought=lambda text: self._put("thought", {"text": text}),
            reader=self._searched.reader,
        )

    def _put(self, name: str, content: dict[str, Any]) -> None:
        if not self._cancelled.is_set():
            self._loop.call_soon_threadsafe(self._events.put_nowait, (name, content))


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


def asking_routes(served: Served, searched: Searched) -> APIRouter:
    """Return the routes of a corpus. Searches run on every core, answers one after the other."""
    router = APIRouter()
    searching = ThreadPoolExecutor(n_cores(), "search")
    writing = ThreadPoolExecutor(1, "answer")
    waiting: set[Future[None]] = set()  # answers at work or waiting

    def answer_settings(k: int | None, retriever: str | None) -> AnswerSettings:
        own = searched.settings.search
        search = replace(own, k=k or own.k, retriever=retriever or own.retriever)
        return replace(searched.settings, search=search)

    @router.post("/search")
    async def search(body: SearchBody) -> Response:
        """Find the best passages for a question."""
        truncation = read_texts([body.query], served, body.truncate, "query").truncation()
        settings = answer_settings(body.k, body.retriever).search
        search_of = (body.query, searched.index, served.encoder, settings, searched.null_scores)
        found = await asyncio.get_running_loop().run_in_executor(searching, retrieve, *search_of)
        return json_response({**found_json(body.query, found), "retriever": settings.retriever, **truncation})

    @router.post("/ask")
    async def answer(body: AskBody) -> Response:
        """Answer a question: a stream of server-sent events, or one object with ``"stream": false``."""
        truncation = read_texts([body.question], served, body.truncate, "question").truncation()
        settings = answer_settings(body.k, body.retriever)
        if len(waiting) >= QUEUED_ANSWERS:
            raise overloaded(f"{len(waiting)} questions wait for the language model", ANSWER_S * len(waiting))
        stream = AnswerStream(body, settings, served, searched)
        run = writing.submit(stream.run)
        waiting.add(run)
        run.add_done_callback(waiting.discard)
        try:
            name, content = await stream.next()
            while not body.stream and name not in LAST_EVENTS:
                name, content = await stream.next()
        except BaseException:  # such as the cancellation of a request that took too long
            stream.cancel()
            run.cancel()
            raise
        if name == "error":
            status = 400 if content["error"]["type"] == "invalid_request_error" else 500
            return json_response(content, status)
        if not body.stream:
            return json_response({**content, **truncation})
        events = server_sent_events((name, {**content, **truncation}), stream)
        return StreamingResponse(events, media_type="text/event-stream")

    return router
