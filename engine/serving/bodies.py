"""The bodies of requests, answers and errors; unknown fields of requests are refused, not ignored."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from fastapi import Response
from pydantic import (
    BaseModel,
    ConfigDict,
    FailFast,
    Field,
    StrictInt,
    StrictStr,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import to_json
from starlette.exceptions import HTTPException

from ..wording import error_words

Name = Annotated[str, Field(max_length=80)]  # messages may repeat it
# Checked as it is read, in a thread: pydantic would try every type on every token id.
TEXT, IDS = {"type": "string"}, {"type": "array", "items": {"type": "integer"}}
TEXTS, LISTS = ({"type": "array", "items": items} for items in (TEXT, IDS))
Input = Annotated[StrictStr | list[Any], WithJsonSchema({"anyOf": [TEXT, TEXTS, IDS, LISTS]})]
# Messages for fields of several types, where pydantic would report an error for each type.
FORMS = {
    "input": "give a text, a list of texts, a list of token ids, or a list of such lists",
    "documents": "give a list of texts, or of objects with the field text",
}


MOST_TURNS, TURN_CHARACTERS = 100, 100_000  # of a conversation, and of a question or an answer in it


class Body(BaseModel):
    """The body of a request; a field that is null is one that is not given."""

    model_config = ConfigDict(extra="forbid")

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
    truncate: bool | None = None
    prompt_name: Name | None = None


class DocumentBody(BaseModel):
    """A document as an object; only its text is read."""

    text: str


class RerankBody(Body):
    """``POST /rerank``."""

    query: str
    documents: Annotated[list[StrictStr | DocumentBody], FailFast()]
    model: str | None = None
    top_n: Annotated[StrictInt, Field(ge=1)] | None = None
    return_documents: bool = False
    truncate: bool | None = None


class SearchBody(Body):
    """``POST /search``."""

    query: str
    k: Annotated[StrictInt, Field(ge=1)] = 5
    retriever: Name | None = None
    truncate: bool | None = None


class TurnBody(Body):
    """An earlier turn of a conversation."""

    question: Annotated[str, Field(max_length=TURN_CHARACTERS)]
    answer: Annotated[str, Field(max_length=TURN_CHARACTERS)] = ""


class AskBody(Body):
    """``POST /ask``; ``after`` are the turns before, oldest first, ``write`` has the model write or not."""

    question: str
    k: Annotated[StrictInt, Field(ge=1)] | None = None
    retriever: Name | None = None
    after: Annotated[list[TurnBody], FailFast(), Field(max_length=MOST_TURNS)] = []
    write: bool | None = None
    stream: bool = True
    truncate: bool | None = None


def json_response(content: Any, status: int = 200) -> Response:
    """Return an answer in JSON."""
    return Response(to_json(content), status, media_type="application/json")


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


def overloaded(why: str, retry_s: float = 1.0) -> RequestError:
    """Return the error of a server at a limit."""
    headers = {"Retry-After": f"{retry_s:.0f}"}
    return RequestError(
        503, f"the server is busy, {why}: try again in {retry_s:.0f} s", None, "overloaded", headers
    )
