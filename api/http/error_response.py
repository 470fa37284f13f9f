"""Errors as HTTP responses."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from starlette.responses import Response

from larksong.api.errors import ApiError

ErrorWriter = Callable[[ApiError], Mapping[str, object]]


class ErrorResponses:
    """Errors in the shapes of the APIs.

    `shapes`: by what the paths of an API begin with; all others have OpenAI's.
    """

    def __init__(self, shapes: Mapping[str, ErrorWriter]) -> None:
        self._shapes = shapes

    def __call__(self, error: ApiError, path: str) -> Response:
        """The error as the API at `path` has it."""
        shape = next((shape for start, shape in self._shapes.items() if path.startswith(start)), None)
        body = error.body if shape is None else shape(error)
        # ASCII: a message may quote lone surrogates from the request, which UTF-8 cannot carry.
        return Response(
            json.dumps(body),
            status_code=error.status,
            headers=error.headers,
            media_type="application/json",
        )
