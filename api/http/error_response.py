"""An error as an HTTP response."""

from __future__ import annotations

import json

from starlette.responses import Response

from larksong.api.anthropic.errors import PATH, anthropic_error
from larksong.api.errors import ApiError


def error_response(error: ApiError, path: str) -> Response:
    """The error in the shape of the API at `path`."""
    body = anthropic_error(error) if path.startswith(PATH) else error.body
    # ASCII: a message may quote lone surrogates from the request, which UTF-8 cannot carry.
    return Response(
        json.dumps(body),
        status_code=error.status,
        headers=error.headers,
        media_type="application/json",
    )
