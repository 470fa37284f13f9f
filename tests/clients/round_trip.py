"""What every client does here: ask, get a call, run the tool, give back the result, get the answer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from larksong.grammars import wire_format
from tests.api.serving import Served, serving

FORMATS = ("qwen3_coder", "hermes")
CITY = 'São "Paulo"\n'
ARGUMENTS = {"city": CITY, "days": 3}
CALL = ("get_weather", ARGUMENTS)
RESULT = "Rain, 19 °C"
ANSWER = "It rains in São Paulo."
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city", "days"],
    "additionalProperties": False,
}
TOOL = {
    "type": "function",
    "function": {"name": "get_weather", "description": "The weather.", "parameters": SCHEMA},
}


@contextmanager
def weather(format: str, *, before: str = "") -> Iterator[Served]:
    """A server whose model calls `get_weather`, with `before` in front of the call, and then answers."""
    call = wire_format(format).render_calls([CALL])
    with serving(before + call, ANSWER, format=format) as served:
        yield served


def check_second_prompt(served: Served) -> None:
    """The second prompt holds the call and its result."""
    first, second = served.backend.prompts
    assert RESULT in second
    assert "get_weather" in second
    assert len(second) > len(first)
