"""Warming an engine up before the first request, so that no request pays for what all of them share."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from larksong.engine.engine import Engine
from larksong.grammars.registry import format_names, wire_format
from larksong.grammars.tools import CallPolicy, Tool

_TYPES: dict[str, dict[str, Any]] = {
    "text": {"type": "string"},
    "count": {"type": "integer"},
    "ratio": {"type": "number"},
    "flag": {"type": "boolean"},
    "nothing": {"type": "null"},
    "kind": {"enum": ["first", "second"]},
    "maybe": {"type": ["string", "null"]},
    "limit": {"type": ["integer", "null"]},
    "short": {"type": "string", "maxLength": 80},
    "names": {"type": "array", "items": {"type": "string"}},
}
_ENTRY = {"type": "object", "properties": _TYPES}
_TOOL = Tool(
    "warm_up",
    parameters={
        "type": "object",
        "properties": {**_TYPES, "entries": {"type": "array", "items": _ENTRY}, "anything": {}},
    },
)
_VALUES: dict[str, Any] = {
    "text": 'One line,\n\ttwo: "three" \\ {"four": [5]}.\n    return f(x) + 1  # done',
    "count": -12,
    "ratio": 0.5,
    "flag": True,
    "nothing": None,
    "kind": "second",
    "maybe": None,
    "limit": 30,
    "short": "A title",
    "names": ["one", "two"],
}
_ARGUMENTS = {**_VALUES, "entries": [_VALUES, _VALUES], "anything": {"any": [1, "two"]}}


def warm_up(engine: Engine, formats: Iterable[str] | None = None) -> None:
    """Warm `engine` up: the walks of its vocabulary, one turn in each of `formats` (None: in all)."""
    engine.warm_up()
    vocabulary = engine.vocabulary
    bytes_of = {data: token for token, data in enumerate(vocabulary.tokens) if len(data) == 1}
    markers = "|".join(re.escape(marker) for marker in vocabulary.special)
    for name in format_names() if formats is None else formats:
        format_ = wire_format(name)
        matcher = engine.matcher(format_.grammar([_TOOL], CallPolicy(), vocabulary))
        text = "Warm.\n" + format_.render_call(_TOOL.name, _ARGUMENTS)
        for part in re.split(f"({markers})", text) if markers else [text]:
            tokens = [vocabulary.special.get(part)]
            if tokens == [None]:
                tokens = [bytes_of.get(bytes((byte,))) for byte in part.encode()]
            for token in tokens:
                matcher.mask()
                if token is not None and matcher.allows(token):
                    matcher.advance(token)
