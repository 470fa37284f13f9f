"""`larksong demo`: a real model writes tool calls, and the terminal shows them grow.

Everything goes over HTTP through the `openai` package, as in any program that uses the server; only
`stream_options.include_steps` and the numbers of calls are Larksong's own.
"""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import openai
from rich.console import Console
from rich.json import JSON
from rich.live import Live
from rich.panel import Panel

from larksong.api.commands.demo_view import StreamRecord, delta_table, growing_answer
from larksong.api.runtime.background import BackgroundServer
from larksong.api.server import create_app
from larksong.api.settings.settings import Settings
from larksong.api.turns.model import Model

_CITY = {"type": "string", "description": "Name of the city", "maxLength": 40}
_UNIT = {"type": "string", "enum": ["celsius", "fahrenheit"]}
_NOTE = {"type": "string", "description": "A note of 40 words for the traveller", "maxLength": 280}
_PARIS = (
    "It will rain in Paris this week, so take a good raincoat and dry shoes. The evenings are cold: a warm "
    "jumper helps. Carry an umbrella in the Louvre garden, and sunglasses for the one bright day."
)


def run(model: Model, console: Console) -> bool:
    """Both scenes against a server of `model`; whether all calls came and are valid."""
    with BackgroundServer(create_app([model], Settings(api_key=None, api_key_file=None))) as server:
        client = openai.OpenAI(base_url=server.url, api_key="none needed", max_retries=0)
        console.print(f"{model.name}, wire format {model.wire_format.name}, at {server.url}\n")
        cities = _request(
            model.name,
            {"city": _CITY, "unit": _UNIT},
            [
                *_earlier("What is the weather in Paris?", city="Paris", unit="celsius"),
                {"role": "user", "content": "What is the weather in Amsterdam and in Tokyo?"},
            ],
            min_tool_calls=2,
            max_tool_calls=2,
        )
        note = _request(
            model.name,
            {"city": _CITY, "note": _NOTE},
            [
                *_earlier("What is the weather in Paris? Note what to pack.", city="Paris", note=_PARIS),
                {
                    "role": "user",
                    "content": "What is the weather in Amsterdam? Note in 40 words what to pack.",
                },
            ],
            max_tool_calls=1,
        )
        came = _play(client, console, "Two calls", cities)
        return _play(client, console, "A string while it is being written", note) >= 1 and came >= 2


def _request(
    model: str, parameters: dict[str, Any], messages: list[dict[str, Any]], **calls: int
) -> dict[str, Any]:
    """A call of get_weather with these parameters, streamed, each delta with its decoding step."""
    function = {
        "name": "get_weather",
        "description": "Get the current weather in a city",
        "parameters": {
            "type": "object",
            "properties": parameters,
            "required": list(parameters),
            "additionalProperties": False,
        },
    }
    return {
        "model": model,
        "messages": messages,
        "tools": [{"type": "function", "function": function}],
        "tool_choice": "required",
        **calls,
        "temperature": 0,
        "max_tokens": 300,
        "stream": True,
        "stream_options": {"include_usage": True, "include_steps": True},
    }


def _earlier(question: str, **arguments: str) -> list[dict[str, Any]]:
    """A question, call and answer before: so small a model needs to see once how it is done."""
    function = {"name": "get_weather", "arguments": json.dumps(arguments)}
    return [
        {"role": "user", "content": question},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "call_paris", "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": "call_paris", "content": "18 degrees, light rain"},
        {"role": "assistant", "content": "It is 18 degrees in Paris, with light rain."},
    ]


def _play(client: openai.OpenAI, console: Console, title: str, request: dict[str, Any]) -> int:
    """Sends `request`, shows what comes; the number of calls, or 0 if one of them is not valid."""
    console.rule(title)
    console.print("POST /v1/chat/completions")
    console.print(JSON(json.dumps(request)))
    record = StreamRecord()
    faults = []
    try:
        # `extra_body` carries what the package does not know: the whole request may go there.
        stream = client.chat.completions.create(
            model=request["model"], messages=request["messages"], stream=True, extra_body=request
        )
        with Live(console=console, refresh_per_second=20) as live:
            for chunk in stream:
                record.add(chunk)
                live.update(growing_answer(record))
    except openai.APIError as error:
        faults.append(str(error))
    if not console.is_terminal:
        console.line()  # Live ends its last line only on a terminal
    console.print(record.summary)
    console.print(delta_table(record))
    faults += _faults(record, request)
    for fault in faults:
        console.print(Panel(fault, style="red"))
    return 0 if faults else len(record.calls)


def _faults(record: StreamRecord, request: dict[str, Any]) -> list[str]:
    """What is wrong with the calls, in words."""
    schema = request["tools"][0]["function"]["parameters"]
    faults = []
    if list(record.calls) != list(range(len(record.calls))):
        faults.append(f"the calls' indices are {list(record.calls)}")
    for index, call in record.calls.items():
        try:
            jsonschema.validate(json.loads(call.arguments), schema)
        except (ValueError, jsonschema.ValidationError) as error:
            faults.append(f"call {index} is not valid: {error}")
    return faults
