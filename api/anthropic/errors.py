"""Errors as Anthropic writes them."""

from __future__ import annotations

from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

from larksong.api.errors import ApiError
from larksong.api.http.logs import request_id

PATH = "/v1/messages"
"""what the paths of this API begin with"""


class AnthropicErrorDetail(TypedDict):
    """The class of error and a sentence that names the field.

    `details`: for requests of a thread, so that clients go on without one.
    """

    type: str
    message: str
    details: NotRequired[dict[str, Any]]


class AnthropicErrorBody(TypedDict):
    """The body of every answer that is not a success, and of the event that ends a failed stream."""

    type: Literal["error"]
    error: AnthropicErrorDetail
    request_id: str


NO_THREADS = "thread_unsupported_request"
"""by which the anthropic package knows that it has to send whole conversations"""

_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
}


def anthropic_error(error: ApiError) -> AnthropicErrorBody:
    """The error in Anthropic's shape, which has no member of its own for the field."""
    kind = _TYPES.get(error.status, "api_error" if error.status >= 500 else "invalid_request_error")
    message = error.message
    if error.param is not None and f"'{error.param}'" not in message:
        message = f"{error.param}: {message}"
    if error.code == "context_length_exceeded":
        # Anthropic's own words, by which Claude Code knows that it is time to shorten the conversation.
        message = f"prompt is too long: {message}"
    detail: AnthropicErrorDetail = {"type": kind, "message": message}
    if error.code == NO_THREADS:
        detail["details"] = {"error_code": NO_THREADS, "unsupported": ["thread"]}
    return {"type": "error", "error": detail, "request_id": request_id.get()}
