"""llama-stack reads the server's streams, and `accumulate` reads what llama-stack was made to read."""

from __future__ import annotations

import json
from typing import Any

import pytest

from larksong.api.turns.accumulate import accumulate
from larksong.grammars import wire_format
from tests.api.serving import serving
from tests.clients.llama_stack import read_calls
from tests.clients.round_trip import ARGUMENTS, CALL, TOOL

FORMATS = ["qwen3_coder", "hermes", "harmony"]
PING: Any = {"type": "function", "function": {"name": "ping"}}
READERS = pytest.mark.parametrize("ends_at_empty", [True, False], ids=["0.2.12", "later"])


def accumulated(chunks: list[dict[str, Any]]) -> list[tuple[str, str, Any]]:
    [message] = accumulate(chunks).messages
    calls = message.get("tool_calls", ())
    return [
        (call["id"], call["function"]["name"], json.loads(call["function"]["arguments"])) for call in calls
    ]


@READERS
@pytest.mark.parametrize("usage", [True, False])
@pytest.mark.parametrize("format", FORMATS)
def test_calls_of_the_server_are_read_whole(format: str, usage: bool, ends_at_empty: bool) -> None:
    text = wire_format(format).render_calls([CALL, ("ping", {}), CALL])
    with serving(text, format=format) as server:
        stream = server.client.chat.completions.create(
            model="recorded",
            messages=[{"role": "user", "content": "Go."}],
            tools=[TOOL, PING],  # type: ignore[list-item]
            stream=True,
            stream_options={"include_usage": usage},
        )
        chunks = [chunk.model_dump() for chunk in stream]
    read = read_calls(chunks, ends_at_empty=ends_at_empty)
    assert read is not None
    assert [(name, arguments) for _, name, arguments in read] == [CALL, ("ping", {}), CALL]
    assert read == accumulated(chunks)


def chunk(*deltas: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"tool_calls": list(deltas)}, "finish_reason": reason}]}


def delta(index: int, id: str | None, name: str | None, arguments: Any) -> dict[str, Any]:
    return {"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


ONE = [("mock_id", "mock_tool", {"foo": "bar"})]
END = chunk(reason="tool_calls")
EMPTY: dict[str, Any] = {"choices": []}
CASES: dict[str, tuple[list[dict[str, Any]], list[tuple[str, str, Any]]]] = {
    "an empty object": (
        [chunk(delta(0, "mock_id", "mock_tool", "{}")), END],
        [("mock_id", "mock_tool", {})],
    ),
    "an object": ([chunk(delta(0, "mock_id", "mock_tool", {"foo": "bar"})), END], ONE),
    "text in pieces": (
        [
            chunk(delta(0, "mock_id", "mock_tool", "")),
            chunk(delta(0, None, None, '{"foo": ')),
            chunk(delta(0, None, None, '"bar"}')),
            END,
        ],
        ONE,
    ),
    "null arguments first": (
        [chunk(delta(0, "mock_id", "mock_tool", None)), chunk(delta(0, None, None, '{"foo": "bar"}')), END],
        ONE,
    ),
    "null arguments alone": (
        [chunk(delta(0, "mock_id", "mock_tool", None)), END],
        [("mock_id", "mock_tool", {})],
    ),
    "everything with the finish reason": (
        [chunk(delta(0, "mock_id", "mock_tool", '{"foo": "bar"}'), reason="tool_calls")],
        ONE,
    ),
    "no finish reason": ([chunk(delta(0, "mock_id", "mock_tool", '{"foo": "bar"}'))], ONE),
    "calls in turns": (
        [
            chunk(delta(0, "a", "f", "")),
            chunk(delta(1, "b", "g", "")),
            chunk(delta(0, None, None, '{"x"')),
            chunk(delta(1, None, None, '{"y": '), delta(0, None, None, ": 1}")),
            chunk(delta(2, "c", "f", "{}"), delta(1, None, None, "2}")),
            END,
        ],
        [("a", "f", {"x": 1}), ("b", "g", {"y": 2}), ("c", "f", {})],
    ),
    "a chunk without choices at the end": (
        [chunk(delta(0, "mock_id", "mock_tool", '{"foo": "bar"}')), END, EMPTY],
        ONE,
    ),
}


@READERS
@pytest.mark.parametrize("case", CASES)
def test_both_read_the_cases_of_llama_stack(case: str, ends_at_empty: bool) -> None:
    chunks, expected = CASES[case]
    assert read_calls(chunks, ends_at_empty=ends_at_empty) == expected
    assert accumulated(chunks) == expected


def test_a_chunk_without_choices_between_others_loses_nothing() -> None:
    first, *rest = CASES["text in pieces"][0]
    chunks = [first, EMPTY, *rest]
    assert read_calls(chunks, ends_at_empty=True) is None
    assert read_calls(chunks, ends_at_empty=False) == accumulated(chunks) == ONE


@READERS
def test_a_stream_of_no_choices_has_no_calls(ends_at_empty: bool) -> None:
    assert not read_calls([EMPTY, EMPTY], ends_at_empty=ends_at_empty)
    assert accumulate([EMPTY, EMPTY]).messages == []


def test_arguments_of_the_server_never_come_before_the_name() -> None:
    """A whole call in its first delta would be read as an object and written anew: pieces are not."""
    text = wire_format("hermes").render_calls([CALL])
    with serving(text, format="hermes") as server:
        stream = server.client.chat.completions.create(
            model="recorded",
            messages=[{"role": "user", "content": "Go."}],
            tools=[TOOL],  # type: ignore[list-item]
            stream=True,
        )
        deltas = [call for each in stream for call in each.choices[0].delta.tool_calls or ()]
    assert [call.function.arguments for call in deltas if call.function and call.function.name] == [""]
    joined = "".join(call.function.arguments or "" for call in deltas if call.function)
    assert json.loads(joined) == ARGUMENTS
