"""Chats in OpenAI's format: by the language model as it is, or by the documents, with their sources.

The model `INDEX` writes nothing of its own: its answers are the words that the reader finds, and the
sentences that they stand in.
"""

import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
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
from ..wording import counted, model_name
from .asking import Event, EventStream, Threads, find, read_question, whole
from .bodies import MOST_TURNS, TURN_CHARACTERS, ChatBody, MessageBody, RequestError, model_warnings, warned
from .reading import TOKEN_CHARACTERS
from .served import INDEX, Searched, Served

PATH = "/v1/chat/completions"


def chat_routes(served: Served, threads: Threads) -> APIRouter:
    """Return the route of chats."""
    router = APIRouter()
    own = [name for name in served.models if served.models[name].get("chat")]

    @router.post(PATH)
    async def chat(body: ChatBody) -> Response:
        """Answer the last message of a chat, by pieces or at once."""
        if not own:
            why = "chats need documents or a language model: start the server with CORPUS, --index or --write"
            raise RequestError(404, why, "model", "model_not_found")
        extra = warned([*body.warnings, *model_warnings(body.model, own)])
        name = body.model if body.model in own else own[0]
        sampling = sampling_of(body, served)
        if name == INDEX:
            assert served.searched is not None, "or it would not be among the models"
            stream, truncation = await index_stream(body, served, served.searched, threads)
            extra |= truncation
        else:
            assert served.chat_writer is not None, "or it would not be among the models"
            stream = decoder_stream(body, served, served.chat_writer, sampling, threads)
        reply = {"id": f"chatcmpl-{uuid4().hex}", "created": int(time.time()), "model": name}
        if not body.stream:
            content = await stream.last()
            return whole(content if "error" in content else completion(reply, content), extra)
        event = await stream.next()
        if event[0] == "error":
            return whole(event[1])
        pieces = chunks(event, stream, reply, body.stream_options.include_usage, extra)
        return StreamingResponse(pieces, media_type="text/event-stream")

    return router


def completion(reply: dict[str, Any], content: dict[str, Any]) -> dict[str, Any]:
    """Return a whole answer, of the last event's content."""
    message = {"role": "assistant", "content": content["text"], "refusal": None}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": content["finish_reason"]}
    said = {"choices": [choice], "usage": content["usage"], **content["more"]}
    return {**reply, "object": "chat.completion", **said}


async def chunks(
    first: Event, stream: EventStream, reply: dict[str, Any], with_usage: bool, extra: dict[str, Any]
) -> AsyncIterator[bytes]:
    """Yield the chunks of an answer as they are sent; cancel it when the client disconnects."""

    def data(content: dict[str, Any]) -> bytes:
        return b"data: %s\n\n" % to_json(content)

    def chunk(delta: dict[str, str], reason: str | None = None, **more: Any) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        return data({**of_chunk, "choices": [choice], **more})

    name, content = first
    of_chunk = {**reply, "object": "chat.completion.chunk"}
    try:
        yield chunk({"role": "assistant", "content": ""}, **extra)
        while name == "text":
            yield chunk({"content": content["text"]})
            name, content = await stream.next()
        if name == "error":
            yield data(content)
            return
        yield chunk({}, content["finish_reason"], **content["more"])
        if with_usage:
            yield data({**of_chunk, "choices": [], "usage": content["usage"]})
        yield b"data: [DONE]\n\n"
    finally:
        stream.cancel()


def decoder_stream(
    body: ChatBody, served: Served, writer: Writer, sampling: Sampling, threads: Threads
) -> EventStream:
    """Return the events of a text that the language model writes: ``text``, and ``answer`` with all of it."""
    decoder = writer.decoder
    n_characters, most = sum(len(each.text) for each in body.messages), decoder.max_tokens * TOKEN_CHARACTERS
    if n_characters > most:
        over = f"over the {most:,} that {model_name(decoder.name)} reads"
        why = f"messages: {counted(n_characters, 'character')}, {over}"
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

    return threads.stream(run, PATH, served.limits.seconds, writes=True)


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

    return threads.stream(run, PATH, served.limits.seconds, writes=False), truncation


def shown(answer: Answer) -> tuple[str, str]:
    """Return an answer as a text: the words that answer, and the sentences they stand in as its sources."""
    quotes = [f"\n\n[{n}] {q.document}: “{' '.join(q.text.split())}”" for n, q in enumerate(answer.quotes, 1)]
    if not answer.retrieved.relevant:
        words = NOTHING_FOUND
    elif answer.reading is None:
        words = "The sentences that come closest:"
    else:
        unsure = "Perhaps: " if answer.judged.status == "unsure" else ""
        words = f"{unsure}{' '.join(answer.reading.text.split())} [1]"
    return words, "".join(quotes)


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
