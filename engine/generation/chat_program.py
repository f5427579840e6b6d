"""Rendering of chat templates, for `engine.limited_process`: a template is a program from a downloaded file.

Jinja's sandbox keeps a template from files and code, but not from endless loops and gigabytes. A subset of
the language would refuse templates that models have; the limits of a process hold for all. This file imports
nothing of the engine, which would take longer than a template.
"""

import json
import re
from datetime import datetime
from functools import partial
from typing import Any

from jinja2.ext import Extension, loopcontrols
from jinja2.nodes import Node
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

MAX_CHARACTERS = 20_000_000
# A list of parts that a template shows as Python or JSON writes it.
LISTS_PARTS = re.compile(r"\[\{['\"]type['\"]: ")
Chat = list[dict[str, Any]]


class Refusal(Exception):
    """Raised by a template for messages unlike those the model was trained on."""


class Generation(Extension):
    """The block ``generation``, which marks the model's own turns and changes nothing in the text."""

    tags = {"generation"}  # noqa: RUF012, as Jinja declares it

    def parse(self, parser: Parser) -> list[Node]:
        """Return what the block contains."""
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def template_environment() -> ImmutableSandboxedEnvironment:
    """Return the environment of chat templates: loop controls, JSON, the date, and a way to refuse."""

    def refuse(reason: str) -> None:
        raise Refusal(reason)

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols, Generation]
    )
    environment.globals["raise_exception"] = refuse
    environment.globals["strftime_now"] = datetime.now().strftime  # one time in all chats of a request
    environment.filters["tojson"] = partial(json.dumps, ensure_ascii=False)  # Jinja's own escapes HTML
    return environment


def rendered(
    template: str, forms: list[list[Chat]], marks: list[str], tokens: dict[str, str], think: bool
) -> dict[str, Any]:
    """Render the first form of a chat that shows all ``marks``, else the one that shows the most.

    A form is the chat and the same with marks as contents. Returns ``{"texts": …}`` of both, or the
    reason why not as ``refused`` or ``broken``.
    """
    best: dict[str, Any] = {}
    most = -1
    try:
        program = template_environment().from_string(template)
    except Exception as error:  # of any kind: a template is a program of its own
        return broken(error)
    given = {"tools": None, "documents": None, "add_generation_prompt": True, "enable_thinking": think}
    for form in forms:
        try:
            texts = [program.render(messages=chat, **given, **tokens) for chat in form]
        except Refusal as refusal:
            best = best or {"refused": str(refusal)[:200]}
            continue
        except Exception as error:
            best = best or broken(error)
            continue
        n_shown = sum(mark in texts[1] for mark in marks) if not LISTS_PARTS.search(texts[1]) else -1
        if sum(map(len, texts)) > MAX_CHARACTERS:
            return {"broken": f"it makes over {MAX_CHARACTERS // 10**6} million characters"}
        if n_shown > most and (best.keys() <= {"texts"} or n_shown == len(marks)):
            best, most = {"texts": texts}, n_shown
        if most == len(marks):
            break
    return best


def broken(error: Exception) -> dict[str, str]:
    """Return why a template cannot be rendered."""
    return {"broken": (str(error) or type(error).__name__)[:200]}


def answer(request: bytes) -> bytes:
    """Render the chat of a request, JSON to JSON."""
    return json.dumps(rendered(**json.loads(request))).encode()
