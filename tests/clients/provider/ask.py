"""llama-stack's remote::vllm against a server: run by test_llama_stack_provider.py in an environment of its own.

Arguments: base URL, "whole" or "stream". Prints one line of JSON: health, the calls as the provider read them,
the answer after their results, and a value under a JSON Schema.
"""

import asyncio
import json
import sys
from types import SimpleNamespace
from typing import Any

from llama_stack.apis.inference import (
    JsonSchemaResponseFormat,
    SamplingParams,
    ToolDefinition,
    ToolResponseMessage,
    UserMessage,
)
from llama_stack.apis.inference.inference import CompletionMessage
from llama_stack.apis.models import Model
from llama_stack.models.llama.datatypes import ToolCall, ToolParamDefinition
from llama_stack.providers.remote.inference.vllm.config import VLLMInferenceAdapterConfig
from llama_stack.providers.remote.inference.vllm.vllm import VLLMInferenceAdapter

MODEL = Model(identifier="recorded", provider_resource_id="recorded", provider_id="vllm")
TOOLS = [
    ToolDefinition(
        tool_name="get_weather",
        description="The weather.",
        parameters={
            "city": ToolParamDefinition(param_type="string"),
            "days": ToolParamDefinition(param_type="integer"),
        },
    ),
    ToolDefinition(tool_name="ping", description="Without parameters."),
]
RESULT = "Rain, 19 °C"


async def answer(
    adapter: VLLMInferenceAdapter, messages: list[Any], stream: bool
) -> tuple[str, list[ToolCall]]:
    """Text and calls of the model's next message."""
    asked = {"model_id": "recorded", "messages": messages, "tools": TOOLS, "stream": stream}
    made = await adapter.chat_completion(**asked, sampling_params=SamplingParams(max_tokens=1000))
    if not stream:
        return made.completion_message.content, made.completion_message.tool_calls
    text, calls = "", []
    async for chunk in made:
        delta = chunk.event.delta
        if delta.type == "text":
            text += delta.text
        else:
            assert delta.parse_status.value == "succeeded", delta
            calls.append(delta.tool_call)
    return text, calls


async def main(url: str, stream: bool) -> None:
    """Ask, give back results, ask for JSON."""
    adapter = VLLMInferenceAdapter(VLLMInferenceAdapterConfig(url=url))

    async def get_model(_: str) -> Model:
        return MODEL

    adapter.model_store = SimpleNamespace(get_model=get_model)
    health = (await adapter.health())["status"]
    await adapter.register_model(MODEL)
    messages: list[Any] = [UserMessage(content="How is São Paulo?")]
    text, calls = await answer(adapter, messages, stream)
    messages.append(CompletionMessage(content=text, stop_reason="end_of_turn", tool_calls=calls))
    messages += [ToolResponseMessage(call_id=call.call_id, content=RESULT) for call in calls]
    said, _ = await answer(adapter, messages, stream)
    schema = {"type": "object", "properties": {"days": {"type": "integer"}}, "required": ["days"]}
    form = JsonSchemaResponseFormat(json_schema=schema)
    made = await adapter.chat_completion(
        "recorded", messages[:1], sampling_params=SamplingParams(max_tokens=1000), response_format=form
    )
    found = {
        "health": health,
        "text": text,
        "calls": [[call.tool_name, call.arguments] for call in calls],
        "ids": [call.call_id for call in calls],
        "answer": said,
        "json": json.loads(made.completion_message.content),
    }
    print(json.dumps(found))


asyncio.run(main(sys.argv[1], sys.argv[2] == "stream"))
