"""The default model itself: it speaks, and under a matcher it writes valid calls."""

import json
from collections.abc import Iterator

import pytest

from larksong.engine.backends.transformers import TransformersBackend
from larksong.engine.engine import Engine
from larksong.engine.events import FunctionOpen, Json
from larksong.grammars import wire_format
from tests.support.generations import ONE_CALL, WEATHER, collect, content, generation

pytestmark = pytest.mark.model


@pytest.fixture(scope="module")
def backend() -> Iterator[TransformersBackend]:
    loaded = TransformersBackend.load()
    yield loaded
    loaded.close()


def chat(system: str, user: str) -> str:
    turns = "".join(
        f"<|im_start|>{role}\n{text}<|im_end|>\n" for role, text in (("system", system), ("user", user))
    )
    return turns + "<|im_start|>assistant\n"


async def test_it_knows_the_capital_of_france(backend: TransformersBackend) -> None:
    prompt = chat("You are a helpful assistant.", "What is the capital of France?")
    steps, end = await collect(backend.generate(generation(backend, prompt, temperature=0, max_tokens=20)))
    assert b"Paris" in content(steps, end)
    assert end.reason == "stop"


async def test_constrained_it_fills_in_the_city(backend: TransformersBackend) -> None:
    hermes = wire_format("hermes")
    matcher = Engine(backend.vocabulary).matcher(hermes.grammar([WEATHER], ONE_CALL, backend.vocabulary))
    prompt = chat(hermes.system_text([WEATHER]), "What is the weather in Amsterdam, in celsius?")
    asked = generation(backend, prompt, matcher=matcher, temperature=0, max_tokens=80)
    steps, end = await collect(backend.generate(asked))
    events = [event for item in (*steps, end) for event in item.events]
    assert end.reason == "stop"
    assert FunctionOpen("get_weather") in events
    arguments = json.loads(b"".join(event.data for event in events if isinstance(event, Json)))
    assert arguments["city"] == "Amsterdam"
    assert arguments["unit"] in ("celsius", "fahrenheit")
