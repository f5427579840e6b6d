"""The bodies of requests, answers and errors; unknown fields of requests are not read, and answers say so."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from fastapi import Response
from pydantic import BaseModel, Field, StrictBool, StrictInt, StrictStr, WithJsonSchema, model_validator
from pydantic_core import to_json
from starlette.exceptions import HTTPException

from ..errors import DocumentError, GlassboxError, MemoryLimitError, ModelUnavailableError
from ..wording import MAX_NAME, error_words, shortened, some_of

Name = Annotated[str, Field(max_length=80)]  # messages may repeat it
# Checked as it is read, in a thread: pydantic would try every type on every token id.
TEXT, IDS = {"type": "string"}, {"type": "array", "items": {"type": "integer"}}
TEXTS, LISTS = ({"type": "array", "items": items} for items in (TEXT, IDS))
Input = Annotated[StrictStr | list[Any], WithJsonSchema({"anyOf": [TEXT, TEXTS, IDS, LISTS]})]
Texts = Annotated[list[StrictStr], Field(fail_fast=True)]
# Messages for fields of several types, where pydantic would report an error for each type.
FORMS = {
    "input": "give a text, a list of texts, a list of token ids, or a list of such lists",
    "documents": "give a list of texts, or of objects with the field text",
    "messages": "give a list of 1 to 1,000 objects with a role and a content, a text or a list of its parts",
    "stop": "give a text or a list of texts",
}

UNAVAILABLE = "unavailable"  # the code of errors of status 503 that no waiting ends
MOST_TURNS, TURN_CHARACTERS = 100, 100_000  # of a conversation, and of a question or an answer in it
MOST_MESSAGES, MOST_NAMED = 1000, 5  # of a chat, and fields named in a warning


class Body(BaseModel):
    """The body of a request; a field that is null is one that is not given."""

    model_config = {"extra": "allow"}

    @property
    def warnings(self) -> list[str]:
        """The names of fields that are not read, in a line."""
        names = [repr(shortened(name, MAX_NAME)) for name in self.model_extra or {}]
        return [f"not read, as there is no such field: {some_of(names, MOST_NAMED)}"] if names else []

    @model_validator(mode="before")
    @classmethod
    def without_nulls(cls, content: Any) -> Any:
        """Leave out the fields that are null."""
        if not isinstance(content, dict):
            return content
        return {name: value for name, value in content.items() if value is not None}


class EmbeddingBody(Body):
    """``POST /v1/embeddings``; ``user`` is ignored, ``truncate`` and ``prompt_name`` are not OpenAI's."""

    input: Input
    model: str
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: StrictInt | None = None
    user: str | None = None
    truncate: StrictBool | None = None
    prompt_name: Name | None = None


class OllamaBody(Body):
    """``POST /api/embed``, Ollama's; ``keep_alive`` is taken, and not used."""

    input: StrictStr | Texts
    model: str
    truncate: StrictBool = True
    dimensions: StrictInt | None = None
    keep_alive: Any = None


class DocumentBody(BaseModel):
    """A document as an object; only its text is read."""

    text: str


class RerankBody(Body):
    """``POST /rerank``: ``documents`` as Cohere and Jina have it, or ``texts`` as TEI."""

    query: str
    documents: Annotated[list[StrictStr | DocumentBody], Field(fail_fast=True)] | None = None
    texts: Texts | None = None
    model: str | None = None
    top_n: Annotated[StrictInt, Field(ge=1)] | None = None
    return_documents: StrictBool = False
    return_text: StrictBool = False  # of TEI
    raw_scores: StrictBool = False  # of TEI, whose scores go through a sigmoid without it
    truncate: StrictBool | None = None

    @model_validator(mode="after")
    def of_one_form(self) -> "RerankBody":
        """Refuse a body of both forms or of none."""
        if (self.documents is None) == (self.texts is None):
            raise ValueError("give documents, or texts as TEI has them")
        return self

    @property
    def passages(self) -> list[str]:
        """The texts of the documents."""
        if self.documents is None:
            return self.texts or []
        return [each if isinstance(each, str) else each.text for each in self.documents]


class SearchBody(Body):
    """``POST /search``."""

    query: str
    k: Annotated[StrictInt, Field(ge=1)] = 5
    retriever: Name | None = None
    truncate: StrictBool | None = None


class TurnBody(Body):
    """An earlier turn of a conversation."""

    question: Annotated[str, Field(max_length=TURN_CHARACTERS)]
    answer: Annotated[str, Field(max_length=TURN_CHARACTERS)] = ""


class AskBody(Body):
    """``POST /ask``; ``after`` are the turns before, oldest first, ``write`` has the model write or not."""

    question: str
    k: Annotated[StrictInt, Field(ge=1)] | None = None
    retriever: Name | None = None
    after: Annotated[list[TurnBody], Field(fail_fast=True, max_length=MOST_TURNS)] = []
    write: StrictBool | None = None
    stream: StrictBool = True
    truncate: StrictBool | None = None


class PartBody(BaseModel):
    """A part of a message; only texts are read."""

    type: Literal["text"]
    text: str


class MessageBody(Body):
    """A message of a chat."""

    role: Name
    content: StrictStr | list[PartBody] = ""

    @property
    def text(self) -> str:
        """The text of all parts."""
        return self.content if isinstance(self.content, str) else "".join(part.text for part in self.content)


class StreamOptions(BaseModel):
    """What a stream says besides the text."""

    include_usage: StrictBool = False


class ChatBody(Body):
    """``POST /v1/chat/completions``; of the rules that choose tokens all of `Sampling` are taken."""

    messages: Annotated[list[MessageBody], Field(fail_fast=True, min_length=1, max_length=MOST_MESSAGES)]
    model: str
    stream: StrictBool = False
    stream_options: StreamOptions = StreamOptions()
    max_tokens: Annotated[StrictInt, Field(ge=1)] | None = None
    max_completion_tokens: Annotated[StrictInt, Field(ge=1)] | None = None
    stop: StrictStr | list[StrictStr] = []
    n: Literal[1] = 1
    temperature: float | None = None
    top_p: float | None = None
    top_k: StrictInt | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None
    seed: StrictInt | None = None
    user: str | None = None


def json_response(content: Any, status: int = 200) -> Response:
    """Return an answer in JSON."""
    return Response(to_json(content), status, media_type="application/json")


def warned(warnings: Sequence[str]) -> dict[str, Any]:
    """Return the field of an answer that says what was not read or not done; empty if there is nothing."""
    return {"warnings": list(warnings)} if warnings else {}


def model_warnings(name: str | None, own: Sequence[str]) -> list[str]:
    """Return what to say of a model's name: that another one answered, where that is the only one.

    Raises `RequestError` where there are several models, and none of this name.
    """
    if name is None or name in own:
        return []
    if len(own) == 1:
        return [f"there is no model {shortened(name, MAX_NAME)!r}: {own[0]} answered"]
    raise RequestError(
        404, f"there is no model {name!r:.80}: this server has {', '.join(own)}", "model", "model_not_found"
    )


class RequestError(HTTPException):
    """An error in a request, or the server at a limit: a status, and a line with the reason and the remedy.

    ``parameter`` names the field of the body that is wrong, ``code`` tells errors of one status apart.
    """

    def __init__(
        self,
        status: int,
        message: str,
        parameter: str | None = None,
        code: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(status, message, headers)
        self.parameter, self.code = parameter, code

    @property
    def content(self) -> dict[str, Any]:
        """The body of the response, in OpenAI's format."""
        return error_content(self.status_code, self.detail, self.parameter, self.code)


def error_content(
    status: int, message: str, parameter: str | None = None, code: str | None = None
) -> dict[str, Any]:
    """Return an error in OpenAI's format."""
    kind = "invalid_request_error" if status < 500 else "server_error"
    return {"error": {"message": error_words(message), "type": kind, "param": parameter, "code": code}}


def failure_content(error: GlassboxError) -> tuple[dict[str, Any], int]:
    """Return an error of the engine in OpenAI's format, and its status: 400 for what a request gave.

    It is 503 where the index, the store of its vectors, another server or the memory fails.
    """
    if isinstance(error, (DocumentError, MemoryLimitError, ModelUnavailableError)):
        return error_content(503, str(error), code=UNAVAILABLE), 503
    return error_content(400, str(error)), 400


def overloaded(why: str, retry_s: float = 1.0) -> RequestError:
    """Return the error of a server at a limit."""
    headers = {"Retry-After": f"{retry_s:.0f}"}
    return RequestError(
        503, f"the server is busy, {why}: try again in {retry_s:.0f} s", None, "overloaded", headers
    )
