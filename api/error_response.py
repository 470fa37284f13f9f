"""An error as an HTTP response."""

from __future__ import annotations

import json

from starlette.responses import Response

from larksong.api.errors import ApiError


def error_response(error: ApiError) -> Response:
    """The error in OpenAI's shape."""
    # ASCII: a message may quote lone surrogates from the request, which UTF-8 cannot carry.
    return Response(
        json.dumps(error.body),
        status_code=error.status,
        headers=error.headers,
        media_type="application/json",
    )
