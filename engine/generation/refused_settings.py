"""Requests to servers whose models take fewer settings: asked again without those, and from then on."""

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from .chat import without_system

if TYPE_CHECKING:
    from openai import APIStatusError, AsyncOpenAI, AsyncStream
    from openai.types.chat import ChatCompletionChunk

# Sent in place of a refused setting: OpenAI's o-series and GPT-5 take neither max_tokens nor a temperature.
IN_PLACE_OF = {"max_tokens": "max_completion_tokens"}
REFUSING = (400, 422, 500)  # statuses; llama-server reports a refusal of its chat template as 500
# Words of a server that refuses a setting as such; one that is out of range is for the user to change.
REFUSAL = re.compile(
    r"not support|n't support|unsupported|unrecogni[sz]ed|unknown|unexpected|\bextra\b|deprecated|"
    r"not (permitted|allowed|available|accept)|\bonly\b|\binstead\b",
    re.IGNORECASE,
)
# Words about a system message that a model takes none of.
REFUSED_ROLE = re.compile(
    r"messages\[0\]\.role|\bsystem\b|\bdeveloper instruction|\broles?\b.*\balternat",
    re.IGNORECASE | re.DOTALL,
)
MAX_WORDS = 10_000  # characters of a refusal that are searched
SYSTEM = "system message"


async def start_stream(
    client: "AsyncOpenAI", url: str, model: str, request: Mapping[str, Any]
) -> "AsyncStream[ChatCompletionChunk]":
    """Begin a streamed answer; ask again, now and later, without what the server refuses."""
    from openai import APIStatusError

    known = refused_settings(url, model)
    refused = [*known]
    while True:
        taken = request
        for name in refused:
            taken = without(taken, name)
        try:
            stream = await client.chat.completions.create(model=model, stream=True, **taken)
        except APIStatusError as error:
            more = [name for name in refused_by(error, taken) if name not in refused]
            if not more:
                raise
            refused += more
        else:  # only now it is certain that those were the cause
            known += [name for name in refused if name not in known]
            return stream


@lru_cache(maxsize=1000)
def refused_settings(url: str, model: str) -> list[str]:
    """Return what a model is known to refuse, a list to add to."""
    return []


def without(request: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return a request without a setting, or with what stands in its place."""
    if name == SYSTEM:
        return {**request, "messages": without_system(request["messages"])}
    others = {key: value for key, value in request.items() if key != name}
    return others | ({IN_PLACE_OF[name]: request[name]} if name in IN_PLACE_OF and name in request else {})


def refused_by(error: "APIStatusError", request: Mapping[str, Any]) -> list[str]:
    """Return what of a request a server refuses by its name; nothing for other errors."""
    body = error.body
    words = body if isinstance(body, str) else json.dumps(body, default=str, ensure_ascii=False)
    words = words[:MAX_WORDS]
    if error.status_code not in REFUSING:
        return []
    if request["messages"] != without_system(request["messages"]) and REFUSED_ROLE.search(words):
        return [SYSTEM]
    if not REFUSAL.search(words):
        return []
    named = {body["param"]} if isinstance(body, dict) and body.get("param") else {*re.findall(r"\w+", words)}
    return [name for name in request if name != "messages" and name in named]
