"""The real small model at a high temperature: what it samples is valid, or an honest beginning of it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jsonschema
import openai
import pydantic_core
import pytest

from larksong.api.runtime.background import BackgroundServer
from larksong.api.server import create_app
from larksong.api.turns.model import Model
from larksong.engine.backends.model_store import find_model
from larksong.engine.backends.transformers import TransformersBackend
from larksong.grammars import wire_format

pytestmark = pytest.mark.model

SEEDS = range(50)
REPORT = {
    "type": "object",
    "properties": {
        "title": {"type": "string", "maxLength": 24},
        "severity": {"type": "string", "enum": ["info", "warning", "error"]},
        "score": {"type": "number"},
        "line": {"type": ["integer", "null"]},
        "tags": {"type": "array", "items": {"type": "string", "maxLength": 12}, "maxItems": 3},
    },
    "required": ["title", "severity", "score"],
}
WEATHER = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "maxLength": 16},
        "unit": {"enum": ["celsius", "fahrenheit"]},
        "days": {"type": "integer"},
    },
    "required": ["city", "unit"],
}
SCHEMAS = {"report": REPORT, "get_weather": WEATHER}
TOOLS: Any = [
    {"type": "function", "function": {"name": name, "description": name, "parameters": schema}}
    for name, schema in SCHEMAS.items()
]


@pytest.fixture(scope="module")
def client() -> Iterator[openai.OpenAI]:
    backend = TransformersBackend.load(find_model(), device="cpu")
    with BackgroundServer(create_app([Model(backend, wire_format("qwen3_coder"))])) as server:
        yield openai.OpenAI(base_url=server.url, api_key="none", max_retries=0, timeout=1800)


def _outcome(client: openai.OpenAI, seed: int) -> str:
    """ "finished" or "length"; raises where a call is not what it must be."""
    completion = client.chat.completions.create(
        model="SmolLM2-135M-Instruct",
        messages=[{"role": "user", "content": "Report on the code and on the weather in Oslo."}],
        tools=TOOLS,
        tool_choice="required",
        temperature=1.5,
        seed=seed,
        max_tokens=100,
        extra_body={"tool_format": ("qwen3_coder", "hermes")[seed % 2], "max_tool_calls": 2},
    )
    (choice,) = completion.choices
    calls: list[Any] = choice.message.tool_calls or []
    cut = calls[-1:] if choice.finish_reason == "length" else []
    for call in calls:
        text = call.function.arguments
        try:
            arguments = json.loads(text)
        except json.JSONDecodeError:
            assert call in cut, text
            if text:  # it may be cut right after its name
                pydantic_core.from_json(
                    text, allow_partial="trailing-strings"
                )  # raises if it is no beginning
        else:
            if call not in cut or text.endswith("}"):
                jsonschema.validate(arguments, SCHEMAS[call.function.name])
    assert choice.finish_reason in ("tool_calls", "length")
    return "length" if cut or not calls else "finished"


def test_fifty_seeds_at_temperature_1_5_give_valid_calls_or_beginnings(client: openai.OpenAI) -> None:
    with ThreadPoolExecutor(2) as pool:
        outcomes = Counter(pool.map(lambda seed: _outcome(client, seed), SEEDS))
    print(f"\n{outcomes['finished']} finished, {outcomes['length']} stopped by max_tokens")
    assert outcomes["finished"] > 0
