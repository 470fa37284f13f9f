"""Parse events → deltas.

Formats that write one element a parameter give `ParameterOpen … ParameterClose`; the emitter adds the braces,
keys and separators as `json.dumps(…, ensure_ascii=False)` writes them. JSON formats give the whole arguments
object as `Json` right after `FunctionOpen`; it passes as the model wrote it. `Json` outside of a call is an
answer that is one JSON text.
"""

from __future__ import annotations

import json
import secrets
import string
from collections.abc import Callable, Iterable

from larksong.api.deltas import ArgumentsDelta, CallDelta, ContentDelta, Delta, ReasoningDelta
from larksong.api.text import EscapedText, JsonText, PlainText
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

_ID_ALPHABET = string.ascii_letters + string.digits


def new_call_id() -> str:
    """A fresh call id: `call_` and 24 random letters and digits."""
    return "call_" + "".join(secrets.choice(_ID_ALPHABET) for _ in range(24))


class DeltaEmitter:
    """Turns the parse events of one turn into deltas.

    Whatever pieces the events come in, the deltas concatenate to the same text. Text whose last bytes never
    come (a turn cut short inside a code point or an escape) is left out.
    """

    def __init__(self, call_id: Callable[[], str] = new_call_id) -> None:
        self._call_id = call_id
        self._content = PlainText()
        self._reasoning = PlainText()
        self._answer = JsonText()
        self._call: _OpenCall | None = None
        self._calls = 0

    def feed(self, events: Iterable[ParseEvent]) -> list[Delta]:
        """The deltas of one step; a call's arguments grow by at most one delta a step."""
        deltas: list[Delta] = []
        for event in events:
            match event:  # pieces of text come first: nearly every event is one
                case Json(data) if self._call is None:
                    if text := self._answer.feed(data):
                        deltas.append(ContentDelta(text))
                case Json() | Text():
                    self._argue(event, deltas)
                case Content(data):
                    if text := self._content.feed(data):
                        deltas.append(ContentDelta(text))
                case Reasoning(data):
                    if text := self._reasoning.feed(data):
                        deltas.append(ReasoningDelta(text))
                case FunctionOpen(name):
                    self._call = _OpenCall(self._calls)
                    deltas.append(CallDelta(self._calls, self._call_id(), name))
                    self._calls += 1
                case _:
                    self._argue(event, deltas)
        return deltas

    def _argue(self, event: ParseEvent, deltas: list[Delta]) -> None:
        """Add what `event` adds to the open call's arguments; to the last delta, if it is of them."""
        call = self._call
        assert call is not None, f"{event} outside of a call"
        if fragment := call.feed(event):
            if deltas and isinstance(last := deltas[-1], ArgumentsDelta) and last.index == call.index:
                fragment = last.fragment + fragment
                deltas.pop()
            deltas.append(ArgumentsDelta(call.index, fragment))


class _OpenCall:
    """The call that is being written: its index and how far its arguments have come."""

    def __init__(self, index: int) -> None:
        self.index = index
        self._parameters = 0
        # The value that is being written: the open parameter's, or in JSON formats the whole arguments.
        self._value: EscapedText | JsonText | None = None
        self._inner = EscapedText()

    def feed(self, event: ParseEvent) -> str:
        """The piece of the arguments' JSON text that `event` adds."""
        match event:
            case Json(data):
                if self._value is None:
                    self._value = JsonText()
                return self._value.feed(data)
            case Text(data):
                opening = ""
                if isinstance(self._value, JsonText):
                    # A raw string inside JSON: its quotes come as JSON.
                    return self._inner.feed(data)
                if self._value is None:
                    self._value, opening = EscapedText(), '"'
                return opening + self._value.feed(data)
            case ParameterOpen(name):
                separator = ", " if self._parameters else "{"
                self._parameters += 1
                self._value = None
                return f"{separator}{json.dumps(name, ensure_ascii=False)}: "
            case ParameterClose():
                if self._value is None:  # only a string can be empty
                    return '""'
                return '"' if isinstance(self._value, EscapedText) else ""
            case CallClose():
                if self._parameters:
                    return "}"
                return "{}" if self._value is None else ""
            case _:
                raise AssertionError(f"{event} inside a call's arguments")
