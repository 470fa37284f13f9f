"""The errors of the server, all in OpenAI's shape, and the sentences that a user reads."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from typing_extensions import TypedDict


class ErrorDetail(TypedDict):
    """What went wrong: a sentence, the class of error, the request's field, a word for programs."""

    message: str
    type: str
    param: str | None
    code: str | None


class ErrorBody(TypedDict):
    """The body of every answer that is not a success, and of the event that ends a failed stream."""

    error: ErrorDetail


class ApiError(Exception):
    """A request that ends in an error: HTTP status and the four members of OpenAI's error object."""

    def __init__(
        self,
        message: str,
        *,
        status: int = 400,
        type: str = "invalid_request_error",
        param: str | None = None,
        code: str | None = "invalid_value",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.headers = dict(headers or {})
        self.message = message
        self.status = status
        self.type = type
        self.param = param
        self.code = code

    def rename(self, param: str | None) -> None:
        """Name the field as the request does."""
        if self.param is not None and param is not None:
            self.message = self.message.replace(f"'{self.param}'", f"'{param}'")
            self.param = param

    @property
    def body(self) -> ErrorBody:
        """The error as OpenAI's JSON shape."""
        return {"error": {"message": self.message, "type": self.type, "param": self.param, "code": self.code}}


class UnknownModel(ApiError):
    """The request names a model that this server does not have."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        super().__init__(
            f"The model '{name}' does not exist here; this server has: {', '.join(known)}.",
            status=404,
            param="model",
            code="model_not_found",
        )


class QueueFull(ApiError):
    """More requests than the server can run and keep waiting."""

    def __init__(self, seconds: int) -> None:
        super().__init__(
            f"The server is busy; try again in {seconds} s.",
            status=429,
            type="rate_limit_error",
            code="queue_full",
            headers={"Retry-After": str(seconds)},
        )


class WrongKey(ApiError):
    """No API key, or one that the server does not have."""

    def __init__(self) -> None:
        super().__init__(
            "This server needs an API key: 'Authorization: Bearer <key>' or 'x-api-key: <key>'.",
            status=401,
            code="invalid_api_key",
            headers={"WWW-Authenticate": "Bearer"},
        )


class BodyTooLarge(ApiError):
    """A body above the limit."""

    def __init__(self, limit: int) -> None:
        super().__init__(
            f"The request body is larger than {limit} bytes.", status=413, param="body", code="body_too_large"
        )


class CompressedBody(ApiError):
    """A body that would have to be unpacked first."""

    def __init__(self, encoding: str) -> None:
        super().__init__(
            f"The body is compressed (Content-Encoding: {encoding}), which this server does not take: send "
            "it as it is.",
            status=415,
            param="body",
            code="unsupported_encoding",
        )


class OutOfTime(ApiError):
    """A request that took longer than the server's limit."""

    def __init__(self, seconds: float) -> None:
        super().__init__(
            f"The answer took longer than {seconds:g} s.", status=504, type="server_error", code="timeout"
        )


class ShuttingDown(ApiError):
    """A request that came while the server ends."""

    def __init__(self) -> None:
        super().__init__(
            "The server is shutting down.",
            status=503,
            type="server_error",
            code="shutting_down",
            headers={"Retry-After": "5"},
        )


class ServerFault(ApiError):
    """The server's own fault; where it was not foreseen, details go to the log and not to the client."""

    def __init__(self, message: str = "The server had an error while it worked on the request.") -> None:
        super().__init__(message, status=500, type="server_error", code="internal_error")


def invalid_request(errors: Sequence[Mapping[str, Any]], body: Any) -> ApiError:
    """Pydantic's `errors` about `body` as one error that names the field.

    Where a field may have several shapes, pydantic reports one error for each; the one that points deepest
    belongs to the shape that was meant.
    """
    if errors[0]["type"] == "json_invalid":
        detail = errors[0].get("ctx", {}).get("error", "")
        return ApiError(f"The request body is not valid JSON: {detail}.", param="body", code="invalid_json")
    located = [(_location(error, body), error) for error in errors]
    location, error = max(located, key=lambda pair: len(pair[0]))
    param = field_path(location) or "body"
    if error["type"] == "missing":
        return ApiError(
            f"Missing required parameter: '{param}'.", param=param, code="missing_required_parameter"
        )
    code = error["type"] if error["type"] == "unsupported_parameter" else "invalid_value"
    alike = [each for place, each in located if place == location]
    return ApiError(f"Invalid '{param}': {_wrong(alike)}.", param=param, code=code)


_EXPECTED = {
    "string_type": "a string",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "list_type": "an array",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
}
"""JSON's words for what pydantic, which thinks of Python, wants."""


def _wrong(errors: Sequence[Mapping[str, Any]]) -> str:
    """What is wrong with one value, which has none of the shapes that it may have."""
    expected = [_expected(error) for error in errors]
    wanted = list(dict.fromkeys(each for each in expected if each is not None))
    if None in expected:
        error = errors[expected.index(None)]
        if error["type"] == "union_tag_invalid":
            field, tag, known = (error["ctx"][key] for key in ("discriminator", "tag", "expected_tags"))
            return f"its {field} must be one of {known}, not {_shown(tag)}"
        return str(error["msg"])
    *some, last = wanted
    alternatives = f"{', '.join(some)} or {last}" if some else last
    return f"expected {alternatives}, not {_shown(errors[0]['input'])}"


def _expected(error: Mapping[str, Any]) -> str | None:
    match error["type"]:
        case "literal_error":
            return str(error["ctx"]["expected"])
        case "greater_than_equal":
            return f"{error['ctx']['ge']} or more"
        case "less_than_equal":
            return f"{error['ctx']['le']} or less"
        case type:
            return _EXPECTED.get(type)


def _shown(value: Any) -> str:
    match value:
        case str() if len(value) > _LONGEST_SHOWN:
            return "a string"
        case dict():
            return "an object"
        case list():
            return "an array"
        case _:
            return json.dumps(value)


_LONGEST_SHOWN = 40


def field_path(location: Iterable[str | int]) -> str:
    """`("tools", 0, "function")` as `tools[0].function`."""
    path = ""
    for step in location:
        path += f"[{step}]" if isinstance(step, int) else f".{step}" if path else step
    return path


def _location(error: Mapping[str, Any], body: Any) -> list[str | int]:
    """The steps into `body`, without the names of union members that pydantic puts between them."""
    location: list[str | int] = []
    here = body
    steps = error["loc"][1:]
    for step in steps:
        if (isinstance(here, list) and isinstance(step, int)) or (isinstance(here, dict) and step in here):
            location.append(step)
            here = here[step]
    return [*location, *steps[-1:]] if error["type"] == "missing" else location
