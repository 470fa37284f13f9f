"""The real server asked by the anthropic package, the model replaced by recorded text."""

from __future__ import annotations

import json
from typing import Any

import anthropic
import httpx
import openai
import pytest

from larksong.grammars import wire_format
from tests.api.serving import Served, serving
from tests.clients.round_trip import (
    ANSWER,
    ARGUMENTS,
    BOOKED,
    CALL,
    FORMATS,
    HALF_KEPT,
    LEAD,
    MARKERS,
    RESULT,
    SCHEMA,
    THINKING,
    THOUGHT,
    WARNING,
    Weather,
    check_growth,
    check_second_prompt,
    kinds,
    weather,
)

TOOL: Any = {"name": "get_weather", "description": "The weather.", "input_schema": SCHEMA}
QUESTION: Any = {"role": "user", "content": "How is São Paulo?"}


def client(served: Served, **options: Any) -> anthropic.Anthropic:
    url = str(served.client.base_url).removesuffix("/v1/")
    return anthropic.Anthropic(**{"base_url": url, "api_key": "none", "max_retries": 0, **options})


def ask(**fields: Any) -> Any:
    return {"model": "recorded", "max_tokens": 1000, "messages": [QUESTION], **fields}


def answered(message: anthropic.types.Message) -> list[Any]:
    """The conversation after the call's result."""
    results = [
        {"type": "tool_result", "tool_use_id": block.id, "content": RESULT}
        for block in message.content
        if block.type == "tool_use"
    ]
    return [QUESTION, {"role": "assistant", "content": message.content}, {"role": "user", "content": results}]


@pytest.mark.parametrize("format", FORMATS)
def test_create(format: str) -> None:
    with weather(format) as server:
        made = client(server).messages.create(**ask(tools=[TOOL]))
        assert made.stop_reason == "tool_use"
        [call] = made.content
        assert call.type == "tool_use"
        assert (call.name, call.input) == CALL
        last = client(server).messages.create(**ask(tools=[TOOL], messages=answered(made)))
        assert [block.text for block in last.content if block.type == "text"] == [ANSWER]
        assert last.stop_reason == "end_turn"
        check_second_prompt(server)


@pytest.mark.parametrize("format", FORMATS)
def test_the_stream_helper_sees_text_and_input_grow(format: str) -> None:
    texts: list[str] = []
    pieces: list[str] = []
    snapshots: list[Any] = []
    with (
        weather(format, before=LEAD) as server,
        client(server).messages.stream(**ask(tools=[TOOL])) as stream,
    ):
        for event in stream:
            if event.type == "text":
                texts.append(event.text)
            elif event.type == "input_json":
                pieces.append(event.partial_json)
                snapshots.append(event.snapshot)
        message = stream.get_final_message()
    check_growth(texts, pieces)
    assert snapshots[-1] == ARGUMENTS
    assert [block.type for block in message.content] == ["text", "tool_use"]
    assert message.usage.output_tokens > 3


def test_a_stream_has_the_events_that_anthropic_documents_in_their_order() -> None:
    text = THINKING + LEAD + wire_format("hermes").render_calls([CALL, CALL])
    with serving(text, format="hermes", markers=MARKERS) as server:
        events = list(client(server).messages.create(**ask(tools=[TOOL], stream=True)))

    def kind(event: Any) -> str:
        if event.type == "content_block_start":
            return f"{event.type} {event.content_block.type}"
        return str(event.delta.type if event.type == "content_block_delta" else event.type)

    call = ["content_block_start tool_use", "input_json_delta", "content_block_stop"]
    assert kinds(map(kind, events)) == [
        "message_start",
        *("content_block_start thinking", "thinking_delta", "signature_delta", "content_block_stop"),
        *("content_block_start text", "text_delta", "content_block_stop"),
        *(*call, *call, "message_delta", "message_stop"),
    ]
    assert [event.index for event in events if event.type == "content_block_start"] == [0, 1, 2, 3]


def test_thinking_is_signed_and_comes_back_with_the_call() -> None:
    text = THINKING + wire_format("hermes").render_calls([CALL])
    with serving(text, ANSWER, format="hermes", markers=MARKERS) as server:
        with client(server).messages.stream(**ask(tools=[TOOL])) as stream:
            message = stream.get_final_message()
        thinking = message.content[0]
        assert thinking.type == "thinking"
        assert thinking.thinking == THOUGHT
        assert thinking.signature
        client(server).messages.create(**ask(tools=[TOOL], messages=answered(message)))
        check_second_prompt(server)


def test_thinking_that_is_not_to_be_shown_is_not() -> None:
    with serving("<think>Secret.</think>\nHi.", markers=MARKERS) as server:
        thinking = {"type": "adaptive", "display": "omitted"}
        message = client(server).messages.create(**ask(thinking=thinking))
        with client(server).messages.stream(**ask(thinking=thinking)) as stream:
            streamed = stream.get_final_message()
    for each in (message, streamed):
        hidden, text = each.content
        assert (hidden.type, text.type) == ("thinking", "text")
        assert "Secret" not in each.to_json()


def test_a_budget_that_the_backend_cannot_keep_is_left_out() -> None:
    with serving("Hi.") as server:
        server.backend.unsupported = frozenset({"reasoning_budget"})
        thinking = {"type": "enabled", "budget_tokens": 1024}
        assert client(server).messages.create(**ask(thinking=thinking)).stop_reason == "end_turn"
        with pytest.raises(openai.BadRequestError):
            server.client.chat.completions.create(
                model="recorded", messages=[QUESTION], extra_body={"thinking_budget": 1024}
            )


def test_counted_tokens_are_those_of_the_prompt() -> None:
    with serving("Hi.") as server:
        asked = {"model": "recorded", "messages": [QUESTION], "tools": [TOOL], "system": "Be brief."}
        counted: Any = client(server).messages.count_tokens(**asked)
        message = client(server).messages.create(**ask(tools=[TOOL], system="Be brief."))
    assert counted.input_tokens == message.usage.input_tokens


def test_the_system_message_may_be_blocks_with_cache_control() -> None:
    cached = {"cache_control": {"type": "ephemeral"}}
    billing = {"type": "text", "text": "x-anthropic-billing-header: cc_version=1; cch=abc;"}
    system = [billing, {"type": "text", "text": "Be brief.", **cached}, {"type": "text", "text": "Be kind."}]
    content = [{"type": "text", "text": "One.", **cached}, {"type": "text", "text": "Two."}]
    tool = {**TOOL, **cached}
    with serving("Hi.") as server:
        fields = ask(system=system, messages=[{"role": "user", "content": content}], tools=[tool])
        client(server).messages.create(**fields)
        [prompt] = server.backend.prompts
    assert "Be brief.\n\nBe kind." in prompt
    assert "One.\nTwo." in prompt
    assert "billing" not in prompt


@pytest.mark.parametrize(
    ("choice", "calls"),
    [
        ({"type": "auto"}, 2),
        ({"type": "auto", "disable_parallel_tool_use": True}, 1),
        ({"type": "any"}, 2),
        ({"type": "tool", "name": "get_weather"}, 1),
        ({"type": "none"}, 0),
    ],
)
def test_the_mask_keeps_to_tool_choice(choice: Any, calls: int) -> None:
    text = wire_format("hermes").render_calls([CALL] * calls) or "Hi."
    with serving(text, format="hermes") as server:
        made = client(server).messages.create(**ask(tools=[TOOL], tool_choice=choice))
        assert sum(block.type == "tool_use" for block in made.content) == calls
    # Where the recorded text is none that the choice allows, the mask refuses it.
    against = wire_format("hermes").render_calls([CALL] * 3) if calls == 1 else "Hi."
    if choice["type"] in ("any", "tool") or calls == 1:
        with serving(against, format="hermes") as server, pytest.raises(anthropic.InternalServerError):
            client(server).messages.create(**ask(tools=[TOOL], tool_choice=choice))


def test_stop_reasons() -> None:
    call = wire_format("hermes").render_calls([CALL])
    with serving("one two three", "one two three", call, call, format="hermes") as server:
        asked = client(server).messages.create
        stopped = asked(**ask(stop_sequences=["two", "four"]))
        assert (stopped.stop_reason, stopped.stop_sequence) == ("stop_sequence", "two")
        assert asked(**ask()).stop_reason == "end_turn"
        cut = asked(**ask(tools=[TOOL], max_tokens=len(server.tokens(call)) - 12))
        assert cut.stop_reason == "max_tokens"
        # The city is complete, the days are not.
        assert [block.input for block in cut.content if block.type == "tool_use"] in (
            [{}],
            [{"city": CALL[1]["city"]}],
        )
        with client(server).messages.stream(**ask(tools=[TOOL], max_tokens=25)) as stream:
            assert stream.get_final_message().stop_reason == "max_tokens"


def test_parse_with_a_pydantic_answer() -> None:
    with serving(json.dumps(ARGUMENTS)) as server:
        made = client(server).messages.parse(**ask(output_format=Weather))
    assert made.parsed_output == Weather(**ARGUMENTS)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"messages": [{"role": "user", "content": [{"type": "image", "source": {}}]}]}, "messages[0].content[0]"),
        ({"messages": [QUESTION, {"role": "assistant", "content": "It is"}]}, "messages[1]"),
        ({"tools": [TOOL], "tool_choice": {"type": "tool", "name": "f"}}, "tool_choice.name"),
        ({"tools": [TOOL, {"name": "g", "input_schema": {"type": 3}}]}, "tools[1].input_schema#/type"),
        ({"tools": [TOOL, TOOL]}, "tools[1].name"),
        ({"temperature": -1}, "temperature"),
        ({"mcp_servers": [{"name": "x"}]}, "mcp_servers"),
        (
            {"messages": [QUESTION, {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "x"}]}]},
            "messages[0]",
        ),
    ],
)  # fmt: skip
def test_refusals_have_anthropics_shape_and_name_the_field(fields: Any, message: str) -> None:
    with serving("Hi.") as server, pytest.raises(anthropic.BadRequestError) as caught:
        client(server).messages.create(**ask(extra_body=fields))
    error: Any = caught.value.body
    assert error["type"] == "error"
    assert error["error"]["type"] == "invalid_request_error"
    assert message in error["error"]["message"]
    assert error["request_id"] == caught.value.response.headers["request-id"]


def test_a_prompt_that_is_too_long_is_told_in_the_words_that_clients_look_for() -> None:
    with serving("Hi.") as server, pytest.raises(anthropic.BadRequestError, match="prompt is too long"):
        client(server).messages.create(**ask(system="word " * 5000))


def test_what_the_grammar_could_not_enforce_is_told_at_the_end() -> None:
    text = wire_format("hermes").render_calls([BOOKED])
    with serving(text, format="hermes") as server:
        tools = [{"name": "book", "input_schema": HALF_KEPT}]
        whole = client(server).messages.create(**ask(tools=tools))
        events = list(client(server).messages.create(**ask(tools=tools, stream=True)))
    [last] = [event for event in events if event.type == "message_delta"]
    for each in (whole, last):
        assert (each.model_extra or {})["larksong"] == {"warnings": [WARNING]}


def test_every_status_is_the_exception_of_the_package() -> None:
    with serving("Hi.", settings={"api_key": "secret", "max_body_bytes": 5000}) as server:
        with pytest.raises(anthropic.AuthenticationError):
            client(server).messages.create(**ask())
        for given in ({"api_key": "secret"}, {"api_key": None, "auth_token": "secret"}):
            assert client(server, **given).messages.create(**ask()).content
        known = client(server, api_key="secret")
        with pytest.raises(anthropic.NotFoundError, match="not_found_error"):
            known.messages.create(**ask(model="claude"))
        with pytest.raises(anthropic.RequestTooLargeError, match="request_too_large"):
            known.messages.create(**ask(system="x" * 6000))


def test_the_tool_runner_goes_on_without_the_thread_that_it_asks_for() -> None:
    @anthropic.beta_tool
    def get_weather(city: str) -> str:
        """The weather of a city."""
        return f"{city}: rain"

    text = wire_format("hermes").render_call("get_weather", {"city": "São Paulo"})
    with serving(text, "It rains.", format="hermes") as server:
        runner = client(server).beta.messages.tool_runner(**ask(tools=[get_weather]))
        assert [[block.type for block in each.content] for each in runner] == [["tool_use"], ["text"]]
        assert "São Paulo: rain" in server.backend.prompts[1]
        with pytest.raises(anthropic.BadRequestError, match="stores no messages") as caught:
            client(server).beta.messages.create(**ask(thread={"type": "create"}))
    error: Any = caught.value.body
    assert error["error"]["details"] == {
        "error_code": "thread_unsupported_request",
        "unsupported": ["thread"],
    }


def test_a_fault_in_the_stream_is_an_error_event() -> None:
    with (
        serving("This is no call.", format="hermes") as server,
        pytest.raises(anthropic.APIStatusError) as caught,
    ):
        list(client(server).messages.create(**ask(tools=[TOOL], tool_choice={"type": "any"}, stream=True)))
    error: Any = caught.value.body
    assert error["error"]["type"] == "api_error"


def test_tools_of_anthropics_servers_are_left_out_and_said_so() -> None:
    search: Any = {"type": "web_search_20250305", "name": "web_search"}
    with serving("Hi.") as server:
        made = client(server).messages.create(**ask(tools=[search, TOOL]))
        assert "web_search" not in server.backend.prompts[0]
        choice = {"type": "tool", "name": "web_search"}
        with pytest.raises(anthropic.BadRequestError, match="web_search"):
            client(server).messages.create(**ask(tools=[search, TOOL], tool_choice=choice))
    assert (made.model_extra or {})["larksong"] == {"left_out_tools": ["web_search"]}


def test_earlier_turns_in_all_their_shapes_are_written_into_the_prompt() -> None:
    use: Any = {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": ARGUMENTS}
    signed: Any = {"type": "thinking", "thinking": "I thought.", "signature": "of another server"}
    texts = [{"type": "text", "text": "Rain,"}, {"type": "text", "text": "wind."}]
    messages: list[Any] = [
        {"role": "user", "content": "First."},
        {"role": "user", "content": [{"type": "text", "text": "Second."}]},
        {"role": "assistant", "content": [signed, {"type": "redacted_thinking", "data": "x"}, use]},
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": texts, "is_error": True},
                {"type": "text", "text": "Go on."},
            ],
        },
    ]
    with serving("Hi.", format="hermes") as server:
        client(server).messages.create(**ask(messages=messages, tools=[TOOL]))
        [prompt] = server.backend.prompts
    places = [
        prompt.index(text) for text in ("First.\nSecond.", "get_weather", "Error: Rain,\nwind.", "Go on.")
    ]
    assert places[0] < places[2] < places[3]


def test_comments_keep_a_slow_stream_alive() -> None:
    with serving("slow words", tokens_per_second=6, settings={"ping_seconds": 0.1}) as server:
        body = {**ask(), "stream": True}
        answer = httpx.post(f"{server.client.base_url}messages", json=body)
    assert ": ping" in answer.text
    assert "event: message_stop" in answer.text
    assert "[DONE]" not in answer.text
