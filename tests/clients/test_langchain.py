"""LangChain's ChatOpenAI: bound tools, a stream, structured output."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.api.serving import Served, serving
from tests.clients.round_trip import (
    ANSWER,
    ARGUMENTS,
    FORMATS,
    RESULT,
    SCHEMA,
    TOOL,
    check_second_prompt,
    weather,
)


def _chat(server: Served) -> Any:
    # Imported here, since it takes seconds: only the process has it that runs these tests.
    langchain_openai = pytest.importorskip("langchain_openai", reason="pip install 'larksong[clients]'")
    return langchain_openai.ChatOpenAI(
        base_url=str(server.client.base_url),
        api_key="none",
        model="recorded",
        max_retries=0,
        stream_usage=True,
    )


@pytest.mark.parametrize("choice", ["auto", "any"])
@pytest.mark.parametrize("format", FORMATS)
def test_bound_tools(format: str, choice: str) -> None:
    with weather(format) as server:
        bound = _chat(server).bind_tools([TOOL], tool_choice=choice)
        from langchain_core.messages import HumanMessage, ToolMessage

        messages: list[Any] = [HumanMessage("How is the weather?")]
        made = bound.invoke(messages)
        assert [(call["name"], call["args"]) for call in made.tool_calls] == [("get_weather", ARGUMENTS)]
        result = ToolMessage(RESULT, tool_call_id=made.tool_calls[0]["id"])
        answer = _chat(server).bind_tools([TOOL]).invoke([*messages, made, result])
        assert answer.content == ANSWER
        check_second_prompt(server)


@pytest.mark.parametrize("format", FORMATS)
def test_a_stream(format: str) -> None:
    with weather(format, before="Let me look.\n") as server:
        whole: Any = None
        for chunk in _chat(server).bind_tools([TOOL]).stream("How is the weather?"):
            whole = chunk if whole is None else whole + chunk
    assert whole.content == "Let me look.\n"
    assert [(call["name"], call["args"]) for call in whole.tool_calls] == [("get_weather", ARGUMENTS)]
    assert whole.usage_metadata["output_tokens"] > 0


def test_structured_output() -> None:
    with serving(json.dumps(ARGUMENTS)) as server:
        schema = {"title": "Weather", "description": "The weather.", **SCHEMA}
        made = _chat(server).with_structured_output(schema, method="json_schema", strict=True).invoke("And?")
    assert made == ARGUMENTS
