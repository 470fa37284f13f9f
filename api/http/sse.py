"""Server-sent events: a stream of JSON objects, ended as its API ends them, also when it fails half-way."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from pydantic_core import PydanticSerializationError, to_json

from larksong.api.errors import ApiError, ServerFault

_logger = logging.getLogger(__name__)

# JSON may hold them raw, but clients that split lines as `str.splitlines` does would cut the event there.
_LINE_SEPARATORS = [(text.encode(), b"\\u%04x" % ord(text)) for text in "\x85\u2028\u2029"]


def _plain(error: ApiError) -> Mapping[str, object]:
    return error.body


@dataclass(frozen=True)
class StreamForm:
    """How an API writes its streams: OpenAI's chat completions, unless told otherwise.

    `fault`: an error as the last chunk. `named`: events have their `type` as name, and none says `[DONE]`.
    """

    fault: Callable[[ApiError], Mapping[str, object]] = _plain
    named: bool = False


CHAT = StreamForm()

_DONE = b"data: [DONE]\n\n"


async def event_data(
    chunks: AsyncGenerator[Mapping[str, object] | bytes, None], form: StreamForm = CHAT
) -> AsyncGenerator[bytes, None]:
    """Each chunk as one event, then the end. A fault becomes one last event with the error.

    A chunk may be bytes already, as `json_line` writes them.
    """
    write = _named_event if form.named else _event
    try:
        async with aclosing(chunks):
            async for chunk in chunks:
                yield write(chunk)
    except ApiError as error:
        yield _fault(error, form)
    except Exception:
        _logger.exception("a stream failed")
        yield _fault(ServerFault(), form)
    if not form.named:
        yield _DONE


def fault_events(error: ApiError, form: StreamForm) -> bytes:
    """The last events of a stream that is cut off."""
    return _fault(error, form) + (b"" if form.named else _DONE)


def _fault(error: ApiError, form: StreamForm) -> bytes:
    return (_named_event if form.named else _event)(form.fault(error))


def _event(chunk: Mapping[str, object] | bytes) -> bytes:
    return b"data: %b\n\n" % (chunk if isinstance(chunk, bytes) else json_line(chunk))


def _named_event(chunk: Mapping[str, object] | bytes) -> bytes:
    assert not isinstance(chunk, bytes)
    return b"event: " + str(chunk["type"]).encode() + b"\n" + _event(chunk)


def json_line(value: Any) -> bytes:
    """`value` as JSON on one line, whatever a client takes for the end of a line."""
    try:
        line = to_json(value)
    except PydanticSerializationError:  # lone surrogates, which UTF-8 cannot carry
        line = json.dumps(value, separators=(",", ":")).encode()
    if not line.isascii():
        for raw, escaped in _LINE_SEPARATORS:
            line = line.replace(raw, escaped)
    return line
