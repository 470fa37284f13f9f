"""A prompt that begins like an earlier one is not read again; one that nobody waits for is not read on."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from larksong.engine.backends.base import Finish, Generation, Sampling
from larksong.engine.backends.transformers import PREFILL_CHUNK, TransformersBackend
from tests.support.generations import collect
from tests.support.waiting import until

GREEDY = Sampling(temperature=0)


@pytest.fixture
def passes(tiny_backend: TransformersBackend, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many tokens each forward pass reads."""
    read: list[int] = []
    forward = tiny_backend._model.forward

    def counted(*given: Any, input_ids: Any, **named: Any) -> Any:
        read.append(input_ids.shape[1])
        return forward(*given, input_ids=input_ids, **named)

    monkeypatch.setattr(tiny_backend._model, "forward", counted)
    return read


async def test_the_next_turn_reads_what_is_new(tiny_backend: TransformersBackend, passes: list[int]) -> None:
    prompt = tuple(range(30, 190))
    steps, first = await collect(tiny_backend.generate(Generation(prompt, None, GREEDY, max_tokens=4)))
    assert first.cached_tokens == 0
    assert sum(passes) == len(prompt) + 3  # nobody asks what would follow the last token
    passes.clear()
    longer = (*prompt, *(step.token for step in steps), *range(40, 60))
    again, second = await collect(tiny_backend.generate(Generation(longer, None, GREEDY, max_tokens=4)))
    assert second.cached_tokens == len(prompt) + 3
    assert sum(passes) == len(longer) - second.cached_tokens + 3
    # The same tokens as without anything known.
    fresh = (*range(200, 230), *longer[30:])
    await collect(tiny_backend.generate(Generation(fresh, None, GREEDY, max_tokens=1)))
    for _ in range(5):  # others push it out
        other = tuple((start * 7 + _ * 31) % 250 for start in range(40))
        await collect(tiny_backend.generate(Generation(other, None, GREEDY, max_tokens=1)))
    anew, third = await collect(tiny_backend.generate(Generation(longer, None, GREEDY, max_tokens=4)))
    assert third.cached_tokens == 0
    assert [step.token for step in anew] == [step.token for step in again]


async def test_a_prompt_that_was_read_whole_leaves_one_token_to_read(
    tiny_backend: TransformersBackend, passes: list[int]
) -> None:
    prompt = tuple(range(60, 120))
    first, _ = await collect(tiny_backend.generate(Generation(prompt, None, GREEDY, max_tokens=3)))
    passes.clear()
    second, finish = await collect(tiny_backend.generate(Generation(prompt, None, GREEDY, max_tokens=3)))
    assert finish.cached_tokens == len(prompt) - 1
    assert passes[0] == 1
    assert [step.token for step in first] == [step.token for step in second]


async def test_who_leaves_during_the_prompt_stops_it_at_the_next_chunk(
    tiny_backend: TransformersBackend, passes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    left = threading.Event()
    forward = tiny_backend._model.forward

    def held(*given: Any, **named: Any) -> Any:
        output = forward(*given, **named)
        left.wait(60)
        return output

    monkeypatch.setattr(tiny_backend._model, "forward", held)
    prompt = tuple(number % 200 for number in range(3 * PREFILL_CHUNK + 60))
    items = tiny_backend.generate(Generation(prompt, None, GREEDY, max_tokens=5))
    waiting = asyncio.ensure_future(anext(items))
    await until(lambda: passes)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    left.set()
    await until(lambda: tiny_backend._sequences == [])
    assert passes == [PREFILL_CHUNK]


async def test_probabilities_come_with_every_step_that_asks_the_model(
    tiny_backend: TransformersBackend,
) -> None:
    sampling = Sampling(temperature=0, logprobs=3)
    steps, finish = await collect(
        tiny_backend.generate(Generation(tuple(range(20, 40)), None, sampling, max_tokens=5))
    )
    assert isinstance(finish, Finish)
    for step in steps:
        assert step.logprobs is not None
        assert step.kept == 1
        assert len(step.logprobs.top) == 3
        # The likeliest token was taken.
        assert step.logprobs.top[0] == (step.token, pytest.approx(step.logprobs.chosen))
