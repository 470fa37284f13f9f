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

from larksong.api.runtime.incremental_text import EscapedText, JsonText, PlainText
from larksong.api.turns.deltas import ArgumentsDelta, CallDelta, ContentDelta, Delta, ReasoningDelta
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
_OUTSIDE = (Content, Reasoning, FunctionOpen)


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
        self._blanks: str | None = None
        """behind a call: the blanks so far, which are content only if text follows"""

    def feed(self, events: Iterable[ParseEvent]) -> list[Delta]:
        """The deltas of one step; a call's arguments grow by at most one delta a step."""
        deltas: list[Delta] = []
        fragments: list[str] = []
        for event in events:
            if fragments and isinstance(event, _OUTSIDE):
                self._give_arguments(fragments, deltas)
            match event:  # pieces of values come first: nearly every event is one
                case Json(data) if self._call is None:
                    if text := self._answer.feed(data):
                        deltas.append(ContentDelta(text))
                case Json() | Text() if self._call is not None:
                    fragments.append(self._call.feed(event))
                case Content(data):
                    if text := self._behind_call(self._content.feed(data)):
                        deltas.append(ContentDelta(text))
                case Reasoning(data):
                    if text := self._reasoning.feed(data):
                        deltas.append(ReasoningDelta(text))
                case FunctionOpen(name):
                    self._call = _OpenCall(self._calls)
                    deltas.append(CallDelta(self._calls, self._call_id(), name))
                    self._calls += 1
                    self._blanks = None
                case _:
                    assert self._call is not None, f"{event} outside of a call"
                    fragments.append(self._call.feed(event))
                    if isinstance(event, CallClose):
                        self._blanks = ""
        if fragments:
            self._give_arguments(fragments, deltas)
        return deltas

    def _behind_call(self, text: str) -> str:
        """Visible text less the line breaks right behind a call, and less blanks that nothing follows."""
        if self._blanks is None:
            return text
        text = (self._blanks + text).lstrip("\n")
        is_blank = not text.strip()
        self._blanks = text if is_blank else None
        return "" if is_blank else text

    def _give_arguments(self, fragments: list[str], deltas: list[Delta]) -> None:
        """What the open call has gathered becomes one delta, if it is anything; empties `fragments`."""
        assert self._call is not None
        if fragment := "".join(fragments):
            deltas.append(ArgumentsDelta(self._call.index, fragment))
        fragments.clear()


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
