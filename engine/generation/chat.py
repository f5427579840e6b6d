"""Chat messages to prompt text, by the model's own template."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from engine.errors import InputError, ModelFileError

if TYPE_CHECKING:
    from jinja2 import Template
    from jinja2.sandbox import ImmutableSandboxedEnvironment

Message = Mapping[str, str]


class Refusal(Exception):
    """Raised by a template for messages unlike those the model was trained on."""


@dataclass(frozen=True)
class RenderedChat:
    """A prompt, and the span ``(start, end)`` of each message's content in it."""

    text: str
    contents: tuple[tuple[int, int], ...]


def render_chat(
    template: str, messages: Sequence[Message], bos_token: str = "", eos_token: str = ""
) -> RenderedChat:
    """Render messages up to the beginning of the assistant's turn.

    The environment is that of transformers, and sandboxed: a template is a program from a downloaded file.

    Raises
    ------
    InputError
        A message lacks ``role`` or ``content``, or the template refuses these messages.
    ModelFileError
        The template is broken.
    """
    for number, message in enumerate(messages):
        if not isinstance(message.get("role"), str) or not isinstance(message.get("content"), str):
            raise InputError(f"message {number} needs a role and a content, both strings")

    environment = template_environment()

    def render(program: "Template", contents: Sequence[str]) -> str:
        filled = [{**message, "content": text} for message, text in zip(messages, contents, strict=True)]
        return program.render(
            messages=filled,
            tools=None,
            documents=None,
            add_generation_prompt=True,
            bos_token=bos_token,
            eos_token=eos_token,
        )

    contents = [message["content"] for message in messages]
    # Private-use characters in place of the contents show what the template puts between them.
    marks = [f"\ue000{number}\ue001" for number in range(len(messages))]
    try:
        program = environment.from_string(template)
        text, skeleton = render(program, contents), render(program, marks)
    except Refusal as refusal:
        roles = ", ".join(message["role"] for message in messages)
        raise InputError(
            f"the model's chat template refuses messages of {roles}: {refusal}: give them as it asks"
        ) from refusal
    except Exception as error:  # a template is somebody else's program: anything may fail
        reason = str(error) or type(error).__name__
        raise ModelFileError(
            f"the model's chat template cannot be rendered: {reason}: give the prompt as one text"
        ) from error
    return RenderedChat(text, tuple(content_spans(text, contents, skeleton, marks)))


def template_environment() -> "ImmutableSandboxedEnvironment":
    """Return the environment of chat templates: loop controls, JSON, the date, and a way to refuse."""
    from jinja2.sandbox import ImmutableSandboxedEnvironment  # slow to load, and only a chat needs it

    def refuse(reason: str) -> None:
        raise Refusal(reason)

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    environment.globals["raise_exception"] = refuse
    environment.globals["strftime_now"] = lambda pattern: datetime.now().strftime(pattern)
    environment.filters["tojson"] = partial(json.dumps, ensure_ascii=False)  # Jinja's own escapes HTML
    return environment


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
