"""Many requests of all kinds at once, some of which leave: each writes what it writes alone."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest

from larksong.engine.backends.base import Finish
from larksong.engine.backends.exllamav3.settings import ExllamaV3Settings
from tests.exllamav3.contract import SHORT
from tests.exllamav3.test_backend import Loaded
from tests.support.waiting import until

LONG = {"type": "array", "items": {"type": "string"}, "minItems": 100}
KINDS = {
    "text": lambda loaded: None,
    "short": lambda loaded: loaded.value(SHORT),
    "long": lambda loaded: loaded.value(LONG),
    "call": lambda loaded: loaded.call(),
}
BANNED = ("the", "a", "in", "er", "to", "ci", '"d', "get_weather")


@dataclass
class Asked:
    kind: str
    prompt: str
    tokens: int
    options: dict[str, Any] = field(default_factory=dict)


def asked(number: int, rng: Random) -> Asked:
    options: dict[str, Any] = {"seed": number}
    for share, name, value in (
        (0.4, "banned_strings", tuple(rng.sample(BANNED, rng.randrange(1, 4)))),
        (0.4, "logprobs", rng.randrange(3)),
        (0.3, "temperature", rng.choice([0.0, 0.5, 1.5])),
        (0.3, "repetition_penalty", 1.3),
        (0.2, "min_tokens", rng.randrange(1, 30)),
        (0.2, "top_k", 5),
    ):
        if rng.random() < share:
            options[name] = value
    prompt = f"prompt {number} " + "x y z " * rng.choice([1, 3, 60, 200])
    return Asked(rng.choice(list(KINDS)), prompt, rng.randrange(1, 140), options)


async def answer(loaded: Loaded, one: Asked, *, leave: int | None = None, slow: float = 0.0) -> Any:
    """Tokens, log probabilities and end; None for a reader that has left after so many tokens."""
    generation = loaded.generation(one.prompt, KINDS[one.kind](loaded), one.tokens, **one.options)
    items = loaded.backend.generate(generation)
    found: list[Any] = []
    async for item in items:
        if isinstance(item, Finish):
            return found, item.reason, item.error
        told = item.logprobs
        known = told and (round(told.chosen, 3), [(token, round(value, 3)) for token, value in told.top])
        found.append((item.token, known))
        if leave is not None and len(found) >= leave:
            await items.aclose()
            return None
        if slow and len(found) % 10 == 0:
            await asyncio.sleep(slow)
    raise AssertionError("no end")


@pytest.mark.parametrize("drafts", ["forced", "n-gram", "draft model"])
async def test_what_runs_together_is_what_runs_alone(folder: Path, drafts: str) -> None:
    rng = Random(drafts)
    plain = Loaded(folder, ExllamaV3Settings(device="cpu", cache_tokens=16384, forced_draft=0))
    requests = [asked(number, rng) for number in range(20)]
    alone = [await answer(plain, one) for one in requests]
    plain.backend.close()
    options: dict[str, Any] = {
        "forced": {"cache_tokens": 4096, "requeue_tokens": 256, "max_batch": 7, "chunk": 256},
        "n-gram": {"cache_tokens": 8192, "ngram_draft": 1, "draft_tokens": 5},
        "draft model": {
            "cache_tokens": 8192,
            "draft_model": folder,
            "draft_tokens": 3,
            "requeue_tokens": 256,
        },
    }[drafts]
    loaded = Loaded(folder, ExllamaV3Settings(device="cpu", **options))
    leaves = [rng.randrange(1, 20) if rng.random() < 0.2 else None for _ in requests]
    together = await asyncio.gather(
        *(
            answer(loaded, one, leave=leave, slow=rng.choice([0, 0, 0.02]))
            for one, leave in zip(requests, leaves, strict=True)
        )
    )
    for one, wanted, found in zip(requests, alone, together, strict=True):
        assert found is None or found == wanted, one
    assert sum(found is not None for found in together) > 10
    await until(lambda: not loaded.backend._worker.generator.num_remaining_jobs())
    loaded.backend.close()
