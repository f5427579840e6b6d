"""Chat messages to prompt text, by the template that comes with the model."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from jinja2 import TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from engine.errors import InputError, ModelFileError

Message = Mapping[str, str]


def render_chat(template: str, messages: Sequence[Message], bos_token: str = "", eos_token: str = "") -> str:
    """Render messages, ending where the assistant is to speak.

    The environment is set up as transformers does it, and sandboxed: a template is a program that
    came with a downloaded file.

    Raises
    ------
    InputError
        A message lacks ``role`` or ``content``.
    ModelFileError
        The template is broken, or refuses these messages.
    """
    for number, message in enumerate(messages):
        if not isinstance(message.get("role"), str) or not isinstance(message.get("content"), str):
            raise InputError(f"message {number} needs a role and a content, both strings")

    def raise_exception(reason: str) -> None:
        raise TemplateError(reason)

    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    environment.globals["raise_exception"] = raise_exception
    environment.globals["strftime_now"] = lambda pattern: datetime.now().strftime(pattern)
    try:
        return environment.from_string(template).render(
            messages=list(messages), add_generation_prompt=True, bos_token=bos_token, eos_token=eos_token
        )
    except (TemplateError, TypeError, ArithmeticError, LookupError) as error:
        raise ModelFileError(f"the model's chat template cannot be rendered: {error}") from error


def content_spans(rendered: str, messages: Sequence[Message]) -> list[tuple[int, int]]:
    """Where the contents of the messages stand in the rendered prompt, in order.

    Templates may trim a content; it is found by its stripped text.
    """
    spans, start = [], 0
    for message in messages:
        content = message["content"].strip()
        found = rendered.find(content, start)
        if found >= 0:
            start = found + len(content)
            spans.append((found, start))
    return spans
