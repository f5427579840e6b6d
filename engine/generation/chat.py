"""Chat messages to prompt text, by the model's own template."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.errors import InputError, ModelFileError
from engine.limited_process import Limits, Program, ask

Message = Mapping[str, str]

RENDERER = Program(Path(__file__).with_name("chat_program.py"), idle_s=600)
LIMITS = Limits(seconds=2, megabytes=200)


@dataclass(frozen=True)
class RenderedChat:
    """A prompt, and the span ``(start, end)`` of each message's content in it."""

    text: str
    contents: tuple[tuple[int, int], ...]


def render_chat(
    template: str,
    messages: Sequence[Message],
    bos_token: str = "",
    eos_token: str = "",
    think: bool = False,
) -> RenderedChat:
    """Render messages up to the beginning of the assistant's turn.

    The environment is that of transformers, sandboxed, and in a process with limits on time and memory.
    Models that may think before they answer (Qwen3, SmolLM3) do so with ``think``, their ``enable_thinking``.

    Raises
    ------
    InputError
        A message lacks ``role`` or ``content``, or the template refuses these messages.
    ModelFileError
        The template is broken, or takes too long or too much memory.
    """
    for number, message in enumerate(messages):
        if not isinstance(message.get("role"), str) or not isinstance(message.get("content"), str):
            raise InputError(f"message {number} needs a role and a content, both strings")

    contents = [message["content"] for message in messages]
    # Private-use characters in place of the contents show what the template puts between them.
    marks = [f"\ue000{number}\ue001" for number in range(len(messages))]
    chats = [
        [{**message, "content": content} for message, content in zip(messages, filled, strict=True)]
        for filled in (contents, marks)
    ]
    tokens = {"bos_token": bos_token, "eos_token": eos_token}
    answer = run_template({"template": template, "chats": chats, "tokens": tokens, "think": think})
    if "refused" in answer:
        roles = ", ".join(message["role"] for message in messages)
        raise InputError(
            f"the model's chat template refuses messages of {roles}: {answer['refused']}: give them so"
        )
    if "broken" in answer:
        raise ModelFileError(
            f"the model's chat template cannot be rendered: {answer['broken']}: give the prompt as one text"
        )
    text, skeleton = answer["texts"]
    return RenderedChat(text, tuple(content_spans(text, contents, skeleton, marks)))


def run_template(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the texts of a request, or why there are none: see `engine.generation.chat_program`."""
    answer = ask(RENDERER, json.dumps(request).encode(), LIMITS)
    if answer is None:
        return {"broken": f"it takes over {LIMITS}"}
    found: dict[str, Any] = json.loads(answer)
    return found


def content_spans(
    text: str, contents: Sequence[str], skeleton: str, marks: Sequence[str]
) -> Iterator[tuple[int, int]]:
    """Yield the span of each content in ``text``, which is ``skeleton`` with the marks filled in.

    A template may trim a content or leave it out.
    """
    position = read = 0
    for content, mark in zip(contents, marks, strict=True):
        place = skeleton.find(mark, read)
        if place < 0:
            continue
        position += place - read
        shown = content if text.startswith(content, position) else content.strip()
        yield position, position + len(shown)
        position, read = position + len(shown), place + len(mark)
