"""What in a request refused a piece of text: found by leaving out one thing after the other.

A keyword is to blame if the text goes on where the schema is the same but for that keyword. This asks the
grammar itself, so it holds for every format and every keyword, and nothing is said of keywords that merely
stand near. Where only several of them together refuse the text, all of those are named.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from itertools import islice
from typing import Any

from larksong.engine.engine import Engine
from larksong.engine.explain import byte_vocabulary
from larksong.engine.vocabulary import Vocabulary
from larksong.grammars.element_format import ElementFormat
from larksong.grammars.explain.edits import Edit, at, edits, without
from larksong.grammars.explain.places import Place, Places
from larksong.grammars.explain.reading import Reading, Spot, json_spot, read_turn
from larksong.grammars.explain.request import Request, accepts
from larksong.grammars.schema.references import escape
from larksong.grammars.tools import Tool

_MAX_EDITS = 200
_MAX_TOGETHER = 60
_SHOWN = 200
_CACHE_BYTES = 64 << 20


class Answer(Enum):
    """Whether a text goes on by another schema."""

    NO = 0
    PERHAPS = 1
    """it does, but there another keyword could no longer be enforced either"""
    YES = 2


@dataclass(frozen=True)
class Wanted:
    """What the request wanted in the place of a refused text.

    `pointer`: a JSON pointer to the keyword in the tool's parameters, or in the answer's schema where `tool`
    is None; where the keyword is implied and not written, to the schema that implies it. What the request
    itself wanted (`tool_choice`, the tools' names) has a pointer into the request, and `in_request` is true.
    """

    tool: str | None
    pointer: str
    keyword: str
    value: Any
    message: str
    in_request: bool = False


class Why:
    """Explains refusals of one request over one vocabulary."""

    def __init__(self, request: Request, vocabulary: Vocabulary) -> None:
        self._request = request
        self._engine, self._ids = _byte_engine(vocabulary)
        self._tokens = vocabulary.tokens
        self._markers = {token: name for name, token in self._engine.vocabulary.special.items()}

    def units(self, tokens: Iterable[int]) -> list[int]:
        """Tokens as bytes and markers' ids of the vocabulary of bytes."""
        found: list[int] = []
        for token in tokens:
            data = self._tokens[token] if 0 <= token < len(self._tokens) else b""
            found += data or ([self._ids[token]] if token in self._ids else [])
        return found

    def wanted(self, before: Sequence[int], refused: Sequence[int]) -> tuple[Wanted, ...]:
        """What refused `refused` (token ids, the text that follows among them) after `before`.

        Empty where nothing but the wire format, or JSON itself, refuses it.
        """
        units = self.units(before)
        rest = self.units(refused)
        if not self.units(refused[:1]):
            return ()  # a token that stands for nothing
        grammar = self._request.grammar(self._engine.vocabulary)
        taken = accepts(self._engine, grammar, [*units, *rest])
        units, rest = [*units, *rest][:taken], [*units, *rest][taken:]
        if not rest:
            return ()
        reading = read_turn(self._engine.automaton(grammar), units)
        if self._request.format is None:
            return self._in_part(None, units, rest, json_spot(self._bytes(units), self._bytes(rest)))
        tool = self._request.tool(reading.tool)
        found: tuple[Wanted, ...] = ()
        if reading.inside and tool is not None:
            begin = self._begin(reading, tool, units, rest)
            if begin is not None:
                spot = self._spot(reading, units, rest, begin)
                found = self._in_part(tool, units[begin:], rest, spot)
        return found or self._in_envelope(reading, units, rest)

    # -- the envelope

    def _in_envelope(self, reading: Reading, units: list[int], rest: list[int]) -> tuple[Wanted, ...]:
        for field, value, freer in self._request.freer():
            grammar = freer.grammar(self._engine.vocabulary)
            if accepts(self._engine, grammar, [*units, rest[0]]) > len(units):
                message = f"the request wants {field} {_shown(value)}"
                return (Wanted(None, f"/{field}", field, value, message, in_request=True),)
        wire = self._request.format
        assert wire is not None
        before = self._bytes(units)
        if reading.in_function_name and wire.function_prefix.encode() in before:
            names = [tool.name for tool in self._request.tools]
            message = f"the request has these tools: {', '.join(names)}"
            return (Wanted(None, "/tools", "name", names, message, in_request=True),)
        return ()

    # -- arguments and answers

    def _begin(self, reading: Reading, tool: Tool, units: list[int], rest: list[int]) -> int | None:
        """Where the arguments begin, if they are what refuses the text."""
        part = self._request.part(tool, tool.parameters, self._engine.vocabulary)
        for begin in (reading.begin, reading.begin - 1):
            if part is not None and begin >= 0:
                text = [*units[begin:], rest[0]]
                if accepts(self._engine, part.grammar, text) == len(text) - 1:
                    return begin
        return None

    def _spot(self, reading: Reading, units: list[int], rest: list[int], begin: int) -> Spot:
        wire = self._request.format
        if not isinstance(wire, ElementFormat):
            return json_spot(self._bytes(units[begin:]), self._bytes(rest))
        if reading.parameter is not None and reading.value is not None:
            above = (reading.parameter,)
            value = self._bytes(units[reading.value :])
            if value.lstrip()[:1] in (b"{", b"["):
                return json_spot(value, self._bytes(rest), above)
            return Spot(above, in_string=True)
        text = self._bytes(units[begin:])
        opened = wire.key_open.encode()
        start = text.rfind(opened)
        if start < 0 or len(reading.names) > text.count(opened) - 1:
            start = len(text)  # the name's own marker was refused, or what stands before it
        named = (text[start:] + self._bytes(rest)).partition(opened)[2]
        name, end, _ = named.partition(wire.after_key[0][:1].encode())
        return Spot((), name.decode(errors="replace") or None, bool(end), reading.names)

    def _in_part(
        self, tool: Tool | None, units: list[int], rest: list[int], spot: Spot
    ) -> tuple[Wanted, ...]:
        schema = self._request.schema_of(tool)
        if not isinstance(schema, dict):
            return ()
        places = Places(schema)
        along = places.along(spot.path)
        member = _refused_member(tool, along[-1], spot)
        if member is not None:
            return (member,)

        part = self._request.part(tool, schema, self._engine.vocabulary)
        widened = part.widened if part else frozenset()

        def goes_on(chosen: Iterable[Edit]) -> Answer:
            part = self._request.part(tool, without(schema, chosen), self._engine.vocabulary)
            if part is None or accepts(self._engine, part.grammar, [*units, rest[0]]) <= len(units):
                return Answer.NO
            return Answer.YES if part.widened <= widened else Answer.PERHAPS

        # A name is refused, too, where nothing can be its value.
        inside = places.along((*spot.path, spot.name))[-1:] if spot.name is not None else []
        near = [_edits(level, tool, spot.name) for level in (*inside, *reversed(along))]
        blamed = _blamed(near, _edits(places.all(), tool, None), goes_on)
        marker = rest[0] in self._markers and rest[0] not in self._engine.vocabulary.eos_ids
        if not blamed and marker and spot.in_string:
            # No letter of a string: whatever the schema says, only a string without it is one.
            blamed = [edit for edit in _edits(along[-1], tool, None) if edit.keyword == "type"][:1]
        return tuple(_wanted(tool, schema, edit, spot) for edit in blamed)

    def _bytes(self, units: Iterable[int]) -> bytes:
        return b"".join(
            bytes([unit]) if unit < 256 else self._markers.get(unit, "").encode() for unit in units
        )


def _refused_member(tool: Tool | None, places: list[Place], spot: Spot) -> Wanted | None:
    """The name that is being read, if its object has it already or must not have it."""
    if spot.name is None:
        return None
    declared = {
        name: (f"{place.pointer}/properties/{escape(name)}", schema)
        for place in places
        for name, schema in place.schema.get("properties", {}).items()
    }
    fitting = [
        name for name in declared if name == spot.name or (not spot.is_whole and name.startswith(spot.name))
    ]
    if any(name not in spot.names and declared[name][1] is not False for name in fitting):
        return None
    for name in fitting:
        pointer, schema = declared[name]
        if name in spot.names:
            message = f"{name} is there already, and a member may come once"
        else:
            message = f"{name} may not come: its schema is false"
        return Wanted(tool.name if tool else None, pointer, "properties", schema, message)
    return None


def _edits(places: list[Place], tool: Tool | None, name: str | None) -> list[Edit]:
    found = [
        edit for place in places for edit in edits(place, name, closed=tool is not None and not place.pointer)
    ]
    return sorted(found, key=lambda edit: edit.rank)


def _blamed(
    near: list[list[Edit]], every: list[Edit], goes_on: Callable[[Iterable[Edit]], Answer]
) -> list[Edit]:
    """One keyword without which the text goes on; else a few that do it together, of one value if so."""
    single = sorted((edit for level in near for edit in level), key=lambda edit: edit.rank)
    perhaps: list[Edit] = []
    for edit in islice(dict.fromkeys([*single, *every]), _MAX_EDITS):
        if edit.rank and perhaps:
            break
        answer = goes_on((edit,))
        if answer is Answer.YES:
            return [edit]
        if answer is Answer.PERHAPS:
            perhaps.append(edit)
    if perhaps:
        return perhaps[:1]
    for together in (*near, single[:_MAX_TOGETHER]):
        if len(together) > 1 and goes_on(together) is not Answer.NO:
            left = list(together)
            for edit in together[::-1]:
                fewer = [each for each in left if each is not edit]
                if fewer and goes_on(fewer) is not Answer.NO:
                    left = fewer
            return left
    return []


def _wanted(tool: Tool | None, schema: Any, edit: Edit, spot: Spot) -> Wanted:
    value = False if edit.implied else at(schema, edit.keyword_pointer)
    message = f"{edit.keyword} is {_shown(value)}"
    if edit.keyword == "required" and isinstance(value, list):
        missing = [name for name in value if name not in spot.names]
        message = f"missing: {', '.join(missing)}" if missing else message
    elif edit.implied:
        names = at(schema, edit.pointer).get("properties", ())
        message = f"these members are declared, and no others may come: {', '.join(names)}"
    return Wanted(tool.name if tool else None, edit.keyword_pointer, edit.keyword, value, message)


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


@lru_cache(maxsize=4)
def _byte_engine(vocabulary: Vocabulary) -> tuple[Engine, dict[int, int]]:
    twin, renamed = byte_vocabulary(vocabulary)
    return Engine(twin, cache_bytes=_CACHE_BYTES), renamed
