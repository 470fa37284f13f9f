"""The real server asked by the openai package, the model replaced by recorded text."""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Sequence
from typing import Any

import openai
import pytest
from openai.types.chat import (
    ChatCompletionChunk,
    ChatCompletionMessage,
    ChatCompletionMessageFunctionToolCall,
)
from openai.types.chat.chat_completion_chunk import ChoiceDeltaToolCall

from larksong.grammars import wire_format
from tests.api.serving import serving

# What stands before and after the name.
OPENINGS = {
    "qwen3_coder": ("<tool_call>\n<function=", ">\n"),
    "hermes": ('<tool_call>\n{"name": "', '", "arguments": '),
}
FORMATS = list(OPENINGS)
# Tokenizers hold a format's markers as tokens of their own, or write them in letters.
MARKERS = [(), ("<tool_call>", "</tool_call>")]


def _tool(name: str, **parameters: Any) -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": parameters or {"city": {"type": "string"}},
        "required": list(parameters or ["city"]),
    }
    return {"type": "function", "function": {"name": name, "parameters": schema}}


def _turn(format: str, *calls: tuple[str, dict[str, Any]]) -> str:
    chosen = wire_format(format)
    return chosen.render_calls(calls)


def _request(**fields: Any) -> Any:
    return {"model": "recorded", "messages": [{"role": "user", "content": "Do it."}], **fields}


def _stream(
    client: openai.OpenAI, tools: Sequence[dict[str, Any]] = (), **fields: Any
) -> list[ChatCompletionChunk]:
    asked = {"include_usage": True, "include_steps": True}
    request = _request(stream=True, **{"stream_options": asked, "tools": tools, **fields})
    return list(client.chat.completions.create(**request))


def _function_calls(message: ChatCompletionMessage) -> list[ChatCompletionMessageFunctionToolCall]:
    return [call for call in message.tool_calls or () if call.type == "function"]


def _call_deltas(chunks: Sequence[ChatCompletionChunk]) -> list[tuple[int, ChoiceDeltaToolCall]]:
    """(number of the decoding step, delta) of each delta of a call."""
    return [
        ((chunk.model_extra or {})["larksong"]["step"], delta)
        for chunk in chunks
        for choice in chunk.choices
        for delta in choice.delta.tool_calls or ()
    ]


def _arguments(chunks: Sequence[ChatCompletionChunk], index: int) -> str:
    deltas = [delta for _, delta in _call_deltas(chunks) if delta.index == index]
    return "".join(delta.function.arguments or "" for delta in deltas if delta.function)


def _step_that_decides_the_name(tokens: Sequence[str], format: str, names: Sequence[str], by_id: bool) -> int:
    """The first step after which the text holds the call's opening marker and fits one name alone.

    In letters the marker alone may be words of a text: what follows it belongs to it.
    """
    before, after = OPENINGS[format]
    opening = "<tool_call>" if by_id else before
    for step in range(len(tokens)):
        written = "".join(tokens[: step + 1])
        if not written.startswith(opening):
            continue
        texts = {name: before + name + after for name in names}
        possible = [
            name for name, text in texts.items() if text.startswith(written) or written.startswith(text)
        ]
        if len(possible) == 1:
            return step
    raise AssertionError("the text holds no call")


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("markers", MARKERS)
@pytest.mark.parametrize("choice", ["auto", "required"])
@pytest.mark.parametrize(
    ("called", "names"),
    [
        ("get_weather", ["get_weather"]),
        ("get_weather", ["get_weather", "send_mail"]),
        ("get_weather", ["get_weather", "get_weather_alerts", "get_time"]),
        ("get_weather_alerts", ["get_weather", "get_weather_alerts", "get_time"]),
        ("get_time", ["get_weather", "get_weather_alerts", "get_time"]),
    ],
)
def test_the_name_leaves_in_the_step_after_which_no_other_is_possible(
    format: str, markers: tuple[str, ...], choice: str, called: str, names: list[str]
) -> None:
    text = _turn(format, (called, {"city": "Oslo"}))
    with serving(text, format=format, markers=markers) as server:
        chunks = _stream(server.client, [_tool(name) for name in names], tool_choice=choice)
        tokens = server.tokens(text)
    step, first = _call_deltas(chunks)[0]
    assert first.function is not None
    assert first.function.name == called
    assert step == _step_that_decides_the_name(tokens, format, names, bool(markers))


@pytest.mark.parametrize("format", FORMATS)
def test_a_long_string_arrives_in_many_deltas_of_different_steps(format: str) -> None:
    note = 'Pack a raincoat, "good" shoes\nand a warm jumper: Tokyo is wet, Zürich is cold, 東京 is both 🗼.'
    text = _turn(format, ("note", {"text": note}))
    with serving(text, format=format) as server:
        assert len(server.tokens(note)) >= 20
        chunks = _stream(server.client, [_tool("note", text={"type": "string"})], tool_choice="required")
    deltas = _call_deltas(chunks)
    assert len(deltas) >= 10
    assert len({step for step, _ in deltas}) >= 10
    assert json.loads(_arguments(chunks, 0)) == {"text": note}


@pytest.mark.parametrize("format", FORMATS)
def test_chunks_have_the_shape_that_every_client_takes(format: str) -> None:
    text = _turn(format, ("f", {"city": "Oslo"}), ("g", {"city": "Rome"}))
    with serving(text, format=format) as server:
        stream = _stream(server.client, [_tool("f"), _tool("g")], tool_choice="required")
    chunks: list[dict[str, Any]] = [chunk.to_dict() for chunk in stream]
    role, *middle, finish, usage = chunks
    assert role["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert finish["choices"] == [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]
    assert usage["choices"] == []
    counts = usage["usage"]
    assert counts["total_tokens"] == counts["prompt_tokens"] + counts["completion_tokens"]
    assert {(c["id"], c["object"], c["model"]) for c in chunks} == {
        (role["id"], "chat.completion.chunk", "recorded")
    }
    opened: list[int] = []
    for chunk in middle:
        [choice] = chunk["choices"]
        assert choice["finish_reason"] is None
        [delta] = choice["delta"].pop("tool_calls")
        assert choice["delta"] == {}
        if delta["index"] in opened:
            assert set(delta) == {"index", "function"}
            assert set(delta["function"]) == {"arguments"}
            assert delta["function"]["arguments"] != ""
        else:
            assert set(delta) == {"index", "id", "type", "function"}
            assert delta["type"] == "function"
            assert delta["id"].startswith("call_")
            assert delta["function"] == {"name": "fg"[len(opened)], "arguments": ""}
            opened.append(delta["index"])
    assert opened == [0, 1]


def test_usage_and_steps_come_only_when_asked_for() -> None:
    with serving("Hello there.") as server:
        chunks = [chunk.to_dict() for chunk in _stream(server.client, stream_options={})]
    assert all("usage" not in chunk and "larksong" not in chunk and chunk["choices"] for chunk in chunks)


@pytest.mark.parametrize("format", FORMATS)
def test_a_whole_answer_is_the_streams_deltas_put_together(format: str) -> None:
    calls = [("f", {"city": "Oslo"}), ("f", {"city": "東京"})]
    text = "Let me look.\n" + _turn(format, *calls)
    with serving(text, text, format=format) as server:
        chunks = _stream(server.client, [_tool("f")])
        whole = server.client.chat.completions.create(**_request(tools=[_tool("f")]))
    message = whole.choices[0].message
    assert whole.choices[0].finish_reason == "tool_calls"
    assert message.content == "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    written = [call.function.arguments for call in _function_calls(message)]
    assert [json.loads(arguments) for arguments in written] == [arguments for _, arguments in calls]
    assert written == [_arguments(chunks, 0), _arguments(chunks, 1)]
    assert whole.usage == chunks[-1].usage


def test_text_alone_ends_with_stop() -> None:
    with serving("Grüße aus Köln, 東京!") as server:
        chunks = _stream(server.client)
    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == "Grüße aus Köln, 東京!"
    assert chunks[-2].choices[0].finish_reason == "stop"


@pytest.mark.parametrize("format", FORMATS)
def test_a_turn_cut_short_ends_with_length_and_a_prefix_of_its_arguments(format: str) -> None:
    text = _turn(format, ("f", {"city": "Llanfairpwllgwyngyll"}))
    with serving(text, format=format) as server:
        limit = len(server.tokens(text)) - 25
        chunks = _stream(server.client, [_tool("f")], tool_choice="required", max_tokens=limit)
    assert chunks[-2].choices[0].finish_reason == "length"
    assert '{"city": "Llanfairpwllgwyngyll"}'.startswith(_arguments(chunks, 0))
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens == limit


@pytest.mark.parametrize("format", FORMATS)
def test_the_packages_stream_helper_sees_each_call_grow(format: str) -> None:
    text = _turn(format, ("f", {"city": "Oslo"}), ("f", {"city": "Rome"}))
    with (
        serving(text, format=format) as server,
        server.client.chat.completions.stream(**_request(tools=[_tool("f")])) as stream,
    ):
        events = list(stream)
        final = stream.get_final_completion()
    kinds = [event.type for event in events]
    assert kinds.count("tool_calls.function.arguments.done") == 2
    assert kinds.count("tool_calls.function.arguments.delta") > 4
    calls = _function_calls(final.choices[0].message)
    assert [json.loads(call.function.arguments)["city"] for call in calls] == ["Oslo", "Rome"]


@pytest.mark.parametrize("format", FORMATS)
def test_a_round_trip_of_call_and_result(format: str) -> None:
    with serving(_turn(format, ("f", {"city": "Oslo"})), "It rains.", format=format) as server:
        messages: list[Any] = [{"role": "user", "content": "How is Oslo?"}]
        request = _request(messages=messages, tools=[_tool("f")])
        answer = server.client.chat.completions.create(**request)
        [call] = answer.choices[0].message.tool_calls or []
        messages += [
            answer.choices[0].message.to_dict(),
            {"role": "tool", "tool_call_id": call.id, "content": [{"type": "text", "text": "rain"}]},
        ]
        reply = server.client.chat.completions.create(**request)
        prompt = server.backend.prompts[-1]
    assert reply.choices[0].message.content == "It rains."
    assert wire_format(format).render_call("f", {"city": "Oslo"}) in prompt
    assert "<tool_response>\nrain\n</tool_response>" in prompt


def test_two_requests_are_served_at_once() -> None:
    texts = ["one " * 50, "two " * 50]
    with serving(*texts, tokens_per_second=100) as server:
        arrivals: list[tuple[int, float]] = []

        def ask(number: int) -> None:
            for chunk in server.client.chat.completions.create(**_request(stream=True)):
                if chunk.choices[0].delta.content:
                    arrivals.append((number, time.perf_counter()))

        threads = [threading.Thread(target=ask, args=(number,)) for number in (0, 1)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    order = [number for number, _ in sorted(arrivals, key=lambda arrival: arrival[1])]
    changes = sum(a != b for a, b in itertools.pairwise(order))
    assert changes >= 10


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_leaves_ends_the_generation(stream: bool) -> None:
    with serving("word " * 2000, tokens_per_second=200) as server:
        if stream:
            chunks = server.client.chat.completions.create(**_request(stream=True))
            for _ in range(3):
                next(chunks)
            chunks.close()
        else:
            with pytest.raises(openai.APITimeoutError):
                server.client.with_options(timeout=0.3).chat.completions.create(**_request())
        assert server.backend.closed.wait(timeout=60)
        assert server.backend.written < 5000


def test_a_fault_in_mid_stream_is_an_error_event() -> None:
    refused = "<tool_call>\n<function=f>\n<parameter=town>\n"
    with serving(refused, "Still here.") as server:
        with pytest.raises(openai.APIError) as caught:
            _stream(server.client, [_tool("f")], tool_choice="required")
        assert isinstance(caught.value.body, dict)
        assert caught.value.body["type"] == "server_error"
        assert _stream(server.client)[1].choices[0].delta.content is not None
