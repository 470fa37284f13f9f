"""A real server over the stand-in, and many clients of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from larksong.api.runtime.background import BackgroundServer
from larksong.api.server import create_app
from larksong.api.turns.model import Model
from larksong.engine.backends.exllamav3.backend import ExllamaV3Backend
from larksong.engine.backends.exllamav3.settings import ExllamaV3Settings
from larksong.grammars import wire_format
from tests.exllamav3.stand_in.model import Policy, PrefixModel, hashed


def eager(model: PrefixModel, backend: ExllamaV3Backend, bonus: float = 12.0) -> Policy:
    """Random, but it likes to begin calls, to close strings and to end."""
    row = np.zeros(model.width, dtype=np.float32)
    ids = {data: token for token, data in enumerate(backend.vocabulary.tokens) if data}
    liked = [*backend.vocabulary.special.values(), *(ids[byte] for byte in (b'"', b"}", b"]"))]
    row[liked] = bonus
    other = hashed(model.width)
    return lambda prefix: other(prefix) + row


@dataclass(frozen=True)
class Served:
    url: str
    backend: ExllamaV3Backend
    model: PrefixModel


@contextmanager
def serving(folder: Path, *, format: str = "hermes", **settings: Any) -> Iterator[Served]:
    given = {"device": "cpu", "cache_tokens": 65536, "max_batch": 64, **settings}
    backend = ExllamaV3Backend.load(folder, ExllamaV3Settings(**given))
    model = Model(backend, wire_format(format), name="small")
    with BackgroundServer(create_app([model])) as server:
        yield Served(server.url, backend, backend._model)
    backend.close()


@dataclass(frozen=True)
class Answer:
    content: str
    calls: tuple[tuple[str, str], ...]
    """(name, JSON text of the arguments)"""
    reason: str | None
    chunks: int


async def ask(client: httpx.AsyncClient, request: dict[str, Any]) -> Answer:
    """One streamed completion, put together."""
    content, names, fragments, reason, chunks = "", [], [], None, 0
    async with client.stream("POST", "/chat/completions", json={"stream": True, **request}) as response:
        if response.status_code != 200:
            raise AssertionError((await response.aread()).decode())
        async for line in response.aiter_lines():
            if not line.startswith("data: ") or line == "data: [DONE]":
                continue
            chunk = json.loads(line.removeprefix("data: "))
            assert "error" not in chunk, chunk
            for choice in chunk["choices"]:
                chunks += 1
                reason = choice["finish_reason"] or reason
                content += choice["delta"].get("content") or ""
                for call in choice["delta"].get("tool_calls", ()):
                    if "name" in call["function"]:
                        names.append(call["function"]["name"])
                        fragments.append("")
                    fragments[call["index"]] += call["function"].get("arguments", "")
    return Answer(content, tuple(zip(names, fragments, strict=True)), reason, chunks)


async def ask_all(url: str, requests: list[dict[str, Any]], *, together: bool) -> list[Answer]:
    async with httpx.AsyncClient(
        base_url=url, timeout=300, limits=httpx.Limits(max_connections=100)
    ) as client:
        if together:
            return list(await asyncio.gather(*(ask(client, request) for request in requests)))
        return [await ask(client, request) for request in requests]
