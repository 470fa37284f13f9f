"""The function of a tool, in all shapes in which files and clients have tools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def tool_function(tool: Mapping[str, Any]) -> Any:
    """The function in OpenAI's shape; it may stand alone, with Anthropic's name for its parameters."""
    function = tool.get("function", tool)
    if not isinstance(function, Mapping):
        return function
    found = {name: value for name, value in function.items() if name not in ("type", "input_schema")}
    if found.get("parameters") is None and "input_schema" in function:
        found["parameters"] = function["input_schema"]
    return found
