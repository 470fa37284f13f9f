"""Chunks of a chat completion, from any server → messages.

Servers differ in how they write calls. OpenAI documents `index` on every delta, `id`, `type` and `name` on
a call's first, and `arguments` as pieces of text. Read here are also deltas without an index, ids and names
that come again or in pieces, ids that differ in every delta, arguments that are an object or null, content in
parts, and whole messages in place of deltas.

    messages = accumulate(client.chat.completions.create(…, stream=True)).messages
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from larksong.api.turns.emitter import new_call_id


class StreamFault(RuntimeError):
    """A stream that says that it failed."""


@dataclass(frozen=True)
class Accumulated:
    """What the chunks add up to. Of several choices each has a message; the lists go by their index.

    `messages` have OpenAI's shape and can be given back in a request: `{"role", "content"}` and, where they
    apply, `reasoning_content`, `tool_calls` and `function_call`. Arguments are JSON text, unless the stream
    was cut short in them. `finish_reasons`: the servers' words, None where none came.
    """

    messages: list[dict[str, Any]]
    finish_reasons: list[str | None]
    usage: dict[str, Any] | None


def accumulate(chunks: Iterable[Any]) -> Accumulated:
    """The messages of a whole stream. Raises StreamFault where it ends in an error."""
    accumulator = Accumulator()
    for chunk in chunks:
        accumulator.add(chunk)
    return accumulator.result()


class Accumulator:
    """Gathers chunks as they come; `result` may be asked for at any time."""

    def __init__(self) -> None:
        self._choices: dict[int, _Choice] = {}
        self._usage: dict[str, Any] | None = None

    def add(self, chunk: Any) -> None:
        """Take a chunk: a mapping, or an object of the openai package. Raises StreamFault."""
        read = _mapping(chunk)
        if error := read.get("error"):
            raise StreamFault(error.get("message", str(error)) if isinstance(error, Mapping) else str(error))
        if usage := read.get("usage"):
            self._usage = dict(usage)
        # A chunk without choices has usage alone, or nothing at all.
        for choice in _mappings(read.get("choices")):
            index = choice.get("index") or 0
            self._choices.setdefault(index, _Choice()).add(choice)

    def result(self) -> Accumulated:
        """What the chunks so far add up to."""
        ordered = [choice for _, choice in sorted(self._choices.items())]
        return Accumulated(
            [choice.message() for choice in ordered],
            [choice.finish_reason for choice in ordered],
            self._usage,
        )


@dataclass
class _Call:
    """A call, as far as its deltas have come."""

    id: str = ""
    name: str = ""
    text: str = ""
    whole: Mapping[str, Any] | None = None

    def add(self, id: str, function: Mapping[str, Any]) -> None:
        self.id = self.id or id
        name = function.get("name") or ""
        if name.startswith(self.name):
            self.name = name or self.name
        elif name != self.name and not self.text:
            self.name += name
        arguments = function.get("arguments")
        if isinstance(arguments, Mapping):
            self.whole = arguments
        elif isinstance(arguments, str):
            self.text += arguments

    @property
    def is_complete(self) -> bool:
        """Whether the arguments could end here."""
        return _is_object(self.text) or (not self.text and bool(self.whole))

    def arguments(self) -> str:
        """Their JSON text."""
        text = self.text.strip()
        if text in ("", "{}") and self.whole:
            return json.dumps(self.whole, ensure_ascii=False)
        if text.startswith("{}") and (rest := text.removeprefix("{}").lstrip()).startswith("{"):
            return rest  # `{}` stood in for what had not come yet
        return self.text if text else "{}"

    def written(self) -> dict[str, Any]:
        self.id = self.id or new_call_id()
        function = {"name": self.name, "arguments": self.arguments()}
        return {"id": self.id, "type": "function", "function": function}


@dataclass
class _Choice:
    content: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    refusal: list[str] = field(default_factory=list)
    calls: list[_Call] = field(default_factory=list)
    function_call: _Call | None = None
    finish_reason: str | None = None
    _by_index: dict[int, _Call] = field(default_factory=dict)
    _last: _Call | None = None

    def add(self, choice: Mapping[str, Any]) -> None:
        self.finish_reason = choice.get("finish_reason") or self.finish_reason
        delta = choice.get("delta") or choice.get("message") or {}
        self.content.append(_text(delta.get("content")))
        self.reasoning.append(_text(delta.get("reasoning_content") or delta.get("reasoning")))
        self.refusal.append(_text(delta.get("refusal")))
        for call in _mappings(delta.get("tool_calls")):
            id, function = call.get("id") or "", call.get("function") or {}
            self._call(call.get("index"), id, function).add(id, function)
        if function := delta.get("function_call"):
            self.function_call = self.function_call or _Call()
            self.function_call.add("", function)

    def _call(self, index: int | None, id: str, function: Mapping[str, Any]) -> _Call:
        """The call that a delta belongs to."""
        name = function.get("name") or ""
        if index is not None:
            known = self._by_index.get(index)
            another = known is not None and _is_of_another(known, id, name)
        else:
            known = next((call for call in self.calls if id and call.id == id), self._last)
            another = known is not None and _is_of_next(known, id, name)
        if known is None or another:
            known = _Call()
            self.calls.append(known)
        if index is not None:
            self._by_index[index] = known
        self._last = known
        return known

    def message(self) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": "".join(self.content) or None}
        if reasoning := "".join(self.reasoning):
            message["reasoning_content"] = reasoning
        if refusal := "".join(self.refusal):
            message["refusal"] = refusal
        if self.calls:
            message["tool_calls"] = [call.written() for call in self.calls]
        if self.function_call is not None:
            message["function_call"] = self.function_call.written()["function"]
        return message


def _is_of_another(known: _Call, id: str, name: str) -> bool:
    """Whether a delta with the index of `known` begins another call, as where all have the index 0.

    Only one with a name and another id can, when the call before may be over: some servers give each delta
    an id of its own.
    """
    return bool(name and id and known.id and id != known.id) and (known.is_complete or known.name != name)


def _is_of_next(known: _Call, id: str, name: str) -> bool:
    """Whether a delta without an index begins another call than the last one."""
    if not name or (id and id == known.id):
        return False
    if id and known.id:
        return True
    return known.is_complete or (bool(known.text) and known.name != name)


def _mappings(values: Any) -> list[Mapping[str, Any]]:
    """Those of a list's values that say anything."""
    return [each for each in values if isinstance(each, Mapping)] if isinstance(values, list) else []


def _text(value: Any) -> str:
    """A text, or the text of a list of parts."""
    if isinstance(value, list):
        return "".join(_text(part.get("text")) for part in _mappings(value))
    return value if isinstance(value, str) else ""


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _mapping(chunk: Any) -> Mapping[str, Any]:
    if isinstance(chunk, Mapping):
        return chunk
    read: Mapping[str, Any] = chunk.model_dump(exclude_unset=True)
    return read
