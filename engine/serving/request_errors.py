"""Errors in requests, in OpenAI's format."""

from collections.abc import Mapping
from typing import Any

from starlette.exceptions import HTTPException


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
    return {"error": {"message": message, "type": kind, "param": parameter, "code": code}}


def overloaded(why: str, retry_s: float = 1.0) -> RequestError:
    """Return the error of a server at a limit."""
    headers = {"Retry-After": f"{retry_s:.0f}"}
    return RequestError(
        503, f"the server is busy, {why}: try again in {retry_s:.0f} s", None, "overloaded", headers
    )
