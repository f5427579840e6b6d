"""Chats in OpenAI's format: by the language model as it is, or by the documents, with their sources.

The model `INDEX` writes nothing of its own: its answers are the words that the reader finds, and the
sentences that they stand in.
"""

import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any
from uuid import uuid4

from fastapi import APIRouter, Response
from fastapi.responses import StreamingResponse
from pydantic_core import to_json

from ..generation.answer import NOTHING_FOUND, Answer
from ..generation.answer_json import found_answer_json, piece_json
from ..generation.conversation import Turn
from ..generation.sampling import GREEDY, Sampling
from ..generation.writer import Writer
from ..wording import counted
from .asking import EventStream, Threads, find, read_question, whole
from .bodies import (
    MOST_TURNS,
    TURN_CHARACTERS,
    ChatBody,
    MessageBody,
    RequestError,
    json_response,
    model_warnings,
    warned,
)
from .reading import TOKEN_CHARACTERS
from .served import INDEX, Searched, Served


@dataclass(frozen=True)
class Reply:
    """What the chunks of an answer have in common, and its whole."""

    model: str
    id: str = field(default_factory=lambda: f"chatcmpl-{uuid4().hex}")
    created: int = field(default_factory=lambda: int(time.time()))

    def chunk(self, delta: dict[str, str], finish_reason: str | None = None, **more: Any) -> dict[str, Any]:
        """Return a piece of the answer."""
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        return self._of("chat.completion.chunk", [choice], **more)

    def last(self, content: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the end of a stream, and the chunk of its usage."""
        end = self.chunk({}, content["finish_reason"], **content["more"])
        return [end, self._of("chat.completion.chunk", [], usage=content["usage"])]

    def whole(self, content: dict[str, Any]) -> dict[str, Any]:
        """Return all of the answer at once."""
        message = {"role": "assistant", "content": content["text"], "refusal": None}
        choice = {
            "index": 0,
            "message": message,
            "logprobs": None,
            "finish_reason": content["finish_reason"],
        }
        return self._of("chat.completion", [choice], usage=content["usage"], **content["more"])

    def _of(self, kind: str, choices: list[Any], **more: Any) -> dict[str, Any]:
        named = {"id": self.id, "object": kind, "created": self.created, "model": self.model}
        return {**named, "choices": choices, **more}


def chat_routes(served: Served, threads: Threads) -> APIRouter:
    """Return the route of chats."""
    router = APIRouter()
    own = [name for name in served.models if served.models[name].get("chat")]

    @router.post("/v1/chat/completions")
    async def chat(body: ChatBody) -> Response:
        """Answer the last message of a chat, by pieces or at once."""
        if not own:
            why = "chats need documents or a language model: start the server with CORPUS, --index or --write"
            raise RequestError(404, why, "model", "model_not_found")
        warnings = [*body.warnings, *model_warnings(body.model, own)]
        name = body.model if body.model in own else own[0]
        told = warned(warnings)
        if name == INDEX:
            assert served.searched is not None, "or it would not be among the models"
            stream, truncation = await index_stream(body, served, served.searched, threads)
            told |= truncation
        else:
            assert served.chat_writer is not None, "or it would not be among the models"
            stream = decoder_stream(body, served, served.chat_writer, threads)
        reply = Reply(name)
        if not body.stream:
            content = await stream.last()
            return whole(content) if "error" in content else json_response({**reply.whole(content), **told})
        event = await stream.next()
        if event[0] == "error":
            return whole(event[1])
        pieces = chunks(event, stream, reply, body.stream_options.include_usage, told)
        return StreamingResponse(pieces, media_type="text/event-stream")

    return router


async def chunks(
    first: tuple[str, dict[str, Any]],
    stream: EventStream,
    reply: Reply,
    with_usage: bool,
    told: dict[str, Any],
) -> AsyncIterator[bytes]:
    """Yield the chunks of an answer as they are sent; cancel it when the client disconnects."""
    name, content = first
    try:
        yield event_of(reply.chunk({"role": "assistant", "content": ""}, **told))
        while name == "text":
            yield event_of(reply.chunk({"content": content["text"]}))
            name, content = await stream.next()
        if name == "error":
            yield event_of(content)
            return
        for chunk in reply.last(content)[: 1 + with_usage]:
            yield event_of(chunk)
        yield b"data: [DONE]\n\n"
    finally:
        stream.cancel()


def event_of(content: dict[str, Any]) -> bytes:
    """Return a server-sent event without a name."""
    return b"data: %s\n\n" % to_json(content)


def decoder_stream(body: ChatBody, served: Served, writer: Writer, threads: Threads) -> EventStream:
    """Return the events of a text that the language model writes: ``text``, and ``answer`` with all of it."""
    decoder, sampling = writer.decoder, sampling_of(body, served)
    n_characters, most = sum(len(each.text) for each in body.messages), decoder.max_tokens * TOKEN_CHARACTERS
    if n_characters > most:
        why = f"messages: {counted(n_characters, 'character')}, over the {most:,} that {decoder.name} reads"
        raise RequestError(400, f"{why}: leave out the earlier ones", "messages", "context_length_exceeded")
    messages = [{"role": each.role, "content": each.text} for each in body.messages]
    n_new = body.max_completion_tokens or body.max_tokens or decoder.max_tokens
    stop = [body.stop] if isinstance(body.stop, str) else body.stop

    def write(stream: EventStream) -> dict[str, Any]:
        ids = decoder.prompt_ids(messages)
        pieces, n_tokens, reason = list[str](), 0, "length"
        for token in decoder.generate(ids, n_new, sampling, stop, reuse=writer.reuse):
            n_tokens += 1
            if token.text:
                pieces.append(token.text)
                stream.put("text", {"text": token.text})
            reason = token.finish_reason or "length"
            if stream.is_over():
                break
        usage = usage_of(len(ids), n_tokens)
        return {"text": "".join(pieces), "finish_reason": reason, "usage": usage, "more": {}}

    async def run(stream: EventStream) -> None:
        stream.put("answer", await threads.write(partial(write, stream)))

    threads.check()
    stream = EventStream(run, "/v1/chat/completions", served.limits.seconds)
    threads.wait(stream)
    return stream


async def index_stream(
    body: ChatBody, served: Served, searched: Searched, threads: Threads
) -> tuple[EventStream, dict[str, Any]]:
    """Return the events of an answer from the documents, and the field that says what was not read."""
    *before, last = body.messages
    if last.role != "user":
        raise RequestError(
            400, f"messages: the last one is of {last.role!r}: end with the user's", "messages"
        )
    question, truncation = await read_question(last.text, served, None, "messages")
    turns, settings = turns_of(before), replace(searched.settings, write=False)

    async def run(stream: EventStream) -> None:
        answer, _ = await threads.search(partial(find, question, turns, settings, served, searched))
        words, sources = shown(answer)
        stream.put("text", {"text": words})
        quotes = [{"number": n, **piece_json(q, answer.retrieved)} for n, q in enumerate(answer.quotes, 1)]
        if quotes:
            stream.put("text", {"text": sources})
        more = {"sources": quotes, "glassbox": found_answer_json(answer)}
        content = {"text": words + sources, "finish_reason": "stop", "usage": usage_of(0, 0), "more": more}
        stream.put("answer", content)

    return EventStream(run, "/v1/chat/completions", served.limits.seconds), truncation


def shown(answer: Answer) -> tuple[str, str]:
    """Return an answer as a text: the words that answer, and the sentences they stand in as its sources."""
    quotes = [f"[{n}] {q.document}: “{' '.join(q.text.split())}”" for n, q in enumerate(answer.quotes, 1)]
    if not answer.retrieved.relevant:
        return NOTHING_FOUND, ""
    if answer.reading is None:
        return "The sentences that come closest:", "".join(f"\n\n{quote}" for quote in quotes)
    unsure = "Perhaps: " if answer.judged.status == "unsure" else ""
    words = f"{unsure}{' '.join(answer.reading.text.split())} [1]"
    return words, "".join(f"\n\n{quote}" for quote in quotes)


def turns_of(messages: Sequence[MessageBody]) -> list[Turn]:
    """Return the questions of a chat with the answers behind them; other messages are not read."""
    turns = list[Turn]()
    for message in messages:
        text = message.text[:TURN_CHARACTERS]
        if message.role == "user":
            turns.append(Turn(text, ""))
        elif message.role == "assistant" and turns and text:
            turns[-1] = replace(turns[-1], answer=text)
    return turns[-MOST_TURNS:]


def sampling_of(body: ChatBody, served: Served) -> Sampling:
    """Return how tokens are chosen: as a request says, else as the server does."""
    own = GREEDY if served.searched is None else served.searched.settings.sampling
    given = {name: getattr(body, name) for name in Sampling.__dataclass_fields__}
    return replace(own, **{name: value for name, value in given.items() if value is not None})


def usage_of(n_prompt: int, n_tokens: int) -> dict[str, int]:
    """Return the tokens of a prompt and of a text."""
    total = n_prompt + n_tokens
    return {"prompt_tokens": n_prompt, "completion_tokens": n_tokens, "total_tokens": total}
