"""Parse events: what one accepted token revealed about the turn.

Events carry bytes, not text, because a token may end inside a UTF-8 sequence or a JSON escape; whoever
turns them into text decodes incrementally.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import cast


@dataclass(frozen=True, slots=True)
class FunctionOpen:
    """A call has begun and no other function name is possible any more."""

    name: str


@dataclass(frozen=True, slots=True)
class ParameterOpen:
    """A parameter of the open call begins (formats that write one element a parameter)."""

    name: str


@dataclass(frozen=True, slots=True)
class Text:
    """A piece of a raw string value, not JSON-escaped."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Json:
    """A piece of JSON text: a typed value, or the whole arguments object in JSON formats."""

    data: bytes


@dataclass(frozen=True, slots=True)
class ParameterClose:
    """The open parameter's value is complete."""


@dataclass(frozen=True, slots=True)
class CallClose:
    """The open call is complete."""


@dataclass(frozen=True, slots=True)
class Content:
    """A piece of visible text outside of calls."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Reasoning:
    """A piece of the model's reasoning."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Name:
    """A piece of a name that no grammar knows; the open event that follows it tells none."""

    data: bytes


ParseEvent = (
    Name | FunctionOpen | ParameterOpen | Text | Json | ParameterClose | CallClose | Content | Reasoning
)
_Piece = Name | Text | Json | Content | Reasoning
Events = tuple[ParseEvent, ...]


def coalesce(events: Sequence[ParseEvent]) -> Events:
    """Join neighbouring pieces of one kind, so that a token gives one piece of a value."""
    if len(events) < 2:
        return tuple(events)
    joined: list[ParseEvent] = []
    for _, alike in groupby(events, key=type):
        first, *more = alike
        if isinstance(first, _Piece) and more:
            pieces = cast(Sequence[_Piece], more)
            joined.append(type(first)(first.data + b"".join([each.data for each in pieces])))
        else:
            joined += (first, *more)
    return tuple(joined)
