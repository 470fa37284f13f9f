"""Errors as Anthropic writes them."""

from __future__ import annotations

from typing import Literal

from typing_extensions import TypedDict

from larksong.api.errors import ApiError
from larksong.api.logs import request_id

PATH = "/v1/messages"
"""what the paths of this API begin with"""


class ErrorDetail(TypedDict):
    """The class of error and a sentence that names the field."""

    type: str
    message: str


class ErrorBody(TypedDict):
    """The body of every answer that is not a success, and of the event that ends a failed stream."""

    type: Literal["error"]
    error: ErrorDetail
    request_id: str


_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
}


def anthropic_error(error: ApiError) -> ErrorBody:
    """The error in Anthropic's shape, which has no member of its own for the field."""
    kind = _TYPES.get(error.status, "api_error" if error.status >= 500 else "invalid_request_error")
    message = error.message
    if error.param is not None and f"'{error.param}'" not in message:
        message = f"{error.param}: {message}"
    if error.code == "context_length_exceeded":
        # Anthropic's own words, by which Claude Code knows that it is time to shorten the conversation.
        message = f"prompt is too long: {message}"
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": request_id.get()}
