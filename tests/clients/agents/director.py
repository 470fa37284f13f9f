"""A model that knows the jobs: it answers each request by what the request says, not by when it comes."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from larksong.api.runtime.background import BackgroundServer
from larksong.api.server import create_app
from larksong.api.turns.model import Model
from larksong.engine.backends.base import Finish, Generation, Step
from larksong.engine.backends.replay import ReplayBackend
from larksong.grammars import wire_format
from tests.clients.agents.job import Job
from tests.support.agent import thought
from tests.support.families import FAMILIES

Call = tuple[str, dict[str, Any]]
NOTHING = "There is nothing to do."
TITLE = "Russian greeting"
_asked: ContextVar[Mapping[str, Any]] = ContextVar("asked")


@dataclass(frozen=True)
class Script:
    """What the model does in a job: the calls of each turn, as the agent's own tools take them."""

    job: Job
    turns: Sequence[Sequence[Call]]
    leads: Sequence[str] = ("",)
    """what it says before the calls; the first again after the last"""


@dataclass
class Turn:
    """A turn of a job, or of what an agent asks beside it. Times in seconds of `time.monotonic`."""

    job: Job | None
    text: str
    calls: Sequence[Call]
    asked: str = ""
    """the request, as JSON"""
    prompt: str = ""
    began: float = 0.0
    steps: list[float] = field(default_factory=list)


class Director(ReplayBackend):
    """Writes the turns of several jobs, with the tokenizer of a model family, and notes when."""

    def __init__(self, format: str, tokens_per_second: float | None) -> None:
        self.family = next(family for family in FAMILIES if family.format == format)
        model = self.family.backend(None, "")
        super().__init__(
            model.tokenizer,
            model.vocabulary,
            lambda _: self._turn(_asked.get()).text,
            tokens_per_second=tokens_per_second,
            name="recorded",
            context_length=1 << 18,
        )
        self.scripts: list[Script] = []
        self.turns: list[Turn] = []
        self._wire = wire_format(format)

    def generate(self, generation: Generation) -> AsyncGenerator[Step | Finish, None]:
        items = super().generate(generation)
        turn = self._turn(_asked.get())
        turn.asked = json.dumps(_asked.get(), ensure_ascii=False)
        turn.prompt = self.tokenizer.decode(list(generation.prompt), skip_special_tokens=False)
        turn.began = time.monotonic()
        self.turns.append(turn)
        return _timed(items, turn)

    def _turn(self, body: Mapping[str, Any]) -> Turn:
        said = list(_said(body))
        whole = json.dumps(said, ensure_ascii=False)
        script = next((each for each in self.scripts if each.job.sentence in whole), None)
        job = script.job if script is not None else None
        # A request of the agent's own about the job ends with other words than the job's or a result.
        kind, last = said[-1]
        if script is None or (kind != "result" and script.job.sentence not in last):
            return Turn(job, self._words(NOTHING), ())
        if not body.get("tools"):
            # Models that reason do so about titles, too: the agent's first turn is asked for meanwhile.
            about = thought(self.family, "What is it about? " * 20, opened=False)
            return Turn(job, about + self._words(TITLE), ())
        done = sum(kind == "result" for kind, _ in said)
        for number, calls in enumerate(script.turns):
            if done == 0:
                lead = script.leads[number % len(script.leads)]
                return Turn(job, lead + self._wire.render_calls(calls), calls)
            done -= len(calls)
        return Turn(job, self._words(script.job.report), ())

    def _words(self, text: str) -> str:
        return f"<|channel|>final<|message|>{text}" if self._wire.name == "harmony" else text


def _said(body: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What the user said and tools gave, in the three APIs' shapes: ("user" or "result", text)."""
    for item in body.get("messages") or body.get("input") or ():
        content = item.get("content", item.get("output"))
        if item.get("role") == "tool" or item.get("type") == "function_call_output":
            yield "result", json.dumps(content, ensure_ascii=False)
        elif item.get("role") == "user":
            parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
            texts = [part["text"] for part in parts if "text" in part]
            if texts:
                yield "user", "\n".join(texts)
            # Anthropic's results are parts of a message of the user, before its text.
            yield from (
                ("result", json.dumps(part, ensure_ascii=False))
                for part in parts
                if part["type"] == "tool_result"
            )


async def _timed(
    items: AsyncGenerator[Step | Finish, None], turn: Turn
) -> AsyncGenerator[Step | Finish, None]:
    async with aclosing(items):
        async for item in items:
            turn.steps.append(time.monotonic())
            yield item


class _Asked:
    """Lets the backend see the body of the request that it answers, and notes what is refused."""

    def __init__(self, app: ASGIApp, refused: list[str]) -> None:
        self._app = app
        self._refused = refused

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body, status = b"", 0

        async def heard() -> Message:
            nonlocal body
            message = await receive()
            if message["type"] == "http.request":
                body += message.get("body", b"")
                if not message.get("more_body") and body:
                    _asked.set(json.loads(body))
            return message

        async def noted(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            if status >= 400 and (text := message.get("body")):
                self._refused.append(f"{scope['path']} {status}: {text.decode()}")
            await send(message)

        await self._app(scope, heard, noted)


@dataclass(frozen=True)
class Directed:
    """A server of the director.

    `origin`: its address without the API's path. `refused`: answers that are errors.
    """

    director: Director
    origin: str
    refused: list[str] = field(default_factory=list)


@contextmanager
def directed(format: str, *, tokens_per_second: float | None = None) -> Iterator[Directed]:
    """A server whose model knows the jobs that are put into `director.scripts`."""
    director = Director(format, tokens_per_second)
    app = create_app([Model(director, wire_format(format))])
    refused: list[str] = []
    app.add_middleware(_Asked, refused=refused)
    with BackgroundServer(app) as server:
        yield Directed(director, server.url.removesuffix("/v1"), refused)
