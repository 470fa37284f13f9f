"""litellm, which many agents are built on: whole and streamed."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from tests.api.serving import Served
from tests.clients.round_trip import ANSWER, ARGUMENTS, FORMATS, RESULT, TOOL, check_second_prompt, weather


@pytest.fixture(scope="module")
def litellm() -> Any:
    """Its import takes seconds, so that only the process has it that runs these tests."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # it would fetch a list of prices
    return pytest.importorskip("litellm", reason="pip install 'larksong[clients]'")


def _ask(litellm: Any, server: Served, messages: list[Any], **fields: Any) -> Any:
    return litellm.completion(
        model="hosted_vllm/recorded",
        api_base=str(server.client.base_url),
        api_key="none",
        messages=messages,
        tools=[TOOL],
        num_retries=0,
        **fields,
    )


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("format", FORMATS)
def test_a_round_trip(litellm: Any, format: str, stream: bool) -> None:
    messages: list[Any] = [{"role": "user", "content": "How is the weather?"}]
    with weather(format) as server:
        made = _ask(litellm, server, messages, stream=stream)
        if stream:
            made = litellm.stream_chunk_builder(list(made), messages=messages)
        message = made.choices[0].message
        assert made.choices[0].finish_reason == "tool_calls"
        [call] = message.tool_calls
        assert (call.function.name, json.loads(call.function.arguments)) == ("get_weather", ARGUMENTS)
        messages += [message.model_dump(), {"role": "tool", "tool_call_id": call.id, "content": RESULT}]
        assert _ask(litellm, server, messages).choices[0].message.content == ANSWER
        check_second_prompt(server)
