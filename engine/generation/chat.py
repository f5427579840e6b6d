"""Chat messages to prompt text, by the model's own template."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import InputError, ModelFileError
from ..limited_process import Limits, Program, ask

Message = Mapping[str, str]

RENDERER = Program(Path(__file__).with_name("chat_program.py"), idle_s=600)
LIMITS = Limits(seconds=2, megabytes=200)
# Stands for the content of the message of this number: characters of private use, which no template has.
MARK = re.compile("\ue000([0-9]{1,9})\ue001")


@dataclass(frozen=True)
class RenderedChat:
    """A prompt."""

    text: str
    contents: tuple[tuple[int, int], ...]  # the span of each message's content in it
    has_last: bool  # whether the content of the last message is among them


def render_chat(
    template: str, messages: Sequence[Message], bos_token: str = "", eos_token: str = "", think: bool = False
) -> RenderedChat:
    """Render messages up to the beginning of the assistant's turn.

    The environment is that of transformers, sandboxed, and in a process with limits on time and memory.
    Models that may think before they answer (Qwen3, SmolLM3) do so with ``think``, their ``enable_thinking``.
    Of the `forms_of` the messages, the first is taken that the template shows completely.
    """
    for number, message in enumerate(messages):
        if not isinstance(message.get("role"), str) or not isinstance(message.get("content"), str):
            raise InputError(f"message {number} needs a role and a content, both strings")

    contents = [message["content"] for message in messages]
    # Marks in place of the contents show what the template puts between them.
    marks = [f"\ue000{number}\ue001" for number in range(len(messages))]
    request = {
        "template": template,
        "forms": [*zip(forms_of(messages, contents), forms_of(messages, marks), strict=True)],
        "marks": [marks[number] for number in needed(messages)],
        "tokens": {"bos_token": bos_token, "eos_token": eos_token},
        "think": think,
    }
    replied = ask(RENDERER, json.dumps(request).encode(), LIMITS)
    answer: dict[str, Any] = {"broken": f"it takes over {LIMITS}"} if replied is None else json.loads(replied)
    if "refused" in answer:
        roles = ", ".join(message["role"] for message in messages)
        raise InputError(
            f"the model's chat template refuses messages of {roles}: {answer['refused']}: give them so, or "
            "choose another model"
        )
    if "broken" in answer:
        raise ModelFileError(
            f"the model's chat template cannot be rendered: {answer['broken']}: give the prompt as one text"
        )
    text, skeleton = answer["texts"]
    spans = content_spans(text, contents, skeleton)
    return RenderedChat(text, tuple(spans.values()), len(contents) - 1 in spans)


def forms_of(messages: Sequence[Message], contents: Sequence[str]) -> list[list[dict[str, Any]]]:
    """Return the forms in which a template may take messages with these contents, the usual one first.

    Without a system message its text stands in front of the first question; a content may be a list of parts.
    """
    chat = [{**message, "content": content} for message, content in zip(messages, contents, strict=True)]
    chats = [chat, joined] if (joined := without_system(chat)) != chat else [chat]
    return chats + [
        [{**message, "content": [{"type": "text", "text": message["content"]}]} for message in each]
        for each in chats
    ]


def without_system(messages: Sequence[Message]) -> list[dict[str, str]]:
    """Return messages with the system's text in front of the question behind it."""
    if [message["role"] for message in messages[:2]] != ["system", "user"]:
        return [dict(message) for message in messages]
    system, question, *others = messages
    content = f"{system['content']}\n\n{question['content']}"
    return [{**question, "content": content}, *map(dict, others)]


def needed(messages: Sequence[Message]) -> set[int]:
    """Return the numbers of the messages that a prompt must not lack: the system's and the last one."""
    return {number for number, message in enumerate(messages) if message["role"] == "system"} | (
        {len(messages) - 1} if messages else set()
    )


def content_spans(text: str, contents: Sequence[str], skeleton: str) -> dict[int, tuple[int, int]]:
    """Return the spans of contents in ``text`` by the message's number, in order.

    ``skeleton`` is the text with marks in place of the contents. A template may trim a content, change it or
    leave it out; where it repeats one, the first place counts. Where a template writes other words around
    other contents, those that stand in the text unchanged are searched.
    """
    # The text before the first mark, then the message of each mark and the text up to the next one.
    before, *rest = MARK.split(skeleton)
    numbers, afters = [int(number) for number in rest[::2]], rest[1::2]
    spans: dict[int, tuple[int, int]] = {}
    position = len(before)
    if not text.startswith(before) or any(number >= len(contents) for number in numbers):
        return searched_spans(text, contents)
    for place, (number, after) in enumerate(zip(numbers, afters, strict=True), 1):
        end = content_end(text, position, contents[number], after, is_last=place == len(numbers))
        if end is None:
            return searched_spans(text, contents)
        if number > max(spans, default=-1):
            spans[number] = position, end
        position = end + len(after)
    return spans


def content_end(text: str, start: int, content: str, after: str, is_last: bool) -> int | None:
    """Return where the content that starts at ``start`` ends, which is before ``after``; None if nowhere."""
    for shown in (content, content.strip(), content.lstrip(), content.rstrip()):
        end = start + len(shown)
        if text.startswith(shown + after, start) and (not is_last or end + len(after) == len(text)):
            return end
    end = len(text) - len(after) if is_last else text.find(after, start)  # the template changed it
    return end if end >= start and text.startswith(after, end) else None


def searched_spans(text: str, contents: Sequence[str]) -> dict[int, tuple[int, int]]:
    """Return the spans of contents that stand in a text one after another, with or without blanks around."""
    spans, position = {}, 0
    for number, content in enumerate(contents):
        start = text.find(shown := content.strip(), position)
        if shown and start >= 0:
            position = start + len(shown)
            spans[number] = start, position
    return spans
