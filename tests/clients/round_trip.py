"""What every client does here: ask, get a call, run the tool, give back the result, get the answer."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pydantic

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
LEAD = "Let me look.\n"
MARKERS = ("<think>", "</think>", "<tool_call>", "</tool_call>")
"""tokens of their own, for turns that begin with the thought"""
THOUGHT = "They ask for São Paulo."
THINKING = f"<think>{THOUGHT}</think>\n"
HALF_KEPT: dict[str, Any] = {
    "type": "object",
    "properties": {"code": {"type": "string", "pattern": r"^(a|b)\1$"}},
}
"""parameters of a tool `book` with a keyword that no grammar keeps"""
BOOKED = ("book", {"code": "ab"})
WARNING = {"tool": "book", "pointer": "/properties/code/pattern", "keyword": "pattern", "valid": False}
"""what is said of that call"""


class Weather(pydantic.BaseModel):
    """What is parsed."""

    city: str
    days: int


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


def check_growth(texts: Sequence[str], pieces: Sequence[str]) -> None:
    """The lead came in `texts`, and the call's arguments in several `pieces`."""
    assert "".join(texts) == LEAD
    assert json.loads("".join(pieces)) == ARGUMENTS
    assert len(pieces) > 3


def kinds(events: Iterable[str]) -> list[str]:
    """Kinds of events, those in a row that are the same as one."""
    return [kind for kind, _ in itertools.groupby(events)]
