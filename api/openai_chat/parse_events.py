"""Parse events as clients see them beside the deltas (`stream_options.parse_events`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from larksong.api.openai_chat.schemas import EventInfo
from larksong.api.runtime.incremental_text import JsonText, PlainText
from larksong.api.turns.turn import TurnEnd, TurnStep
from larksong.engine.events import (
    CallClose,
    Content,
    FunctionOpen,
    Json,
    ParameterClose,
    ParameterOpen,
    ParseEvent,
    Reasoning,
    Text,
)
from larksong.grammars import Tool


class EventWriter:
    """Writes the events of one turn. Pieces of text never split a character, those of JSON no escape."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._index = -1
        self._open = False
        self._tool: Tool | None = None
        self._text = PlainText()
        self._json = JsonText()

    def write(self, item: TurnStep | TurnEnd) -> list[EventInfo]:
        """The events of a step, or of the end; often none."""
        events = item.step.events if isinstance(item, TurnStep) else item.events
        return [made for event in events if (made := self._event(event)) is not None]

    def _event(self, event: ParseEvent) -> EventInfo | None:
        match event:
            case FunctionOpen(name):
                self._index += 1
                self._tool = self._tools.get(name)
                self._begin(is_open=True)
                return {"event": "function_open", "index": self._index, "name": name}
            case ParameterOpen(name):
                self._begin(is_open=True)
                type = declared_type(self._tool, name)
                return {"event": "parameter_open", "index": self._index, "name": name, "type": type}
            case Text(data):
                text = self._text.feed(data)
                return {"event": "value", "index": self._index, "text": text} if text else None
            case Json(data):
                text = self._json.feed(data)
                if not text:
                    return None
                return {"event": "value", "index": self._index, "json": text} if self._open else _said(text)
            case ParameterClose():
                return {"event": "parameter_close", "index": self._index}
            case CallClose():
                self._begin(is_open=False)
                return {"event": "call_close", "index": self._index}
            case Content(data):
                text = self._text.feed(data)
                return _said(text) if text else None
            case Reasoning(data):
                text = self._text.feed(data)
                return {"event": "reasoning", "text": text} if text else None
            case _:
                return None

    def _begin(self, *, is_open: bool) -> None:
        self._open = is_open
        self._text, self._json = PlainText(), JsonText()


def _said(text: str) -> EventInfo:
    return {"event": "content", "text": text}


def declared_type(tool: Tool | None, parameter: str) -> str:
    """The type that a tool's schema declares for a parameter, in JSON Schema's words; "any" without one."""
    properties = tool.parameters.get("properties") if tool is not None else None
    schema = properties.get(parameter) if isinstance(properties, Mapping) else None
    return "|".join(sorted(_types(schema))) or "any"


def _types(schema: Any) -> set[str]:
    if not isinstance(schema, Mapping):
        return set()
    declared = schema.get("type")
    if isinstance(declared, str):
        return {declared}
    if isinstance(declared, list):
        return {each for each in declared if isinstance(each, str)}
    values = schema.get("enum") or ([schema["const"]] if "const" in schema else [])
    found = {_type_of(value) for value in values}
    for branch in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
        found |= _types(branch)
    return found


def _type_of(value: Any) -> str:
    match value:
        case bool():
            return "boolean"
        case None:
            return "null"
        case str():
            return "string"
        case int():
            return "integer"
        case float():
            return "number"
        case list():
            return "array"
        case _:
            return "object"
