"""What parse events say, put together without the part of the project that does so."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from larksong.engine.events import (
    CallClose,
    Content,
    Events,
    FunctionOpen,
    Json,
    ParameterClose,
    ParameterOpen,
    ParseEvent,
    Reasoning,
    Text,
)
from larksong.engine.matcher import Matcher


@dataclass
class Call:
    """A call as the events told it; `arguments` is None until it is closed."""

    name: str
    arguments: dict[str, Any] | None = None


@dataclass
class Turn:
    calls: list[Call] = field(default_factory=list)
    content: bytes = b""
    reasoning: bytes = b""


def read(matcher: Matcher, tokens: Iterable[int]) -> Events:
    """All events of `tokens` and of the end; no token may be refused."""
    events: list[ParseEvent] = []
    for token in tokens:
        events += matcher.advance(token)
        assert matcher.fault is None, matcher.fault
    return (*events, *matcher.finish())


def joined(events: Iterable[ParseEvent]) -> list[ParseEvent]:
    """The events with neighbouring pieces of one kind as one: how a turn was cut no longer shows."""
    found: list[ParseEvent] = []
    for event in events:
        last = found[-1] if found else None
        if isinstance(event, Text | Json | Content | Reasoning) and type(event) is type(last):
            assert isinstance(last, Text | Json | Content | Reasoning)
            found[-1] = type(event)(last.data + event.data)
        else:
            found.append(event)
    return found


def turn(events: Iterable[ParseEvent]) -> Turn:
    """The turn that events tell, with the order of the events checked on the way."""
    told = Turn()
    name: str | None = None
    members: dict[str, Any] = {}
    parameter: str | None = None
    whole: bytes | None = None
    value: Json | Text | None = None
    for event in joined(events):
        match event:
            case Content(data):
                assert name is None
                told.content += data
            case Reasoning(data):
                assert name is None
                told.reasoning += data
            case FunctionOpen(opened):
                assert name is None
                name, members, whole = opened, {}, None
                told.calls.append(Call(opened))
            case ParameterOpen(opened):
                assert name is not None
                assert parameter is None
                assert opened not in members
                parameter, value = opened, None
            case Text() if parameter is not None:
                assert value is None
                value = event
            case Json() if parameter is not None:
                assert value is None
                value = event
            case Json(data):
                assert name is not None
                whole = (whole or b"") + data
            case Text(data):  # raw text inside JSON, as Gemma writes strings
                assert whole is not None
                whole += json.dumps(data.decode())[1:-1].encode()
            case ParameterClose():
                assert parameter is not None
                members[parameter] = _value(value)
                parameter = None
            case CallClose():
                assert name is not None
                assert parameter is None
                told.calls[-1].arguments = members if whole is None else load_object(whole)
                name = None
            case _:
                raise AssertionError(f"{event} has no place here")
    return told


def _value(event: Json | Text | None) -> Any:
    if isinstance(event, Json):
        return load(event.data)
    return "" if event is None else event.data.decode()


def _no_constant(name: str) -> None:
    raise AssertionError(f"{name} is not JSON")


def load(data: bytes) -> Any:
    """JSON in the strict sense."""
    return json.loads(data.decode(), parse_constant=_no_constant)


def load_object(data: bytes) -> dict[str, Any]:
    """A JSON object none of whose own members comes twice."""
    pairs: list[Sequence[Any]] = []

    def keep(members: list[tuple[str, Any]]) -> dict[str, Any]:
        pairs[:] = members  # the outermost object is the last one
        return dict(members)

    value = json.loads(data.decode(), parse_constant=_no_constant, object_pairs_hook=keep)
    assert isinstance(value, dict)
    assert len(pairs) == len(value)
    return value
