"""The real server over a tiny random model: whatever is sampled, what the openai package gets is valid."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jsonschema
import openai
import pytest

from larksong.api.runtime.background import BackgroundServer
from larksong.api.server import create_app
from larksong.api.turns.model import Model
from larksong.engine.backends.transformers import TransformersBackend
from larksong.grammars import wire_format
from tests.support.tiny_model import write_tiny_model

NOTE = {
    "type": "object",
    "properties": {
        "text": {"type": "string", "minLength": 60, "maxLength": 80},
        "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
        "days": {"type": "integer"},
    },
    "required": ["text", "unit"],
}
TOOLS = [{"type": "function", "function": {"name": name, "parameters": NOTE}} for name in ("note", "notify")]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[openai.OpenAI]:
    folder = write_tiny_model(tmp_path_factory.mktemp("models") / "tiny")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "max_position_embeddings": 8192}))
    backend = TransformersBackend.load(folder, device="cpu", threads=1)
    with BackgroundServer(create_app([Model(backend, wire_format("qwen3_coder"))])) as server:
        yield openai.OpenAI(base_url=server.url, api_key="none", max_retries=0)


def _deltas(client: openai.OpenAI, seed: int, format: str) -> tuple[list[tuple[int, Any]], str | None]:
    """(step, delta) of each delta of a call, and the finish reason."""
    request: Any = {
        "model": "tiny",
        "messages": [{"role": "user", "content": "Write notes."}],
        "tools": TOOLS,
        "tool_choice": "required",
        "temperature": 1.5,
        "seed": seed,
        "max_tokens": 1500,
        "stream": True,
        "stream_options": {"include_steps": True},
        "extra_body": {"min_tool_calls": 2, "max_tool_calls": 2, "tool_format": format},
    }
    deltas: list[tuple[int, Any]] = []
    reason = None
    for chunk in client.chat.completions.create(**request):
        reason = chunk.choices[0].finish_reason
        for delta in chunk.choices[0].delta.tool_calls or ():
            deltas.append((chunk.model_extra["larksong"]["step"], delta))
    return deltas, reason


@pytest.mark.parametrize("format", ["qwen3_coder", "hermes"])
@pytest.mark.parametrize("seed", range(3))
def test_sampled_calls_fit_their_schema_and_stream_as_they_grow(
    client: openai.OpenAI, seed: int, format: str
) -> None:
    deltas, reason = _deltas(client, seed, format)
    assert reason == "tool_calls"
    for index in (0, 1):
        own = [(step, delta) for step, delta in deltas if delta.index == index]
        arguments = json.loads("".join(delta.function.arguments for _, delta in own))
        jsonschema.validate(arguments, NOTE)
        assert len({step for step, _ in own}) >= 10


def test_the_same_seed_gives_the_same_calls_beside_other_requests(client: openai.OpenAI) -> None:
    def arguments(seed: int) -> str:
        deltas, _ = _deltas(client, seed, "hermes")
        return "".join(delta.function.arguments for _, delta in deltas)

    alone = arguments(1)
    with ThreadPoolExecutor(3) as pool:
        together = list(pool.map(arguments, (1, 2, 1)))
    assert together[0] == together[2] == alone
    assert together[1] != alone
