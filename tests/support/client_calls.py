"""Calls as coding agents make them, with schemas as theirs are: documented, nested, closed."""

from typing import Any

from larksong.grammars import Tool


def _tool(name: str, properties: dict[str, Any], required: list[str]) -> Tool:
    closed = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return Tool(name, "", {"$schema": "http://json-schema.org/draft-07/schema#", **closed})


_TEXT = {"type": "string", "description": "A text, as it is to be"}
_TASK = {
    "type": "object",
    "properties": {
        "content": {"type": "string", "minLength": 1},
        "status": {"type": "string", "enum": ["pending", "in_progress", "completed"]},
    },
    "required": ["content", "status"],
    "additionalProperties": False,
}
_BASH = _tool("bash", {"command": _TEXT, "timeout": {"type": "number", "minimum": 0}}, ["command"])
_EDIT = _tool(
    "edit_file",
    {
        "path": _TEXT,
        "old_text": _TEXT,
        "new_text": _TEXT,
        "replace_all": {"type": "boolean", "default": False},
    },
    ["path", "old_text", "new_text"],
)
_TASKS = _tool("write_tasks", {"tasks": {"type": "array", "items": _TASK}}, ["tasks"])
_GREP = _tool(
    "grep",
    {
        "pattern": _TEXT,
        "paths": {"type": "array", "items": {"type": "string"}, "minItems": 1},
        "before": {"type": "integer"},
        "mode": {"enum": ["lines", "files", "count"]},
    },
    ["pattern"],
)

CLIENT_CALLS: list[tuple[Tool, dict[str, Any]]] = [
    (_BASH, {"command": "cd 'my project' && python -m pytest -q 2>&1 | tail -n 5\n", "timeout": 120.5}),
    (
        _EDIT,
        {
            "path": "src/app.tsx",
            "old_text": "  return <div>{a && b}</div>\n",
            "new_text": '  return (\n\t<p title="\\">\n      {a ?? "–"}\n\t</p>\n  )\n\n',
            "replace_all": False,
        },
    ),
    (
        _TASKS,
        {
            "tasks": [
                {"content": "Read the “spec”", "status": "completed"},
                {"content": "Write <tests>", "status": "pending"},
            ]
        },
    ),
    (_GREP, {"pattern": r"^\s*def (\w+)\(", "paths": ["src", "tests/ü"], "before": 2, "mode": "lines"}),
]
