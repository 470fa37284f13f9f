"""What the page begins with: a tool and a call of it in each format."""

from __future__ import annotations

from typing import Any

from larksong.grammars import format_names, wire_format

TOOL: dict[str, Any] = {
    "name": "get_weather",
    "description": "The weather of some days",
    "parameters": {
        "type": "object",
        "properties": {
            "city": {"type": "string", "maxLength": 40},
            "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
            "days": {"type": "integer", "minimum": 1, "maximum": 14},
        },
        "required": ["city"],
    },
}
ARGUMENTS = {"city": "Reykjavik", "days": 3, "unit": "celsius"}


def example() -> dict[str, Any]:
    """The tools of a request, and by format what a model wrote."""
    texts = {name: wire_format(name).render_call(TOOL["name"], ARGUMENTS) for name in format_names()}
    return {"tools": [{"type": "function", "function": TOOL}], "texts": texts}
