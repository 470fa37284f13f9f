"""A whole round trip with the openai package: the calls are printed while they grow, run, and answered.

Start a server first: larksong serve
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import openai

MODEL = "SmolLM2-135M-Instruct"
GET_WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Get the current weather in a city",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string", "maxLength": 40},
                "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
            },
            "required": ["city", "unit"],
        },
    },
}
PARIS, ROME = ({"city": city, "unit": "celsius"} for city in ("Paris", "Rome"))
# So small a model needs to see once how it is done; a larger one needs no such thing.
EARLIER: list[Any] = [
    {"role": "user", "content": "What is the weather in Paris and in Rome?"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": f"call_{place['city']}",
                "type": "function",
                "function": {"name": "get_weather", "arguments": json.dumps(place)},
            }
            for place in (PARIS, ROME)
        ],
    },
    {"role": "tool", "tool_call_id": "call_Paris", "content": "Paris: 16 degrees celsius, light rain"},
    {"role": "tool", "tool_call_id": "call_Rome", "content": "Rome: 21 degrees celsius, light rain"},
    {
        "role": "assistant",
        "content": "It is 16 degrees celsius with light rain in Paris, "
        "and 21 degrees celsius with light rain in Rome.",
    },
]


def get_weather(city: str, unit: str) -> str:
    """The tool itself."""
    return f"{city}: 18 degrees {unit}, light rain"


def main() -> None:
    """Ask, show the calls as they are written, run them, print the answer."""
    client = openai.OpenAI(
        base_url=os.environ.get("LARKSONG_URL", "http://127.0.0.1:8000") + "/v1", api_key="none needed"
    )
    question = {"role": "user", "content": "What is the weather in Amsterdam and in Tokyo?"}
    messages: list[Any] = [*EARLIER, question]
    tools: list[Any] = [GET_WEATHER]

    with client.chat.completions.stream(
        model=MODEL,
        messages=messages,
        tools=tools,
        tool_choice="required",
        temperature=0,
        # Larksong's own fields: how many calls there must be, and may be.
        extra_body={"min_tool_calls": 2, "max_tool_calls": 2},
    ) as stream:
        for event in stream:
            if event.type == "tool_calls.function.arguments.delta":
                print(event.index, event.name, event.arguments)
        answer = stream.get_final_completion().choices[0].message

    messages.append(answer.to_dict())
    for call in answer.tool_calls or ():
        result = get_weather(**json.loads(call.function.arguments))
        messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
    reply = client.chat.completions.create(model=MODEL, messages=messages, max_tokens=60, temperature=0)
    print(reply.choices[0].message.content)


if __name__ == "__main__":
    try:
        main()
    except openai.APIConnectionError as error:
        sys.exit(
            f"{error} Start a server first: larksong serve; LARKSONG_URL says where another one listens."
        )
