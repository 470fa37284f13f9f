"""The calls of a turn as clients get them."""

import json
from collections.abc import Iterable

from larksong.api.turns.deltas import ArgumentsDelta, CallDelta
from larksong.api.turns.emitter import DeltaEmitter
from larksong.engine.events import ParseEvent
from tests.support.calls import Call


def emitted_calls(events: Iterable[ParseEvent]) -> list[Call]:
    """The calls, all of them complete."""
    calls: list[Call] = []
    texts: list[str] = []
    for delta in DeltaEmitter().feed(events):
        if isinstance(delta, CallDelta):
            calls.append(Call(delta.name))
            texts.append("")
        elif isinstance(delta, ArgumentsDelta):
            texts[delta.index] += delta.fragment
    for call, text in zip(calls, texts, strict=True):
        call.arguments = json.loads(text)
    return calls
