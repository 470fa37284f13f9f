"""Tools and calls of them that many tests share: something of every kind of value."""

from typing import Any

from larksong.grammars import Tool

WEATHER = Tool(
    "get_weather",
    "The weather at a place.",
    {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "Name of the city"},
            "unit": {"enum": ["celsius", "fahrenheit"]},
            "days": {"type": "integer"},
            "hourly": {"type": "boolean", "default": False},
        },
        "required": ["city"],
    },
)
WRITE_FILE = Tool(
    "write_file",
    "Write a file.",
    {
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "content": {"type": "string"},
            "mode": {"type": ["integer", "null"]},
        },
        "required": ["path", "content"],
    },
)
SEARCH = Tool(
    "search",
    "Search.",
    {
        "type": "object",
        "properties": {
            "query": {"type": "string", "minLength": 2, "maxLength": 12},
            "filter": {
                "type": "object",
                "properties": {"lang": {"enum": ["de", "en", None]}, "depth": {"type": "number"}},
                "required": ["lang"],
                "additionalProperties": False,
            },
            "tags": {"type": "array", "items": {"type": "string", "maxLength": 4}, "maxItems": 3},
            "after": {"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]},
            "extra": {},
        },
        "required": ["query", "filter"],
    },
)
PING = Tool("ping", "Without parameters.", {})
TOOLS = [WEATHER, WRITE_FILE, SEARCH, PING]

CALLS: list[tuple[str, dict[str, Any]]] = [
    ("get_weather", {"city": "Amsterdam", "unit": "celsius", "days": 3, "hourly": True}),
    ("get_weather", {"days": -12, "city": "São Paulo"}),
    ("write_file", {"content": 'def f():\n    return "</parameter>"\n\n', "path": "a/b.py", "mode": None}),
    ("write_file", {"path": "", "content": "x\n</parameter>\n<div>\n", "mode": 420}),
    (
        "search",
        {
            "filter": {"depth": 1.5e-07, "lang": None},
            "query": "日本語",
            "tags": ["a", "", "é😀"],
            "after": "x",
            "extra": {"a": [1, {"b": None}]},
        },
    ),
    ("search", {"query": "ab", "filter": {"lang": "de"}, "after": 12, "tags": [], "extra": "text"}),
    ("ping", {}),
]
