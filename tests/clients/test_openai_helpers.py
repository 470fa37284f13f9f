"""openai-python's own ways to use a stream and to parse, each with a whole round trip of a tool."""

from __future__ import annotations

import json
from typing import Any

import openai
import pytest

from larksong.grammars import wire_format
from tests.api.serving import serving
from tests.clients.round_trip import (
    ANSWER,
    ARGUMENTS,
    CALL,
    FORMATS,
    LEAD,
    RESULT,
    TOOL,
    Weather,
    check_growth,
    check_second_prompt,
    weather,
)


def _messages() -> list[Any]:
    return [{"role": "user", "content": "How is the weather in São Paulo?"}]


def _finish(client: openai.OpenAI, messages: list[Any], message: Any) -> str | None:
    messages.append(message.to_dict())
    for call in message.tool_calls:
        messages.append({"role": "tool", "tool_call_id": call.id, "content": RESULT})
    answer = client.chat.completions.create(model="recorded", messages=messages, tools=[TOOL])  # type: ignore[list-item]
    return answer.choices[0].message.content


@pytest.mark.parametrize("format", FORMATS)
def test_create(format: str) -> None:
    messages = _messages()
    with weather(format) as server:
        made = server.client.chat.completions.create(model="recorded", messages=messages, tools=[TOOL])  # type: ignore[list-item]
        choice = made.choices[0]
        assert choice.finish_reason == "tool_calls"
        assert choice.message.tool_calls is not None
        assert json.loads(choice.message.tool_calls[0].function.arguments) == ARGUMENTS  # type: ignore[union-attr]
        assert _finish(server.client, messages, choice.message) == ANSWER
        check_second_prompt(server)


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("format", FORMATS)
def test_the_stream_helper(format: str, strict: bool) -> None:
    messages = _messages()
    tool: Any = {**TOOL, "function": {**TOOL["function"], "strict": strict}}  # type: ignore[dict-item]
    pieces: list[str] = []
    done: list[Any] = []
    with weather(format, before=LEAD) as server:
        with server.client.chat.completions.stream(
            model="recorded", messages=messages, tools=[tool]
        ) as stream:
            for event in stream:
                if event.type == "tool_calls.function.arguments.delta":
                    pieces.append(event.arguments_delta)
                elif event.type == "tool_calls.function.arguments.done":
                    done.append(event)
            message = stream.get_final_completion().choices[0].message
        check_growth([message.content or ""], pieces)
        assert [(event.name, json.loads(event.arguments)) for event in done] == [CALL]
        assert _finish(server.client, messages, message) == ANSWER
        check_second_prompt(server)


@pytest.mark.parametrize("format", FORMATS)
def test_parse_with_a_pydantic_tool(format: str) -> None:
    messages = _messages()
    tool = openai.pydantic_function_tool(Weather, name="get_weather")
    with weather(format) as server:
        made = server.client.chat.completions.parse(model="recorded", messages=messages, tools=[tool])
        message = made.choices[0].message
        assert message.tool_calls is not None
        assert message.tool_calls[0].function.parsed_arguments == Weather(**ARGUMENTS)
        assert _finish(server.client, messages, message) == ANSWER


def test_parse_with_a_pydantic_answer() -> None:
    with serving(json.dumps(ARGUMENTS)) as server:
        made = server.client.chat.completions.parse(
            model="recorded", messages=_messages(), response_format=Weather
        )
    assert made.choices[0].message.parsed == Weather(**ARGUMENTS)


async def test_the_asynchronous_client() -> None:
    with weather("hermes") as server:
        client = openai.AsyncOpenAI(base_url=server.client.base_url, api_key="none", max_retries=0)
        stream = await client.chat.completions.create(
            model="recorded",
            messages=_messages(),
            tools=[TOOL],  # type: ignore[list-item]
            stream=True,
        )
        pieces = [
            call.function.arguments or ""
            async for chunk in stream
            for choice in chunk.choices
            for call in choice.delta.tool_calls or ()
            if call.function
        ]
        await client.close()
    assert json.loads("".join(pieces)) == ARGUMENTS


def test_text_completions() -> None:
    with serving("Paris.", "Paris.") as server:
        made = server.client.completions.create(model="recorded", prompt="The capital is", max_tokens=30)
        assert (made.choices[0].text, made.choices[0].finish_reason) == ("Paris.", "stop")
        assert server.backend.prompts == ["The capital is"]
        stream = server.client.completions.create(
            model="recorded", prompt="The capital is", max_tokens=30, stream=True
        )
        assert "".join(chunk.choices[0].text for chunk in stream) == "Paris."


def test_legacy_functions() -> None:
    function = TOOL["function"]
    text = wire_format("hermes").render_calls([CALL])
    messages = _messages()
    with serving(text, ANSWER, text, format="hermes") as server:
        ask: Any = server.client.chat.completions.create
        message = ask(model="recorded", messages=messages, functions=[function]).choices[0].message
        assert json.loads(message.function_call.arguments) == ARGUMENTS
        assert message.tool_calls is None
        messages += [
            {"role": "assistant", "content": None, "function_call": message.function_call.to_dict()},
            {"role": "function", "name": "get_weather", "content": RESULT},
        ]
        answer = ask(model="recorded", messages=messages, functions=[function])
        assert answer.choices[0].message.content == ANSWER
        check_second_prompt(server)
        chunks = list(ask(model="recorded", messages=_messages(), functions=[function], stream=True))
    deltas = [chunk.choices[0].delta.function_call for chunk in chunks]
    assert [delta.name for delta in deltas if delta and delta.name] == ["get_weather"]
    assert json.loads("".join(delta.arguments for delta in deltas if delta)) == ARGUMENTS
    assert chunks[-1].choices[0].finish_reason == "function_call"
