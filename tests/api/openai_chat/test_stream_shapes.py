"""The shapes of chunks, each rule by itself, over the wire: what SDKs break on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from larksong.grammars import wire_format
from tests.api.serving import Served, serving

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
                "required": ["city"],
            },
        },
    }
    for name in ("f", "g")
]
CALLS = [("f", {"city": "Oslo", "days": 12}), ("g", {"city": "Rome"})]
MARKERS = ("<tool_call>", "</tool_call>", "<think>", "</think>")
REASONED = "<think>\nLet me think.\n</think>\n\nI look.\n"


def body(**fields: Any) -> dict[str, Any]:
    return {"model": "recorded", "messages": [{"role": "user", "content": "Do it."}], **fields}


def lines(server: Served, **fields: Any) -> list[str]:
    """The lines of a stream."""
    url = f"{server.client.base_url}chat/completions"
    with httpx.stream("POST", url, json=body(stream=True, **fields)) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        return list(answer.iter_lines())


def chunks(server: Served, **fields: Any) -> list[dict[str, Any]]:
    """The chunks of a stream, which must end with [DONE]."""
    data = [line.removeprefix("data: ") for line in lines(server, **fields) if line.startswith("data: ")]
    assert data[-1] == "[DONE]"
    return [json.loads(each) for each in data[:-1]]


@pytest.fixture(scope="module", params=["qwen3_coder", "hermes"])
def stream(request: pytest.FixtureRequest) -> Iterator[list[dict[str, Any]]]:
    text = REASONED + wire_format(request.param).render_calls(CALLS)
    with serving(text, format=request.param, markers=MARKERS) as server:
        yield chunks(server, tools=TOOLS, stream_options={"include_usage": True})


def deltas(stream: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [choice["delta"] for chunk in stream for choice in chunk["choices"]]


def calls(stream: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [call for delta in deltas(stream) for call in delta.get("tool_calls", ())]


def test_the_first_delta_has_the_role_and_empty_content(stream: list[dict[str, Any]]) -> None:
    assert deltas(stream)[0] == {"role": "assistant", "content": ""}
    assert not any("role" in delta for delta in deltas(stream)[1:])


def test_every_delta_of_a_call_has_its_index(stream: list[dict[str, Any]]) -> None:
    assert {call["index"] for call in calls(stream)} == {0, 1}


def test_id_type_and_name_come_once_with_empty_arguments(stream: list[dict[str, Any]]) -> None:
    firsts = [call for call in calls(stream) if "id" in call]
    assert [call["index"] for call in firsts] == [0, 1]
    for call, (name, _) in zip(firsts, CALLS, strict=True):
        assert call["type"] == "function"
        assert call["function"] == {"name": name, "arguments": ""}


def test_later_deltas_have_index_and_arguments_alone(stream: list[dict[str, Any]]) -> None:
    for call in calls(stream):
        if "id" not in call:
            assert set(call) == {"index", "function"}
            assert set(call["function"]) == {"arguments"}


def test_no_key_of_a_delta_is_null(stream: list[dict[str, Any]]) -> None:
    assert "null" not in json.dumps(deltas(stream))


def test_reasoning_and_content_stand_in_fields_of_their_own(stream: list[dict[str, Any]]) -> None:
    reasoning = "".join(delta.get("reasoning_content", "") for delta in deltas(stream))
    assert reasoning.strip() == "Let me think."
    assert "".join(delta.get("content", "") for delta in deltas(stream)) == "I look.\n"


def test_the_finish_reason_stands_in_an_empty_delta_before_the_usage(stream: list[dict[str, Any]]) -> None:
    *before, finish, usage = stream
    assert finish["choices"] == [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]
    assert all(choice["finish_reason"] is None for chunk in before for choice in chunk["choices"])
    assert usage["choices"] == []
    assert usage["usage"]["prompt_tokens_details"] == {"cached_tokens": 0}
    assert usage["usage"]["completion_tokens_details"]["reasoning_tokens"] > 3


def test_length_wins_over_tool_calls() -> None:
    with serving(wire_format("hermes").render_calls(CALLS), format="hermes", markers=MARKERS) as server:
        last = chunks(server, tools=TOOLS, max_tokens=25)[-1]
    assert last["choices"][0]["finish_reason"] == "length"


@pytest.mark.parametrize("field", ["reasoning", "both"])
def test_the_field_of_reasoning_is_a_setting(field: str) -> None:
    with serving(REASONED, markers=MARKERS, settings={"reasoning_field": field}) as server:
        found = deltas(chunks(server))
        whole = httpx.post(f"{server.client.base_url}chat/completions", json=body()).json()
    names = {"reasoning"} if field == "reasoning" else {"reasoning", "reasoning_content"}
    thoughts = [delta for delta in found if names & set(delta)]
    assert all(names <= set(delta) for delta in thoughts)
    message = whole["choices"][0]["message"]
    assert {name for name in message if name.startswith("reasoning")} == names


def test_comments_come_while_the_client_waits() -> None:
    with serving("slow", tokens_per_second=2, settings={"ping_seconds": 0.1}) as server:
        assert sum(line.startswith(": ping") for line in lines(server)) >= 3


def test_parse_events_come_beside_the_deltas() -> None:
    text = "I look.\n" + wire_format("qwen3_coder").render_calls(CALLS[:1])
    with serving(text, markers=MARKERS) as server:
        found = chunks(server, tools=TOOLS, stream_options={"parse_events": True})
    events = [event for chunk in found for event in chunk.get("larksong", {}).get("events", ())]
    shown = [
        (event["event"], event.get("name"), event.get("type"))
        for event in events
        if event["event"] != "value"
    ]
    said = [each for each in shown if each[0] != "content"]
    assert said == [
        ("function_open", "f", None),
        ("parameter_open", "city", "string"),
        ("parameter_close", None, None),
        ("parameter_open", "days", "integer"),
        ("parameter_close", None, None),
        ("call_close", None, None),
    ]
    assert "".join(event.get("text", "") for event in events if event["event"] == "value") == "Oslo"
    assert "".join(event.get("json", "") for event in events if event["event"] == "value") == "12"
    assert all(event["index"] == 0 for event in events if event["event"] not in ("content", "reasoning"))


def test_several_choices_are_told_apart_by_their_index() -> None:
    with serving("one one", "two two") as server:
        found = chunks(server, n=2)
        whole = httpx.post(f"{server.client.base_url}chat/completions", json=body(n=2)).json()
    texts = {0: "", 1: ""}
    for chunk in found:
        for choice in chunk["choices"]:
            texts[choice["index"]] += choice["delta"].get("content", "")
    assert sorted(texts.values()) == ["one one", "two two"]
    assert sorted(choice["message"]["content"] for choice in whole["choices"]) == ["one one", "two two"]


@pytest.mark.parametrize("cut", ["four", "three f", ["five", "three"]])
def test_a_stop_text_ends_the_answer_and_is_left_out(cut: Any) -> None:
    text = "one two three four five"
    expected = text[: min(text.index(each) for each in ([cut] if isinstance(cut, str) else cut))]
    with serving(text) as server:
        found = chunks(server, stop=cut)
        whole = httpx.post(f"{server.client.base_url}chat/completions", json=body(stop=cut)).json()
    assert "".join(delta.get("content", "") for delta in deltas(found)) == expected
    assert whole["choices"][0]["message"]["content"] == expected
    assert whole["choices"][0]["finish_reason"] == found[-1]["choices"][0]["finish_reason"] == "stop"


def test_a_stop_text_inside_arguments_is_data() -> None:
    text = wire_format("hermes").render_calls(CALLS[:1])
    with serving(text, format="hermes", markers=MARKERS) as server:
        found = calls(chunks(server, tools=TOOLS, stop=["Oslo"]))
    assert json.loads("".join(call["function"]["arguments"] for call in found)) == CALLS[0][1]


def test_a_limit_above_the_context_is_clamped_and_said() -> None:
    with serving("Hi.") as server:
        url = f"{server.client.base_url}chat/completions"
        answer = httpx.post(url, json=body(max_tokens=100_000))
        prompt = answer.json()["usage"]["prompt_tokens"]
        assert answer.headers["x-larksong-max-tokens"] == str(4096 - prompt)
        assert "x-larksong-max-tokens" not in httpx.post(url, json=body(max_tokens=10)).headers
