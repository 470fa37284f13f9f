"""Texts that an author writes calls and descriptions of tools with."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from larksong.grammars.tools import Tool


def arguments_text(arguments: Mapping[str, Any]) -> str:
    """The arguments of a call as chat templates write them."""
    return json.dumps(arguments, ensure_ascii=False)


def tool_lines(tools: Sequence[Tool], *, wrapped: bool = True) -> str:
    """The tools as chat templates list them: one line of JSON each, `wrapped` in OpenAI's form."""
    lines = []
    for tool in tools:
        function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
        shown = {"type": "function", "function": function} if wrapped else function
        lines.append(json.dumps(shown, ensure_ascii=False))
    return "\n".join(lines)
