"""However a turn is cut into tokens, the deltas concatenate to the same."""

import json
from collections.abc import Iterable, Sequence
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from larksong.api.turns.deltas import ArgumentsDelta, CallDelta, ContentDelta, Delta, ReasoningDelta
from larksong.api.turns.emitter import DeltaEmitter
from larksong.engine.events import Events
from larksong.grammars import format_names, wire_format
from tests.support.calls import joined, turn
from tests.support.cuts import every_cut, run, turns
from tests.support.examples import examples
from tests.support.markers import MARKERS
from tests.support.readers import same
from tests.support.turns import CALLS, TOOLS


def deltas(steps: Iterable[Events]) -> list[list[Delta]]:
    emitter = DeltaEmitter(call_id=lambda: "call_id")
    return [emitter.feed(events) for events in steps]


def concatenated(steps: Sequence[Sequence[Delta]]) -> tuple[str, str, list[tuple[str, str]]]:
    """Content, reasoning, and each call's name and arguments; the shape of the stream is checked on the way."""
    content, reasoning, calls = "", "", list[tuple[str, str]]()
    for delta in (delta for step in steps for delta in step):
        match delta:
            case ContentDelta(text):
                assert text
                content += text
            case ReasoningDelta(text):
                assert text
                reasoning += text
            case CallDelta(index, _, name):
                assert index == len(calls)
                calls.append((name, ""))
            case ArgumentsDelta(index, fragment):
                assert fragment
                assert index == len(calls) - 1
                fragment.encode()  # no half of a surrogate pair
                name, arguments = calls[index]
                calls[index] = name, arguments + fragment
    return content, reasoning, calls


@pytest.mark.parametrize("name", format_names())
@pytest.mark.parametrize("markers", [(), MARKERS], ids=["markers in letters", "markers by id"])
@given(st.data(), st.integers(0, 2**32))
@examples(4)
def test_every_cut_of_a_turn_gives_the_same_concatenated_deltas(
    name: str, markers: tuple[str, ...], data: st.DataObject, seed: int
) -> None:
    tools, text = data.draw(turns(name))
    cuts = every_cut(text.encode(), Random(seed), markers)
    streams = run(name, tools, cuts, markers)
    one_shot = concatenated(deltas([tuple(joined(event for events in streams[0] for event in events))]))
    for stream in streams:
        assert concatenated(deltas(stream)) == one_shot
    told = turn(event for events in streams[0] for event in events)
    content, _, calls = one_shot
    assert content == told.content.decode()
    assert [called for called, _ in calls] == [call.name for call in told.calls]
    for (_, arguments), call in zip(calls, told.calls, strict=True):
        assert same(json.loads(arguments), call.arguments)


@pytest.mark.parametrize("name", format_names())
def test_calls_of_a_long_turn_are_the_same_however_it_is_cut(name: str) -> None:
    text = wire_format(name).render_calls(CALLS)
    for steps in run(name, TOOLS, every_cut(text.encode(), Random(5))):
        _, _, calls = concatenated(deltas(steps))
        assert [(called, json.loads(arguments)) for called, arguments in calls] == CALLS


def test_qwen3_coders_arguments_are_spelled_as_json_dumps_does() -> None:
    values: list[dict[str, Any]] = [arguments for _, arguments in CALLS]
    text = "\n".join(wire_format("qwen3_coder").render_call(*call) for call in CALLS)
    (steps,) = run("qwen3_coder", TOOLS, [[text.encode()]])
    _, _, calls = concatenated(deltas(steps))
    assert [arguments for _, arguments in calls] == [json.dumps(v, ensure_ascii=False) for v in values]
