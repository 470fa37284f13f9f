"""Server-sent events: a stream of JSON objects as OpenAI ends it, also when it fails half-way."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any

from pydantic_core import PydanticSerializationError, to_json

from larksong.api.errors import ApiError, ServerFault

_logger = logging.getLogger(__name__)

# JSON may hold them raw, but clients that split lines as `str.splitlines` does would cut the event there.
_LINE_SEPARATORS = [(text.encode(), b"\\u%04x" % ord(text)) for text in "\x85\u2028\u2029"]


async def event_data(chunks: AsyncGenerator[Mapping[str, object], None]) -> AsyncGenerator[bytes, None]:
    """Each chunk as one event, then `[DONE]`. A fault becomes one last event with the error."""
    try:
        async with aclosing(chunks):
            async for chunk in chunks:
                yield event(json_line(chunk))
    except ApiError as error:
        yield event(json_line(error.body))
    except Exception:
        _logger.exception("a stream failed")
        yield event(json_line(ServerFault().body))
    yield event(b"[DONE]")


def event(line: bytes) -> bytes:
    """A line of data as an event."""
    return b"data: " + line + b"\n\n"


def json_line(value: Any) -> bytes:
    """`value` as JSON on one line, whatever a client takes for the end of a line."""
    try:
        line = to_json(value)
    except PydanticSerializationError:  # lone surrogates, which UTF-8 cannot carry
        line = json.dumps(value, separators=(",", ":")).encode()
    for raw, escaped in _LINE_SEPARATORS:
        if raw in line:
            line = line.replace(raw, escaped)
    return line
