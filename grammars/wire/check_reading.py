"""Whether the grammars of a format read what it renders."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from larksong.engine.engine import Engine
from larksong.engine.events import CallClose, Events, FunctionOpen, Json, Name, ParameterOpen, Text
from larksong.engine.grammar.grammar import Grammar
from larksong.engine.vocabulary import Vocabulary
from larksong.grammars.errors import InvalidToolName
from larksong.grammars.tools import CallPolicy, Tool
from larksong.grammars.wire.template import template_rules
from larksong.grammars.wire.wire_format import WireFormat

_PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
_TOOLS = (Tool("get_weather", parameters=_PARAMETERS), Tool("find_hotel", parameters=_PARAMETERS))
_CALLS: list[tuple[str, dict[str, Any]]] = [
    ("get_weather", {"city": "Paris"}),
    ("find_hotel", {"city": "New York"}),
]


def reading_flaws(format: WireFormat, letters: Vocabulary) -> Iterator[str]:
    """Where calls that it renders are refused, or read as others, by the strict or the open grammar."""
    rules = template_rules(format.template, format.root)
    # A family may write no more than one call.
    calls = _CALLS if any(rule.origin in rule.expansion for rule in rules) else _CALLS[:1]
    try:
        strict = format.grammar(_TOOLS, CallPolicy(), letters)
    except InvalidToolName:
        return  # It has rules of its own for names.
    engine = Engine(letters)
    text = format.render_calls(calls)
    for grammar, which in (
        (strict, "the template"),
        (format.open_grammar(_TOOLS, letters), "the template, read without constraint"),
        (format.open_grammar((), letters), "the template, with tools that are not declared"),
    ):
        yield from _read(engine, grammar, text, calls, which)


def _read(
    engine: Engine, grammar: Grammar, text: str, calls: list[tuple[str, dict[str, Any]]], which: str
) -> Iterator[str]:
    matcher = engine.matcher(grammar)
    data = text.encode()
    events: Events = ()
    (end,) = engine.vocabulary.eos_ids
    for at, token in enumerate((*data, end)):
        if not matcher.allows(token):
            where = "at its end" if at == len(data) else f"at byte {at}"
            yield f"what render_calls writes is not read by {which}: refused {where} of {text!r}"
            return
        events += matcher.advance(token)
    found = _calls(events)
    if found != calls:
        read = ", ".join(f"{name} {json.dumps(given)}" for name, given in found) or "no call"
        yield f"what render_calls writes is read as other calls by {which}: {text!r} as {read}"


def _calls(events: Events) -> list[tuple[str, Any]]:
    """The calls that were closed; arguments that are no JSON as their text."""
    found: list[tuple[str, Any]] = []
    named, function, whole, key = "", "", "", ""
    members: dict[str, str] = {}
    for event in events:
        match event:
            case Name(data):
                named += data.decode()
            case FunctionOpen(name):
                function, named, whole, key, members = name or named, "", "", "", {}
            case ParameterOpen(name):
                key, named = name or named, ""
                members[key] = ""
            case Text(data) | Json(data) if key:
                members[key] += data.decode()
            case Json(data):
                whole += data.decode()
            case Text(data):  # raw text within JSON
                whole += json.dumps(data.decode())[1:-1]
            case CallClose():
                found.append((function, members or _loaded(whole)))
            case _:
                pass
    return found


def _loaded(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
