"""What a line of `larksong parse` may hold. What is wrong with one is said by the name of its key."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from larksong.api.offline.tool_function import tool_function

_WORDS = {"build": ("open", "strict"), "mode": ("schema", "compat"), "finish": ("stop", "length")}


def _list_of(kind: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(type(each) is kind for each in value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


_KINDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "text": (_is_text, "a string"),
    "chunks": (_list_of(str), "a list of strings"),
    "chunks_hex": (_list_of(str), "a list of strings"),
    "token_ids": (_list_of(int), "a list of numbers"),
    "tokenizer": (_is_text, "the path of a tokenizer.json"),
    "prompt_tail": (_is_text, "a string"),
}


def check_record(record: Any) -> None:
    """Raises ValueError for what is no such line."""
    if not isinstance(record, Mapping):
        raise ValueError("a line must be an object")
    if not isinstance(record.get("format"), str):
        raise ValueError("'format' must be the name of a wire format")
    for name, words in _WORDS.items():
        if record.get(name) not in (None, *words):
            raise ValueError(f"{name!r} must be one of {', '.join(words)}, not {record[name]!r}")
    for name, (fits, kind) in _KINDS.items():
        if record.get(name) is not None and not fits(record[name]):
            raise ValueError(f"{name!r} must be {kind}")
    if record.get("token_ids") is not None and record.get("tokenizer") is None:
        raise ValueError("'token_ids' need a 'tokenizer'")
    tools = record.get("tools")
    if tools is not None and not (isinstance(tools, list | tuple) and all(map(_is_tool, tools))):
        raise ValueError("'tools' must be a list of functions, each with a name")


def _is_tool(tool: Any) -> bool:
    function = tool_function(tool) if isinstance(tool, Mapping) else None
    return (
        isinstance(function, Mapping)
        and isinstance(function.get("name"), str)
        and isinstance(function.get("parameters") or {}, Mapping)
    )
