"""How llama-stack's `remote::vllm` reads a stream, in its published ways.

Calls are kept by `delta.index`; names, ids and arguments are concatenated; calls are read when a finish reason
comes, or at the end of the stream. 0.2.12 ends at the first chunk without choices, later releases pass over it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


@dataclass
class Buffer:
    """A call, as far as its deltas have come."""

    id: str = ""
    name: str = ""
    arguments: str = ""


def read_calls(chunks: Iterable[dict[str, Any]], *, ends_at_empty: bool) -> list[tuple[str, str, Any]] | None:
    """(id, name, arguments) of each call; None where the stream ended before they were read."""
    buffers: dict[Any, Buffer] = {}
    read: list[tuple[str, str, Any]] | None = None
    for chunk in chunks:
        if not chunk["choices"]:
            if ends_at_empty:
                return read
            continue
        [choice] = chunk["choices"]
        for delta in choice["delta"].get("tool_calls") or ():
            id, name, arguments = _converted(delta)
            buffer = buffers.setdefault(delta["index"], Buffer())
            buffer.id += id
            buffer.name += name
            buffer.arguments += arguments if isinstance(arguments, str) else json.dumps(arguments)
        if choice["finish_reason"]:
            read = _read(buffers)
    return _read(buffers) if read is None else read


def _converted(delta: dict[str, Any]) -> tuple[str, str, Any]:
    """A delta that is a whole call has its arguments as an object, any other as its text."""
    id, function = delta.get("id"), delta.get("function") or {}
    name, arguments = function.get("name"), function.get("arguments")
    if id and name and isinstance(arguments, str):
        try:
            return id, name, json.loads(arguments)
        except ValueError:
            pass
    return id or "", name or "", arguments or ""


def _read(buffers: dict[Any, Buffer]) -> list[tuple[str, str, Any]]:
    ordered = [buffer for _, buffer in sorted(buffers.items())]
    return [(buffer.id, buffer.name, json.loads(buffer.arguments or "{}")) for buffer in ordered]
