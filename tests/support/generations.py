"""Shorthand for running a backend in a test."""

from collections.abc import AsyncIterable

from larksong.engine.backends.base import Backend, Finish, Generation, Sampling, Step
from larksong.engine.events import Content
from larksong.engine.matcher import Matcher
from larksong.grammars import CallPolicy, Tool, wire_format

WEATHER = Tool(
    name="get_weather",
    description="Weather of a city",
    parameters={
        "type": "object",
        "properties": {"city": {"type": "string"}, "unit": {"enum": ["celsius", "fahrenheit"]}},
        "required": ["city", "unit"],
        "additionalProperties": False,
    },
)
ONE_CALL = CallPolicy(required=True, min_calls=1, max_calls=1, reasoning=False)
CALL_TEXT = wire_format("hermes").render_call("get_weather", {"city": "Amsterdam", "unit": "celsius"})


def generation(
    backend: Backend,
    prompt: str = "hello",
    *,
    matcher: Matcher | None = None,
    max_tokens: int = 20,
    temperature: float = 1.0,
    top_p: float = 1.0,
    top_k: int = 0,
    min_p: float = 0.0,
    seed: int | None = 0,
) -> Generation:
    """A generation whose prompt is text."""
    return Generation(
        prompt=tuple(backend.tokenizer.encode(prompt).ids),
        matcher=matcher,
        sampling=Sampling(temperature=temperature, top_p=top_p, top_k=top_k, min_p=min_p, seed=seed),
        max_tokens=max_tokens,
    )


async def collect(items: AsyncIterable[Step | Finish]) -> tuple[list[Step], Finish]:
    """All steps of a sequence and its end, which nothing may follow."""
    steps: list[Step] = []
    ends: list[Finish] = []
    async for item in items:
        assert not ends, f"{item} after the end"
        (ends if isinstance(item, Finish) else steps).append(item)  # type: ignore[arg-type]
    (end,) = ends
    return steps, end


def content(steps: list[Step], end: Finish) -> bytes:
    """The visible text that the events tell."""
    events = [event for item in (*steps, end) for event in item.events]
    return b"".join(event.data for event in events if isinstance(event, Content))
